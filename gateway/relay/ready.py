"""Calls back when sockets are ready: one epoll set, which the event loop sees as a single descriptor. Knows no bytes.

It costs less for each event than the loop's own readers, and it is exact where uvloop is not: uvloop drops a reader for
good when its socket has an error pending, even if bytes are still to be read before that error.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Protocol

#: So many events are served before the loop's other work gets its turn.
_BATCH = 32

_Act = Callable[[], None]


class Ready(Protocol):
    """At most one reader and one writer for each socket; removing what is not there is no fault."""

    def add_reader(self, sock: socket.socket, act: _Act) -> None: ...

    def remove_reader(self, sock: socket.socket) -> None: ...

    def add_writer(self, sock: socket.socket, act: _Act) -> None: ...

    def remove_writer(self, sock: socket.socket) -> None: ...

    def close(self) -> None: ...


def ready(loop: asyncio.AbstractEventLoop, afterwards: _Act) -> Ready:
    """The best there is on this system. `afterwards` is called once the events of one moment have been served."""
    return _Epoll(loop, afterwards) if hasattr(select, "epoll") else _Loop(loop, afterwards)


class _Epoll:
    def __init__(self, loop: asyncio.AbstractEventLoop, afterwards: _Act) -> None:
        self._loop = loop
        self._afterwards = afterwards
        self._epoll = select.epoll()
        self._readers: dict[int, _Act] = {}
        self._writers: dict[int, _Act] = {}
        loop.add_reader(self._epoll.fileno(), self._serve)

    def add_reader(self, sock: socket.socket, act: _Act) -> None:
        number = sock.fileno()
        known = number in self._readers
        self._readers[number] = act
        if number in self._writers:
            self._epoll.modify(number, select.EPOLLIN | select.EPOLLOUT)
        elif not known:
            self._epoll.register(number, select.EPOLLIN)

    def remove_reader(self, sock: socket.socket) -> None:
        number = sock.fileno()
        if self._readers.pop(number, None) is None:
            return
        if number in self._writers:
            self._epoll.modify(number, select.EPOLLOUT)
        else:
            self._epoll.unregister(number)

    def add_writer(self, sock: socket.socket, act: _Act) -> None:
        number = sock.fileno()
        known = number in self._writers
        self._writers[number] = act
        if number in self._readers:
            self._epoll.modify(number, select.EPOLLIN | select.EPOLLOUT)
        elif not known:
            self._epoll.register(number, select.EPOLLOUT)

    def remove_writer(self, sock: socket.socket) -> None:
        number = sock.fileno()
        if self._writers.pop(number, None) is None:
            return
        if number in self._readers:
            self._epoll.modify(number, select.EPOLLIN)
        else:
            self._epoll.unregister(number)

    def close(self) -> None:
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()

    def _serve(self) -> None:
        readers, writers = self._readers, self._writers
        # An act may close sockets whose events are still in this batch, and open others with the same numbers: these
        # are then asked once in vain, which every reader and writer must bear.
        for number, events in self._epoll.poll(0, _BATCH):
            try:
                if events == _ONLY_READABLE:
                    if (act := readers.get(number)) is not None:
                        act()
                    continue
                if events & _FOR_READERS and (act := readers.get(number)) is not None:
                    act()
                if events & _FOR_WRITERS and (act := writers.get(number)) is not None:
                    act()
            except Exception as fault:  # noqa: BLE001  (a broken promise of one connection must not stop the others)
                self._forsake(number, fault)
        self._afterwards()

    def _forsake(self, number: int, fault: Exception) -> None:
        """Ask this socket no more: its event would come back at once, for ever."""
        known = self._readers.pop(number, None), self._writers.pop(number, None)
        if known != (None, None):
            self._epoll.unregister(number)
        self._loop.call_exception_handler({"message": "a relayed connection failed inside", "exception": fault})


class _Loop:
    """Where there is no epoll, the event loop's own readers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, afterwards: _Act) -> None:
        self._loop = loop
        self._afterwards = afterwards

    def add_reader(self, sock: socket.socket, act: _Act) -> None:
        self._loop.add_reader(sock, self._serve, act)

    def _serve(self, act: _Act) -> None:
        act()
        self._afterwards()

    def remove_reader(self, sock: socket.socket) -> None:
        self._loop.remove_reader(sock)

    def add_writer(self, sock: socket.socket, act: _Act) -> None:
        self._loop.add_writer(sock, act)

    def remove_writer(self, sock: socket.socket) -> None:
        self._loop.remove_writer(sock)

    def close(self) -> None:
        pass


# An error or a hang-up is for both: whoever tries next is told by the kernel which it was.
if hasattr(select, "epoll"):
    _ONLY_READABLE = select.EPOLLIN
    _FOR_READERS = ~select.EPOLLOUT
    _FOR_WRITERS = ~select.EPOLLIN
