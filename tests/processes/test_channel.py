"""What is handed to a process arrives also where clients have taken all of its descriptors."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.processes.channel import pair


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, hard))
    try:
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("spares", [0, 4])
def test_there_is_room_for_what_is_handed_or_the_channel_is_as_good_as_gone(spares: int) -> None:
    ours, theirs = pair()
    theirs.reserve(spares)
    with socket.create_server(("127.0.0.1", 0)) as door, open(os.devnull, "rb") as file, no_descriptor_left():
        ours.send({"is": "adopt"}, {"tools": [door], "admin": [door]}, kept=file.fileno())
        heard = theirs.receive()
        if heard is None:
            assert spares == 0
        else:
            (message,) = heard
            for name in ("tools", "admin"):
                (handed,) = message["doors"][name]
                assert handed.getsockname() == door.getsockname()
                handed.close()
            os.close(message["kept"])
            assert spares == 4
    ours.close()
    theirs.close()


def test_nothing_is_left_open() -> None:
    before = os.listdir("/proc/self/fd")
    ours, theirs = pair()
    theirs.reserve()
    for _ in range(3):
        with open(os.devnull, "rb") as file:
            ours.send({"is": "loaded"}, kept=file.fileno())
        heard = theirs.receive()
        assert heard is not None
        os.close(heard[0]["kept"])
    ours.close()
    theirs.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)
