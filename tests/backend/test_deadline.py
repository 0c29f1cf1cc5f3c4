"""Deadlines that share a timer: whoever is late is ended and nobody else; nothing is kept of those that are done."""

from __future__ import annotations

import asyncio

import pytest

from gateway.backend.deadline import Deadlines


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


async def test_what_takes_too_long_is_ended_with_a_timeout() -> None:
    with pytest.raises(TimeoutError), Deadlines().within(0.001):
        await _never()


async def test_what_is_done_in_time_is_left_alone() -> None:
    deadlines = Deadlines()
    with deadlines.within(0.001):
        await asyncio.sleep(0)
    later = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.01, later.set_result, "still here")
    assert await later == "still here"
    assert not deadlines.held  # neither those that are done nor the length that they had


async def test_each_of_many_is_ended_by_its_own_time() -> None:
    deadlines, ended = Deadlines(), []

    async def one(name: str, seconds: float) -> None:
        try:
            with deadlines.within(seconds):
                await _never()
        except TimeoutError:
            ended.append(name)

    async def in_time() -> None:
        with deadlines.within(0.02):
            await asyncio.sleep(0)

    await asyncio.gather(one("late", 0.04), in_time(), one("soon", 0.02), in_time(), one("soon too", 0.02))
    assert ended == ["soon", "soon too", "late"]
    assert not deadlines.held


async def test_a_task_that_somebody_cancels_stays_cancelled() -> None:
    deadlines = Deadlines()

    async def waits() -> None:
        with deadlines.within(60):
            await _never()

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelled_in_the_moment_of_its_deadline_it_stays_cancelled() -> None:
    deadlines = Deadlines()

    async def waits() -> None:
        with deadlines.within(0.001):
            try:
                await _never()
            finally:
                # the deadline has ended it; before that is known outside, its caller leaves as well
                task.cancel()

    task = asyncio.create_task(waits())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_of_two_inside_each_other_the_inner_one_is_told_from_the_outer() -> None:
    deadlines = Deadlines()
    with deadlines.within(60):
        with pytest.raises(TimeoutError), deadlines.within(0.001):
            await _never()
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError), deadlines.within(0.001), deadlines.within(60):
        await _never()


async def test_a_fault_of_what_is_inside_goes_through() -> None:
    with pytest.raises(ValueError, match="its own"), Deadlines().within(60):
        raise ValueError("its own")
