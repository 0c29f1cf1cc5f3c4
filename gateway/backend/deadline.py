"""Ends what takes too long. All that may take equally long share one timer; knows nothing of what it ends."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType


class Deadlines:
    """Of one loop. asyncio's own timeout makes and takes back a timer for each use, which few uses ever need."""

    def __init__(self) -> None:
        self._lines: dict[float, _Line] = {}

    @property
    def held(self) -> int:
        """Lengths of time for which a timer is set."""
        return sum(line.timer is not None for line in self._lines.values())

    def within(self, seconds: float) -> Deadline:
        """A context that raises `TimeoutError` in the task that is inside it for so many seconds."""
        line = self._lines.get(seconds)
        if line is None:
            line = self._lines[seconds] = _Line(self._lines, seconds)
        return Deadline(line)


class Deadline:
    """One use; a task that is cancelled by somebody else meanwhile stays cancelled."""

    __slots__ = ("_cancelling", "_line", "_task", "expired", "until")

    def __init__(self, line: _Line) -> None:
        self._line = line
        self.expired = False

    def __enter__(self) -> None:
        line = self._line
        task = self._task = asyncio.current_task(line.loop)
        assert task is not None
        self._cancelling = task.cancelling()
        self.until = time.monotonic() + line.seconds
        line.waiting[self] = None
        if line.timer is None:
            line.wait(line.seconds)

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        if not self.expired:
            del self._line.waiting[self]
            return
        assert self._task is not None
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from fault

    def expire(self) -> None:
        self.expired = True
        assert self._task is not None
        self._task.cancel()


class _Line:
    """Those with the same time to go, in the order in which it will be over."""

    __slots__ = ("_lines", "loop", "seconds", "timer", "waiting")

    def __init__(self, lines: dict[float, _Line], seconds: float) -> None:
        self._lines = lines
        self.loop = asyncio.get_running_loop()
        self.seconds = seconds
        self.timer: asyncio.TimerHandle | None = None
        self.waiting: dict[Deadline, None] = {}

    def wait(self, seconds: float) -> None:
        self.timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Ends those whose time is over; the one that the timer was set for may be gone by now."""
        self.timer = None
        now = time.monotonic()
        over: list[Deadline] = []
        for deadline in self.waiting:
            left = deadline.until - now
            if left > 0:
                self.wait(left)
                break
            over.append(deadline)
        for deadline in over:
            del self.waiting[deadline]
            deadline.expire()
        if not self.waiting:  # a reload may bring other lengths
            self._lines.pop(self.seconds, None)
