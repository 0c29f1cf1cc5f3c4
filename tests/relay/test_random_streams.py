"""Any bytes in any pieces, both ways at once, ending at any moment: the same bytes and the same ends come out."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest

from tests.relay.rig import Door, End, connect, relay_to, until, within

_GRAINS = (
    b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"\r\n",
    b"\x00\xff",
)


def _stream(dice: random.Random) -> bytes:
    """At least one byte: HTTP, nearly HTTP, noise, and now and then a lot of it."""
    kind = dice.random()
    if kind < 0.5:
        return b"".join(dice.choices(_GRAINS, k=dice.randint(1, 8)))
    if kind < 0.95:
        return dice.randbytes(dice.randint(1, 3000))
    return dice.randbytes(dice.randint(100_000, 400_000))


async def _send_in_pieces(end: End, data: bytes, dice: random.Random) -> None:
    at = 0
    while at < len(data):
        size = dice.choice((1, 2, 7, 100, 5000, 100_000))
        if len(data) > 10_000:
            size = max(size, 5000)
        await end.send(data[at : at + size])
        at += size
        for _ in range(dice.choice((0, 0, 1, 3))):
            await asyncio.sleep(0)


async def _stream_both_ways(seed: int, door: Door, port: int) -> None:
    """Both sides send all they have and end; a side that leaves in the middle does it with a reset."""
    dice = random.Random(seed)
    up, down = _stream(dice), _stream(dice)
    near = await connect(port)
    if dice.random() < 0.3:
        near.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    first = dice.randint(1, len(up))
    await near.send(up[:first])
    far = await door.accept()
    leaver = dice.choice((None, None, "near", "far"))
    stop = dice.randint(0, len(up) - first), dice.randint(0, len(down))

    async def side(end: End, data: bytes, leaves: bool, until_byte: int) -> None:
        if leaves:
            await _send_in_pieces(end, data[:until_byte], dice)
            end.reset()
            return
        reading = asyncio.create_task(end.read_to_end())
        try:
            await _send_in_pieces(end, data, dice)
            end.end()
        except OSError:
            assert leaver is not None  # only a peer that left may refuse bytes
        await reading

    try:
        await within(
            asyncio.gather(side(near, up[first:], leaver == "near", stop[0]), side(far, down, leaver == "far", stop[1]))
        )
        if leaver is None:
            assert (far.received, far.saw) == (up, "end")
            assert (near.received, near.saw) == (down, "end")
        elif leaver == "near":
            assert (up.startswith(far.received), far.saw) == (True, "reset")
        else:
            assert (down.startswith(near.received), near.saw) == (True, "reset")
    finally:
        near.close()
        far.close()


async def _many(seeds: range) -> None:
    door = Door()
    async with relay_to(door) as (relay, port, _):
        for seed in seeds:
            try:
                await _stream_both_ways(seed, door, port)
            except Exception as fault:
                raise AssertionError(f"seed {seed}") from fault
        await until(lambda: relay.connections == 0)
    door.close()


async def test_two_hundred_random_streams_come_out_as_they_went_in() -> None:
    await _many(range(200))


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 20_000, 2000))
async def test_twenty_thousand_random_streams_come_out_as_they_went_in(first: int) -> None:
    await _many(range(first, first + 2000))


@pytest.mark.long
@pytest.mark.parametrize("first", range(20_000, 24_000, 2000))
def test_random_streams_on_uvloop(first: int) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not made for this system")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_many(range(first, first + 2000)))
