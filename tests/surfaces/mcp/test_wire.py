"""Bytes and headers to one message, rung by rung; the bullets of the reference are named in the tests."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import pytest
from mcp_types.methods import validate_client_request
from multidict import CIMultiDict

from gateway.surfaces.mcp.wire import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    CallTool,
    Discover,
    Initialize,
    ListResources,
    ListTools,
    Message,
    Mirrored,
    Notification,
    Ping,
    ReadResource,
    Refusal,
    read,
)

Json = Any
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
MIRRORED = {
    "regional": (
        Mirrored(("region",), "Mcp-Param-Region", integer=False),
        Mirrored(("zone", "number"), "Mcp-Param-Zone", integer=True),
    )
}


def reading(message: Json, headers: Json = ()) -> Message:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return read(body, CIMultiDict(headers), lambda name: MIRRORED.get(name, ()))


def legacy(method: str, params: Json = None, version: str | None = "2025-11-25", id: Json = 1) -> Message:
    message = {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}
    return reading(message, [("MCP-Protocol-Version", version)] if version else [])


def modern(method: str, params: Json = None, headers: Json = (), meta: Json = META, **changed: str | None) -> Message:
    """A request with its envelope and headers; a header that is `changed` to None is not sent."""
    params = {**(params or {}), "_meta": meta}
    sent: dict[str, str | None] = {"MCP-Protocol-Version": MODERN_VERSION, "Mcp-Method": method}
    sent["Mcp-Name"] = params.get("name")
    sent.update({name.replace("_", "-"): value for name, value in changed.items()})
    lines = [(name, value) for name, value in sent.items() if isinstance(value, str)]
    return reading({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, [*lines, *headers])


def refused(message: Message) -> tuple[int, int]:
    assert isinstance(message, Refusal), message
    return message.status, message.code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"ping"', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    ],
)
def test_t3_what_is_no_single_message_is_refused_without_an_id(body: bytes, code: int) -> None:
    answer = reading(body)
    assert refused(answer) == (400, code)
    assert isinstance(answer, Refusal)
    assert answer.id is None


@pytest.mark.parametrize("id", [True, False, 1.5, None, [], {}])
def test_t4_an_id_is_a_string_or_an_integer(id: Json) -> None:
    assert refused(reading({"jsonrpc": "2.0", "id": id, "method": "ping"})) == (400, -32600)


@pytest.mark.parametrize("id", [0, "", -1, "a", 2**70])
def test_t4_any_string_or_integer_is_an_id(id: Json) -> None:
    assert legacy("ping", id=id) == Ping(id)


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "made/up", "tools/call"])
def test_t5_a_message_without_an_id_is_a_notification_whatever_it_says(method: str) -> None:
    for headers in ([], [("MCP-Protocol-Version", MODERN_VERSION)], [("MCP-Protocol-Version", "x")]):
        assert reading({"jsonrpc": "2.0", "method": method}, headers) == Notification(method)


@pytest.mark.parametrize("version", [None, *sorted(HANDSHAKE_VERSIONS)])
def test_r1_a_handshake_version_or_none_is_the_handshake_era(version: str | None) -> None:
    assert legacy("tools/list", version=version) == ListTools(1, modern=False)


@pytest.mark.parametrize("version", [MODERN_VERSION, "2024-10-07", "2099-01-01", "x", ""])
def test_r2_any_other_version_is_the_modern_era(version: str) -> None:
    answer = reading({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, [("MCP-Protocol-Version", version)])
    assert refused(answer) == (400, -32602)


def test_r2_the_envelope_is_the_modern_era_without_a_header() -> None:
    assert refused(modern("tools/list", MCP_Protocol_Version=None)) == (400, -32020)


@pytest.mark.parametrize("version", sorted(HANDSHAKE_VERSIONS))
def test_r3_a_modern_body_under_a_handshake_header_is_a_mismatch(version: str) -> None:
    assert refused(modern("tools/list", MCP_Protocol_Version=version)) == (400, -32020)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        *((version, version) for version in sorted(HANDSHAKE_VERSIONS)),
        ("2024-10-07", "2025-11-25"),
        (MODERN_VERSION, "2025-11-25"),
    ],
)
def test_r4_the_handshake_answers_a_version_it_has(asked: str, given: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    assert legacy("initialize", params, version=None) == Initialize(1, given)
    assert legacy("initialize", {**params, "_meta": META}, version=None) == Initialize(1, given)


@pytest.mark.parametrize("lacking", ["protocolVersion", "capabilities", "clientInfo"])
def test_l1_the_handshake_needs_its_params(lacking: str) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    del params[lacking]
    assert refused(legacy("initialize", params)) == (200, -32602)
    assert refused(legacy("initialize")) == (200, -32602)


@pytest.mark.parametrize(
    "method", ["prompts/list", "resources/subscribe", "logging/setLevel", "server/discover", "made/up"]
)
def test_l2_an_unknown_method_of_the_handshake_era_is_answered_with_200(method: str) -> None:
    assert refused(legacy(method)) == (200, -32601)


@pytest.mark.parametrize(
    "meta",
    [
        None,
        "x",
        [],
        {},
        {"io.modelcontextprotocol/protocolVersion": MODERN_VERSION},
        {"io.modelcontextprotocol/clientCapabilities": {}},
    ],
)
def test_m1_a_modern_request_carries_its_envelope(meta: Json) -> None:
    assert refused(modern("tools/list", meta=meta)) == (400, -32602)


def test_m1_a_client_need_not_say_who_it_is() -> None:
    meta = {key: value for key, value in META.items() if not key.endswith("clientInfo")}
    assert modern("tools/list", meta=meta) == ListTools(1, modern=True)


@pytest.mark.parametrize(
    "line", [("MCP-Protocol-Version", MODERN_VERSION), ("mcp-method", "tools/call"), ("MCP-NAME", "cycle")]
)
def test_m2_a_routing_header_stands_once(line: tuple[str, str]) -> None:
    assert refused(modern("tools/call", {"name": "cycle"}, [line])) == (400, -32020)


@pytest.mark.parametrize(
    "changed",
    [
        {"MCP_Protocol_Version": "2099-01-01"},
        {"Mcp_Method": None},
        {"Mcp_Method": "Tools/Call"},
        {"Mcp_Method": "tools/list"},
        {"Mcp_Name": None},
        {"Mcp_Name": "Cycle"},
        {"Mcp_Name": "=?base64?!!!?="},
        {"Mcp_Name": "=?base64?Y3ljbGV=?="},  # not canonical
        {"Mcp_Name": "=?base64?/w==?="},  # not UTF-8
    ],
)
def test_m3_headers_say_what_the_body_says(changed: dict[str, str | None]) -> None:
    assert refused(modern("tools/call", {"name": "cycle"}, **changed)) == (400, -32020)


@pytest.mark.parametrize("name", ["cycle", "Zoë", "=?base64?x?="])
def test_m3_a_name_may_be_wrapped_in_base64(name: str) -> None:
    wrapped = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    assert modern("tools/call", {"name": name}, Mcp_Name=wrapped) == CallTool(1, True, name, {})


@pytest.mark.parametrize("version", ["2099-01-01", "2025-11-25"])
def test_m4_a_version_that_is_not_served_is_told_the_one_that_is(version: str) -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": version}
    answer = modern("tools/list", meta=meta, MCP_Protocol_Version=version)
    assert refused(answer) == (400, -32022)
    assert isinstance(answer, Refusal)
    assert answer.data == {"supported": [MODERN_VERSION], "requested": version}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, []),
        ({"region": "eu"}, [("Mcp-Param-Region", "eu")]),
        ({"region": None}, []),
        ({"region": "Zürich"}, [("mcp-param-region", "=?base64?WsO8cmljaA==?=")]),
        ({"zone": {"number": 7}}, [("Mcp-Param-Zone", "7")]),
        ({"zone": {"number": 7}}, [("Mcp-Param-Zone", "7.0")]),
        ({"zone": {"number": 2**60}}, [("Mcp-Param-Zone", str(2**60))]),
        ({"zone": "none"}, []),
        ({}, [("Mcp-Param-Other", "x")]),
    ],
)
def test_m5_mirrored_arguments_agree_with_their_headers(arguments: Json, headers: Json) -> None:
    answer = modern("tools/call", {"name": "regional", "arguments": arguments}, headers)
    assert answer == CallTool(1, True, "regional", arguments)


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, []),
        ({}, [("Mcp-Param-Region", "eu")]),
        ({"region": "eu"}, [("Mcp-Param-Region", "us")]),
        ({"region": "eu"}, [("Mcp-Param-Region", "=?base64?ZXU?=")]),
        ({"region": "eu"}, [("Mcp-Param-Region", "eu"), ("Mcp-Param-Region", "eu")]),
        ({"zone": {"number": 7}}, [("Mcp-Param-Zone", "8")]),
        ({"zone": {"number": 7}}, [("Mcp-Param-Zone", "7e0")]),
        ({"zone": {"number": True}}, [("Mcp-Param-Zone", "1")]),
    ],
)
def test_m5_mirrored_arguments_that_disagree_are_refused(arguments: Json, headers: Json) -> None:
    assert refused(modern("tools/call", {"name": "regional", "arguments": arguments}, headers)) == (400, -32020)


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "subscriptions/listen", "prompts/list", "x"],
)
def test_m6_a_method_that_is_gone_is_404(method: str) -> None:
    assert refused(modern(method)) == (404, -32601)


RESOURCES: dict[str, tuple[str, Json, Message]] = {
    "list": ("resources/list", {}, ListResources(1, True, templates=False)),
    "templates": ("resources/templates/list", {"cursor": None}, ListResources(1, True, templates=True)),
    "cursor": ("resources/list", {"cursor": ""}, ListResources(1, True, templates=False, fault="Invalid cursor")),
    "read": ("resources/read", {"uri": "ui://x"}, ReadResource(1, True, "ui://x")),
    "nothing to read": ("resources/read", {}, ReadResource(1, True, None)),
}


@pytest.mark.parametrize("case", RESOURCES)
def test_what_is_asked_of_resources_is_judged_where_it_is_known_whether_there_are_any(case: str) -> None:
    method, params, expected = RESOURCES[case]
    assert modern(method, params, Mcp_Name=params.get("uri")) == expected
    assert legacy(method, params) == dataclasses.replace(expected, modern=False)  # type: ignore[arg-type]  # each of them is a dataclass


@pytest.mark.parametrize("name", [None, "ui://y", "ui://X", "=?base64?dWk6Ly95?="])
def test_m3_the_header_of_a_read_is_its_uri(name: str | None) -> None:
    assert refused(modern("resources/read", {"uri": "ui://x"}, Mcp_Name=name)) == (400, -32020)


def test_m8_discover() -> None:
    assert modern("server/discover") == Discover(1)


@pytest.mark.parametrize(
    "params", [{}, {"name": 7}, {"name": "cycle", "arguments": []}, {"name": "cycle", "arguments": "{}"}]
)
def test_v5_a_call_has_a_name_and_an_object_of_arguments(params: Json) -> None:
    assert refused(legacy("tools/call", params)) == (200, -32602)
    assert refused(modern("tools/call", params, Mcp_Name="cycle" if "arguments" in params else None))[1] in (
        -32602,
        -32020,
    )


def test_v5_positional_params_are_refused() -> None:
    assert refused(legacy("tools/call", ["cycle"])) == (200, -32602)
    assert refused(legacy("tools/list", [])) == (200, -32602)


def test_v3_arguments_may_be_absent() -> None:
    assert legacy("tools/call", {"name": "cycle"}) == CallTool(1, False, "cycle", {})


def test_v4_every_cursor_is_invalid() -> None:
    assert refused(legacy("tools/list", {"cursor": "x"})) == (200, -32602)
    assert refused(modern("tools/list", {"cursor": ""})) == (400, -32602)
    assert legacy("tools/list", {"cursor": None}) == ListTools(1, modern=False)


def test_v10_trace_context_is_taken_from_meta_and_nothing_that_could_break_a_header() -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    meta = {
        **META,
        "traceparent": parent,
        "tracestate": "x=1\r\nEvil: 1",
        "baggage": "k=v",
        "toolview/toolCallId": "c 1",
    }
    answer = modern("tools/call", {"name": "cycle"}, meta=meta)
    assert answer == CallTool(1, True, "cycle", {}, None, {"traceparent": parent, "baggage": "k=v"})


def test_the_callers_id_of_a_call_is_taken_where_it_can_travel() -> None:
    for given, taken in (("c-1", "c-1"), ("", None), ("a\nb", None), ("x" * 129, None), (7, None), ("é", None)):
        answer = legacy("tools/call", {"name": "cycle", "_meta": {"toolview/toolCallId": given}})
        assert answer == CallTool(1, False, "cycle", {}, taken)


def test_without_headers_the_envelope_alone_is_judged() -> None:  # stdio
    def over_stdio(meta: Json) -> Message:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).encode()
        return read(body, None, lambda _: ())

    assert over_stdio(META) == ListTools(1, modern=True)
    assert over_stdio({}) == ListTools(1, modern=False)
    assert refused(over_stdio({**META, "io.modelcontextprotocol/protocolVersion": 7})) == (400, -32602)


def test_what_the_tests_send_is_what_clients_send() -> None:
    validate_client_request("tools/call", MODERN_VERSION, {"name": "cycle", "_meta": META})
    validate_client_request("server/discover", MODERN_VERSION, {"_meta": META})
    for version in HANDSHAKE_VERSIONS:
        validate_client_request("tools/call", version, {"name": "cycle", "arguments": {}})
