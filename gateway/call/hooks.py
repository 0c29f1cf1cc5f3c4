"""The operator's own functions around a call: `before` may replace or refuse the arguments, `after` sees every ending.

A hook is a plain function of one argument. Knows no surface and no I/O.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.call.failure import declared_retryable
from gateway.call.outcome import Call, Code, Failure, Outcome
from gateway.contract.model import Endpoint

log = logging.getLogger("toolview.hooks")


@dataclass(frozen=True, slots=True)
class BeforeCall:
    """What a before hook is given: the caller's raw arguments (its own copy) and where they come from."""

    tool: str
    surface: str
    tool_call_id: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AfterCall:
    """What an after hook is given, once for every call, however it ended."""

    tool: str
    surface: str
    tool_call_id: str
    #: What the caller sent.
    args: dict[str, Any]
    #: What a before hook made of it; None where it changed nothing.
    effective_args: dict[str, Any] | None
    ok: bool
    code: str
    retryable: bool
    #: What the caller received: the answer's value, or the failure envelope.
    answer: Any
    full_bytes: int
    view_bytes: int
    #: Seconds.
    duration: float
    #: What went wrong inside, of an INTERNAL_SERVER_ERROR; it may hold data and was never shown to the caller.
    fault: str | None


class Refusal(Exception):
    """Raised by a before hook to refuse a call, with a code of the table or one that the endpoint declares."""

    def __init__(self, code: str, message: str = "", hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


Before = Callable[[BeforeCall], Any]
After = Callable[[AfterCall], Any]


def run_before(hook: Before | None, call: Call, endpoint: Endpoint) -> dict[str, Any] | Failure | None:
    """The arguments that replace the caller's, the refusal, or None where the hook changes nothing.

    Raises what the hook raised where that is no `Refusal` with a known code: the caller of this is who answers for it.
    """
    if hook is None:
        return None
    try:
        replaced = _asked(hook, BeforeCall(call.tool, call.surface, call.call_id, _copied(call.arguments)), "before")
    except Refusal as refusal:
        return _refused(refusal, endpoint)
    return dict(replaced) if isinstance(replaced, Mapping) else None


def run_after(hook: After | None, outcome: Outcome) -> None:
    """Show a copy of the outcome to the after hook; one that raises is logged and changes nothing."""
    if hook is None:
        return
    failure = outcome.failure
    seen = AfterCall(
        outcome.tool,
        outcome.call.surface,
        outcome.call.call_id,
        _copied(outcome.call.arguments),
        _copied(outcome.effective_arguments),
        outcome.ok,
        outcome.code,
        failure.retryable if failure else False,
        _copied(outcome.value if failure is None else outcome.envelope()),
        outcome.full_bytes,
        outcome.view_bytes,
        outcome.duration,
        outcome.fault,
    )
    try:
        _asked(hook, seen, "after")
    except Exception:
        log.exception("the after hook failed", extra={"tool": outcome.tool})


def _asked(hook: Callable[[Any], Any], seen: BeforeCall | AfterCall, name: str) -> Any:
    """What a hook returns. One that would end the process or the task (`sys.exit`) has failed as any other."""
    try:
        returned = hook(seen)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as fault:
        raise RuntimeError(f"the {name} hook raised {type(fault).__name__}") from fault
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError(f"the {name} hook returned a coroutine; it must be a plain function")
    return returned


def _refused(refusal: Refusal, endpoint: Endpoint) -> Failure:
    declared = endpoint.errors.get(refusal.code)
    if declared is not None:
        return Failure(
            refusal.code,
            declared.status,
            refusal.message or f"The call was refused: {refusal.code}.",
            declared_retryable(declared),
            {},
            refusal.hint or declared.hint,
        )
    known = Code.__members__.get(refusal.code)
    if known is None:
        raise LookupError("the before hook refused with a code that is not declared under `errors`")
    return Failure(
        refusal.code, known.status, refusal.message or "The call was refused.", known.retryable, {}, refusal.hint
    )


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
