"""Calls beyond `limits.calls` wait their turn, and beyond `limits.queue` are refused at once; nothing is ever lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.call.admission import Admission
from tests.rig import accepted, backend, http, running


async def test_places_are_handed_on_in_order_and_come_back() -> None:
    admission, order = Admission(), []

    async def call(name: int) -> None:
        assert await admission.enter(1, 5)
        order.append(name)
        await asyncio.sleep(0)
        admission.leave()

    await asyncio.gather(*(call(number) for number in range(5)))
    assert order == [0, 1, 2, 3, 4]
    assert admission.in_flight == 0


async def test_whoever_leaves_while_waiting_gives_its_place_on() -> None:
    admission = Admission()
    assert await admission.enter(1, 5)
    first = asyncio.create_task(admission.enter(1, 5))
    second = asyncio.create_task(admission.enter(1, 5))
    await asyncio.sleep(0)
    admission.leave()  # hands the place to the first, which is cancelled before it has its turn
    first.cancel()
    assert await second
    with pytest.raises(asyncio.CancelledError):
        await first
    admission.leave()
    assert admission.in_flight == 0
    third = asyncio.create_task(admission.enter(0, 5))
    await asyncio.sleep(0)
    third.cancel()
    with pytest.raises(asyncio.CancelledError):
        await third
    assert await admission.enter(1, 0)


async def test_beyond_the_queue_a_call_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    contract = """
        version: 1
        gateway: {{limits: {{calls: 2, queue: 1}}}}
        backends: {{api: {{url: {url}}}}}
        endpoints: {{one: {{request: GET /one, description: One., output: {{}}}}}}
    """
    most = 0

    def answer(_: Any) -> bytes:
        nonlocal most
        most = max(most, gateway.gateway.in_flight)
        return http({})

    async with backend(answer) as api, running(accepted(tmp_path, contract.format(url=api.url))) as gateway:
        outcomes = await asyncio.gather(*(gateway.call("one") for _ in range(5)))
        later = await gateway.call("one")
    codes = [outcome.code for outcome in outcomes]
    assert sorted(codes) == ["GATEWAY_OVERLOADED", "GATEWAY_OVERLOADED", "ok", "ok", "ok"]
    refused = next(outcome for outcome in outcomes if not outcome.ok)
    assert refused.failure is not None
    assert (refused.failure.status, refused.failure.retryable) == (503, True)
    assert later.ok
    assert most <= 2
    assert len(api.received) == 4
