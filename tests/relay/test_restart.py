"""Ten restarts under load: a new relay listens beside the old one, which drains; no answer is cut, nobody is reset."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import pytest

from gateway.relay.listen import Relay
from gateway.relay.relays import Relays
from gateway.relay.route import Route
from tests.relay.rig import Door, End, Notes, connect, started, within

_REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n" + b"x" * 40_000


@dataclass
class _Tally:
    whole: int = 0
    cut: int = 0
    reset: int = 0
    #: A kept connection that was closed between two exchanges: HTTP clients expect that, and ask again.
    closed_between: int = 0


async def _backend(far: End) -> None:
    seen = 0
    while far.saw == "open":
        await far.read_until(seen + len(_REQUEST))
        if far.saw == "open":
            seen += len(_REQUEST)
            await far.send(_ANSWER[:10_000])
            await asyncio.sleep(0)
            await far.send(_ANSWER[10_000:])
    far.close()


async def _accept_all(door: Door, served: set[asyncio.Task[None]]) -> None:
    while True:
        sock, _ = await asyncio.get_running_loop().sock_accept(door.sock)
        served.add(asyncio.create_task(_backend(End(sock))))


async def _caller(port: int, enough: asyncio.Event, tally: _Tally, wanted: int) -> None:
    end: End | None = None
    while not enough.is_set() or tally.whole < wanted:
        if end is None:
            end, seen = await connect(port), 0
        try:
            await end.send(_REQUEST)
            await end.read_until(seen + len(_ANSWER))
        except ConnectionError:
            end.saw = "reset"
        if end.saw == "open":
            tally.whole += 1
            seen += len(_ANSWER)
            continue
        tally.reset += end.saw == "reset"
        tally.cut += len(end.received) > seen
        tally.closed_between += end.saw == "end" and len(end.received) == seen
        end.close()
        end = None
    if end is not None:
        end.close()


async def _restarts(wanted: int) -> None:
    door, tally, enough, served = Door(), _Tally(), asyncio.Event(), set[asyncio.Task[None]]()
    accepting = asyncio.create_task(_accept_all(door, served))
    old = Relay(Route("a", "127.0.0.1", 0, "127.0.0.1", door.port))
    port = await started(old)
    callers = [asyncio.create_task(_caller(port, enough, tally, wanted)) for _ in range(8)]
    for turn in range(1, 11):
        while tally.whole < wanted * turn // 11:  # noqa: ASYNC110  (a count, not an event)
            await asyncio.sleep(0.001)
        new = Relay(Route("a", "127.0.0.1", port, "127.0.0.1", door.port))
        await started(new, port)
        await within(old.stop(30))
        assert old.connections == 0
        old = new
    enough.set()
    await asyncio.gather(*callers)
    await old.stop(1)
    accepting.cancel()
    await asyncio.gather(*served)
    door.close()
    assert (tally.cut, tally.reset) == (0, 0)
    assert tally.whole >= wanted


async def test_four_hundred_requests_across_ten_restarts() -> None:
    await _restarts(400)


@pytest.mark.long
async def test_ten_thousand_requests_across_ten_restarts() -> None:
    await _restarts(10_000)


async def test_whoever_comes_once_other_routes_are_adopted_is_served_by_them() -> None:
    """Also one whom the kernel takes before anything else of this process has its turn."""
    relays, old, new = Relays(lambda _: Notes()), Door(), Door()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    for door in (old, new):
        await relays.adopt({"a": Route("a", "127.0.0.1", 0, "127.0.0.1", door.port)}, {"a": [listening]})
    guest = End(socket.create_connection(listening.getsockname()))
    await guest.send(_REQUEST)
    far = await new.accept()
    await far.read_until(len(_REQUEST))
    assert far.received == _REQUEST
    far.close()
    guest.close()
    await relays.stop(0)
    for each in (listening, old, new):
        each.close()
