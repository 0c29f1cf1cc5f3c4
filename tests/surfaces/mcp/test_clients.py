"""Real clients on a contract of odd tools: each lists and calls every one, and holds answers against the list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.apart import Ran
from tests.rig import Backend
from tests.surfaces.mcp import javascript, python1
from tests.surfaces.mcp.odd import BIG, CALLS, CARD, CARD_URI, INSTRUCTIONS, NAMES, served_odd

Json = Any
Mode = Literal["auto", "legacy"]
#: What is read of a card.
READ = {"uri": CARD_URI, "mimeType": "text/html;profile=mcp-app", "text": CARD}
NAMED = [f"{call.tool}={json.dumps(call.arguments)}" for call in CALLS] + ["nope={}", "slow"]


@pytest.fixture
async def odd(tmp_path: Path) -> AsyncIterator[tuple[str, Backend]]:
    async with served_odd(tmp_path) as served:
        yield served


def printed(client: Ran) -> Json:
    """What a client said in its last line."""
    assert client.status == 0, client.err[-2000:]
    return json.loads(client.out.rstrip("\n").rpartition("\n")[2])


def node(script: str, *arguments: str, home: Path | None = None) -> Callable[[str], Awaitable[Json]]:
    async def ran(url: str) -> Json:
        folder = await asyncio.to_thread(javascript.installed)
        words = (url if word == "URL" else word for word in arguments)
        return printed(await javascript.node(folder / script, *words, *NAMED, home=home))

    return ran


async def python_1(url: str) -> Json:
    return printed(await python1.run(url, *NAMED))


def python_2(mode: Mode) -> Callable[[str], Awaitable[Json]]:
    async def ran(url: str) -> Json:
        async with Client(url, mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            results: dict[str, Json] = {}
            for call in CALLS:
                try:
                    result = await client.call_tool(call.tool, call.arguments)
                    results[call.tool] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
                except RuntimeError as error:  # the answer breaks what was listed
                    results[call.tool] = {"thrown": str(error)}
            with pytest.raises(MCPError, match="Unknown tool: nope") as raised:
                await client.call_tool("nope", {})
            results["nope"] = {"thrown": str(raised.value), "code": raised.value.code}
            heard: list[float] = []
            released: list[asyncio.Task[Json]] = []
            who = {"who": f"python-2-{mode}"}

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append(progress)
                if len(heard) == 1:
                    # Apart, since some versions read nothing while they wait for this function.
                    released.append(asyncio.create_task(client.call_tool("release", who)))

            slow = await client.call_tool("slow", who, progress_callback=hear)
            await released[0]
            results["slow"] = slow.model_dump(mode="json", by_alias=True, exclude_none=True)
            uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
            pages = [(await client.read_resource(uri)).contents for uri in uris]
            cards = {uri: page[0].model_dump(mode="json", by_alias=True) for uri, page in zip(uris, pages, strict=True)}
            said = {
                "heard": heard,
                "cards": cards,
                "version": client.protocol_version,
                "instructions": client.instructions,
            }
            return {"tools": tools, "results": results, **said}

    return ran


def in_doubles(value: Json) -> Json:
    """A value as JavaScript holds it: every number a double."""
    return json.loads(json.dumps(value), parse_int=float)


def faults(name: str, said: Json) -> list[str]:
    """What a client was not given as it should be."""
    found = [] if "tools" not in said or said["tools"] == NAMES else ["the list"]
    results = said["results"]
    for call in CALLS:
        result = results[call.tool]
        inspector = name.startswith("Inspector")
        if call.tool == "fails":
            right = (
                (result.get("code"), "isError" in result.get("thrown", "")) == (5, True)
                if inspector
                else result.get("isError") is True
                and "structuredContent" not in result
                and json.loads(result["content"][0]["text"])["code"] == "GONE"
            )
        elif "thrown" in result:
            right = False
        elif call.answer is None:
            right = "structuredContent" not in result and not result["isError"]
            right = right and tuple(block["type"] for block in result["content"]) == call.blocks
        else:
            shown = result["structuredContent"]
            exact = call.answer if "Python" in name else in_doubles(call.answer)
            right = (shown if "Python" in name else in_doubles(shown)) == exact
            # Every digit is in the text, whatever numbers the client has.
            right = right and not result["isError"] and json.loads(result["content"][0]["text"]) == call.answer
        if not right:
            found.append(f"{call.tool}: {json.dumps(result)[:300]}")
    if (heard := said.get("heard")) is not None and (not heard or heard != sorted(set(heard))):
        found.append(f"progress: {heard}")
    if results.get("slow", {"structuredContent": {}}).get("structuredContent") != {}:
        found.append(f"slow: {results['slow']}")
    card = said.get("cards", {CARD_URI: READ})
    if {uri: {key: page.get(key) for key in READ} for uri, page in card.items()} != {CARD_URI: READ}:
        found.append(f"the card: {card}")
    # Inspector looks a tool up in the list before it calls it.
    if results["nope"].get("code") != (5 if name.startswith("Inspector") else -32602):
        found.append(f"an unknown tool: {results['nope']}")
    return found


async def test_every_client_lists_and_calls_every_odd_tool(odd: tuple[str, Backend], tmp_path: Path) -> None:
    url, behind = odd
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()
    clients = {
        "Python 2.x": (python_2("auto"), "2026-07-28"),
        "Python 2.x, handshake": (python_2("legacy"), "2025-11-25"),
        "Python 1.x": (python_1, "2025-11-25"),
        "TypeScript 1.x": (node("client.mjs", "URL"), None),
        "TypeScript 2.x": (node("client2.mjs", "auto", "URL"), "2026-07-28"),
        "TypeScript 2.x, handshake": (node("client2.mjs", "legacy", "URL"), "2025-11-25"),
        "Inspector": (node("inspector.mjs", "modern", "URL", str(homes[0]), home=homes[0]), None),
        "Inspector, handshake": (node("inspector.mjs", "legacy", "URL", str(homes[1]), home=homes[1]), None),
    }
    said = await asyncio.gather(*(run(url) for run, _ in clients.values()))
    told = dict(zip(clients, said, strict=True))
    assert {name: faults(name, each) for name, each in told.items()} == {name: [] for name in clients}
    assert {name: each.get("version") for name, each in told.items()} == {
        name: version for name, (_, version) in clients.items()
    }
    assert [name for name, each in told.items() if "heard" not in each] == ["Inspector", "Inspector, handshake"]
    assert [name for name, each in told.items() if "cards" not in each] == ["Inspector", "Inspector, handshake"]
    assert {each["instructions"] for each in told.values() if "version" in each} == {INSTRUCTIONS}
    # What reached the backend is what each client said, defaults included.
    targets = [request.target for request in behind.received]
    assert targets.count(f"/wide/{BIG}") == 3  # the clients that have such numbers
    assert targets.count("/unit?unit=m&other=ft") == len(clients)
    assert targets.count("/region/Z%C3%BCrich?zone=7") == len(clients)
    sent = [json.loads(request.body) for request in behind.received if request.target == "/tree"]
    assert sent == [{"under": CALLS[5].arguments["under"]}] * len(clients)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_inspector_finds_no_error_in_what_is_listed(odd: tuple[str, Backend], era: str, tmp_path: Path) -> None:
    url, _ = odd
    inspector = javascript.package("@modelcontextprotocol/inspector") / "clients" / "launcher" / "build" / "index.js"
    listed = await javascript.node(
        inspector, "--cli", "--server-url", url, "--transport", "http", "--protocol-era", era,
        "--method", "tools/list", "--strict", "--format", "json", home=tmp_path,
    )  # fmt: skip
    assert listed.status == 0, listed.err
    assert " 0 errors, " in f" {listed.err}".replace("\n", " ")
    assert [tool["name"] for tool in json.loads(listed.out)["result"]["tools"]] == NAMES
