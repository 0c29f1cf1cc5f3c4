"""Lets one large piece of work through in a turn of the event loop, in order; knows no call or answer."""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    """Of one event loop. Who comes alone does not wait; between two that pass, the loop makes `APART` turns."""

    #: A small call takes about so many turns from its request to its answer, so it meets one large one and not each.
    APART = 3

    __slots__ = ("_shut", "_waiting")

    def __init__(self) -> None:
        self._shut = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Come back when it is one's turn; what is done before the next wait is then done in a turn of its own."""
        loop = asyncio.get_running_loop()
        if self._shut:
            mine = loop.create_future()
            self._waiting.append(mine)
            await mine
        else:
            self._shut = True
            loop.call_soon(self._next, loop, self.APART)

    def _next(self, loop: asyncio.AbstractEventLoop, turns: int) -> None:
        if turns > 1:
            loop.call_soon(self._next, loop, turns - 1)
            return
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # a caller that left is waited for by nobody
                first.set_result(None)
                loop.call_soon(self._next, loop, self.APART)
                return
        self._shut = False
