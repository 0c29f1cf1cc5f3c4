"""The agent surface on a running gateway: a body that is no arguments ends as every other call does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rig import Received, accepted, backend, http
from tests.test_serve import fetch, samples, serving

CONTRACT = """
version: 1
gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
backends: {api: {url: http://127.0.0.1:1}}
endpoints:
  read: {request: GET /read, description: Reads., expose: [agent], output: {type: object}}
"""


@pytest.mark.parametrize("body", [b"{", b"[1]", b"null", b'"a"', b"{} {}", b'{"a":1,"a":2}', b"\xff"])
@pytest.mark.parametrize(("tool", "label"), [("read", "read"), ("absent", "unknown")])
async def test_a_body_that_is_no_arguments_is_one_refused_call(
    tmp_path: Path, body: bytes, tool: str, label: str
) -> None:
    async with serving(accepted(tmp_path, CONTRACT)) as served:
        told = await fetch(served.addresses["tools"], "POST", f"/agent/tools/{tool}", body, "X-Tool-Call-Id: mine\r\n")
        counted = await samples(served.addresses["admin"])
    status, headers, answer = told
    envelope = json.loads(answer)
    assert (status, headers["x-tool-call-id"]) == (400, "mine")
    assert list(envelope) == ["ok", "code", "error", "retryable", "details"]
    assert (envelope["ok"], envelope["code"], envelope["retryable"]) == (False, "BAD_REQUEST", False)
    calls = {
        key: value
        for key, value in counted.items()
        if {label, "BAD_REQUEST"} <= set(key) and not key[0].endswith("_created")
    }
    assert calls
    assert set(calls.values()) == {1.0}


FILES = """
version: 1
gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
backends: {api: {url: URL}}
endpoints:
  file:
    request: GET /file/{type}
    description: A file.
    expose: [agent]
    kind: media
    input: {type: object, required: [type], properties: {type: {type: string}}}
"""


async def test_a_file_is_answered_as_it_is_and_runs_in_no_browser(tmp_path: Path) -> None:
    types = {
        "png": "image/png",
        "csv": "text/csv; charset=latin-1",
        "page": "text/html",
        "odd": "a/b/c\x80",
        "none": "",
    }

    def answer(request: Received) -> bytes:
        name = request.target.rsplit("/", 1)[1]
        return http(b"\0\xff", content_type=types[name]) if name in types else http(b"", status=204)

    async with backend(answer) as api, serving(accepted(tmp_path, FILES.replace("URL", api.url))) as served:
        for name, content_type in types.items():
            arguments = json.dumps({"type": name}).encode()
            status, headers, body = await fetch(served.addresses["tools"], "POST", "/agent/tools/file", arguments)
            kept = content_type if name in ("png", "csv", "page") else "application/octet-stream"
            assert (status, headers["content-type"], body) == (200, kept, b"\0\xff")
            assert (headers["x-content-type-options"], headers["content-security-policy"]) == ("nosniff", "sandbox")
        told = await fetch(served.addresses["tools"], "POST", "/agent/tools/file", b'{"type": "empty"}')
    assert json.loads(told[2]) == {"ok": True, "data": None}


FOR_CARDS = """
version: 1
gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
backends: {api: {url: http://127.0.0.1:1}}
endpoints:
  shown: {request: GET /shown, description: Has a card., output: {type: object}, tool: {name: shown, safety_tier: read, ui: {resource: card.html}}}
  model: {request: GET /model, description: For models., output: {type: object}, tool: {name: model, safety_tier: read, ui: {resource: card.html, visibility: [model]}}}
  refresh: {request: GET /refresh, description: For the card., output: {type: object}, tool: {name: refresh, safety_tier: read, ui: {resource: card.html, visibility: [app]}}}
"""


async def test_a_tool_for_cards_alone_is_none_of_the_agent_endpoint_and_stays_one_of_mcp(tmp_path: Path) -> None:
    page = "<!doctype html><title>A card</title>"
    async with serving(accepted(tmp_path, FOR_CARDS, {"card.html": page})) as served:
        for form in ("openai", "anthropic", "gemini", "mcp"):
            status, _, listed = await fetch(served.addresses["tools"], "GET", f"/agent/tools?format={form}")
            assert (status, b"refresh" in listed, b"shown" in listed, b"model" in listed) == (200, False, True, True)
        status, _, told = await fetch(served.addresses["tools"], "POST", "/agent/tools/refresh", b"{}")
        assert (status, json.loads(told)["code"]) == (404, "UNKNOWN_TOOL")
        asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
        accept = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        _, _, listed = await fetch(served.addresses["tools"], "POST", "/mcp", asked, accept)
    of_mcp = {tool["name"]: tool["_meta"]["ui"] for tool in json.loads(listed)["result"]["tools"]}
    assert of_mcp["refresh"]["visibility"] == ["app"], "its host keeps it from the model"
