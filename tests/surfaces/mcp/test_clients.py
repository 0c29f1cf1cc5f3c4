"""Real clients on a served catalog of odd tools: they list it, call it and hold answers against what was listed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Literal

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from gateway.call.outcome import Code, Outcome
from tests.surfaces.mcp import javascript
from tests.surfaces.mcp.fakes import BIG, ODD, TOOLS, FakeGateway, always, failed, served

Mode = Literal["auto", "legacy"]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    gateway = FakeGateway()
    gateway.answers["write"] = always(
        lambda call: Outcome(call, "write", failed(Code.BACKEND_TIMEOUT, "No answer in time.", backend="x"))
    )
    async with served(gateway.as_gateway()) as where:
        yield where


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_python_client_lists_and_calls_in_both_eras(url: str, mode: Mode, version: str) -> None:
    async with Client(url, mode=mode) as client:
        assert client.protocol_version == version
        assert client.instructions == "Ask for people by team."
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == sorted(tool.name for tool in TOOLS)
        for name, (_, output, value) in ODD.items():
            result = await client.call_tool(name, {})  # raises where the answer breaks the listed schema
            wrapped = output.get("type") != "object"
            assert result.structured_content == ({"result": value} if wrapped else value)
            assert result.is_error is False
        failure = await client.call_tool("write", {})
        assert failure.is_error is True
        assert failure.structured_content is None
        assert json.loads(failure.content[0].text)["code"] == "BACKEND_TIMEOUT"  # type: ignore[union-attr]  # a text block
        assert (await client.call_tool("silent", {})).content == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_python_client_hears_of_an_unknown_tool(url: str, mode: Mode) -> None:
    async with Client(url, mode=mode) as client:
        with pytest.raises(MCPError, match="Unknown tool: nope") as raised:
            await client.call_tool("nope", {})
        assert raised.value.code == -32602


async def test_the_python_client_mirrors_arguments_into_headers(url: str) -> None:
    async with Client(url, mode="auto") as client:
        await client.list_tools()
        result = await client.call_tool("regional", {"region": "Zürich", "zone": {"number": BIG}})
        assert result.is_error is False


async def test_the_typescript_client_lists_and_calls(url: str) -> None:
    ran = await javascript.run("client.mjs", url, *ODD, "silent", "write", "nope")
    assert ran["tools"] == sorted(tool.name for tool in TOOLS)
    results = ran["results"]
    for name, (_, output, value) in ODD.items():
        assert "thrown" not in results[name], (name, results[name])
        if name != "wide_ids":  # JavaScript rounds it
            assert results[name]["structuredContent"] == ({"result": value} if output["type"] != "object" else value)
    assert str(BIG) in results["wide_ids"]["content"][0]["text"]
    assert results["silent"] == {"content": [], "isError": False, "_meta": results["silent"]["_meta"]}
    assert results["write"]["isError"] is True
    assert results["nope"]["code"] == -32602
