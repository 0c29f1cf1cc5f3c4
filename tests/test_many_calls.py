"""Very many calls to a real `serve`, a quarter failing or left by their caller: all are counted, and nothing is kept."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from gateway.contract.values import Address
from tests.processes.served import PATIENCE, Served, served
from tests.test_serve import samples

CONTRACT = """
version: 1
gateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}}}
backends: {{api: {{url: {url}, connect_timeout: 60s}}}}
endpoints:
  read:
    request: GET /{{how}}/{{id}}
    description: Reads.
    expose: [mcp, agent]
    timeout: 60s
    input: {{type: object, required: [how, id], properties: {{how: {{enum: [ok, hang, broken, wrong, closed]}}, id: {{type: integer}}}}}}
    output: {{type: object, required: [rows], properties: {{rows: {{type: array, items: {{type: object, properties: {{id: {{type: integer}}}}}}}}}}}}
    tool: {{view: {{output: {{type: object, properties: {{rows: {{type: array, items: {{type: object, properties: {{id: {{type: integer}}}}}}}}}}}}}}}}
"""
#: Of twenty calls five end badly, each in its own way.
ROUND = tuple(how for bad in ("hang", "broken", "wrong", "closed", "refused") for how in ("ok", "ok", "ok", bad))
CODES = {
    "ok": "ok",
    "hang": "REQUEST_ABORTED",
    "broken": "BACKEND_ERROR",
    "wrong": "BACKEND_ANSWER_INVALID",
    "closed": "BACKEND_CLOSED",
    "refused": "VALIDATION_ERROR",
}
#: So many at once, half by MCP and half by the agent endpoint, each on a connection that it keeps until it leaves.
CALLERS = 16
FULL = json.dumps({"rows": [{"id": row, "note": "x" * 20} for row in range(20)]}).encode()


def _http(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


ANSWERS = {"ok": _http("200 OK", FULL), "broken": _http("500 Oops", b"{}"), "wrong": _http("200 OK", b'{"rows": 1}')}


class Hanging:
    """What is known of one call that is never answered: it has come, and whoever asked is gone."""

    def __init__(self) -> None:
        self.come = asyncio.Event()
        self.gone = asyncio.Event()


class Behind(asyncio.Protocol):
    """Does what the path says."""

    def __init__(self, hanging: dict[str, Hanging], open_ones: set[asyncio.Transport]) -> None:
        self.hanging = hanging
        self.open_ones = open_ones
        self.held: Hanging | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.open_ones.add(transport)

    def connection_lost(self, _: Exception | None) -> None:
        self.open_ones.discard(self.transport)
        if self.held is not None:
            self.held.gone.set()

    def data_received(self, data: bytes) -> None:
        _, how, number = data.split(b" ", 2)[1].decode().split("/")
        if how == "hang":
            self.held = self.hanging[number]
            self.held.come.set()
        elif how == "closed":
            self.transport.close()
        else:
            self.transport.write(ANSWERS[how])


class Caller:
    """One client of one surface."""

    def __init__(
        self, address: Address, surface: str, hanging: dict[str, Hanging], told: Counter[tuple[str, str]]
    ) -> None:
        self.address, self.surface, self.hanging, self.told = address, surface, hanging, told
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def run(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            how = ROUND[number % len(ROUND)]
            await self._send(how, number)
            code = "REQUEST_ABORTED" if how == "hang" else await self._code()
            assert code == CODES[how]
            self.told[self.surface, code] += 1
            if how == "hang":
                await self._leave(self.hanging[str(number)])
                del self.hanging[str(number)]
        await self.close()

    async def _send(self, how: str, number: int) -> None:
        if how == "hang":
            self.hanging[str(number)] = Hanging()
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.address.host, self.address.port)
        arguments = {"how": how, "id": number if how != "refused" else "none"}
        if self.surface == "agent":
            path, body = "/agent/tools/read", json.dumps(arguments).encode()
        else:
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
            path, body = "/mcp", json.dumps(message | {"params": {"name": "read", "arguments": arguments}}).encode()
        self.writer.write(
            f"POST {path} HTTP/1.1\r\nHost: {self.address}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )

    async def _code(self) -> str:
        assert self.reader is not None
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0])
        answer = json.loads(await self.reader.readexactly(length))
        if self.surface == "mcp":
            answer = answer["result"]
            if not answer.get("isError"):
                return "ok"
            answer = json.loads(answer["content"][0]["text"])
        return "ok" if answer["ok"] else str(answer["code"])

    async def _leave(self, call: Hanging) -> None:
        """Once the backend has been asked; whose connection is gone then, too."""
        assert self.writer is not None
        async with asyncio.timeout(PATIENCE):
            await call.come.wait()
            self.writer.transport.abort()
            self.writer = None
            await call.gone.wait()

    async def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            await self.writer.wait_closed()
            self.writer = None


@asynccontextmanager
async def behind(hanging: dict[str, Hanging], open_ones: set[asyncio.Transport]) -> AsyncIterator[str]:
    server = await asyncio.get_running_loop().create_server(lambda: Behind(hanging, open_ones), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _calls(process: Served, numbers: range, told: Counter[tuple[str, str]], hanging: dict[str, Hanging]) -> None:
    left = iter(numbers)
    async with asyncio.TaskGroup() as callers:
        for number in range(CALLERS):
            surface = ("mcp", "agent")[number % 2]
            callers.create_task(Caller(process.addresses["tools"], surface, hanging, told).run(left))
    process.lines.clear()


async def _counted(process: Served, calls: int) -> dict[tuple[str, ...], float]:
    """What /metrics says once it has counted so many calls: the last of those that were left may take a moment."""
    async with asyncio.timeout(PATIENCE):
        while True:
            seen = await samples(process.addresses["admin"])
            if sum(value for key, value in seen.items() if key[0] == "toolview_tool_calls_total") >= calls:
                return seen


def _descriptors(worker: psutil.Process) -> int:
    return len(os.listdir(f"/proc/{worker.pid}/fd"))


# The long form takes minutes: pytest --long -o faulthandler_timeout=1800 tests/test_many_calls.py
@pytest.mark.parametrize("calls", [600, pytest.param(100_000, marks=pytest.mark.long)])
async def test_many_calls_add_up_and_leave_nothing(calls: int, tmp_path: Path) -> None:
    told: Counter[tuple[str, str]] = Counter()
    hanging: dict[str, Hanging] = {}
    open_ones: set[asyncio.Transport] = set()
    warm = calls // 5 // len(ROUND) * len(ROUND)
    async with behind(hanging, open_ones) as url:
        (tmp_path / "gateway.yaml").write_text(CONTRACT.format(url=url))
        async with served(tmp_path / "gateway.yaml", ready=2) as process:
            (worker,) = await process.until("tools", 1)
            descriptors = _descriptors(worker)
            await _calls(process, range(warm), told, hanging)
            memory = worker.memory_info().rss
            await _calls(process, range(warm, calls), told, hanging)
            seen = await _counted(process, calls)
            grown = worker.memory_info().rss - memory
            assert {code: sum(n for (_, found), n in told.items() if found == code) for code in CODES.values()} == {
                code: calls // len(ROUND) * ROUND.count(how) for how, code in CODES.items()
            }
            counted = {(key[2], key[1]): n for key, n in seen.items() if key[0] == "toolview_tool_calls_total"}
            assert counted == dict(told)
            full = sum(value for key, value in seen.items() if key[0] == "toolview_tool_full_bytes_total")
            assert full == calls // len(ROUND) * ROUND.count("ok") * len(FULL)
            for transport in list(open_ones):
                transport.close()
            async with asyncio.timeout(PATIENCE):
                while _descriptors(worker) > descriptors:
                    await samples(process.addresses["admin"])  # a turn or two of its loop
            assert (await process.until("tools", 1)) == [worker], "it is the same process as at the start"
            print(f"memory of the worker grew by {grown} bytes over {calls - warm} calls: {dict(told)}")
    if calls == 100_000:
        assert grown < 5 * 1024 * 1024
