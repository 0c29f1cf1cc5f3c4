"""What described error bodies say: where they keep code and message, which codes they list. Knows no contract key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from gateway.authoring.openapi.description import Description, Node
from gateway.authoring.openapi.normal import Answer, Operation
from gateway.json_pointer import pointer_of
from gateway.record import record

#: Names that error bodies have for the two facts, the more telling ones first.
_CODES = ("code", "error_code", "errorCode", "errorcode", "error", "type", "reason")
_MESSAGES = ("message", "error_message", "errorMessage", "error_description", "detail", "description", "msg", "title")
#: Objects that they may stand in.
_AROUND = ("", "error", "fault", "meta", "status")

#: What the gateway reads without being told.
KNOWN = ("/error/code", "/error/message")

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


@record
class Told:
    """Where an error body keeps its facts, as JSON Pointers, and the codes that its schema lists."""

    code: str | None
    message: str | None
    codes: tuple[str, ...] = ()


def facts(operations: Iterable[Operation], description: Description) -> Told | None:
    """What most of the described error bodies have in common; None where that is nothing, or is known anyhow."""
    found: Counter[tuple[str | None, str | None]] = Counter()
    for operation in operations:
        for _, answer in _failures(operation):
            told = _told(answer, description)
            if told is not None:
                found[told.code, told.message] += 1
    if not found:
        return None
    code, message = min(found, key=lambda pair: (-found[pair], str(pair)))
    return None if (code, message) == KNOWN else Told(code, message)


def declared(operation: Operation, description: Description, told: Told | None) -> dict[str, dict[str, object]]:
    """`errors` of an endpoint: the codes that its error bodies list, each with its status and what is said of it."""
    codes: dict[str, dict[str, object]] = {}
    code_at = told.code if told is not None else KNOWN[0]
    for status, answer in _failures(operation):
        own = _told(answer, description)
        if own is None or own.code != code_at or status is None:
            continue
        for code in own.codes:
            hint = " ".join((answer.description or "").split())
            codes.setdefault(code, {"status": status, **({"hint": hint} if hint and len(own.codes) == 1 else {})})
    return codes


def _failures(operation: Operation) -> Iterator[tuple[int | None, Answer]]:
    for answer in operation.answers:
        if answer.kind == "json" and answer.schema is not None:
            if re.fullmatch(r"[45][0-9][0-9]", answer.status):
                yield int(answer.status), answer
            elif re.fullmatch(r"[45]XX|default", answer.status):
                yield None, answer


def _told(answer: Answer, description: Description) -> Told | None:
    assert answer.schema is not None
    if "problem+json" in answer.media:
        return None
    for around in _AROUND:
        holder = answer.schema if not around else _property(answer.schema, around, description)
        message = next(_texts(holder, _MESSAGES, description), None)
        if message is None:
            continue
        path = (around,) if around else ()
        code = next(_texts(holder, _CODES, description), None)
        codes: tuple[str, ...] = ()
        if code is not None:
            listed = code[1].get("enum").value
            codes = (
                tuple(each for each in listed if isinstance(each, str) and _CODE.fullmatch(each))
                if isinstance(listed, list)
                else ()
            )
        return Told(pointer_of((*path, code[0])) if code else None, pointer_of((*path, message[0])), codes)
    return None


def _texts(holder: Node | None, names: Iterable[str], description: Description) -> Iterator[tuple[str, Node]]:
    for name in names:
        found = None if holder is None else _property(holder, name, description)
        if found is not None and found.get("type").value in ("string", ["string", "null"], ["string"]):
            yield name, found


def _property(node: Node, name: str, description: Description) -> Node | None:
    """A property of an object, or of a member of its `allOf`."""
    waiting, steps = [node], 0
    while waiting and steps < 50:
        found, steps = description.follow(waiting.pop(0)), steps + 1
        if found is None or not isinstance(found.value, dict):
            continue
        inner = found.get("properties", name)
        if isinstance(inner.value, dict):
            return description.follow(inner)
        waiting += found.get("allOf").each()
    return None
