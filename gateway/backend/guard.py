"""What stands before one backend: a bound on calls in flight and a breaker. Plain state and a clock, no I/O."""

from __future__ import annotations

from collections.abc import MutableSequence
from enum import Enum

from gateway.backend.exchange import Answer, NoAnswer, Silence

#: Why no call is let through for a while: the last ones failed.
BREAKER_OPEN = "the breaker is open"


class BreakerState(Enum):
    """Closed lets every call through, open none, half-open the one that finds out."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Guard:
    """`enter` before a call and `leave` after it, whatever became of it."""

    def __init__(self, concurrency: int | None = None, failures: int | None = None, reset: float = 0.0) -> None:
        self._concurrency, self._failures, self._reset = concurrency, failures, reset
        self._failed = 0
        #: Calls in flight, and when the breaker lets the next call try: 0 while it is closed.
        self._cells: MutableSequence[float] = [0.0, 0.0]
        #: When the one call began that finds out whether an open breaker may close.
        self._trying: float | None = None

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return int(self._cells[0])

    def share(self, cells: MutableSequence[float]) -> None:
        """Keep the state where others can see it: two numbers, in which calls of an earlier guard may be counted."""
        cells[0] += self._cells[0]
        cells[1] = self._cells[1]
        self._cells = cells

    def enter(self, now: float) -> str | None:
        """None where the call may go on, else why it may not; `leave` is then not called."""
        if self._cells[1]:
            if self._trying is not None or now < self._cells[1]:
                return BREAKER_OPEN
            if self._full():
                return "too many calls in flight"
            self._trying = now
        elif self._full():
            return "too many calls in flight"
        self._cells[0] += 1
        return None

    def leave(self, answer: Answer | NoAnswer | None, now: float, began: float) -> None:
        """Take note of how the call that `began` then ended; None is one that was cancelled, which says nothing."""
        self._cells[0] -= 1
        if began == self._trying:  # one that is under way since before the breaker opened lets no second one try
            self._trying = None
        if self._failures is None or answer is None:
            return
        if not _failed(answer):
            self._failed, self._cells[1] = 0, 0.0
            return
        self._failed += 1
        if self._failed >= self._failures:
            self._cells[1] = now + self._reset

    def state(self, now: float) -> BreakerState:
        """What the breaker would say now."""
        return breaker_state(self._cells[1], now)

    def _full(self) -> bool:
        return self._concurrency is not None and self._cells[0] >= self._concurrency


def breaker_state(opens_at: float, now: float) -> BreakerState:
    """What a breaker says that lets the next call try at `opens_at`, 0 where it is closed."""
    if not opens_at:
        return BreakerState.CLOSED
    return BreakerState.OPEN if now < opens_at else BreakerState.HALF_OPEN


#: Statuses by which something before the backend, or the backend itself, says that it is not there.
_GONE = frozenset({502, 503, 504})
_FAILURES = frozenset({Silence.UNREACHABLE, Silence.CLOSED, Silence.TIMEOUT})


def _failed(answer: Answer | NoAnswer) -> bool:
    return answer.status in _GONE if isinstance(answer, Answer) else answer.silence in _FAILURES
