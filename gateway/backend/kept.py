"""Connections to backends that wait for their next call. Knows when one is fit for it, not what it carries."""

from __future__ import annotations

import asyncio
import select
import time
from collections import deque
from typing import Final

from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from gateway.backend.destination import Destination


class Line:
    """One open connection to a destination."""

    __slots__ = ("_connection", "_poll", "protocol", "since")

    def __init__(self, connection: Connection) -> None:
        assert connection.protocol is not None
        self.protocol: ResponseHandler = connection.protocol
        self.since = 0.0
        self._connection = connection
        self._poll = _poll_of(self.protocol)

    def is_stale(self) -> bool:
        """Whether it was closed, or spoke unasked; looked up in the kernel, not in the loop (decision 0032).

        A byte that waits there belongs to no request of ours: read as the answer to this one it would be another's.
        """
        transport = self.protocol.transport
        if transport is None or transport.is_closing() or self.protocol.should_close:
            return True
        return self._poll is not None and bool(self._poll.poll(0))

    def drop(self) -> None:
        """Close it. At once: a peer that does not read would hold a polite close open."""
        self.protocol.abort()
        self._connection.close()


class KeptLines:
    """Lines by destination. aiohttp's own pool would take and give back each with a dozen calls."""

    def __init__(self) -> None:
        self._waiting: dict[Destination, deque[Line]] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, destination: Destination) -> Line | None:
        """The line that was used last and is still fit; those found unfit are closed."""
        waiting = self._waiting.get(destination)
        while waiting:
            line = waiting.pop()
            if not line.is_stale():
                return line
            line.drop()
        return None

    def keep(self, destination: Destination, line: Line) -> None:
        """Keep a line whose last answer was read to its end."""
        if self._closed or line.protocol.should_close:
            line.drop()
            return
        line.since = time.monotonic()
        waiting = self._waiting.get(destination)
        if waiting is None:
            waiting = self._waiting[destination] = deque()
        waiting.append(line)
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(_LONGEST_WAIT, self._sweep)

    def drop_all(self) -> None:
        """Close whatever waits."""
        held, self._waiting = self._waiting, {}
        for waiting in held.values():
            for line in waiting:
                line.drop()

    def close(self) -> None:
        """Close whatever waits and keep nothing from here on."""
        self._closed = True
        self.drop_all()
        if self._sweeping is not None:
            self._sweeping.cancel()

    def _sweep(self) -> None:
        self._sweeping = None
        latest = time.monotonic() - _LONGEST_WAIT
        for destination, waiting in list(self._waiting.items()):
            while waiting and waiting[0].since <= latest:
                waiting.popleft().drop()
            if not waiting:
                del self._waiting[destination]
        if self._waiting:
            self._sweeping = asyncio.get_running_loop().call_later(_LONGEST_WAIT, self._sweep)


#: Seconds; most servers close a connection that is idle for longer, and some much earlier.
_LONGEST_WAIT: Final = 15.0


def _poll_of(protocol: ResponseHandler) -> select.poll | None:
    held = protocol.transport.get_extra_info("socket") if protocol.transport is not None else None
    if held is None or not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(held.fileno(), select.POLLIN)
    return poll
