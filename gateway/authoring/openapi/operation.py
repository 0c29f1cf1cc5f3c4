"""One operation in the normal form to an endpoint of a contract: its arguments, where they go, what comes back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gateway.authoring.openapi.arguments import add_parameters, request_line
from gateway.authoring.openapi.bodies import add_body
from gateway.authoring.openapi.making import Making, Stop, paragraphs
from gateway.authoring.openapi.normal import Credential, Operation
from gateway.authoring.openapi.translate import Translator
from gateway.record import record

Json = Any


@record
class LeftOut:
    """Why an operation has no place in a contract."""

    place: str
    reason: str


@record
class Drafted:
    """An endpoint whose schemas still have keys for their shared ones."""

    operation: Operation
    request: str
    kind: str
    input: dict[str, Json]
    send: dict[str, Json]
    #: None: nothing is said of an answer. A mapping by status: several.
    output: Json
    by_status: bool
    description: str
    title: str | None
    #: For the author, above the endpoint.
    comments: tuple[str, ...]

    @property
    def outputs(self) -> tuple[Json, ...]:
        """The schemas of its answers."""
        return tuple(self.output.values()) if self.by_status else (self.output,)

    @property
    def reads(self) -> bool:
        return self.operation.method in ("GET", "HEAD", "OPTIONS")


_LONGEST_TITLE = 100


def draft(operation: Operation, translator: Translator, credentials: Sequence[Credential]) -> Drafted | LeftOut:
    """The endpoint of an operation, or why there is none."""
    making = Making(operation, translator, credentials)
    try:
        request = request_line(making)
        add_parameters(making)
        add_body(making)
        output, by_status = _output(making)
    except Stop as stop:
        return LeftOut(stop.at.place, stop.reason)
    names = sorted(making.properties, key=lambda name: name not in making.required)
    arguments: dict[str, Json] = {"type": "object"} if names else {}
    if making.required:
        arguments["required"] = [name for name in names if name in making.required]
    if names:
        arguments["properties"] = {name: making.properties[name] for name in names}
    title, description = _said(operation)
    return Drafted(
        operation,
        request,
        making.kind,
        arguments,
        making.send,
        output,
        by_status,
        description,
        title,
        tuple(dict.fromkeys(making.comments)),
    )


def _said(operation: Operation) -> tuple[str | None, str]:
    """Title and description."""
    summary = " ".join((operation.summary or "").split())
    description = paragraphs(operation.description or "")
    title = summary if summary and description and summary != description and len(summary) <= _LONGEST_TITLE else None
    if not description:
        description = summary or f"{operation.spelled}."
    elif summary and title is None and summary not in description:
        description = f"{summary}\n\n{description}"
    return title, f"{description} Deprecated." if operation.deprecated else description


def _output(making: Making) -> tuple[Json, bool]:
    """The schema of an answer, or those by status; and `kind`, where it is no JSON."""
    good = [each for each in making.operation.answers if re.fullmatch(r"2[0-9][0-9]|2XX", each.status.upper())]
    if not good:
        good = [each for each in making.operation.answers if each.status == "default"]
    if making.kind != "json":
        return None, False
    kinds = {each.kind for each in good}
    if "json" not in kinds and "stream" in kinds:
        making.kind = "stream"
        making.note(good[0].at, "the answer is a stream of events, which only the pass-through carries")
        return None, False
    if "json" not in kinds and "file" in kinds:
        making.kind = "media"
        if any("xml" in each.media for each in good):
            making.note(good[0].at, f"the answer is {good[0].media}, which is shown as it is")
        return None, False
    for each in good:
        if each.kind in ("file", "stream"):
            making.note(
                each.at, f"the answer of {each.status} is {each.media or 'a file'}, which is left out beside JSON"
            )
    told = [each for each in good if each.kind in ("json", "nothing")]
    if all(each.kind == "nothing" for each in told):
        if making.operation.method == "GET":
            at = told[0].at if told else making.operation.at
            making.note(
                at, "nothing is said of the answer, so the tool answers empty; write `output: true` for all of it"
            )
        return None, False
    outputs: dict[str, Json] = {}
    for each in told:
        status = "2XX" if each.status == "default" else each.status.upper()
        if each.kind == "nothing":
            outputs[status] = None
        elif each.schema is None:
            making.note(each.at, "there is no schema for the answer; it is shown whole")
            outputs[status] = True
        else:
            outputs[status] = making.translator.schema(each.schema, "output")
    if len(outputs) == 1:
        return next(iter(outputs.values())), False
    return dict(sorted(outputs.items())), True
