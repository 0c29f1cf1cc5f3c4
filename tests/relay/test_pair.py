"""One pair: memory stays bounded, ends go over as they are, and nobody who left is kept."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest

from gateway.relay.flow import HELD
from tests.relay.exchanges import EXCHANGES
from tests.relay.rig import Door, End, connect, play, relay_to, until

_GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def _paired(door: Door, port: int) -> tuple[End, End]:
    near = await connect(port)
    await near.send(_GET)
    far = await door.accept()
    await far.read_until(len(_GET))
    return near, far


async def _send_until_full(end: End) -> int:
    """Send until nobody takes any more, for as long as it takes to be sure."""
    total = quiet = 0
    while quiet < 20:
        try:
            total += end.sock.send(b"x" * 65536)
            quiet = 0
        except BlockingIOError:
            quiet += 1
            await asyncio.sleep(0.01)
    return total


async def test_a_slow_reader_holds_back_the_sender_and_gets_every_byte() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, notes):
        near, far = await _paired(door, port)
        await far.send(b"HTTP/1.0 200 OK\r\n\r\n")
        sent = 19 + await _send_until_full(far)
        (pair,) = relay._pairs
        assert pair.down is not None
        assert pair.down.pending is not None
        assert len(pair.down.pending) <= HELD
        far.end()
        await near.read_to_end()
        assert len(near.received) == sent
        near.close()
        far.close()
    assert notes.moved == {"in": len(_GET), "out": sent}
    door.close()


async def test_a_client_that_leaves_in_the_middle_of_an_endless_answer_frees_the_backend() -> None:  # PRS-17
    door = Door()
    async with relay_to(door) as (relay, port, notes):
        near, far = await _paired(door, port)
        await far.send(b"HTTP/1.1 200 OK\r\n\r\n")
        await near.read_until(10)
        near.close()
        with suppress(ConnectionError):
            while relay.connections:
                await far.send(b"x" * 1024)
        assert notes.cuts == [("GET", 200)]
        far.close()
    door.close()


async def test_a_client_that_resets_while_its_upload_is_held_back_is_noticed() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, _):
        near, far = await _paired(door, port)
        await _send_until_full(near)
        near.reset()
        await until(lambda: relay.connections == 0)
        await far.read_to_end()
        assert far.saw == "reset"
        far.close()
    door.close()


async def test_an_answer_given_before_a_reset_still_arrives() -> None:
    door = Door()
    async with relay_to(door) as (_, port, _notes):
        near = await connect(port)
        await near.send(b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
        far = await door.accept()
        await far.has_something_to_read()
        await far.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        far.close()  # with the request's bytes unread: the kernel sends a reset after the answer
        await near.read_to_end()
        assert near.received.startswith(b"HTTP/1.1 413 ")
        assert near.saw == "reset"
        near.close()
    door.close()


def test_the_whole_table_of_exchanges_holds_on_uvloop_too() -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not made for this system")

    async def every_exchange() -> None:
        for name, steps in EXCHANGES.items():
            door = Door()
            direct = await play(steps, door, door.port)
            async with relay_to(door) as (_, port, _notes):
                assert await play(steps, door, port) == direct, name
            door.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(every_exchange())


async def test_small_writes_are_not_held_up_and_dead_peers_are_probed() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, _):
        near, far = await _paired(door, port)
        (pair,) = relay._pairs
        for sock in (pair.client, pair.backend):
            assert sock is not None
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        near.close()
        far.close()
    door.close()


async def test_a_connection_that_one_side_closed_and_nobody_uses_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.relay.pair.HALF_CLOSED", 0.01)
    door = Door()
    async with relay_to(door) as (relay, port, _):
        near, far = await _paired(door, port)
        far.end()
        await near.read_to_end()
        assert near.saw == "end"
        await until(lambda: relay.connections == 0)  # although neither side closed the other direction
        near.close()
        far.close()
    door.close()


async def test_a_client_that_ended_its_side_may_wait_for_its_answer_as_long_as_it_likes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.relay.pair.HALF_CLOSED", 0.0)
    door = Door()
    async with relay_to(door) as (relay, port, _):
        near, far = await _paired(door, port)
        near.end()
        await far.read_to_end()
        (pair,) = relay._pairs
        pair.tick(asyncio.get_running_loop().time() + 3600)
        await far.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        far.end()
        assert await near.read_to_end() == b"HTTP/1.1 204 No Content\r\n\r\n"
        assert near.saw == "end"
        near.close()
        far.close()
    door.close()


async def test_an_upgraded_connection_gets_the_whole_grace_period_and_then_a_reset() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, notes):
        near = await connect(port)
        await near.send(b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n")
        far = await door.accept()
        await far.send(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        await until(lambda: notes.opaques == 1)
        stopped = asyncio.create_task(relay.stop(0.2))
        await far.send(b"\x81\x05Hello")
        await near.read_to_end()
        assert near.received.endswith(b"\x81\x05Hello")
        assert near.saw == "reset"
        await stopped
        near.close()
        far.close()
    door.close()
