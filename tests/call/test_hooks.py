"""The operator's hooks: `before` may replace or refuse, `after` sees every ending once, and neither can break a call."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from gateway.backend.exchange import Answer, NoAnswer, Request
from gateway.call.hooks import AfterCall
from tests.rig import HANG, Received, Running, accepted, backend, http, running

CONTRACT = """
    version: 1
    gateway: {{projections: hooks, hooks: {{before: "hooks:before", after: "hooks:after"}}}}
    backends: {{api: {{url: {url}}}}}
    endpoints:
      read:
        request: GET /read
        description: Reads.
        input: {{type: object, properties: {{limit: {{type: integer, default: 9}}, mode: {{type: string}}}}}}
        output: {{type: object, properties: {{a: {{type: integer}}}}}}
        errors: {{QUOTA_EXCEEDED: {{status: 429, retryable: true, hint: Wait.}}, ASLEEP: {{status: 503}}, DONE: {{status: 503, retryable: false}}}}
        tool: {{view: {{defaults: {{mode: short}}}}}}
"""
HOOKS = """
    import asyncio
    from gateway.call.hooks import Refusal

    seen = []

    def before(call):
        mode = call.arguments.pop("mode", None)
        if mode == "replace":
            return {"limit": 5}
        if mode == "wrong":
            return {"limit": "x"}
        if mode == "refuse":
            raise Refusal("QUOTA_EXCEEDED", "No more today.")
        if mode in ("ASLEEP", "DONE", "CONFLICT"):
            raise Refusal(mode)
        if mode == "exit":
            raise SystemExit(3)
        if mode == "cancel":
            raise asyncio.CancelledError
        if mode == "undeclared":
            raise Refusal("SOMETHING_ELSE")
        if mode == "raise":
            raise KeyError("secret")
        if mode == "list":
            return [1]
        return None

    def after(call):
        seen.append(call)
        if call.args.get("limit") == 404:
            raise RuntimeError("the hook's own fault")
        if call.args.get("limit") == 405:
            raise SystemExit(3)
        if call.args.get("limit") == 406:
            raise asyncio.CancelledError
        if call.args.get("mode") == "spoil":
            call.args.clear()
            call.answer.get("details", {}).get("violations", []).clear()
            call.answer.clear()
"""


def seen(gateway: Running) -> list[AfterCall]:
    """What the after hook was given."""
    after = gateway.gateway.generation.contract.gateway.hooks.after
    assert after is not None
    told: list[AfterCall] = after.__globals__["seen"]
    return told


async def ended(tmp_path: Path, arguments: dict[str, Any], answer: Any = None) -> tuple[Any, AfterCall, int]:
    async with backend(http(answer if answer is not None else {"a": 1, "b": 2})) as api:
        contract = accepted(tmp_path, CONTRACT.format(url=api.url), {"hooks/hooks.py": HOOKS})
        async with running(contract) as gateway:
            outcome = await gateway.call("read", arguments, call_id="c9")
            (told,) = seen(gateway)
    return outcome, told, len(api.received)


@pytest.mark.requirement(
    "187-1-before-replaces", "187-1-effective-apart", "196-c-after-sees-the-card", "187-r-no-second-callback"
)
async def test_a_mapping_replaces_the_arguments_and_is_reported_apart(tmp_path: Path) -> None:
    outcome, told, _ = await ended(tmp_path, {"mode": "replace"})
    assert outcome.accepted == {"limit": 5, "mode": "short"}
    assert (told.args, told.effective_args) == ({"mode": "replace"}, {"limit": 5})
    assert (told.ok, told.code, told.answer) == (True, "ok", {"a": 1})
    assert (told.tool, told.surface, told.tool_call_id) == ("read", "mcp", "c9")
    assert (told.full_bytes, told.view_bytes) == (16, 7)


@pytest.mark.requirement("187-1-before-replaces")
@pytest.mark.parametrize("mode", ["list", "nothing"])
async def test_anything_but_a_mapping_changes_nothing(tmp_path: Path, mode: str) -> None:
    outcome, told, _ = await ended(tmp_path, {"mode": mode})
    assert outcome.accepted == {"limit": 9, "mode": mode}
    assert told.effective_args is None
    assert told.args == {"mode": mode}, "the hook changed its own copy, and no default is among what the caller sent"


async def test_what_a_hook_returns_is_checked_like_any_input(tmp_path: Path) -> None:
    outcome, told, sent = await ended(tmp_path, {"mode": "wrong"})
    assert (outcome.code, sent) == ("VALIDATION_ERROR", 0)
    assert told.effective_args == {"limit": "x"}


@pytest.mark.requirement("187-1-before-refuses")
async def test_a_hook_refuses_with_a_declared_error_and_nothing_is_sent(tmp_path: Path) -> None:
    outcome, told, sent = await ended(tmp_path, {"mode": "refuse"})
    assert (outcome.code, outcome.failure.status, outcome.failure.retryable, sent) == ("QUOTA_EXCEEDED", 429, True, 0)
    assert (outcome.failure.error, outcome.failure.hint) == ("No more today.", "Wait.")
    assert told.retryable


@pytest.mark.parametrize(("code", "retryable"), [("ASLEEP", True), ("DONE", False), ("CONFLICT", False)])
async def test_whether_a_hooks_refusal_can_be_tried_again_is_declared_or_follows_from_its_status(
    tmp_path: Path, code: str, retryable: bool
) -> None:
    outcome, told, sent = await ended(tmp_path, {"mode": code})
    assert (outcome.code, outcome.failure.retryable, told.retryable, sent) == (code, retryable, retryable, 0)


@pytest.mark.parametrize("mode", ["raise", "undeclared", "exit", "cancel"])
async def test_a_hook_that_breaks_is_the_gateways_fault_and_is_hidden(
    tmp_path: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        outcome, _, sent = await ended(tmp_path, {"mode": mode})
    assert (outcome.code, sent) == ("INTERNAL_SERVER_ERROR", 0)
    assert "secret" not in str(outcome.envelope())


@pytest.mark.requirement("187-3-hook-cannot-change")
@pytest.mark.parametrize("limit", [404, 405, 406], ids=["a fault", "an exit", "a cancellation"])
async def test_an_after_hook_that_raises_changes_nothing(
    tmp_path: Path, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    outcome, _, _ = await ended(tmp_path, {"limit": limit})
    assert outcome.ok
    assert "the after hook failed" in caplog.text


@pytest.mark.requirement("187-3-hook-cannot-change")
async def test_what_an_after_hook_does_to_what_it_is_given_nobody_else_sees(tmp_path: Path) -> None:
    outcome, _, _ = await ended(tmp_path, {"mode": "spoil"})
    assert (outcome.value, outcome.call.arguments) == ({"a": 1}, {"mode": "spoil"})
    refused, _, _ = await ended(tmp_path, {"mode": "spoil", "limit": "x"})
    assert [each["pointer"] for each in refused.envelope()["details"]["violations"]] == ["/limit"]


@pytest.mark.requirement("187-3-one-outcome", "s12-75-refusals-reach-hooks")
@pytest.mark.parametrize(
    ("arguments", "answer", "code"),
    [({}, {}, "ok"), ({"limit": "x"}, {}, "VALIDATION_ERROR"), ({}, {"a": "x"}, "BACKEND_ANSWER_INVALID")],
)
async def test_every_ending_is_told_once(tmp_path: Path, arguments: dict[str, Any], answer: Any, code: str) -> None:
    outcome, told, _ = await ended(tmp_path, arguments, answer)
    assert (told.code, told.ok) == (code, code == "ok")
    assert told.answer == (outcome.value if outcome.ok else outcome.envelope())


async def test_of_a_call_whose_caller_left_the_hook_is_told_what_it_ran_on(tmp_path: Path) -> None:
    reached = asyncio.Event()

    def hang(_: Received) -> bytes:
        reached.set()
        return HANG

    async with backend(hang) as api:
        contract = accepted(tmp_path, CONTRACT.format(url=api.url), {"hooks/hooks.py": HOOKS})
        async with running(contract) as gateway:
            call = asyncio.create_task(gateway.call("read", {"mode": "replace"}))
            await reached.wait()
            call.cancel()
            assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)
            (told,) = seen(gateway)
    (outcome,) = gateway.outcomes
    assert (told.code, told.args, told.effective_args) == ("REQUEST_ABORTED", {"mode": "replace"}, {"limit": 5})
    assert outcome.accepted == {"limit": 5, "mode": "short"}


async def test_so_it_is_of_a_call_that_ends_by_something_unforeseen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def send(_: Request) -> Answer | NoAnswer:
        raise LookupError("nobody thought of this")

    contract = accepted(tmp_path, CONTRACT.format(url="http://127.0.0.1:9"), {"hooks/hooks.py": HOOKS})
    async with running(contract) as gateway:
        gateway.gateway.adopt(gateway.gateway.generation, send)
        outcome = await gateway.call("read", {"mode": "replace"})
        (told,) = seen(gateway)
    assert (outcome.code, told.effective_args) == ("INTERNAL_SERVER_ERROR", {"limit": 5})
    assert told.fault == "LookupError: nobody thought of this"
    assert outcome.accepted == {"limit": 5, "mode": "short"}
