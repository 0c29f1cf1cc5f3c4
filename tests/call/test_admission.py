"""Calls beyond `limits.calls` wait their turn, and beyond `limits.queue` are refused at once; nothing is ever lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.call.admission import Admission
from gateway.call.outcome import Call, Outcome
from gateway.call.run import Project
from gateway.gateway import Gateway
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


async def entered(admission: Admission, calls: int, count: int) -> list[asyncio.Task[bool]]:
    """So many calls that have come; those that are done are in."""
    tasks = [asyncio.create_task(admission.enter(calls, 100)) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_a_higher_limit_lets_those_in_that_wait_already() -> None:
    admission = Admission()
    waiting = await entered(admission, 1, 4)
    assert [task.done() for task in waiting] == [True, False, False, False]
    (last,) = await entered(admission, 3, 1)  # whose call brings the limit of a reload
    assert [task.done() for task in waiting] == [True, True, True, False]
    assert (last.done(), admission.in_flight) == (False, 3)
    for _ in range(5):
        admission.leave()
    await asyncio.gather(*waiting, last)
    assert admission.in_flight == 0


async def test_a_lower_limit_is_reached_though_calls_always_wait() -> None:
    admission = Admission()
    tasks = await entered(admission, 3, 5)
    tasks += await entered(admission, 1, 1)
    most = []
    while admission.in_flight:
        most.append(admission.in_flight)
        admission.leave()
    assert most == [3, 2, 1, 1, 1, 1], "nobody comes in until one is under way"
    assert all(await asyncio.gather(*tasks))


async def test_a_call_does_not_depend_on_who_follows_it(tmp_path: Path) -> None:
    class Broken:
        def begin(self, _: Call) -> Any:
            if self.at_begin:
                raise RuntimeError
            return "begun"

        def end(self, _: Any, __: Outcome) -> None:
            raise RuntimeError

        def projecting(self, project: Project) -> Project:
            return project

        at_begin = False

    contract = "version: 1\nbackends: {{api: {{url: {url}}}}}\nendpoints: {{one: {{request: GET /one, description: One., output: {{}}}}}}\n"
    async with backend(http({})) as api:
        loaded = accepted(tmp_path, contract.format(url=api.url))
        async with running(loaded) as around:
            spans = Broken()
            gateway = Gateway(around.gateway.generation, around.gateway._send, around.gateway._projections, spans=spans)
            for spans.at_begin in (False, True):
                outcome = await gateway.run(Call("one", {}, "mcp", "c1"))
                assert outcome.ok
    assert gateway.in_flight == 0
