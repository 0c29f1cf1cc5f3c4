"""What a tool makes of an answer that is in a file: full, view and bytes, by the path of every call; sends nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from gateway import json_text
from gateway.backend.exchange import Answer, NoAnswer, Silence
from gateway.call.outcome import Call, Outcome
from gateway.call.run import Full, Prepared, conclude, projection_of, read_answer
from gateway.contract.model import Contract, Endpoint, Example
from gateway.gateway import prepare_alone
from gateway.generation import CONSOLE, index
from gateway.projection.runner import ProjectionRunner
from gateway.surfaces.cli import flags_text
from gateway.surfaces.command_line import Misused, read_line
from gateway.surfaces.switches import PREVIEW

Json = Any

#: It is nobody's call, and no backend hears of it.
_CALL_ID = "preview"


async def preview(
    contract: Contract, tool: str, words: Sequence[str], stdin: TextIO, before: Mapping[str, str] | None = None
) -> Outcome | Misused | str:
    """How the call ended; where it ended well, its value is the report on it. `--help` is a text about the tool.

    `--answer FILE` is what the backend is taken to answer, with `--status`; without it an example of the contract is,
    and an example's arguments where none are given.
    """
    generation = index(contract)
    endpoint = generation.find(tool, CONSOLE, None)
    given = endpoint.input if endpoint is not None else None
    properties = {name: given.property_document(name) for name in given.property_names} if given is not None else {}
    line = read_line(words, properties, stdin, PREVIEW, before)
    if isinstance(line, Misused):
        return line
    if "help" in line.switches and endpoint is not None:
        return flags_text("preview", tool, endpoint.description, properties, endpoint.input.required, PREVIEW)
    if line.from_stdin and line.switches.get("answer") == "-":
        return Misused("stdin can be the arguments or the answer, and not both; put one of them into a file")
    file, status = line.switches.get("answer"), line.switches.get("status")
    example = None if endpoint is None else _example(endpoint)
    arguments = line.arguments
    if not line.any_given and example is not None:
        arguments = dict(example.arguments)
    prepared = prepare_alone(Call(tool, arguments, CONSOLE, _CALL_ID, keep=True), generation)
    if isinstance(prepared, Outcome):
        return _told(prepared)
    if prepared.endpoint.kind == "media":
        return Misused("this tool answers with a file, which is shown as it is; there is no view of it")
    limit = contract.backends[prepared.endpoint.backend].limits.answer
    answer = _answer(prepared.endpoint, example, file, status, stdin, limit)
    if isinstance(answer, Misused):
        return answer
    full = read_answer(prepared, answer, generation, trace=True)
    outcome = full if isinstance(full, Outcome) else await _concluded(prepared, full, contract)
    return _told(outcome)


async def _concluded(prepared: Prepared, full: Full, contract: Contract) -> Outcome:
    projection = projection_of(full)
    if projection is None:
        return conclude(full)
    runner = ProjectionRunner(contract.gateway.limits.projection)
    try:
        started = time.perf_counter()
        source = prepared.call.surface
        projected = await runner.run(projection, full.text, full.value, prepared.accepted, source)
        return conclude(full, projected, time.perf_counter() - started)
    finally:
        await runner.close()


def _example(endpoint: Endpoint) -> Example | None:
    """The one that stands in for what is not given: the first with an answer, else the first."""
    answering = [example for example in endpoint.examples if example.has_answer]
    return next(iter((*answering, *endpoint.examples)), None)


def _answer(
    endpoint: Endpoint, example: Example | None, file: str | None, status: str | None, stdin: TextIO, limit: int
) -> Answer | NoAnswer | Misused:
    if status is not None and not (status.isascii() and status.isdecimal() and 100 <= int(status[:4]) <= 599):
        return Misused("--status is an HTTP status, from 100 to 599")
    if file is not None:
        body = _read(file, stdin, limit)
        number = _declared_status(endpoint)
    elif example is not None and example.has_answer:
        body, number = json_text.encode(example.answer), example.status
    else:
        return Misused("write --answer FILE; the contract has no example of this tool with an answer")
    if isinstance(body, Misused):
        return body
    if len(body) > limit:
        return NoAnswer(Silence.TOO_LARGE)
    return Answer(number if status is None else int(status), {}, body, len(body))


def _read(name: str, stdin: TextIO, limit: int) -> bytes | Misused:
    """The bytes of an answer, `-` for stdin; one more than the limit where there are more."""
    try:
        if name == "-":
            return stdin.buffer.read(limit + 1)
        with Path(name).open("rb") as opened:
            return opened.read(limit + 1)
    except (OSError, ValueError) as fault:
        return Misused(f"--answer: the file cannot be read: {getattr(fault, 'strerror', None) or fault}")


def _declared_status(endpoint: Endpoint) -> int:
    """The first status that the contract declares an answer for."""
    declared = sorted(name for name in endpoint.outputs if name.isdecimal())
    return 200 if "2XX" in endpoint.outputs or not declared else int(declared[0])


def _told(outcome: Outcome) -> Outcome:
    """The outcome as a preview shows it: a report in place of the answer, and what went wrong inside."""
    if outcome.failure is None:
        report = _report(outcome)
        return replace(outcome, value=report, body=json_text.encode(report))
    if outcome.fault is None:
        return outcome
    # Who previews holds the contract, and is told what no caller is.
    details = {**outcome.failure.details, "fault": outcome.fault}
    return replace(outcome, failure=replace(outcome.failure, details=details))


def _report(outcome: Outcome) -> Mapping[str, Json]:
    """Full answer and view, their bytes, and what was stripped or broke a schema."""
    report: dict[str, Json] = {
        "full": None if outcome.full is None else json_text.parse(outcome.full),
        "view": outcome.value,
        "bytes": {"full": outcome.full_bytes, "view": outcome.view_bytes},
    }
    for key, paths in (("stripped", outcome.stripped), ("violations", outcome.violations)):
        if paths:
            report[key] = list(paths)
    return report
