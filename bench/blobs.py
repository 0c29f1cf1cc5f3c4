"""A backend of plain bytes for machines without nginx: `GET /1024` is answered with 1024 bytes; knows no proxy."""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop


class _Blobs(asyncio.Protocol):
    """Answers each head with as many bytes as its path says; bodies are not expected."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class
        self._held = b""

    def data_received(self, data: bytes) -> None:
        *heads, self._held = (self._held + data).split(b"\r\n\r\n")
        for head in heads:
            self._transport.write(_answer(int(head.split(b" ", 2)[1][1:])))


_ANSWERS: dict[int, bytes] = {}


def _answer(size: int) -> bytes:
    if size not in _ANSWERS:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n"
        _ANSWERS[size] = head.encode() + b"x" * size
    return _ANSWERS[size]


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Blobs, "127.0.0.1", port, backlog=8192)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1])))
