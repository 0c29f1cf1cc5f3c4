"""The gateway in one object: the current generation, and how a call runs, ends and is told to all who watch.

Knows no listener; surfaces are handed this and decode to a `Call`, encode an `Outcome`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from gateway.backend.exchange import Send
from gateway.call import failure
from gateway.call.admission import Admission
from gateway.call.hooks import run_after
from gateway.call.outcome import Call, Code, Failure, Outcome
from gateway.call.rate import Rates
from gateway.call.run import UNKNOWN, Full, Prepared, Project, cut_short, prepare, run_prepared
from gateway.call.turnstile import Turnstile
from gateway.contract.refusal import Refusal
from gateway.contract.values import Rate
from gateway.generation import Generation, Reload
from gateway.projection import Projected, Projection, ProjectionFault
from gateway.projection.runner import ProjectionRunner

log = logging.getLogger("toolview.calls")

#: An id tells calls apart and guards nothing, so it is drawn without asking the system each time.
_CALL_IDS = random.Random()  # noqa: S311 - see above
os.register_at_fork(after_in_child=_CALL_IDS.seed)

#: Is told every outcome once. An observer must not raise; one that does is logged and changes nothing.
Observer = Callable[[Outcome], None]


class Spans(Protocol):
    """Follows calls for a tracing system. What `begin` gave comes back to `end`, in the same context."""

    def begin(self, call: Call) -> Any: ...
    def end(self, begun: Any, outcome: Outcome) -> None: ...
    def projecting(self, project: Project) -> Project: ...


class Gateway:
    """Runs tool calls on the current generation. `trace` asks for the paths that answers were stripped of."""

    def __init__(
        self,
        generation: Generation,
        send: Send,
        projections: ProjectionRunner,
        observers: Sequence[Observer] = (),
        *,
        trace: bool = False,
        spans: Spans | None = None,
    ) -> None:
        self.generation = generation
        self._spans = spans
        self._projecting = self._project if spans is None else spans.projecting(self._project)
        self._admission = Admission()
        self._rates = Rates()
        self._turns = Turnstile()
        self._send = send
        self._projections = projections
        self._observers = tuple(observers)
        self._trace = trace
        now = time.time()
        self.last_reload = Reload(now, True, generation.contract.digest, accepted_at=now)
        #: By what the calls of an earlier contract are sent, while there are any.
        self._earlier: WeakKeyDictionary[Generation, Send] = WeakKeyDictionary()

    def adopt(self, generation: Generation, send: Send, *, trace: bool = False) -> None:
        """Serve another contract from now on. A call that read the one before ends on it, and is sent by its `send`."""
        self._earlier[self.generation] = self._send
        self.generation, self._send, self._trace = generation, send, trace
        now = time.time()
        self.last_reload = Reload(now, True, generation.contract.digest, accepted_at=now)

    def refuse_reload(self, refusals: Sequence[Refusal]) -> None:
        """A load was refused: nothing changes but what is said of it."""
        last = self.last_reload
        self.last_reload = Reload(time.time(), False, last.digest, tuple(refusals), last.accepted_at)

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return self._admission.in_flight

    async def run(self, call: Call, generation: Generation | None = None) -> Outcome:
        """One call to its one Outcome; never raises but `asyncio.CancelledError`, which is counted as an ending too."""
        generation = generation or self.generation
        send = self._send if generation is self.generation else self._earlier.get(generation, self._send)
        limits = generation.contract.gateway.limits
        begun = None if self._spans is None else self._begun(self._spans, call)
        if limits.per_principal is not None and (over := self._over_rate(call, limits.per_principal)) is not None:
            outcome = Outcome(call, _label(call, generation), over)
            self._tell(outcome, generation, begun)
            return outcome
        entered = False
        #: What is known of the call by the time that it is cut short.
        prepared: Prepared | Outcome | None = None
        try:
            entered = await self._admission.enter(limits.calls, limits.queue)
            prepared = prepare(call, generation) if entered else _overloaded(call, generation)
            outcome = (
                prepared
                if isinstance(prepared, Outcome)
                else await run_prepared(
                    prepared, generation, send, self._projecting, trace=self._trace or call.keep, turns=self._turns
                )
            )
        except asyncio.CancelledError:
            self._tell(_ended(call, generation, prepared, _GONE), generation, begun)
            raise
        except Exception as fault:
            log.exception(_FAILED_INSIDE, extra={"call_id": call.call_id})
            outcome = _failed_inside(call, generation, prepared, fault)
        finally:
            if entered:
                self._admission.leave()
        self._tell(outcome, generation, begun)
        return outcome

    def refuse(self, call: Call, failed: Failure, generation: Generation | None = None) -> Outcome:
        """End a call that is not to run, or could not be read; it is told to all who watch, as any other."""
        generation = generation or self.generation
        outcome = Outcome(call, _label(call, generation), failed)
        self._tell(outcome, generation)
        return outcome

    async def invoke(self, tool: str, arguments: Mapping[str, Any], *, view: bool = False) -> Outcome:
        """A call by code in this process: the full answer, unless `view` asks for what a tool's caller gets.

        Any endpoint that exposes `mcp`, `agent` or `cli` can be invoked; the surface it is reported under is `mcp`,
        else the first of the others that it exposes. `tool.mcp.confirm` is a question of MCP's: whoever holds this
        object asks its own people, and nobody is asked here (decision 0095).
        """
        generation = self.generation
        surface = next((on for on in ("mcp", "agent", "cli") if generation.find(tool, on, None)), "mcp")
        return await self.run(Call(tool, dict(arguments), surface, new_call_id(), view=view, asks=False), generation)

    def _over_rate(self, call: Call, rate: Rate) -> Failure | None:
        wait = 0.0 if call.caller is None else self._rates.take(call.caller, rate, time.monotonic())
        return failure.over_rate(wait, rate) if wait else None

    async def _project(self, projection: Projection, full: Full) -> Projected | ProjectionFault:
        prepared = full.prepared
        return await self._projections.run(projection, full.text, full.value, prepared.accepted, prepared.call.surface)

    def _tell(self, outcome: Outcome, generation: Generation, begun: Any = None) -> None:
        for observe in self._observers:
            try:
                observe(outcome)
            except Exception:
                log.exception("an observer of calls failed")
        run_after(generation.contract.gateway.hooks.after, outcome)
        if self._spans is not None and begun is not None:
            try:
                self._spans.end(begun, outcome)
            except Exception:
                log.exception("the tracing of a call failed")

    def _begun(self, spans: Spans, call: Call) -> Any:
        """What is followed must not depend on who follows it."""
        try:
            return spans.begin(call)
        except Exception:
            log.exception("the tracing of a call failed")
            return None


def new_call_id() -> str:
    """A fresh id of 16 hex digits for a call whose caller gave none."""
    return f"{_CALL_IDS.getrandbits(64):016x}"


_GONE = failure.failure(Code.REQUEST_ABORTED, "The caller went away; the backend call was cancelled.")


def prepare_alone(call: Call, generation: Generation) -> Prepared | Outcome:
    """What `Gateway.run` does before it sends, for whoever sends nothing: what a before hook raises is an ending."""
    try:
        return prepare(call, generation)
    except Exception as fault:
        log.exception(_FAILED_INSIDE, extra={"call_id": call.call_id})
        return _failed_inside(call, generation, None, fault)


_FAILED_INSIDE = "a call failed inside the gateway"


def _failed_inside(
    call: Call, generation: Generation, prepared: Prepared | Outcome | None, fault: Exception
) -> Outcome:
    why = f"{type(fault).__name__}: {fault}"
    return _ended(call, generation, prepared, failure.internal(call.call_id), why)


def _ended(
    call: Call, generation: Generation, prepared: Prepared | Outcome | None, failed: Failure, fault: str | None = None
) -> Outcome:
    """A call that was cut short, with what was known of it by then."""
    if isinstance(prepared, Prepared):
        return cut_short(prepared, failed, fault)
    return Outcome(call, _label(call, generation), failed, fault=fault)


def _overloaded(call: Call, generation: Generation) -> Outcome:
    full = failure.failure(
        Code.GATEWAY_OVERLOADED, "The gateway has as many calls as it may take; nothing was sent. Call again later."
    )
    return Outcome(call, _label(call, generation), full)


def _label(call: Call, generation: Generation) -> str:
    """The tool's name where this caller may know of it: nobody else makes a label value."""
    return call.tool if generation.find(call.tool, call.surface, call.scopes) else UNKNOWN
