"""Rates: as many calls as the unit allows at once, then evenly; each caller its own; bounded memory."""

from __future__ import annotations

import random

import pytest

from gateway.call.rate import MOST, Rates
from gateway.contract.values import Rate


def test_a_bucket_holds_the_units_calls_and_fills_evenly() -> None:
    rates, rate = Rates(), Rate(10, 1.0)
    assert [rates.take("ann", rate, 5.0) for _ in range(10)] == [0.0] * 10
    assert rates.take("ann", rate, 5.0) == pytest.approx(0.1)
    assert rates.take("ann", rate, 5.04) == pytest.approx(0.06), "being refused costs nothing"
    assert rates.take("ann", rate, 5.1) == 0.0
    assert rates.take("ann", rate, 5.1) > 0
    assert [rates.take("ann", rate, 99.0) for _ in range(10)] == [0.0] * 10
    assert rates.take("ann", rate, 99.0) > 0, "a long rest saves up no more than one unit"


def test_callers_do_not_share_a_bucket() -> None:
    rates, rate = Rates(), Rate(1, 60.0)
    assert rates.take("ann", rate, 0.0) == 0.0
    assert rates.take("ann", rate, 0.0) == pytest.approx(60.0)
    assert rates.take("bob", rate, 0.0) == 0.0


def test_a_changed_rate_holds_at_once() -> None:
    rates = Rates()
    assert [rates.take("ann", Rate(2, 1.0), 0.0) for _ in range(2)] == [0.0, 0.0]
    assert rates.take("ann", Rate(2, 1.0), 0.0) > 0
    assert rates.take("ann", Rate(100, 1.0), 0.005) > 0
    assert rates.take("ann", Rate(100, 60.0), 0.02) == 0.0


def test_over_any_stretch_of_time_no_more_calls_pass_than_the_rate_says() -> None:
    chance, rate = random.Random(3), Rate(20, 1.0)
    rates, now, passed = Rates(), 0.0, []
    for _ in range(5000):
        now += chance.choice([0.0, 0.001, 0.01, 0.2])
        if rates.take("ann", rate, now) == 0.0:
            passed.append(now)
    for first, last in zip(passed, passed[40:], strict=False):  # 41 calls: a full bucket, and 20 more within a second
        assert last - first >= 1.0 - 1e-6


def test_many_callers_cost_bounded_memory_and_those_at_rest_go_first() -> None:
    rates, rate = Rates(), Rate(2, 1.0)
    for index in range(3 * MOST):
        rates.take(f"caller-{index}", rate, index * 0.01)
        assert len(rates) <= MOST
    busy = Rates()
    for _ in range(2):
        busy.take("greedy", rate, 0.0)
    for index in range(MOST):
        busy.take(f"caller-{index}", rate, 0.0)
    assert len(busy) <= MOST
    assert busy.take("greedy", rate, 0.0) > 0, "whoever calls most is forgotten last"


@pytest.mark.parametrize(("rate", "text"), [(Rate(5, 1.0), "5/s"), (Rate(5, 60.0), "5/m"), (Rate(5, 3600.0), "5/h")])
def test_a_rate_is_said_as_it_is_written(rate: Rate, text: str) -> None:
    assert str(rate) == text
