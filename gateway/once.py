"""One tool call from the command line, composed without a listener; or what it would send, without sending it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

from gateway.backend.destination import shown
from gateway.backend.exchange import Request
from gateway.backend.request import Unsendable
from gateway.call import failure
from gateway.call.outcome import Call, Outcome
from gateway.call.run import Prepared, headers_of
from gateway.contract.model import Contract
from gateway.contract.secrets import Secret
from gateway.gateway import Observer, new_call_id, prepare_alone
from gateway.generation import Generation, index
from gateway.surfaces.cli import SURFACE, flags_text, output_of, tell_waiting
from gateway.surfaces.command_line import Misused, read_line
from gateway.surfaces.switches import CALL
from gateway.unlistened import unlistened


@dataclass(frozen=True)
class Streams:
    """The three standard streams of who called."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO


async def call_once(
    contract: Contract,
    tool: str,
    words: Sequence[str],
    streams: Streams,
    *observers: Observer,
    before: Mapping[str, str] | None = None,
) -> tuple[Outcome, Path | None] | Misused | Unsent | str:
    """One tool call from the command line, without a listener; and the file that its answer goes to, else stdout.

    `words` stand behind the tool's name, the switches in `before` before it. `--dry-run` gives the request that would
    have been sent, and `--help` a text about the tool's flags.
    """
    generation = index(contract)
    endpoint = generation.find(tool, SURFACE, None)
    given = endpoint.input if endpoint is not None else None
    properties = {name: given.property_document(name) for name in given.property_names} if given is not None else {}
    line = read_line(words, properties, streams.stdin, CALL, before)
    if isinstance(line, Misused):
        return line
    if "help" in line.switches and endpoint is not None:
        return flags_text("call", tool, endpoint.description, properties, endpoint.input.required, CALL)
    is_file = endpoint is not None and endpoint.kind == "media"
    output = output_of(line.switches.get("output"), streams.stdout, file=is_file)
    if isinstance(output, Misused):
        return output
    call = Call(tool, line.arguments, SURFACE, new_call_id())
    if "dry-run" in line.switches:
        unsent = _unsent(prepare_alone(call, generation), generation)
        return (_from_here(unsent, generation), None) if isinstance(unsent, Outcome) else unsent
    async with unlistened(generation, *observers, hire=False) as gateway:
        waiting = asyncio.create_task(tell_waiting(tool, streams.stderr))
        try:
            return _from_here(await gateway.run(call, generation), generation), output
        finally:
            waiting.cancel()
            await asyncio.wait([waiting])


@dataclass(frozen=True)
class Unsent:
    """A request as it would have left, secrets out."""

    head: bytes
    body: bytes | None


def _unsent(prepared: Prepared | Outcome, generation: Generation) -> Unsent | Outcome:
    if isinstance(prepared, Outcome):
        return prepared
    backend = generation.contract.backends[prepared.endpoint.backend]
    request = _without_secrets(prepared, generation)
    if isinstance(request, Unsendable):
        unshown = failure.unsendable_argument(request.argument, "is for writing only, and has no form that hides it")
        return Outcome(prepared.call, prepared.call.tool, unshown)
    # what a placeholder gave to the URL may be a secret too: a base path from it is not shown
    base = urlsplit(backend.url).path.rstrip("/") if isinstance(backend.url, Secret) else ""
    if base and request.target.startswith(base):
        request = replace(request, target="/***" + request.target[len(base) :])
    head = shown(backend, request)
    if head is None:
        unsendable = failure.unsendable_argument("headers", "hold a character that HTTP cannot carry")
        return Outcome(prepared.call, prepared.call.tool, unsendable)
    return Unsent(head, request.body)


#: What is shown of a secret, and how a query or a form spells it.
_HIDDEN, _SPELLED = "***", "%2A%2A%2A"


def _without_secrets(prepared: Prepared, generation: Generation) -> Request | Unsendable:
    """The request as it would be built were each argument that is for writing only `***`: a terminal keeps a log."""
    endpoint, accepted = prepared.endpoint, prepared.accepted
    hidden = endpoint.input.hidden(accepted, _masked)
    if hidden == accepted:
        return prepared.request
    request = endpoint.request.build(hidden, headers_of(prepared.call, generation, endpoint))
    if isinstance(request, Unsendable):
        return request
    form = ("Content-Type", "application/x-www-form-urlencoded") in request.headers
    body = request.body.replace(_SPELLED.encode(), _HIDDEN.encode()) if form and request.body else request.body
    return replace(request, target=request.target.replace(_SPELLED, _HIDDEN), body=body)


def _masked(value: Any) -> Any:
    """Of the same shape, so that it has a form wherever the value has one."""
    if isinstance(value, dict):
        return {key: _masked(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return None if value is None else _HIDDEN


def _from_here(outcome: Outcome, generation: Generation) -> Outcome:
    """Who calls from the command line holds the contract, and may be told that the tool is there for others."""
    if outcome.failure is None or generation.find(outcome.call.tool, SURFACE, None) is not None:
        return outcome
    elsewhere = [name for name in ("mcp", "agent") if generation.find(outcome.call.tool, name, None) is not None]
    if not elsewhere:
        return outcome
    hint = f"It is exposed on {' and '.join(elsewhere)} only; add `cli` to its `expose` to call it from here."
    return replace(outcome, failure=replace(outcome.failure, error="This tool is not on the command line.", hint=hint))
