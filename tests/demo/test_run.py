"""`toolview demo` as a new user meets it: the printed lines work, taken ports are said, Ctrl-C ends it cleanly."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import psutil
from mcp import Client

from tests.surfaces.mcp import javascript

NAMES = ["broken_report", "create_person", "get_person", "list_people", "search_people", "slow_report"]
ROOT = Path(__file__).parent.parent.parent


def get(url: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=30) as answer:
        content: bytes = answer.read()
        return content


@asynccontextmanager
async def demo() -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The demo as a process of its own, and what it printed until it was ready."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "gateway", "demo"]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    assert process.stdout is not None
    try:
        printed = (await asyncio.wait_for(process.stdout.readuntil(b"Ctrl-C stops both.\n"), 60)).decode()
        yield process, printed
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_printed_lines_work_and_ctrl_c_leaves_nothing_behind() -> None:
    async with demo() as (process, printed):
        plain, tools, admin = re.findall(r"curl -s (http://[0-9.:]+)/", printed)
        full = await asyncio.to_thread(get, f"{plain}/people/platform")
        card = await asyncio.to_thread(get, f"{tools}/agent/tools/list_people", b'{"team":"platform"}')
        found = await asyncio.to_thread(get, f"{tools}/agent/tools/search_people", b'{"query":"kubernetes"}')
        metrics = (await asyncio.to_thread(get, f"{admin}/metrics")).decode()
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        rest, _ = await asyncio.wait_for(process.communicate(), 30)
    assert 135_000 < len(full) < 145_000
    assert 13_000 < len(card) < 15_500
    assert json.loads(found)["ok"] is True
    assert f'toolview_tool_view_bytes_total{{surface="agent",tool="list_people"}} {len(card) - 19}.0' in metrics
    assert process.returncode == 0
    assert rest.decode().strip() == "Stopping: finishing what is in flight."
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)


async def test_the_official_clients_list_and_call_the_running_demo() -> None:
    async with demo() as (_, printed):
        (tools,) = re.findall(r"client connects to (http://[0-9.:]+)/mcp", printed)
        url = f"{tools}/mcp"
        modes: list[Literal["auto", "legacy"]] = ["auto", "legacy"]
        for mode in modes:
            async with Client(url, mode=mode) as client:
                listed = await client.list_tools()
                assert [tool.name for tool in listed.tools] == NAMES
                result = await client.call_tool(
                    "list_people", {"team": "platform"}
                )  # raises where it breaks its schema
                assert result.structured_content is not None
                people = result.structured_content["people"]
                one = await client.call_tool("get_person", {"team": "platform", "id": people[0]["id"]})
                assert one.structured_content is not None
                assert one.structured_content["name"] == people[0]["name"]
                assert (await client.call_tool("broken_report", {})).is_error
        ran = await javascript.run("client.mjs", url, 'list_people={"team":"platform"}', "slow_report")
        assert ran["tools"] == NAMES
        assert ran["results"]["list_people"]["structuredContent"] == result.structured_content
        assert ran["results"]["slow_report"]["isError"] is True


async def test_a_taken_port_is_said_and_another_is_used() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # somebody else has the port, which serves as well
            taken.bind(("127.0.0.1", 8081))
            taken.listen()
        async with demo() as (process, printed):
            assert re.search(r"Port 8081 is taken: tools uses 80\d\d instead\.", printed)
            (tools,) = re.findall(r"client connects to (http://[0-9.:]+)/mcp", printed)
            assert not tools.endswith(":8081")
            assert b"list_people" in await asyncio.to_thread(get, f"{tools}/agent/tools?format=mcp")
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 30)
        assert process.returncode == 0
