"""One tool call, from arguments to Outcome: prepare, send, project, conclude. Knows no surface, socket or metric."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from gateway import json_text, view
from gateway.backend.exchange import Answer, NoAnswer, Request, Send
from gateway.backend.request import Unsendable
from gateway.call import failure
from gateway.call.consent import Asked, Consent, asked
from gateway.call.hooks import run_before
from gateway.call.outcome import Call, Failure, Outcome
from gateway.call.turnstile import Turnstile
from gateway.contract.model import Endpoint, View
from gateway.generation import Generation
from gateway.projection import Projected, Projection, ProjectionFault, Reason
from gateway.record import record
from gateway.schema import Schema

Json = Any

#: The label of a tool that does not exist: a caller can never make a label value.
UNKNOWN = "unknown"
#: Bytes of an answer from which reading it takes so long that others are let by between two such: some 0.2 ms.
LARGE = 16 * 1024


@record
class Prepared:
    """A call whose arguments were accepted and whose request is ready to send."""

    call: Call
    endpoint: Endpoint
    effective_arguments: dict[str, Json] | None
    accepted: dict[str, Json]
    request: Request
    #: The person's yes, where the contract wants one.
    asked: Asked | None = None


@record
class Full:
    """The backend's full answer, parsed, checked against its declared output and stripped of what that lacks."""

    prepared: Prepared
    answer: Answer
    #: Not stripped where the view's slice drops at least as much, and nobody else is to see it.
    value: Json
    schema: Schema
    #: The value's own JSON text in UTF-8, where it is at hand because nothing was stripped.
    text: bytes | None
    #: Whether it was found valid, before anything was stripped; False only under `validate: observe`.
    holds: bool
    #: Whether something was stripped, so that what is left may break the schema in its turn.
    cut: bool = False
    stripped: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()


#: Runs one projection over the full answer's text and value; wherever it runs, it never raises but for cancellation.
Project = Callable[[Projection, Full], Awaitable[Projected | ProjectionFault]]


async def run_call(
    call: Call,
    generation: Generation,
    send: Send,
    project: Project,
    *,
    trace: bool = False,
    turns: Turnstile | None = None,
) -> Outcome:
    """The whole path. `trace` asks for the paths that were stripped; nothing is walked for them otherwise.

    Of the large answers that come at once, `turns` lets each be read in a turn of the loop of its own.
    """
    prepared = prepare(call, generation)
    if isinstance(prepared, Outcome):
        return prepared
    return await run_prepared(prepared, generation, send, project, trace=trace, turns=turns)


async def run_prepared(
    prepared: Prepared,
    generation: Generation,
    send: Send,
    project: Project,
    *,
    trace: bool = False,
    turns: Turnstile | None = None,
) -> Outcome:
    """What is left of the path once the arguments are accepted: all of it that waits."""
    answer = await send(prepared.request)
    if turns is not None and isinstance(answer, Answer) and len(answer.body) >= LARGE:
        await turns.take()
    full = read_answer(prepared, answer, generation, trace=trace)
    if isinstance(full, Outcome):
        return full
    projection = projection_of(full)
    if projection is None:
        return conclude(full)
    started = time.perf_counter()
    projected = await project(projection, full)
    return conclude(full, projected, time.perf_counter() - started)


def cut_short(prepared: Prepared, failed: Failure, fault: str | None = None) -> Outcome:
    """How an accepted call ends that none of the stages ends: its caller left, or something unforeseen happened."""
    call = prepared.call
    return Outcome(
        call,
        call.tool,
        failed,
        effective_arguments=prepared.effective_arguments,
        accepted=prepared.accepted,
        fault=fault,
        asked=prepared.asked,
    )


def prepare(call: Call, generation: Generation) -> Prepared | Outcome:
    """Arguments to request (calls.md "Arguments"): hook, decode, defaults, one check of the whole input, build."""
    endpoint = generation.find(call.tool, call.surface, call.scopes)
    if endpoint is None:
        nearest = generation.nearest(call.tool, call.surface, call.scopes)
        return Outcome(call, UNKNOWN, failure.unknown_tool(nearest))
    question = _question(call, endpoint)
    if question is not None and call.ask is None:
        unasked = Asked(Consent.CANNOT_ASK)
        return Outcome(call, call.tool, failure.not_confirmed(unasked.consent), asked=unasked)
    replaced = run_before(generation.contract.gateway.hooks.before, call, endpoint)
    if isinstance(replaced, Failure):
        return Outcome(call, call.tool, replaced)
    declared = view_of(endpoint) if call.view else None
    arguments = endpoint.input.decode_text(call.arguments if replaced is None else replaced)
    accepted = endpoint.input.fill(view.fill_defaults(declared, arguments))
    if violations := endpoint.input.check(accepted):
        return Outcome(call, call.tool, failure.refused_arguments(violations), effective_arguments=replaced)
    request = endpoint.request.build(accepted, headers_of(call, generation, endpoint))
    if isinstance(request, Unsendable):
        refused = failure.unsendable_argument(request.argument, request.reason)
        return Outcome(call, call.tool, refused, effective_arguments=replaced)
    if question is None:
        return Prepared(call, endpoint, replaced, accepted, request)
    # Last, so that nobody is asked about what would be refused anyway; the yes is to what would be sent.
    found = asked(question, call.ask, endpoint.id, call.tool, call.caller, accepted)
    if found.consent is Consent.ACCEPTED:
        return Prepared(call, endpoint, replaced, accepted, request, found)
    refused = failure.not_confirmed(found.consent)
    return Outcome(call, call.tool, refused, effective_arguments=replaced, accepted=accepted, asked=found)


def read_answer(
    prepared: Prepared, answer: Answer | NoAnswer, generation: Generation, *, trace: bool = False
) -> Full | Outcome:
    """The backend's answer as a checked and stripped value, or how the call ended without one."""
    endpoint = prepared.endpoint
    ended = _Ending(prepared, answer)
    if isinstance(answer, NoAnswer):
        return ended.badly(failure.no_answer(answer, endpoint), fault=answer.note or None)
    if not 200 <= answer.status < 300:
        backend = generation.contract.backends[endpoint.backend]
        return ended.badly(failure.backend_error(answer, endpoint, backend))
    if endpoint.kind == "media":
        return ended.with_media(answer)
    if not endpoint.outputs:
        return ended.with_nothing()
    schema = endpoint.outputs.get(str(answer.status)) or endpoint.outputs.get("2XX")
    if schema is None:
        return ended.badly(failure.answer_not_json(f"no output is declared for status {answer.status}"))
    charset = _charset(answer)
    value = None if answer.status in (204, 205) else json_text.parse(answer.body, charset)
    if isinstance(value, json_text.NotJson):
        return ended.badly(failure.answer_not_json(value.reason))
    seen: tuple[str, ...] = ()
    if violations := schema.check(value):
        seen = tuple(dict.fromkeys(violation.schema_path for violation in violations))
        if endpoint.validate_mode == "strict":
            return ended.badly(failure.answer_invalid(violations), violations=seen)
    # Who wants to see the full answer, or what was stripped of it, gets it cut; a view may do both in one.
    call = prepared.call
    at_once = call.view and endpoint.slices_at_once and not (trace or call.keep)
    kept = value if at_once else schema.cut(value)
    stripped = tuple(schema.undeclared(value)) if trace and kept is not value else ()
    text = answer.body if kept is value and charset is None and answer.body[:1] in b"{[" else None
    return Full(prepared, answer, kept, schema, text, not violations, kept is not value, stripped, seen)


def projection_of(full: Full) -> Projection | None:
    """The projection that this call needs, if any."""
    declared = view_of(full.prepared.endpoint) if full.prepared.call.view else None
    return declared.project if declared is not None else None


def conclude(full: Full, projected: Projected | ProjectionFault | None = None, seconds: float | None = None) -> Outcome:
    """The full answer, and what a projection made of it in so many seconds, to the one answer that surfaces show."""
    prepared = full.prepared
    endpoint = prepared.endpoint
    ended = _Ending(prepared, full.answer, full, seconds)
    if isinstance(projected, ProjectionFault) and projected.reason is Reason.BUSY:
        return ended.badly(failure.projections_busy(endpoint), projected.text)
    if isinstance(projected, ProjectionFault):
        return ended.by_fault(
            f"the projection failed ({projected.reason.value}): {projected.text}\n{projected.trace}".strip()
        )
    declared = view_of(endpoint) if prepared.call.view else None
    schema = _shown_schema(full, declared)
    if projected is not None:
        shown = view.show_projected(projected.value, schema)
    elif declared is not None and declared.output is not None:
        shown = view.show_slice(full.value, schema)
    else:
        shown = view.show_full(full.value, schema, holds=full.holds and not full.cut)
        if isinstance(shown, view.Broken) and full.holds:
            why = "the answer breaks its declared output once what that does not declare is stripped"
            return ended.by_fault(f"{why}: {_faults(shown)}")
    if isinstance(shown, view.Shown) and declared is not None and declared.budget is not None:
        sized = view.within_budget(shown, declared.budget, schema)
        if isinstance(sized, view.OverBudget):
            return ended.badly(failure.over_budget(sized.size, sized.budget, endpoint))
        shown = sized
    match shown:
        case view.Shown():
            return ended.well(shown)
        case view.NotJsonValue():
            return ended.by_fault(f"the answer is not JSON: {shown.reason}")
        case view.Broken() if projected is None and not full.holds:
            return ended.badly(failure.answer_invalid(shown.violations))  # observed drift that the view needed right
        case view.Broken():
            return ended.by_fault(_why_broken(shown))


def view_of(endpoint: Endpoint) -> View | None:
    return endpoint.tool.view if endpoint.tool is not None else None


def _question(call: Call, endpoint: Endpoint) -> str | None:
    """What a person is asked before this call; only MCP can ask."""
    tool = endpoint.tool
    if tool is None or tool.mcp is None or call.surface != "mcp" or not call.asks:
        return None
    return tool.mcp.confirm


def _shown_schema(full: Full, declared: View | None) -> Schema:
    return declared.output if declared is not None and declared.output is not None else full.schema


def _why_broken(broken: view.Broken) -> str:
    if broken.missing:
        return "the projection returned nothing, and the view's schema has no null"
    return f"the view breaks its schema: {_faults(broken)}"


def _faults(broken: view.Broken) -> str:
    return "; ".join(failure.told(violation, "answer") for violation in broken.violations[:5])


def headers_of(call: Call, generation: Generation, endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """Of the caller's headers only those that the backend's `forward_headers` name, and the call's own id."""
    own = ("X-Tool-Call-Id", call.call_id)
    names, given = generation.contract.backends[endpoint.backend].forward_headers, call.headers
    if not names and "traceparent" not in given:
        return (own,)
    forwarded = [(name, given[name.lower()]) for name in names if name.lower() in given]
    traced = [("traceparent", given["traceparent"])] if "traceparent" in given else []
    return (*forwarded, *traced, own)


def _charset(answer: Answer) -> str | None:
    content_type = answer.headers.get("content-type", "")
    if "charset" not in content_type.lower():
        return None
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


#: RFC 9110 section 8.3.1, as much of it as keeps a header in one line.
_MEDIA_TYPE = re.compile(
    r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,127}/[!#$%&'*+.^_`|~0-9A-Za-z-]{1,127}[ \t]*(?:;[ -~\t]{0,500})?"
)


class _Ending:
    """Makes the one Outcome of a prepared call; each fact is set here and nowhere else."""

    __slots__ = ("_answer", "_full", "_prepared", "_projection_seconds")

    def __init__(
        self,
        prepared: Prepared,
        answer: Answer | NoAnswer,
        full: Full | None = None,
        projection_seconds: float | None = None,
    ) -> None:
        self._prepared = prepared
        self._answer = answer
        self._full = full
        self._projection_seconds = projection_seconds

    def badly(self, failed: Failure, fault: str | None = None, violations: tuple[str, ...] = ()) -> Outcome:
        return self._outcome(failed, fault=fault, violations=violations)

    def by_fault(self, fault: str) -> Outcome:
        return self.badly(failure.internal(self._prepared.call.call_id), fault)

    def with_nothing(self) -> Outcome:
        return self._outcome(None)

    def with_media(self, answer: Answer) -> Outcome:
        if not answer.body:
            return self.with_nothing()
        said = answer.headers.get("content-type", "").strip()
        media_type = said if _MEDIA_TYPE.fullmatch(said) else "application/octet-stream"
        return self._outcome(None, body=answer.body, media_type=media_type, full_bytes=len(answer.body))

    def well(self, shown: view.Shown) -> Outcome:
        return self._outcome(None, shown.body, shown.value, None, len(self._answer_body()), stripped=shown.stripped)

    def _answer_body(self) -> bytes:
        assert isinstance(self._answer, Answer)
        return self._answer.body

    def _outcome(
        self,
        failed: Failure | None,
        body: bytes | None = None,
        value: Json = None,
        media_type: str | None = None,
        full_bytes: int = 0,
        *,
        stripped: tuple[str, ...] = (),
        violations: tuple[str, ...] = (),
        fault: str | None = None,
    ) -> Outcome:
        prepared, full = self._prepared, self._full
        call = prepared.call
        if full is not None:
            stripped = full.stripped + stripped
            violations = violations or full.violations
        kept = (full.text or json_text.encode(full.value)) if call.keep and full is not None else None
        return Outcome(
            call,
            call.tool,
            failed,
            body,
            value,
            media_type,
            full_bytes,
            kept,
            prepared.effective_arguments,
            prepared.accepted,
            stripped,
            violations,
            self._answer.duration,
            self._projection_seconds,
            fault,
            prepared.asked,
        )
