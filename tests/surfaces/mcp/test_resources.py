"""Cards as resources: who may read which, and what a catalog without a card says; the real gateway, over HTTP."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.surfaces.mcp import wire
from tests.rig import accepted, backend, http
from tests.test_serve import serving

Json = Any
PAGE = "<!doctype html>\n<title>Card</title>\n"
RED, NONE = "k-red", "k-none"
KEYS = ", ".join(
    f"{{name: {name}, sha256: {hashlib.sha256(key.encode()).hexdigest()}, scopes: [{scopes}]}}"
    for name, key, scopes in (("red", RED, "red"), ("none", NONE, ""))
)
CONTRACT = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}, auth: {keys: [KEYS]}}
    backends: {b: {url: URL}}
    endpoints:
      open: {request: GET /a, description: Says a., tool: {name: a_open, SHARED}}
      shared: {request: GET /a, description: Says a., scopes: [red], tool: {name: b_shared, SHARED}}
      red: {request: GET /a, description: Says a., scopes: [red], tool: {name: c_red, ui: {resource: red.html}}}
"""
OPEN_URI, RED_URI = "ui://toolview/open.html", "ui://toolview/red.html"


class Speaker:
    """Asks as the holder of a key, in either era."""

    def __init__(self, url: str, session: aiohttp.ClientSession, modern: bool) -> None:
        self.url, self.session, self.modern = url, session, modern

    async def ask(self, key: str, method: str, **params: Json) -> tuple[int, Json, bytes]:
        """The status, the result or the error, and every byte that might tell two answers apart."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        if self.modern:
            params["_meta"] = {wire.VERSION_KEY: wire.MODERN_VERSION, wire.CAPABILITIES_KEY: {}}
            headers |= {"MCP-Protocol-Version": wire.MODERN_VERSION, "Mcp-Method": method}
            headers |= {"Mcp-Name": params["uri"]} if "uri" in params else {}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self.session.post(self.url, json=message, headers=headers) as response:
            body = await response.read()
            said = json.loads(body)
            return response.status, said.get("result", said.get("error")), body


@pytest.fixture(params=[True, False], ids=["modern", "legacy"])
def modern(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=["ui: {resource: open.html}"])
async def speaker(request: pytest.FixtureRequest, tmp_path: Path, modern: bool) -> AsyncIterator[Speaker]:
    async with backend(lambda _: http({})) as behind:
        text = CONTRACT.replace("KEYS", KEYS).replace("URL", behind.url).replace("SHARED", request.param)
        contract = accepted(tmp_path, text, {"open.html": PAGE, "red.html": PAGE + "<p>red"})
        async with serving(contract) as served, aiohttp.ClientSession() as session:
            yield Speaker(f"http://{served.addresses['tools']}/mcp", session, modern)


async def test_each_principal_lists_the_cards_of_its_own_tools(speaker: Speaker) -> None:
    _, red, _ = await speaker.ask(RED, "resources/list")
    assert [(each["uri"], each["description"]) for each in red["resources"]] == [
        (OPEN_URI, "Shows the answers of a_open, b_shared"),
        (RED_URI, "Shows the answers of c_red"),
    ]
    _, none, _ = await speaker.ask(NONE, "resources/list")
    assert [(each["uri"], each["description"]) for each in none["resources"]] == [
        (OPEN_URI, "Shows the answers of a_open")
    ]
    again = await speaker.ask(RED, "resources/list")
    assert again == await speaker.ask(RED, "resources/list")


async def test_a_card_of_a_tool_that_may_not_be_seen_is_as_one_that_is_not_there(speaker: Speaker) -> None:
    _, read, _ = await speaker.ask(RED, "resources/read", uri=RED_URI)
    assert read["contents"][0]["text"] == PAGE + "<p>red"
    hidden = await speaker.ask(NONE, "resources/read", uri=RED_URI)
    absent = await speaker.ask(NONE, "resources/read", uri="ui://toolview/not.html")
    assert hidden[0] == absent[0] == (400 if speaker.modern else 200)
    assert hidden[2].replace(b"red.html", b"not.html") == absent[2]
    assert hidden[1] == {
        "code": -32602 if speaker.modern else -32002,
        "message": "Resource not found",
        "data": {"uri": RED_URI},
    }


async def test_what_one_principal_may_read_no_shared_cache_keeps(speaker: Speaker) -> None:
    for method, params in (
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": OPEN_URI}),
    ):
        _, result, _ = await speaker.ask(RED, method, **params)
        held = {key: result[key] for key in ("resultType", "cacheScope", "ttlMs") if key in result}
        expected = {"resultType": "complete", "cacheScope": "private", "ttlMs": 60_000}
        assert held == (expected if speaker.modern else {})
        assert result["_meta"]["toolview/catalog"]


@pytest.mark.parametrize(
    "uri",
    ["", "ui://toolview/", "ui://toolview/open.html?x", "ui://TOOLVIEW/open.html", "ui://toolview/../open.html",
     "ui://toolview/%6Fpen.html", "file:///etc/passwd", "open.html", "ui://toolview/gateway.yaml", "x" * 5000],
    ids=lambda uri: uri[:40],
)  # fmt: skip
async def test_only_the_uri_that_was_listed_is_read(speaker: Speaker, uri: str) -> None:
    status, error, _ = await speaker.ask(RED, "resources/read", uri=uri)
    assert (status, error["code"]) == ((400, -32602) if speaker.modern else (200, -32002))


@pytest.mark.parametrize("speaker", ["safety_tier: read"], indirect=True)
async def test_who_sees_no_card_finds_no_such_methods_and_no_capability(speaker: Speaker) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opening = ("server/discover", {}) if speaker.modern else ("initialize", hello)
    told = {}
    for key in (RED, NONE):
        _, opened, _ = await speaker.ask(key, opening[0], **opening[1])
        told[key] = sorted(opened["capabilities"])
    assert told == {
        RED: ["extensions", "resources", "tools"] if speaker.modern else ["resources", "tools"],
        NONE: ["tools"],
    }
    asked: list[tuple[str, Json]] = [
        ("resources/list", {}), ("resources/list", {"cursor": 7}), ("resources/templates/list", {}),
        ("resources/read", {"uri": RED_URI}), ("resources/read", {}),
    ]  # fmt: skip
    for method, params in asked:
        status, error, _ = await speaker.ask(NONE, method, **params)
        assert (status, error["code"]) == (404 if speaker.modern else 200, -32601), (method, params)
