"""A raw keep-alive HTTP client that sends ready-made bytes and reads answers; the same one drives every server."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence

#: The revision that most clients in the field open with; both servers take it without a session.
_REVISION = "2025-11-25"


def post(path: str, method: str, params: object) -> bytes:
    """One MCP request as the bytes of one HTTP request."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":")).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {_REVISION}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(path: str) -> bytes:
    """A GET as bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class Connection:
    """One kept connection; `exchange` sends a request and returns status and body."""

    def __init__(self, port: int, timeout: float = 30.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        self.send(request)
        return self.receive()

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> tuple[int, bytes]:
        head = self._until(b"\r\n\r\n").lower()
        status = int(head[9:12])
        if b"\r\ntransfer-encoding: chunked" in head:
            return status, self._chunks()
        _, found, rest = head.partition(b"\r\ncontent-length:")
        return status, self._exactly(int(rest.split(b"\r\n", 1)[0])) if found else b""

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n").split(b";")[0], 16):
            body += self._exactly(size + 2)[:-2]
        self._until(b"\r\n")
        return body

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._receive()
        found, self._buffer = self._buffer.split(mark, 1)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._receive()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _receive(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection in the middle of an answer")
        self._buffer += data


def drive(connection: Connection, requests: Sequence[bytes], seconds: float, calls: int | None = None) -> list[float]:
    """Send the requests in turn until the time is over (or `calls` are done); the seconds that each took."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while (len(taken) < calls) if calls is not None else (time.perf_counter() < end):
        begin = time.perf_counter()
        status, body = connection.exchange(requests[len(taken) % len(requests)])
        taken.append(time.perf_counter() - begin)
        if status != 200 or b'"isError":true' in body:
            raise RuntimeError(f"a call failed with {status}: {body[:300]!r}")
    return taken


def volleys(connections: Sequence[Connection], requests: Sequence[bytes], seconds: float) -> int:
    """One caller a connection: each sends, then all are read, until the time is over; how many calls."""
    calls = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for connection in connections:
            connection.send(requests[calls % len(requests)])
            calls += 1
        for connection in connections:
            status, body = connection.receive()
            if status != 200 or b'"isError":true' in body:
                raise RuntimeError(f"a call failed with {status}: {body[:300]!r}")
    return calls
