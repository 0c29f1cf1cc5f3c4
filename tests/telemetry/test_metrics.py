"""Every metric that is promised, with its labels, as the official parser reads it; and no label value of a caller's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.contract.values import Address
from tests.rig import Received, accepted, backend, contract_at, http
from tests.test_serve import agent, fetch, one_exchange, serving

#: Sample names, their kinds and labels; public, and kept stable.
PROMISED = {
    "toolview_tool_calls_total": ("counter", {"tool", "surface", "code"}),
    "toolview_tool_full_bytes_total": ("counter", {"tool", "surface"}),
    "toolview_tool_view_bytes_total": ("counter", {"tool", "surface"}),
    "toolview_tool_catalog_bytes": ("gauge", {"tool", "view"}),
    "toolview_tool_duration_seconds_bucket": ("histogram", {"tool", "le"}),
    "toolview_tool_duration_seconds_count": ("histogram", {"tool"}),
    "toolview_tool_duration_seconds_sum": ("histogram", {"tool"}),
    "toolview_backend_duration_seconds_bucket": ("histogram", {"tool", "le"}),
    "toolview_projection_duration_seconds_bucket": ("histogram", {"tool", "le"}),
    "toolview_answer_violations_total": ("counter", {"tool", "path"}),
    "toolview_stripped_keys_total": ("counter", {"tool", "path"}),
    "toolview_passthrough_requests_total": ("counter", {"backend", "method", "status_class"}),
    "toolview_passthrough_bytes_total": ("counter", {"backend", "direction"}),
    "toolview_passthrough_connections": ("gauge", {"backend"}),
    "toolview_passthrough_opaque_total": ("counter", {"backend"}),
    "toolview_backend_up": ("gauge", {"backend"}),
    "toolview_breaker_state": ("gauge", {"backend"}),
    "toolview_calls_in_flight": ("gauge", {"backend"}),
    "toolview_config_last_reload_successful": ("gauge", set()),
    "toolview_config_last_reload_success_timestamp_seconds": ("gauge", set()),
    "toolview_contract_info": ("gauge", {"digest"}),
}
CONTRACT = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
    backends: {api: {url: URL, passthrough: 127.0.0.1:0, health: {path: /well}, breaker: {}}}
    endpoints:
      rows:
        request: GET /rows
        description: Lists rows.
        validate: observe
        input: {type: object, properties: {text: {type: string}}}
        output:
          type: object
          properties: {rows: {type: array, items: {type: object, properties: {id: {type: integer}}}}}
        tool:
          name: list_rows
          view:
            output: {type: object, properties: {rows: {type: array}, more: {type: integer}}}
            project: {jmespath: "{rows: full.rows[].id, beyond: `1`}"}
"""


def answer(request: Received) -> bytes:
    if request.header("Upgrade"):
        return b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: told\r\n\r\n"
    return http({"rows": [{"id": 1}, {"id": "two"}]})


async def families(admin: Address) -> list[Metric]:
    _, _, text = await fetch(admin, "GET", "/metrics")
    return list(text_string_to_metric_families(text.decode()))


async def test_every_promised_metric_is_there_with_its_labels_and_no_other(tmp_path: Path) -> None:
    async with backend(answer) as api, serving(accepted(tmp_path, CONTRACT.replace("URL", api.url))) as served:
        tools, admin, plain = (served.addresses[name] for name in ("tools", "admin", "passthrough.api"))
        assert (await agent(tools, "list_rows", {}))[0] == 200
        await one_exchange(plain, b"GET /rows HTTP/1.1\r\nHost: x\r\n\r\n")
        await upgraded(plain)
        await fetch(admin, "GET", "/-/ready")
        found = await families(admin)
    shown = {
        sample.name: (family.type, set(sample.labels))
        for family in found
        if family.name.startswith("toolview_")
        for sample in family.samples
    }
    assert {name: shown.get(name) for name in PROMISED} == PROMISED
    histograms = {name.rsplit("_", 1)[0] for name in PROMISED if name.endswith("_bucket")}
    parts = {f"{name}_{part}" for name in histograms for part in ("count", "sum")}
    assert set(shown) <= {*PROMISED, *parts}, "a metric that is not promised is not shown"
    assert all(family.documentation for family in found), "each says what it counts"


async def upgraded(plain: Address) -> None:
    """One exchange that the relay no longer follows; its answer says that it passed."""
    reader, writer = await asyncio.open_connection(plain.host, plain.port)
    writer.write(b"GET /rows HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: told\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    writer.close()


async def test_no_caller_makes_a_label_value(tmp_path: Path) -> None:
    """MET-04: names, methods, paths and headers that somebody thought up come to nothing but `unknown` and `other`."""
    async with backend(answer) as api, serving(accepted(tmp_path, CONTRACT.replace("URL", api.url))) as served:
        tools, admin, plain = (served.addresses[name] for name in ("tools", "admin", "passthrough.api"))
        for made in ("made_up", "list_rows%00", 'x"} 1\nforged{a="', "ünknown", "a" * 300):
            await agent(tools, made.encode().hex() if "\n" in made else made.replace(" ", "%20"), {})
            body = json.dumps({"tool": made, "arguments": {"made_up": 1}}).encode()
            await fetch(admin, "POST", "/console/try", body, "Content-Type: application/json\r\n")
            mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": made, "arguments": {}}}
            sent = "Content-Type: application/json\r\nAccept: application/json\r\n"
            await fetch(tools, "POST", "/mcp", json.dumps(mcp).encode(), sent)
        await agent(tools, "list_rows", {"made_up": "made_up"})
        for method in ("MADEUP", "made_up", "GET"):
            await one_exchange(plain, f"{method} /made_up HTTP/1.1\r\nHost: made_up\r\n\r\n".encode())
        found = await families(admin)
        digest = served.gateway.generation.contract.digest
    allowed = {
        "tool": {"list_rows", "unknown"}, "surface": {"agent", "mcp", "console"}, "backend": {"api"},
        "code": {"ok", "UNKNOWN_TOOL", "VALIDATION_ERROR"}, "view": {"standard", "compact"}, "digest": {digest},
        "method": {"GET", "other"}, "status_class": {"2xx"}, "direction": {"in", "out"},
    }  # fmt: skip
    samples = [sample for family in found if family.name.startswith("toolview_") for sample in family.samples]
    for name, values in allowed.items():
        assert {sample.labels[name] for sample in samples if name in sample.labels} <= values
    assert sum(sample.value for sample in samples if sample.labels.get("code") == "UNKNOWN_TOOL") >= 10
    assert not [sample for sample in samples if "made_up" in str(sample.labels) or "forged" in str(sample.labels)]


async def test_a_refused_reload_shows_and_the_time_of_the_last_accepted_one_stays(tmp_path: Path) -> None:
    loaded = accepted(tmp_path, CONTRACT.replace("URL", "http://127.0.0.1:1"))
    refused = contract_at(tmp_path, "version: 2")
    assert isinstance(refused, tuple)
    async with serving(loaded) as served:
        before = await reload_state(served.addresses["admin"])
        served.gateway.refuse_reload(refused)
        after = await reload_state(served.addresses["admin"])
    assert before[0] == 1
    assert after == (0, before[1])


async def reload_state(admin: Address) -> tuple[float, float]:
    """Whether the last load was accepted, and when one was."""
    values = {family.name: family.samples[0].value for family in await families(admin) if family.samples}
    name = "toolview_config_last_reload_success"
    return values[f"{name}ful"], values[f"{name}_timestamp_seconds"]
