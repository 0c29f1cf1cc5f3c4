"""Large answers that come together are read in different turns of the loop, in order; small ones never wait for that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gateway.backend.exchange import Answer, Request
from gateway.call import run as run_module
from gateway.call.outcome import Call
from gateway.call.turnstile import Turnstile
from gateway.gateway import Gateway
from gateway.generation import index
from gateway.projection.runner import ProjectionRunner
from tests.rig import accepted

CONTRACT = """
    version: 1
    backends: {api: {url: "http://127.0.0.1:1"}}
    endpoints:
      rows:
        request: GET /rows
        description: Lists rows.
        output: {type: object, properties: {rows: {type: array}}}
"""
LARGE = json.dumps({"rows": ["x" * 100] * 200}).encode()
SMALL = b'{"rows": []}'


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.now = 0
        self._loop = asyncio.get_running_loop()
        self._handle = self._loop.call_soon(self._count)

    def _count(self) -> None:
        self.now += 1
        self._handle = self._loop.call_soon(self._count)

    def close(self) -> None:
        self._handle.cancel()


@pytest.fixture
async def turns() -> Any:
    counted = Turns()
    yield counted
    counted.close()


def _steps(work: Any) -> Iterator[None]:
    with suppress(StopIteration):
        while True:
            work.send(None)
            yield


async def test_who_comes_alone_does_not_wait_for_anything() -> None:
    assert list(_steps(Turnstile().take())) == []


async def test_who_come_together_pass_one_in_a_turn_and_in_order(turns: Turns) -> None:
    stile, passed = Turnstile(), []

    async def come(name: int) -> None:
        await stile.take()
        passed.append((name, turns.now))

    await asyncio.gather(*(come(name) for name in range(6)))
    assert [name for name, _ in passed] == list(range(6))
    at = [turn for _, turn in passed]
    assert all(after - before >= Turnstile.APART for before, after in pairwise(at))


async def test_the_turnstile_opens_again_when_all_have_passed() -> None:
    stile = Turnstile()
    await asyncio.gather(*(stile.take() for _ in range(3)))
    for _ in range(Turnstile.APART + 1):
        await asyncio.sleep(0)
    assert list(_steps(stile.take())) == []


async def test_who_leaves_while_waiting_holds_nobody_up() -> None:
    stile = Turnstile()
    waiting = [asyncio.create_task(stile.take()) for _ in range(4)]
    await asyncio.sleep(0)
    for gone in waiting[1:3]:
        gone.cancel()
    ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 30)
    assert [type(end) for end in ended] == [type(None), asyncio.CancelledError, asyncio.CancelledError, type(None)]


async def test_large_answers_are_read_apart_and_small_ones_between_them(
    tmp_path: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, read = asyncio.Event(), []

    async def send(request: Request) -> Answer:
        await arrived.wait()
        size = dict(request.headers)["X-Tool-Call-Id"]
        return Answer(200, {}, LARGE if size.startswith("large") else SMALL, 0, 0.0)

    def noted(prepared: Any, answer: Any, generation: Any, **options: Any) -> Any:
        read.append((prepared.call.call_id, turns.now))
        return read_answer(prepared, answer, generation, **options)

    read_answer = run_module.read_answer
    monkeypatch.setattr(run_module, "read_answer", noted)
    gateway = Gateway(index(accepted(tmp_path, CONTRACT)), send, ProjectionRunner(1.0))
    names = [f"{size}-{number}" for number in range(8) for size in ("large", "small")]
    calls = [asyncio.create_task(gateway.run(Call("rows", {}, "mcp", name))) for name in names]
    for _ in range(3):
        await asyncio.sleep(0)
    arrived.set()
    assert all(outcome.failure is None for outcome in await asyncio.gather(*calls))
    at = dict(read)
    assert len({at[name] for name in names if name.startswith("large")}) == 8
    assert {at[name] for name in names if name.startswith("small")} == {at["large-0"]}
