"""Bodies far larger than what the relay may hold go through it, down and up, at once, with readers that are slow."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from tests.relay.rig import Door, End, connect, within

_MIB = 1 << 20
#: What the issue of memory comes down to: the process, its interpreter included, at its highest.
_MOST = 60 * _MIB
_PIECE = bytes(range(256)) * 1024


@asynccontextmanager
async def _relay_alone(backend_port: int) -> AsyncIterator[tuple[int, psutil.Process]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.relay.relay_alone", str(backend_port),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield int(await within(process.stdout.readline())), psutil.Process(process.pid)
    finally:
        process.stdin.close()
        await within(process.wait())
    assert process.returncode == 0


async def _pour(end: End, size: int) -> None:
    for _ in range(size // len(_PIECE)):
        await end.send(_PIECE)


async def _drink(end: End, size: int, process: psutil.Process) -> int:
    """Take so much, look at every byte, keep none; the highest memory of the relay on the way."""
    loop, taken, highest = asyncio.get_running_loop(), 0, 0
    while taken < size:
        data = await within(loop.sock_recv(end.sock, len(_PIECE)))
        assert data, f"ended after {taken} bytes"
        at = taken % len(_PIECE)
        assert data == (_PIECE[at:] + _PIECE)[: len(data)]
        if taken // (8 * _MIB) != (taken + len(data)) // (8 * _MIB):
            highest = max(highest, process.memory_info().rss)
        taken += len(data)
    return highest


async def _down_and_up(size: int) -> None:
    door = Door()
    request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    async with _relay_alone(door.port) as (port, process):
        near = await connect(port)
        await near.send(request)
        far = await door.accept()
        await far.read_until(len(request))
        await far.send(answer)
        await near.read_until(len(answer))
        both = await asyncio.gather(
            _pour(near, size), _pour(far, size), _drink(near, size, process), _drink(far, size, process)
        )
        near.close()
        far.close()
    door.close()
    assert 0 < max(both[2], both[3]) < _MOST


async def test_forty_megabytes_go_down_and_up_at_once_in_little_memory() -> None:
    await _down_and_up(40 * _MIB)


@pytest.mark.long
async def test_a_gigabyte_goes_down_and_up_at_once_in_little_memory() -> None:
    await _down_and_up(1024 * _MIB)
