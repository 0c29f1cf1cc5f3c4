"""How many calls may be under way and how many may wait; the next one after that is refused at once. No I/O."""

from __future__ import annotations

import asyncio
from collections import deque


class Admission:
    """`if await enter(…): … leave()`. The limits come with each call, so that a reload changes them at once."""

    def __init__(self) -> None:
        self.in_flight = 0
        #: As the last call that came has it.
        self._calls = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self, calls: int, queue: int) -> bool:
        """Whether the call may go on, perhaps after waiting its turn; False where too many wait already."""
        self._calls = calls
        if self._waiting:
            self._let_in()  # there may be room that was not there when they came
        if self.in_flight < calls and not self._waiting:
            self.in_flight += 1
            return True
        if len(self._waiting) >= queue:
            return False
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # whoever lets it in counts it
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled():
                self.leave()  # the place was given to somebody who has left
            raise
        return True

    def leave(self) -> None:
        """Give the place back, and to those that have waited longest as far as there is room."""
        self.in_flight -= 1
        if self._waiting:
            self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self.in_flight < self._calls:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
