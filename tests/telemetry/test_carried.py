"""What calls carried is in no log unless it is asked for; then it is one line more, bounded, and holds no secret."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from gateway.serve import Serving
from gateway.telemetry.carried import CHARACTERS
from tests.rig import HANG, Received, accepted, backend, http

CONTRACT = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}, log: {LOG}}
    backends: {api: {url: URL, auth: {basic: {username: u, password: 'planted-"password'}}}}
    endpoints:
      say:
        request: POST /say
        description: Says it.
        input:
          type: object
          properties:
            text: {type: string}
            pin: {type: string, writeOnly: true}
            word: {type: string, format: password}
        output: {type: object, properties: {said: {type: string}}}
"""


async def lines(folder: Path, log: str, caplog: pytest.LogCaptureFixture, **arguments: Any) -> list[dict[str, Any]]:
    """What was said of what one call carried."""

    def echo(request: Received) -> bytes:
        return http({"said": 'planted-"password ' + request.body.decode()})

    caplog.set_level(logging.INFO)
    async with backend(echo) as api:
        text = CONTRACT.replace("URL", api.url).replace("LOG", log)
        serving = Serving(accepted(folder, text))
        assert await serving.start() is None
        await serving.gateway.invoke("say", arguments, view=True)
        await serving.gateway.invoke("nothing_such", {"text": "x"})
        await serving.stop(1)
    return [vars(record) for record in caplog.records if record.name == "toolview.carried"]


async def test_nothing_is_said_unless_it_is_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert await lines(tmp_path, "", caplog, text="hello") == []


async def test_arguments_alone_are_said_without_what_is_for_writing_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told, unknown = await lines(tmp_path, "arguments: true", caplog, text="hello", pin="0815", word="sesame")
    assert told["tool"] == "say"
    assert told["arguments"] == '{"text":"hello","pin":"(left out)","word":"(left out)"}'
    assert len(told["call_id"]) == 16
    assert "answer" not in told
    assert (unknown["tool"], unknown["arguments"]) == ("unknown", '{"text":"x"}')


async def test_what_a_before_hook_made_of_them_is_said_beside_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hooks = {"hooks/hooks.py": "def before(call):\n    return {**call.arguments, 'pin': '4711'}\n"}
    reached = asyncio.Event()

    def hang(_: Received) -> bytes:
        reached.set()
        return HANG

    async with backend(hang) as api:
        text = CONTRACT.replace("URL", api.url).replace("{LOG}", '{arguments: true}, hooks: {before: "hooks:before"}')
        text = text.replace("gateway: {", "gateway: {projections: hooks, ")
        serving = Serving(accepted(tmp_path, text, hooks))
        assert await serving.start() is None
        call = asyncio.create_task(serving.gateway.invoke("say", {"text": "hello"}))
        await reached.wait()
        call.cancel()
        await asyncio.wait([call])
        await serving.stop(1)
    (told,) = (vars(record) for record in caplog.records if record.name == "toolview.carried")
    assert told["arguments"] == '{"text":"hello"}'
    assert told["effective_arguments"] == '{"text":"hello","pin":"(left out)"}', "of a call whose caller left, too"


async def test_answers_alone_are_said_as_callers_get_them_and_hold_no_credential(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told, unknown = await lines(tmp_path, "answers: true", caplog, text="hello")
    assert told["answer"].startswith('{"said":"(left out) ')
    assert "hello" in told["answer"]
    assert "planted" not in caplog.text
    assert '"code":"UNKNOWN_TOOL"' in unknown["answer"]
    assert "arguments" not in told


async def test_of_a_large_call_a_part_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told, _ = await lines(tmp_path, "arguments: true, answers: true", caplog, text="x" * 10_000)
    assert len(told["arguments"]) == len(told["answer"]) == CHARACTERS + 1
