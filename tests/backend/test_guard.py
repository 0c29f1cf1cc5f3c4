"""The bound on calls in flight and the breaker, step by step on a clock of the test's own."""

from __future__ import annotations

import pytest

from gateway.backend.exchange import Answer, NoAnswer, Silence
from gateway.backend.guard import BreakerState, Guard

WELL = Answer(200, {}, b"", 0)
DEAD = NoAnswer(Silence.UNREACHABLE)


def run(guard: Guard, answer: Answer | NoAnswer | None, now: float) -> str | None:
    refused = guard.enter(now)
    if refused is None:
        guard.leave(answer, now, now)
    return refused


def test_a_guard_that_declares_nothing_lets_everything_through() -> None:
    guard = Guard()
    for _ in range(100):
        assert run(guard, DEAD, 0) is None
        assert guard.enter(0) is None
    assert guard.in_flight == 100


def test_calls_in_flight_are_bounded_and_places_come_free() -> None:
    guard = Guard(concurrency=2)
    assert guard.enter(0) is None
    assert guard.enter(0) is None
    assert guard.enter(0) == "too many calls in flight"
    guard.leave(None, 0, 0)
    assert guard.enter(0) is None


def test_failures_in_a_row_open_the_breaker_and_one_call_tries_again_after_the_reset() -> None:
    guard = Guard(failures=2, reset=10)
    assert run(guard, DEAD, 0) is None
    assert run(guard, WELL, 0) is None
    assert run(guard, DEAD, 0) is None
    assert guard.state(0) is BreakerState.CLOSED
    assert run(guard, DEAD, 0) is None
    assert guard.state(0) is BreakerState.OPEN
    assert run(guard, WELL, 9.9) == "the breaker is open"
    assert guard.state(10) is BreakerState.HALF_OPEN
    assert guard.enter(10) is None
    assert guard.enter(10) == "the breaker is open"
    guard.leave(DEAD, 11, 10)
    assert run(guard, WELL, 20.9) == "the breaker is open"
    assert run(guard, WELL, 21) is None
    assert guard.state(21) is BreakerState.CLOSED


def test_a_call_from_before_the_breaker_opened_lets_no_second_one_try() -> None:
    guard = Guard(failures=1, reset=10)
    assert guard.enter(0) is None  # it takes long
    assert run(guard, DEAD, 1) is None
    assert guard.enter(11) is None
    guard.leave(None, 12, 0)
    assert guard.enter(12) == "the breaker is open", "the one that tries is under way"
    guard.leave(WELL, 13, 11)
    assert guard.enter(13) is None


def test_a_cancelled_try_says_nothing_and_leaves_the_place_to_the_next() -> None:
    guard = Guard(failures=1, reset=10)
    assert run(guard, DEAD, 0) is None
    assert run(guard, None, 10) is None
    assert guard.state(10) is BreakerState.HALF_OPEN
    assert run(guard, WELL, 10) is None


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        (Answer(502, {}, b"", 0), True),
        (Answer(503, {}, b"", 0), True),
        (Answer(504, {}, b"", 0), True),
        (Answer(500, {}, b"", 0), False),
        (Answer(429, {}, b"", 0), False),
        (NoAnswer(Silence.TIMEOUT), True),
        (NoAnswer(Silence.CLOSED), True),
        (NoAnswer(Silence.TOO_LARGE), False),
        (NoAnswer(Silence.UNDECODABLE), False),
    ],
)
def test_only_a_backend_that_is_not_there_counts_as_a_failure(answer: Answer | NoAnswer, counts: bool) -> None:
    guard = Guard(failures=1, reset=10)
    run(guard, answer, 0)
    assert (guard.state(0) is BreakerState.OPEN) == counts
