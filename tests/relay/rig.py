"""Two raw sockets and a script: what each side received and how it ended, directly or through the relay."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.relay.listen import Relay
from gateway.relay.route import Route

#: Nothing here depends on speed: this only turns a hang into a failure.
PATIENCE = 10.0

Step = tuple[Literal["client", "server"], bytes | Literal["end", "reset"]]


def client(data: bytes) -> Step:
    return ("client", data)


def server(data: bytes) -> Step:
    return ("server", data)


@dataclass
class Transcript:
    """All that the two sides can know of a connection."""

    at_server: bytes = b""
    at_client: bytes = b""
    server_saw: str = "open"
    client_saw: str = "open"


@dataclass
class Notes:
    """An observer that writes everything down."""

    opened: int = 0
    closed: int = 0
    moved: dict[str, int] = field(default_factory=lambda: {"in": 0, "out": 0})
    exchanges: list[tuple[str, int]] = field(default_factory=list)
    facts: list[tuple[str, tuple[int, int], float]] = field(default_factory=list)
    cuts: list[tuple[str, int]] = field(default_factory=list)
    opaques: int = 0

    def connection_opened(self) -> None:
        self.opened += 1

    def connection_closed(self) -> None:
        self.closed += 1

    def relayed(self, direction: str, count: int) -> None:
        self.moved[direction] += count

    def exchange(self, method: str, status: int, target: bytes, sizes: tuple[int, int], seconds: float) -> None:
        self.exchanges.append((method, status))
        self.facts.append((target.decode("latin-1"), sizes, seconds))

    def cut(self, method: str, status: int) -> None:
        self.cuts.append((method, status))

    def opaque(self) -> None:
        self.opaques += 1


class End:
    """One raw socket that is read to the byte."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.received = b""
        self.saw = "open"
        self._refused = False

    async def send(self, data: bytes) -> None:
        try:
            await within(asyncio.get_running_loop().sock_sendall(self.sock, data))
        except ConnectionError:
            self._refused = True  # the kernel tells of a reset once, and it was told now
            raise

    async def read(self) -> bytes:
        """What comes next; empty at an end, which `saw` then names."""
        try:
            data: bytes = await within(asyncio.get_running_loop().sock_recv(self.sock, 65536))
        except ConnectionResetError:
            data, self.saw = b"", "reset"
        else:
            if not data:
                self.saw = "reset" if self._refused else "end"
        self.received += data
        return data

    async def has_something_to_read(self) -> None:
        await until(lambda: select.select([self.sock], [], [], 0)[0])

    async def read_until(self, total: int) -> None:
        while len(self.received) < total and self.saw == "open" and await self.read():
            pass

    async def read_to_end(self) -> bytes:
        while self.saw == "open":
            await self.read()
        return self.received

    def end(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


class Door:
    """A listening socket that hands out one connection at a time."""

    def __init__(self, family: int = socket.AF_INET, where: Any = ("127.0.0.1", 0)) -> None:
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.bind(where)
        self.sock.listen(64)
        self.sock.setblocking(False)

    @property
    def port(self) -> int:
        return int(self.sock.getsockname()[1])

    async def accept(self) -> End:
        sock, _ = await within(asyncio.get_running_loop().sock_accept(self.sock))
        return End(sock)

    def close(self) -> None:
        self.sock.close()


async def connect(port: int, family: int = socket.AF_INET, host: str = "127.0.0.1") -> End:
    end = End(socket.socket(family, socket.SOCK_STREAM))
    try:
        await within(asyncio.get_running_loop().sock_connect(end.sock, (host, port)))
    except OSError:
        end.close()
        raise
    return end


async def within(awaitable: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await awaitable


async def started(relay: Relay, port: int = 0) -> int:
    """Start a relay at a door on loopback, beside others where they have the same port; gives the port."""
    door = socket.create_server(("127.0.0.1", port), backlog=1024, reuse_port=True)
    door.setblocking(False)
    await relay.start([door])
    return int(door.getsockname()[1])


@asynccontextmanager
async def relay_to(door: Door | None, *, port: int = 0, **options: Any) -> AsyncIterator[tuple[Relay, int, Notes]]:
    """A running relay in front of a door; at the end it must have let go of everything."""
    notes = Notes()
    backend_port = door.port if door is not None and "backend_socket" not in options else port
    route = Route("legacy", "127.0.0.1", 0, options.pop("backend_host", "127.0.0.1"), backend_port, **options)
    relay = Relay(route, notes)
    listening = await started(relay)
    try:
        yield relay, listening, notes
    finally:
        await relay.stop(0)
        assert relay.connections == 0
        assert notes.opened == notes.closed


def calls_of(act: Callable[[], object]) -> int:
    """How many functions are called while this runs, in Python and below it: the same on every machine."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


async def until(condition: Any) -> None:
    """Let the loop turn until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  (what is waited for is the kernel's, and sends no event)
            await asyncio.sleep(0.001)


async def play(steps: Iterable[Step], door: Door, port: int) -> Transcript:
    """Each step is done by one side and seen by the other before the next; a side that ends early ends the script.

    `port` is the door's own, or that of a relay in front of it.
    """
    near = await connect(port)
    # A relay connects to its backend at the first bytes, so the door is waited for once the client spoke.
    far: End | None = None
    sent = {"client": 0, "server": 0}
    try:
        for who, what in steps:
            if far is None:
                assert who == "client", "HTTP clients speak first"
                assert isinstance(what, bytes)
                await near.send(what)
                far = await door.accept()
            else:
                with suppress(ConnectionError):
                    await _do(near if who == "client" else far, what)
            if isinstance(what, bytes):
                sent[who] += len(what)
            other = far if who == "client" else near
            if isinstance(what, bytes):
                await other.read_until(sent[who])
            else:
                await other.read_to_end()
        assert far is not None
        for end in (near, far):
            if end.saw != "open" and end.sock.fileno() >= 0:
                end.close()
        for end in (near, far):
            if end.sock.fileno() >= 0:
                await end.read_to_end()
        return Transcript(far.received, near.received, far.saw, near.saw)
    finally:
        near.close()
        if far is not None:
            far.close()


async def _do(end: End, what: bytes | str) -> None:
    if what == "end":
        end.end()
    elif what == "reset":
        end.reset()
    else:
        assert isinstance(what, bytes)
        await end.send(what)
