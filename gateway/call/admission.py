"""How many calls may be under way and how many may wait; the next one after that is refused at once. No I/O."""

from __future__ import annotations

import asyncio
from collections import deque


class Admission:
    """`if await enter(…): … leave()`. The limits come with each call, so that a reload changes them at once."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self, calls: int, queue: int) -> bool:
        """Whether the call may go on, perhaps after waiting its turn; False where too many wait already."""
        if self.in_flight < calls and not self._waiting:
            self.in_flight += 1
            return True
        if len(self._waiting) >= queue:
            return False
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # whoever leaves hands its place over, so the count stays
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled():
                self.leave()  # the place was handed over to somebody who has left
            raise
        return True

    def leave(self) -> None:
        """Give the place to the one that has waited longest, or back."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.in_flight -= 1
