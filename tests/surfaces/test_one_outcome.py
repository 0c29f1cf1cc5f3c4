"""A call ends in one way for everybody: each surface, the hook, the log and the metrics say the same of it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.call.outcome import Outcome
from gateway.once import Streams, call_once
from gateway.serve import Serving
from gateway.surfaces.cli import write_outcome
from gateway.telemetry.log import set_up
from tests.rig import accepted, backend, http
from tests.test_serve import agent, fetch, samples

CONTRACT = """
    version: 1
    gateway:
      tools: {{listen: 127.0.0.1:0}}
      admin: {{listen: 127.0.0.1:0}}
      projections: hooks
      hooks: {{after: "hooks:after"}}
    backends: {{api: {{url: {url}{more}}}}}
    endpoints:
      read:
        request: GET /read
        description: Reads.
        expose: [mcp, agent, cli]
        input: {{type: object, properties: {{limit: {{type: integer}}}}}}
        output: {{type: object}}
        errors:
          ASK_LATER: {{status: 404, retryable: true}}
          NEVER: {{status: 503, retryable: false}}
          LOST: {{status: 503}}
          SPENT: {{status: 402}}
"""
HOOKS = {"hooks/hooks.py": "seen = []\ndef after(call):\n    seen.append(call)\n"}
LEGACY = ", errors: {code: /fault/no, message: /fault/text}"
PROBLEM = "application/problem+json"
HANDSHAKE = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"


@pytest.fixture
def log() -> Iterator[Any]:
    """The log's own lines, and who writes them; the process's log is as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    yield set_up("json", "info", stream).observe, stream
    root.handlers[:], root.level = handlers, level


async def mcp(served: Serving, method: str, params: Any) -> Any:
    """One request of the handshake era."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    _, _, answer = await fetch(served.addresses["tools"], "POST", "/mcp", body, HANDSHAKE)
    return json.loads(answer)


@pytest.mark.parametrize(
    ("answer", "more", "code", "retryable", "error"),
    [
        (http({}, status=503), "", "BACKEND_ERROR", True, None),
        (http({}, status=500), "", "BACKEND_ERROR", False, None),
        (http({}, status=429), "", "RATE_LIMITED", True, None),
        (http({"error": {"code": "X", "retryable": True}}, status=500), "", "BACKEND_ERROR", True, None),
        (http({"error": {"code": "X", "retryable": False}}, status=503), "", "BACKEND_ERROR", False, None),
        (http({"error": {"code": "ASK_LATER", "message": "No."}}, status=500), "", "ASK_LATER", True, "No."),
        (http({"error": {"code": "NEVER", "retryable": True}}, status=503), "", "NEVER", False, None),
        (http({"fault": {"no": "LOST", "text": "Gone."}}, status=400), LEGACY, "LOST", True, "Gone."),
        (http({"fault": {"no": "NEVER", "text": "Gone."}}, status=503), LEGACY, "NEVER", False, "Gone."),
        (http({"code": "SPENT", "detail": "No."}, status=503, content_type=PROBLEM), "", "SPENT", False, "No."),
        (http({"code": "SPENT", "retryable": True}, status=400, content_type=PROBLEM), "", "SPENT", True, None),
        (http({"rows": 1}, status=200), "", "VALIDATION_ERROR", False, None),
    ],
)
async def test_a_failure_is_the_same_to_everyone(
    tmp_path: Path, answer: bytes, more: str, code: str, retryable: bool, error: str | None, log: Any
) -> None:
    observe, lines = log
    arguments = {"limit": "x"} if code == "VALIDATION_ERROR" else {}
    async with backend(answer) as api:
        contract = accepted(tmp_path, CONTRACT.format(url=api.url, more=more), HOOKS)
        served = Serving(contract, observe)
        assert await served.start() is None
        try:
            result = (await mcp(served, "tools/call", {"name": "read", "arguments": arguments}))["result"]
            _, _, body = await agent(served.addresses["tools"], "read", arguments)
            counted = await samples(served.addresses["admin"])
        finally:
            await served.stop(1)
        told = Streams(io.StringIO(), io.StringIO(), said_at_last := io.StringIO())
        called = await call_once(contract, "read", ["--json", json.dumps(arguments)], told, observe)
        assert isinstance(called, tuple)
        assert isinstance(called[0], Outcome)
        assert write_outcome(called[0], told.stdout, told.stderr) != 0
    after = contract.gateway.hooks.after
    assert after is not None
    seen = after.__globals__["seen"]
    assert result["isError"]
    envelopes = [json.loads(result["content"][0]["text"]), json.loads(body), json.loads(said_at_last.getvalue())]
    calls = [json.loads(line) for line in lines.getvalue().splitlines() if '"message":"call"' in line]
    for said in (*envelopes, *calls):
        assert (said["code"], said["retryable"]) == (code, retryable)
    assert [(call.surface, call.ok, call.code, call.retryable) for call in seen] == [
        (surface, False, code, retryable) for surface in ("mcp", "agent", "cli")
    ]
    assert [call.answer for call in seen] == envelopes
    assert [call["call_id"] for call in calls] == [call.tool_call_id for call in seen]
    without_id = [{**each, "details": {**each["details"], "call_id": ""}} for each in envelopes]
    assert without_id[0] == without_id[1] == without_id[2]
    assert error is None or envelopes[0]["error"].endswith(error)
    for surface in ("mcp", "agent"):
        assert counted["toolview_tool_calls_total", code, surface, "read"] == 1


async def test_every_listing_and_every_result_states_the_digest_of_the_catalog(tmp_path: Path) -> None:
    async with backend(lambda request: http({}, status=200 if b"limit=1" in request.raw else 500)) as api:
        served = Serving(accepted(tmp_path, CONTRACT.format(url=api.url, more=""), HOOKS))
        assert await served.start() is None
        try:
            digest = served.gateway.generation.catalog("mcp", None).digest
            tools = served.addresses["tools"]
            stated = [(await mcp(served, "tools/list", {}))["result"]["_meta"]["toolview/catalog"]]
            for arguments in ({"limit": 1}, {}, {"limit": "x"}):
                answer = await mcp(served, "tools/call", {"name": "read", "arguments": arguments})
                stated.append(answer["result"]["_meta"]["toolview/catalog"])
                stated.append((await agent(tools, "read", arguments))[1]["toolview-catalog"])
            unknown = await mcp(served, "tools/call", {"name": "reed", "arguments": {}})
            stated.append(unknown["error"]["data"]["_meta"]["toolview/catalog"])
            for name, body in (("reed", {}), ("read", [])):
                stated.append((await agent(tools, name, body))[1]["toolview-catalog"])
            for form in ("openai", "anthropic", "gemini", "mcp", "nothing"):
                _, fields, _ = await fetch(tools, "GET", f"/agent/tools?format={form}")
                stated.append(fields["toolview-catalog"])
        finally:
            await served.stop(1)
    assert stated == [digest] * len(stated)
