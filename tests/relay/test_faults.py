"""Every fault at every byte of a small exchange, on both sides: the other side is told, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.relay.rig import Door, End, connect, relay_to, until

_REQUEST = b"POST /in HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"


@contextmanager
def _nothing_left_behind() -> Iterator[None]:
    descriptors, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
    yield
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(asyncio.all_tasks()) == tasks


async def _paired(door: Door, port: int, request: bytes) -> tuple[End, End]:
    near = await connect(port)
    await near.send(request)
    far = await door.accept()
    await far.read_until(len(request))
    return near, far


@pytest.mark.parametrize("fault", ["end", "reset"])
async def test_a_client_that_stops_at_any_byte_of_its_request(fault: str) -> None:
    door = Door()
    with _nothing_left_behind():
        async with relay_to(door) as (relay, port, _):
            for at in range(1, len(_REQUEST) + 1):
                near, far = await _paired(door, port, _REQUEST[:at])
                near.end() if fault == "end" else near.reset()
                await far.read_to_end()
                assert (far.received, far.saw) == (_REQUEST[:at], fault)
                far.close()
                near.close()
            await until(lambda: relay.connections == 0)
    door.close()


@pytest.mark.parametrize("fault", ["end", "reset"])
async def test_a_backend_that_stops_at_any_byte_of_a_request(fault: str) -> None:
    door = Door()
    with _nothing_left_behind():
        async with relay_to(door) as (relay, port, notes):
            for at in range(1, len(_REQUEST) + 1):
                near, far = await _paired(door, port, _REQUEST[:at])
                far.end() if fault == "end" else far.reset()
                await near.read_to_end()
                assert (near.received, near.saw) == (b"", fault)
                near.close()
                far.close()
            await until(lambda: relay.connections == 0)
            assert notes.moved == {"in": sum(range(1, len(_REQUEST) + 1)), "out": 0}
    door.close()


@pytest.mark.parametrize("fault", ["end", "reset"])
async def test_a_backend_that_stops_at_any_byte_of_its_answer(fault: str) -> None:
    door = Door()
    with _nothing_left_behind():
        async with relay_to(door) as (relay, port, notes):
            for at in range(len(_ANSWER) + 1):
                near, far = await _paired(door, port, _REQUEST)
                await far.send(_ANSWER[:at])
                await near.read_until(at)
                far.end() if fault == "end" else far.reset()
                await near.read_to_end()
                assert (near.received, near.saw) == (_ANSWER[:at], fault)
                near.close()
                far.close()
            await until(lambda: relay.connections == 0)
            assert len(notes.exchanges) == len(_ANSWER) + 1
            assert len(notes.cuts) == len(_ANSWER)
            assert notes.moved["out"] == sum(range(len(_ANSWER) + 1))
    door.close()


@pytest.mark.parametrize("fault", ["end", "reset"])
async def test_a_client_that_leaves_at_any_byte_of_the_answer(fault: str) -> None:
    door = Door()
    with _nothing_left_behind():
        async with relay_to(door) as (relay, port, _):
            for at in range(len(_ANSWER) + 1):
                near, far = await _paired(door, port, _REQUEST)
                await far.send(_ANSWER[:at])
                await near.read_until(at)
                near.end() if fault == "end" else near.reset()
                await far.read_to_end()
                assert far.saw == fault
                far.close()
                near.close()
            await until(lambda: relay.connections == 0)
    door.close()


async def test_a_side_that_stalls_at_any_byte_is_let_go_after_the_idle_timeout_without_spinning() -> None:
    door = Door()
    with _nothing_left_behind():
        async with relay_to(door, idle_timeout=0.2) as (relay, port, _):
            pairs = [await _paired(door, port, _REQUEST[:at]) for at in range(1, len(_REQUEST) + 1)]
            for at in range(1, len(_ANSWER)):
                near, far = await _paired(door, port, _REQUEST)
                await far.send(_ANSWER[:at])
                pairs.append((near, far))
            spent = os.times()
            await until(lambda: relay.connections == 0)
            used = os.times().user + os.times().system - spent.user - spent.system
            assert used < 3, "the relay spins while nothing moves"
            for near, far in pairs:
                await near.read_to_end()
                await far.read_to_end()
                assert (near.saw, far.saw) == ("reset", "reset")
                near.close()
                far.close()
    door.close()


@pytest.mark.parametrize("fault", ["end", "reset"])
async def test_any_fault_with_the_strict_gate_as_well(fault: str) -> None:
    door = Door()
    with _nothing_left_behind():
        async with relay_to(door, declared=(("POST", "/in"),)) as (relay, port, _):
            head = _REQUEST.index(b"\r\n\r\n") + 4
            for at in range(1, len(_REQUEST)):
                near = await connect(port)
                await near.send(_REQUEST[:at])
                if at >= head:
                    far = await door.accept()
                    await far.read_until(head)
                    near.end() if fault == "end" else near.reset()
                    await far.read_to_end()
                    assert far.saw == fault
                    assert _REQUEST[:at].startswith(far.received)
                    far.close()
                elif fault == "end":
                    near.end()
                    await near.read_to_end()
                else:
                    near.reset()
                near.close()
            await until(lambda: relay.connections == 0)
            with pytest.raises(BlockingIOError):
                door.sock.accept()  # what never became a request never reached the backend
    door.close()
