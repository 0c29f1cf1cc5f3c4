"""Very many calls, a quarter of them cancelled or failing: every one is counted once, and nothing of them is kept."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from gateway.call.outcome import Call, Outcome
from gateway.serve import Serving
from tests.rig import accepted
from tests.test_serve import samples

CONTRACT = """
    version: 1
    gateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}}}
    backends: {{api: {{url: {url}}}}}
    endpoints:
      read:
        request: GET /{{how}}/{{id}}
        description: Reads.
        expose: [mcp]
        timeout: 60s
        input: {{type: object, required: [how, id], properties: {{how: {{enum: [ok, hang, broken, wrong, closed]}}, id: {{type: integer}}}}}}
        output: {{type: object, required: [rows], properties: {{rows: {{type: array, items: {{type: object, properties: {{id: {{type: integer}}}}}}}}}}}}
        tool: {{view: {{output: {{type: object, properties: {{rows: {{type: array, items: {{type: object, properties: {{id: {{type: integer}}}}}}}}}}}}}}}}
"""
#: Of sixteen calls four end badly, each in its own way, and one of them in two.
ROUND = ("ok", "ok", "ok", "hang", "ok", "ok", "broken", "ok", "ok", "ok", "wrong", "ok", "ok", "closed", "ok", "ok")
CODES = {
    "ok": "ok",
    "hang": "REQUEST_ABORTED",
    "broken": "BACKEND_ERROR",
    "wrong": "BACKEND_ANSWER_INVALID",
    "closed": "BACKEND_CLOSED",
}
CALLERS = 16
FULL = json.dumps({"rows": [{"id": row, "note": "x" * 20} for row in range(20)]}).encode()


def _http(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


ANSWERS = {"ok": _http("200 OK", FULL), "broken": _http("500 Oops", b"{}"), "wrong": _http("200 OK", b'{"rows": 1}')}


class Backend(asyncio.Protocol):
    """Does what the path says; tells in `asked` which hanging call has reached it."""

    asked: dict[str, asyncio.Event]

    def __init__(self, asked: dict[str, asyncio.Event]) -> None:
        self.asked = asked

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        _, how, number = data.split(b" ", 2)[1].decode().split("/")
        if how == "hang":
            self.asked[number].set()
        elif how == "closed":
            self.transport.close()
        else:
            self.transport.write(ANSWERS[how])


@asynccontextmanager
async def serving(folder: Path, asked: dict[str, asyncio.Event], told: Counter[str]) -> AsyncIterator[Serving]:
    def tell(outcome: Outcome) -> None:
        told[outcome.code] += 1

    server = await asyncio.get_running_loop().create_server(lambda: Backend(asked), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    served = Serving(accepted(folder, CONTRACT.format(url=url)), tell)
    assert await served.start() is None
    try:
        yield served
    finally:
        await served.stop(5)
        server.close()


async def _call(served: Serving, number: int, asked: dict[str, asyncio.Event]) -> None:
    how = ROUND[number % len(ROUND)]
    running = served.gateway.run(Call("read", {"how": how, "id": number}, "mcp", f"call-{number}"))
    if how != "hang":
        assert (await running).code == CODES[how]
        return
    reached = asked[str(number)] = asyncio.Event()
    task = asyncio.ensure_future(running)
    await reached.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    del asked[str(number)]


async def _calls(served: Serving, numbers: range, asked: dict[str, asyncio.Event]) -> None:
    left = iter(numbers)

    async def caller() -> None:
        for number in left:
            await _call(served, number, asked)

    async with asyncio.TaskGroup() as callers:
        for _ in range(CALLERS):
            callers.create_task(caller())


def _resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("calls", [1600, pytest.param(100_000, marks=pytest.mark.long)])
async def test_many_calls_add_up_and_leave_nothing(calls: int, tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    asked: dict[str, asyncio.Event] = {}
    warm = calls // 5 // len(ROUND) * len(ROUND)
    async with serving(tmp_path, asked, told) as served:
        await _calls(served, range(warm), asked)
        tasks, files, memory = len(asyncio.all_tasks()), _descriptors(), _resident()
        await _calls(served, range(warm, calls), asked)
        grown = _resident() - memory
        assert len(asyncio.all_tasks()) == tasks
        assert _descriptors() <= files + CALLERS  # kept connections, of which there are as many as callers
        assert served.gateway.in_flight == 0
        expected = Counter({code: calls // len(ROUND) * ROUND.count(how) for how, code in CODES.items()})
        assert told == expected
        seen = await samples(served.addresses["admin"])
        counted = {key[1]: value for key, value in seen.items() if key[0] == "toolview_tool_calls_total"}
        assert counted == dict(expected)
        well = expected["ok"]
        (full,) = (value for key, value in seen.items() if key[0] == "toolview_tool_full_bytes_total")
        assert full == well * len(FULL)
        print(f"memory grew by {grown} bytes over {calls - warm} calls")
    if calls == 100_000:
        assert grown < 5 * 1024 * 1024
