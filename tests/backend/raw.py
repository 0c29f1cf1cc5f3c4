"""A backend made of a plain socket, which answers and misbehaves byte for byte as a test says."""

from __future__ import annotations

import asyncio
import socket
import struct
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.backend.client import BackendClient
from gateway.contract.model import Backend, BackendLimits, BackendTls, Retry

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

Script = Callable[["RawBackend", Reader, Writer], Awaitable[None]]


class RawBackend:
    """Listens on loopback, keeps every request's bytes, and lets a script answer each connection."""

    def __init__(self, script: Script | bytes) -> None:
        self.script = _answering(script) if isinstance(script, bytes) else script
        self.received: list[bytes] = []
        self.connections = 0
        #: Set by a script that saw its connection end.
        self.ended = asyncio.Event()
        self.url = ""
        self.tasks: set[asyncio.Task[Any]] = set()

    async def read_request(self, reader: Reader) -> bytes:
        """One request with its body; raises IncompleteReadError where the client closes instead."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        request = head + await reader.readexactly(length)
        self.received.append(request)
        return request

    async def serve(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            await self.script(self, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.tasks.discard(task)

    async def stop(self) -> None:
        """End every script that is still running, such as one that hangs on purpose."""
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@asynccontextmanager
async def raw_backend(script: Script | bytes, path: Path | None = None, ssl: Any = None) -> AsyncIterator[RawBackend]:
    """A running RawBackend, on a unix socket where a path is given."""
    backend = RawBackend(script)
    if path is not None:
        server = await asyncio.start_unix_server(backend.serve, path)
        backend.url = "http://localhost"
    else:
        server = await asyncio.start_server(backend.serve, "127.0.0.1", 0, ssl=ssl)
        backend.url = f"{'https' if ssl else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield backend
    finally:
        server.close()
        await backend.stop()
        await server.wait_closed()


def declared(url: str | None, **said: Any) -> Backend:
    """What a contract says of the backend `b`."""
    values: dict[str, Any] = {
        "name": "b",
        "url": url,
        "socket": None,
        "passthrough": None,
        "timeout": 30.0,
        "connect_timeout": 3.0,
        "headers": {},
        "forward_headers": (),
        "tls": BackendTls(),
        "limits": BackendLimits(),
        "retry": Retry(),
        "breaker": None,
        "health": None,
        "auth": None,
        "errors": {},
    }
    return Backend(**(values | said))


@asynccontextmanager
async def client_of(backend: Backend) -> AsyncIterator[BackendClient]:
    """A started client of one backend."""
    client = BackendClient([backend])
    await client.start()
    try:
        yield client
    finally:
        await client.close()


def reset(writer: Writer) -> None:
    """Close so that the other side sees a reset instead of an end."""
    held = writer.get_extra_info("socket")
    held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _answering(answer: bytes) -> Script:
    async def script(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        while True:
            await backend.read_request(reader)
            writer.write(answer)
            await writer.drain()

    return script
