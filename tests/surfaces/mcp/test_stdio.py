"""MCP over a pipe: real processes and the official client, lines that are none, cancellation, and every way to end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.rig import HANG, Backend, Received, backend, http
from tests.surfaces.mcp.test_wire import META

Json = Any
ROOT = str(Path(__file__).parents[3])
CONTRACT = """
version: 1
gateway:
  tools: {listen: 127.0.0.1:0}
  admin: {listen: 127.0.0.1:0}
  limits: {body: 64KiB}
  mcp: {progress: 10ms}
  hooks: {after: loud:after}
backends: {b: {url: URL}}
endpoints:
  people.get:
    request: GET /people/{id}
    description: One person.
    input: {type: object, required: [id], properties: {id: {type: string}}}
    output: {type: object, properties: {id: {type: string}}}
  hang: {request: GET /hang, description: Never ends., output: {type: object}}
  wait: {request: POST /wait, description: Ends when another is asked., output: {type: object}}
"""
#: Prints where a client reads, and reads where a client writes.
LOUD = "import sys\n\n\ndef after(told):\n    print('on stdout', sys.stdin.read())\n"


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncIterator[Backend]:
    asked = asyncio.Event()

    async def waiting() -> bytes:
        await asked.wait()
        return http({})

    def answer(request: Received) -> bytes | Awaitable[bytes] | None:
        if request.target == "/hang":
            return HANG
        if request.target == "/wait":
            return waiting()
        asked.set()
        return http({"id": request.target.rsplit("/", 1)[1], "ssn": 1})

    async with backend(answer) as api:
        (tmp_path / "loud.py").write_text(LOUD)
        (tmp_path / "gateway.yaml").write_text(CONTRACT.replace("URL", api.url))
        yield api


class Process:
    """`toolview stdio` as a client starts it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, folder: Path) -> Process:
        pipe = asyncio.subprocess.PIPE
        words = [sys.executable, "-m", "gateway", "stdio", str(folder / "gateway.yaml")]
        environment = {**os.environ, "PYTHONPATH": ROOT}
        return cls(
            await asyncio.create_subprocess_exec(
                *words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, limit=2**24
            )
        )

    def write(self, *messages: Json) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")

    async def read(self) -> Json:
        assert self.process.stdout is not None
        return json.loads(await asyncio.wait_for(self.process.stdout.readline(), 30))

    async def end(self) -> tuple[list[Json], str, int]:
        """What is still said once the input ends, what the log has, and the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        out, err = await asyncio.wait_for(self.process.communicate(), 30)
        assert self.process.returncode is not None
        return [json.loads(line) for line in out.splitlines()], err.decode(), self.process.returncode


def call(request_id: Json, tool: str, arguments: Json = None, **meta: Json) -> Json:
    params = {"name": tool, "arguments": arguments or {}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_official_client_lists_and_calls_in_both_eras(
    behind: Backend, tmp_path: Path, mode: Literal["auto", "legacy"], version: str
) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gateway", "stdio", str(tmp_path / "gateway.yaml")],
        env={"PYTHONPATH": ROOT},
    )
    told: list[float] = []
    enough = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        if len(told) == 3:
            enough.set()

    async with Client(stdio_client(server), mode=mode) as client:
        assert client.protocol_version == version
        assert [tool.name for tool in (await client.list_tools()).tools] == ["hang", "people_get", "wait"]
        slow = asyncio.create_task(client.call_tool("wait", {}, progress_callback=on_progress))
        await enough.wait()
        result = await client.call_tool("people_get", {"id": "7"})
        assert result.structured_content == {"id": "7"}
        assert (await slow).structured_content == {}
        assert told == sorted(set(told))
        assert (await client.call_tool("people_get", {})).is_error is True


async def test_calls_run_side_by_side_and_one_that_is_taken_back_has_no_answer(behind: Backend, tmp_path: Path) -> None:
    process = await Process.start(tmp_path)
    process.write(call(0, "hang"), call("", "wait"), call("0", "hang"))
    process.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})
    while sum(request.target == "/hang" for request in behind.received) < 2:
        await asyncio.wait_for(_next(behind), 30)
    process.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}})
    await asyncio.wait_for(behind.left.wait(), 30)
    process.write(call(3, "people_get", {"id": "a"}))
    assert {(await process.read())["id"], (await process.read())["id"]} == {"", 3}
    process.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "0"}})
    said, log, code = await process.end()
    assert (said, code) == ([], 0)
    assert "Traceback" not in log


async def _next(behind: Backend) -> None:
    count = len(behind.received)
    while len(behind.received) == count:  # noqa: ASYNC110 - the rig tells of no arrival
        await asyncio.sleep(0.01)


async def test_lines_that_are_no_messages_are_refused_and_the_next_is_answered(behind: Backend, tmp_path: Path) -> None:
    process = await Process.start(tmp_path)
    process.write(
        b"", b"  ", b"garbage", b"\xff\xfe", b"[]", b"x" * 300_000, b'{"jsonrpc":"2.0","id":9,"result":{}}',
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {"_meta": META}},
        {"jsonrpc": "2.0", "id": 3, "method": "made/up"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    )  # fmt: skip
    said, log, code = await process.end()
    refused = [answer["error"]["code"] for answer in said if "error" in answer]
    assert refused == [-32700, -32700, -32600, -32600, -32601]
    assert said[1]["error"]["message"] == "Parse error: a message is UTF-8, and its byte 1 is not"
    assert [answer["id"] for answer in said] == [None, None, None, None, 1, 2, 3]
    assert (code, "Traceback" in log) == (0, False)


async def test_the_end_of_the_input_waits_for_answers_and_prints_of_hooks_go_to_stderr(
    behind: Backend, tmp_path: Path
) -> None:
    process = await Process.start(tmp_path)
    process.write(*(call(number, "people_get", {"id": str(number)}) for number in range(50)))
    said, log, code = await process.end()
    assert sorted(answer["id"] for answer in said) == list(range(50))
    assert code == 0
    assert "on stdout" in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_it_at_once_and_takes_back_what_is_under_way(
    behind: Backend, tmp_path: Path, number: signal.Signals
) -> None:
    process = await Process.start(tmp_path)
    process.write(call(1, "hang"))
    await asyncio.wait_for(_next(behind), 30)
    process.process.send_signal(number)
    await asyncio.wait_for(behind.left.wait(), 30)
    assert await asyncio.wait_for(process.process.wait(), 30) == 0
    await process.end()


class Ends:
    """`toolview stdio` on pipes that leave one by one, as those of a client do that ends or is ended."""

    def __init__(self, folder: Path) -> None:
        source, self.to_it = os.pipe()
        self.from_it, sink = os.pipe()
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gateway", "stdio", str(folder / "gateway.yaml")],
                stdin=source, stdout=sink, stderr=log, env={**os.environ, "PYTHONPATH": ROOT},
            )  # fmt: skip
        os.close(source)
        os.close(sink)
        self.open = {self.to_it, self.from_it}

    async def ask(self, message: Json) -> bytes:
        """Write one message and read its answer."""
        await self.write(message)
        answer = b""
        while not answer.endswith(b"\n"):
            answer += await asyncio.wait_for(asyncio.to_thread(os.read, self.from_it, 65536), 30)
        return answer

    async def write(self, *messages: Json) -> None:
        text = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        written = 0
        while written < len(text):
            some = text[written : written + 4096]
            written += await asyncio.wait_for(asyncio.to_thread(os.write, self.to_it, some), 30)

    def leave(self, *numbers: int) -> None:
        for number in numbers:
            os.close(number)
            self.open.discard(number)

    async def end(self) -> tuple[int, str]:
        """The exit code, and all that it said."""
        try:
            code = await asyncio.to_thread(self.process.wait, 30)
        finally:
            self.process.kill()
            self.process.wait()
            self.leave(*self.open)
        return code, self.log.read_text()


PING = {"jsonrpc": "2.0", "id": 0, "method": "ping"}


@pytest.mark.parametrize("left", ["input", "output", "both"])
async def test_a_client_that_leaves_between_two_calls_ends_it(behind: Backend, tmp_path: Path, left: str) -> None:
    ends = Ends(tmp_path)
    await ends.ask(PING)
    ends.leave(*{"input": [ends.to_it], "output": [ends.from_it], "both": [ends.to_it, ends.from_it]}[left])
    assert await ends.end() == (0, "")


@pytest.mark.parametrize("input_too", [False, True])
async def test_a_client_that_no_longer_reads_ends_it_at_once_and_takes_its_calls_back(
    behind: Backend, tmp_path: Path, *, input_too: bool
) -> None:
    (tmp_path / "gateway.yaml").write_text(
        (tmp_path / "gateway.yaml")
        .read_text()
        .replace("progress: 10ms", "progress: 1m")
        .replace("gateway:\n", "gateway:\n  shutdown: 1m\n", 1)
    )  # nothing is written meanwhile, and whoever still reads is waited for
    ends = Ends(tmp_path)
    await ends.write(call(1, "hang"))
    while not behind.received:
        await asyncio.wait_for(_next(behind), 30)
    ends.leave(ends.from_it, *([ends.to_it] if input_too else []))
    await asyncio.wait_for(behind.left.wait(), 30)
    code, log = await ends.end()
    assert (code, "Traceback" in log) == (0, False)


LIST = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {}}
#: More than may wait to be read before no more is taken in, with what a pipe holds besides.
_TOO_MUCH = (1 << 20) + (1 << 18)


@pytest.mark.parametrize("left", ["output", "both", "a signal", "input"])
async def test_a_client_that_leaves_while_answers_wait_to_be_read_ends_it(
    behind: Backend, tmp_path: Path, left: str
) -> None:
    text = (tmp_path / "gateway.yaml").read_text()
    (tmp_path / "gateway.yaml").write_text(text.replace("gateway:\n", "gateway:\n  shutdown: 10ms\n", 1))
    ends = Ends(tmp_path)
    answer = await ends.ask(LIST)
    await ends.write(*[LIST] * (_TOO_MUCH // len(answer)))
    if left == "a signal":
        ends.process.send_signal(signal.SIGTERM)
    elif left == "input":
        ends.leave(ends.to_it)
    else:
        ends.leave(ends.from_it, *([ends.to_it] if left == "both" else []))
    assert await ends.end() == (0, "")
