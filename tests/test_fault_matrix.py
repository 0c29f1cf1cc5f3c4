"""A backend that misbehaves in every way, behind the whole gateway: one declared ending each, and nothing left."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.call.outcome import Outcome
from gateway.contract.values import Address
from gateway.serve import Serving
from tests.rig import accepted

#: `hasty` has a short deadline, for backends that never end; the others one that no test can reach.
CONTRACT = """
    version: 1
    gateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}}}
    backends: {{api: {{url: {url}, connect_timeout: 60s, limits: {{answer: 64KiB}}}}}}
    endpoints:
      patient: {{request: GET /thing, description: Reads., timeout: 60s, expose: [mcp, agent], output: {output}, tool: {{name: patient}}}}
      hasty: {{request: GET /thing, description: Reads in a hurry., timeout: 300ms, expose: [mcp, agent], output: {output}, tool: {{name: hasty}}}}
      order: {{request: POST /thing, description: Orders., timeout: 60s, expose: [mcp, agent], output: {output}, tool: {{name: order}}}}
"""
OUTPUT = "{type: object, required: [a], properties: {a: {type: integer}}}"

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Misbehaving:
    """Reads each request whole, then does what its script says; remembers how many it read and which are open."""

    script: Script
    requests: int = 0
    open: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.open.add(task)
        task.add_done_callback(self.open.discard)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                await self.script(reader, writer)
                if writer.is_closing():
                    break
        writer.close()


def says(*pieces: bytes, close: bool = False, wait: bool = False) -> Script:
    """Sends these bytes; then the next request is read, or the connection is closed, or nothing more comes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if wait:
            await reader.read()
        if close or wait:
            writer.close()

    return script


def resets(*pieces: bytes) -> Script:
    """Sends these bytes and resets the connection."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        held = writer.get_extra_info("socket")
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return script


def endless(head: bytes, piece: bytes) -> Script:
    """Sends a head and then the same piece for as long as anybody takes it."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()

    return script


def trickles(head: bytes, piece: bytes) -> Script:
    """Sends a head and then the same piece, so seldom that no limit of bytes is ever met."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        left = asyncio.ensure_future(reader.read())
        while not left.done():
            writer.write(piece)
            await asyncio.wait([left], timeout=0.02)
        writer.close()

    return script


def answer(body: bytes = b'{"a": 1}', status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _bomb() -> bytes:
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([*(pack.compress(b" " * 1_000_000) for _ in range(40)), pack.flush()])


GOOD = answer()
HTML = b"<!doctype html><html><body>We are down for maintenance</body></html>"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Case:
    """What the backend does, and how the call must end; `tool` is `hasty` where only the deadline can end it."""

    name: str
    script: Script | None
    code: str
    retryable: bool = False
    tool: str = "patient"
    details: dict[str, Any] = field(default_factory=dict)
    #: How often a call may be sent; None where it may or may not come to a second time.
    sent: int | None = 1


CASES = [
    Case("behaves", says(GOOD), "ok"),
    Case("refuses", None, "BACKEND_UNREACHABLE", True, sent=0),
    Case("hangs before the head", says(wait=True), "BACKEND_TIMEOUT", True, "hasty"),
    Case("hangs inside the head", says(b"HTTP/1.1 200 OK\r\nContent-", wait=True), "BACKEND_TIMEOUT", True, "hasty"),
    Case("hangs after the head", says(answer(b"", length=8), wait=True), "BACKEND_TIMEOUT", True, "hasty"),
    Case("hangs inside a chunk", says(CHUNKED + b'8\r\n{"a"', wait=True), "BACKEND_TIMEOUT", True, "hasty"),
    Case("trickles for ever", trickles(EARLY + CHUNKED, b"1\r\n \r\n"), "BACKEND_TIMEOUT", True, "hasty"),
    Case("resets before the head", resets(), "BACKEND_CLOSED", True, sent=2),
    Case("resets a post before the head", resets(), "BACKEND_CLOSED", False, "order"),
    Case("resets inside the body", resets(answer(b'{"a"', length=8)), "BACKEND_CLOSED", True, sent=2),
    Case("closes before the head", says(close=True), "BACKEND_CLOSED", True, sent=2),
    Case("closes a post before the head", says(close=True), "BACKEND_CLOSED", False, "order"),
    Case("closes inside the head", says(b"HTTP/1.1 200 OK\r\nCont", close=True), "BACKEND_CLOSED", True, sent=2),
    Case("closes inside a chunk", says(CHUNKED + b'8\r\n{"a"', close=True), "BACKEND_CLOSED", True, sent=2),
    Case("says more than it sends", says(answer(length=80), close=True), "BACKEND_CLOSED", True, sent=2),
    Case("says more than it sends and waits", says(answer(length=80), wait=True), "BACKEND_TIMEOUT", True, "hasty"),
    Case("sends more than it says", says(answer(b'{"a": 12}', length=8)), "BACKEND_ANSWER_INVALID"),
    Case("sends a whole answer too many", says(GOOD + answer(b'{"a": 666}')), "ok"),
    Case("names two lengths", says(answer(b'{"a": 1}', "200 OK", "Content-Length: 3")), "BACKEND_ANSWER_INVALID"),
    Case("sends interim answers", says(b"HTTP/1.1 100 Continue\r\n\r\n", EARLY, EARLY, GOOD), "ok"),
    Case("sends interim answers only", endless(b"", EARLY * 500), "BACKEND_ANSWER_INVALID"),
    Case("switches protocols unasked", says(b"HTTP/1.1 101 Switching\r\n\r\n", wait=True), "BACKEND_ANSWER_INVALID"),
    Case("sends garbage", says(b"\x00\xff\x16\x03 this is no HTTP\r\n\r\n", wait=True), "BACKEND_ANSWER_INVALID"),
    Case("greets as SSH", says(b"SSH-2.0-OpenSSH_9.6\r\n", wait=True), "BACKEND_ANSWER_INVALID"),
    Case("sends garbage as chunks", says(CHUNKED + b"zz\r\n{}\r\n", wait=True), "BACKEND_ANSWER_INVALID"),
    Case("moves elsewhere", says(answer(b"", "302 Found", "Location: /thing")), "BACKEND_ERROR"),
    Case("knows nobody", says(answer(b"{}", "401 Unauthorized")), "UNAUTHORIZED"),
    Case("finds nothing", says(answer(b"{}", "404 Not Found")), "NOT_FOUND"),
    Case("refuses the arguments", says(answer(b"{}", "422 Unprocessable")), "VALIDATION_ERROR"),
    Case(
        "limits its callers",
        says(answer(b"{}", "429 Too Many", "Retry-After: 3600")),
        "RATE_LIMITED",
        True,
        details={"retry_after": 3600},
    ),
    Case("breaks", says(answer(b"{}", "500 Oops")), "BACKEND_ERROR", details={"backend_status": 500}),
    Case("lacks it", says(answer(b"{}", "501 Not Implemented")), "BACKEND_ERROR", details={"backend_status": 501}),
    Case("is away", says(answer(b"{}", "503 Unavailable")), "BACKEND_ERROR", True, details={"backend_status": 503}),
    Case("answers HTML", says(answer(HTML)), "BACKEND_ANSWER_INVALID"),
    Case("fails in HTML", says(answer(HTML, "502 Bad Gateway")), "BACKEND_ERROR", True),
    Case("answers nothing", says(answer(b"")), "BACKEND_ANSWER_INVALID"),
    Case("answers another type", says(answer(b'{"a": "1"}')), "BACKEND_ANSWER_INVALID"),
    Case("sends a bomb", says(answer(_bomb(), "200 OK", "Content-Encoding: gzip")), "BACKEND_ANSWER_TOO_LARGE"),
    Case("sends half a gzip", says(answer(gzip.compress(b'{"a": 1}')[:-6], "200 OK", "Content-Encoding: gzip")), "BACKEND_ANSWER_INVALID"),
    Case("never ends", endless(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 8192), "BACKEND_ANSWER_TOO_LARGE"),
    Case("never ends a chunk", endless(CHUNKED + b"FFFFFFFFF\r\n", b" " * 8192), "BACKEND_ANSWER_TOO_LARGE"),
    Case("never ends its head", endless(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n" * 500), "BACKEND_ANSWER_INVALID"),
]  # fmt: skip


@dataclass
class Scene:
    """A gateway whole, the backend behind it, and what was told."""

    serving: Serving
    backend: Misbehaving | None
    outcomes: list[Outcome]

    async def mcp(self, tool: str) -> dict[str, Any]:
        """The envelope or the answer of one call over MCP."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        status, body = await self.exchange("tools", "POST", "/mcp", json.dumps(call).encode())
        assert status == 200
        result = json.loads(body)["result"]
        shown = json.loads(result["content"][0]["text"])
        assert result.get("isError", False) is (shown.get("ok") is False)
        assert ("structuredContent" in result) is not result.get("isError", False)
        return shown if "ok" in shown else {"ok": True, "data": shown}

    async def agent(self, tool: str) -> tuple[int, dict[str, Any]]:
        """Status and body of one call over the agent endpoint."""
        status, body = await self.exchange("tools", "POST", f"/agent/tools/{tool}", b"{}")
        return status, json.loads(body)

    async def counted(self) -> dict[tuple[str, str, str], float]:
        _, text = await self.exchange("admin", "GET", "/metrics")
        return {
            (sample.labels["tool"], sample.labels["surface"], sample.labels["code"]): sample.value
            for family in text_string_to_metric_families(text.decode())
            for sample in family.samples
            if sample.name == "toolview_tool_calls_total"
        }

    async def exchange(self, listener: str, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """One request on a connection of its own, read to its end: exactly one answer must have come."""
        address: Address = self.serving.addresses[listener]
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        raw = await reader.read()
        writer.close()
        head, _, content = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), None)
        assert length is None or len(content) == length
        return int(head.split()[1]), content


@asynccontextmanager
async def scene(folder: Path, script: Script | None) -> AsyncIterator[Scene]:
    """The gateway on sockets before a backend with this script; None is a port where nobody listens."""
    backend = Misbehaving(script) if script is not None else None
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        server = await asyncio.start_server(backend.serve, sock=door) if backend is not None else None
        outcomes: list[Outcome] = []
        serving = Serving(accepted(folder, CONTRACT.format(url=url, output=OUTPUT)), outcomes.append)
        assert await serving.start() is None
        try:
            yield Scene(serving, backend, outcomes)
        finally:
            await serving.stop(5)
            if server is not None:
                server.close()
        if backend is not None and backend.open:
            await asyncio.wait_for(asyncio.gather(*backend.open), 10)  # no connection outlives the gateway


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_backend_that(case: Case, tmp_path: Path) -> None:
    tasks, files = asyncio.all_tasks(), descriptors()
    async with asyncio.timeout(30), scene(tmp_path, case.script) as here:
        by_mcp = await here.mcp(case.tool)
        status, by_agent = await here.agent(case.tool)
        assert [(outcome.code, outcome.call.surface) for outcome in here.outcomes] == [
            (case.code, "mcp"),
            (case.code, "agent"),
        ]
        assert await here.counted() == {(case.tool, "mcp", case.code): 1, (case.tool, "agent", case.code): 1}
        if case.sent is not None and here.backend is not None:
            assert here.backend.requests == 2 * case.sent
        assert status == (200 if case.code == "ok" else here.outcomes[1].failure.status)  # type: ignore[union-attr]  # a failure
        if case.code == "ok":
            assert by_mcp == by_agent == {"ok": True, "data": {"a": 1}}
        else:
            assert by_mcp["details"].pop("call_id") != by_agent["details"].pop("call_id")
            assert by_mcp == by_agent
            assert (by_mcp["code"], by_mcp["retryable"]) == (case.code, case.retryable)
            assert case.details.items() <= by_mcp["details"].items()
            assert "maintenance" not in json.dumps(by_mcp)
        if case.tool == "hasty":
            assert all(0.3 <= outcome.duration < 10 for outcome in here.outcomes)
    assert asyncio.all_tasks() == tasks
    assert descriptors() == files


@pytest.mark.parametrize("surface", ["mcp", "agent"])
async def test_a_caller_that_leaves_takes_the_backend_connection_along(surface: str, tmp_path: Path) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        gone.set()
        writer.close()

    async with asyncio.timeout(30), scene(tmp_path, wait) as here:
        address = here.serving.addresses["tools"]
        _, writer = await asyncio.open_connection(address.host, address.port)
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "order", "arguments": {}, "_meta": meta}}  # fmt: skip
        path, body = ("/agent/tools/order", b"{}") if surface == "agent" else ("/mcp", json.dumps(call).encode())
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: order\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await asked.wait()
        writer.close()
        await asyncio.wait_for(gone.wait(), 1)
        assert [outcome.code for outcome in here.outcomes] == ["REQUEST_ABORTED"]
        assert await here.counted() == {("order", surface, "REQUEST_ABORTED"): 1}
