"""A backend with `health` is asked at most once an interval, and is well when it answers 2xx."""

from __future__ import annotations

from pathlib import Path

from gateway.backend.exchange import Answer, NoAnswer, Request, Silence
from gateway.backend.health import Health
from tests.rig import accepted

CONTRACT = """
    version: 1
    backends:
      well: {url: http://127.0.0.1:1/base/, health: {path: /up, interval: 10s}}
      ill: {url: http://127.0.0.1:2, health: {path: /up, interval: 20s}}
      gone: {url: http://127.0.0.1:3, health: {path: /up}}
      silent: {url: http://127.0.0.1:4}
    endpoints: {one: {backend: well, request: GET /one, description: One., output: {}}}
"""


async def test_each_is_asked_once_an_interval(tmp_path: Path) -> None:
    now, asked = 0.0, []

    async def send(request: Request) -> Answer | NoAnswer:
        asked.append((request.backend, request.target))
        if request.backend == "gone":
            return NoAnswer(Silence.UNREACHABLE, sent=False)
        return Answer(204 if request.backend == "well" else 500, {}, b"", 0)

    health = Health(accepted(tmp_path, CONTRACT).backends.values(), send, lambda: now)
    assert health.last() == {"well": None, "ill": None, "gone": None, "silent": None}
    assert await health.states() == {"well": True, "ill": False, "gone": False, "silent": None}
    await health.states()
    assert sorted(asked) == [("gone", "/up"), ("ill", "/up"), ("well", "/base/up")]
    now = 10.0
    await health.states()
    assert sorted(asked[3:]) == [("gone", "/up"), ("well", "/base/up")]
