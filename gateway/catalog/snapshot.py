"""The surface of a contract as one JSON text that is kept and compared: what consumers rely on, nothing else. Pure.

Each operation is a row on a line of its own, so that a review shows the rows that moved. A row names its schemas by
digest and holds each of them once, so that two snapshots can be compared without the contracts they were made from.
Backends, listeners and the code of a projection are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway import json_text
from gateway.backend.body import ENCODERS
from gateway.backend.placement import NO_RULE, SendRule
from gateway.backend.request import RequestBuilder
from gateway.catalog.advertise import unordered
from gateway.record import record
from gateway.schema import Schema, compile_schema

if TYPE_CHECKING:
    from gateway.contract.model import Contract, Endpoint, Tool, View

Json = Any

#: The only version that is read and written.
VERSION = 1


@record
class Unreadable:
    """Why a text is no snapshot that can be compared: one sentence with the remedy."""

    message: str


@record
class ShownView:
    """The view of a tool as its callers meet it; `output` is None where the full answer is shown."""

    defaults: Mapping[str, Json]
    output: Json
    project: bool
    #: `bytes`, `trim` and `note`; None where there is no budget.
    budget: Mapping[str, Json] | None


@record
class Operation:
    """One endpoint as its consumers meet it; schemas are self-contained documents."""

    id: str
    #: What a row says in plain values: `request`, `expose`, `scopes`, `errors` and the like.
    facts: Mapping[str, Json]
    input: Json
    #: By status, as in the contract.
    outputs: Mapping[str, Json]
    #: Only of an endpoint that is a tool: `name`, `title`, hints.
    tool: Mapping[str, Json] | None
    view: ShownView | None


@record
class Snapshot:
    """A whole surface; the operations are sorted by id."""

    #: Whether `format` judges values: `annotate` or `assert`.
    formats: str
    operations: tuple[Operation, ...]


def snapshot(contract: Contract) -> Snapshot:
    """What consumers of a contract rely on."""
    operations = [_operation(endpoint) for endpoint in contract.endpoints.values()]
    return Snapshot(contract.gateway.formats, tuple(sorted(operations, key=lambda each: each.id)))


def write_snapshot(surface: Snapshot) -> bytes:
    """The one text of a surface: equal surfaces give equal bytes."""
    rows = [json_text.canonical(_row(operation)) for operation in surface.operations]
    head = json_text.canonical({"formats": surface.formats})[1:-1]
    tail = json_text.canonical({"snapshotVersion": VERSION})[1:-1]
    return b"{" + head + b',"operations":[\n' + b",\n".join(rows) + b"\n]," + tail + b"}\n"


def read_snapshot(text: bytes) -> Snapshot | Unreadable:
    """The surface that a text holds. Nothing of it is trusted: it may come from another version, or an editor."""
    document = json_text.parse(text)
    if isinstance(document, json_text.NotJson):
        return Unreadable(f"this is not JSON: {document.reason}")
    if not isinstance(document, dict) or "snapshotVersion" not in document:
        return Unreadable("this is no snapshot: it has no `snapshotVersion`; write one with `toolview snapshot`")
    version = document["snapshotVersion"]
    if type(version) is not int or version != VERSION:
        return Unreadable(_other_version(version))
    if violations := _shape().check(document, 1):
        where = violations[0].pointer or "the root"
        return Unreadable(f"this is no whole snapshot: at {where} {violations[0].message}; {_ANEW}")
    operations = [_read_row(row, document["formats"]) for row in document["operations"]]
    unreadable = next((each for each in operations if isinstance(each, Unreadable)), None)
    if unreadable is not None:
        return unreadable
    read = tuple(each for each in operations if isinstance(each, Operation))
    if len({each.id for each in read}) < len(read):
        return Unreadable(f"two rows have the same id; {_ANEW}")
    return Snapshot(document["formats"], tuple(sorted(read, key=lambda each: each.id)))


_ANEW = "write it anew with `toolview snapshot`, and review what moved"


def _other_version(version: Json) -> str:
    if type(version) is not int:
        return f"`snapshotVersion` is a number, and this Toolview reads {VERSION}; {_ANEW}"
    made = "an older" if version < VERSION else "a newer"
    return f"snapshot version {version} is of {made} Toolview, and this one reads {VERSION}; {_ANEW}"


def _operation(endpoint: Endpoint) -> Operation:
    return Operation(
        id=endpoint.id,
        facts={
            "request": f"{endpoint.method} {endpoint.path}",
            "send": _places(endpoint.request),
            "kind": endpoint.kind,
            "expose": sorted(endpoint.expose),
            "title": endpoint.title,
            "description": endpoint.description,
            "scopes": sorted(endpoint.scopes),
            "consumers": sorted(set(endpoint.consumers)),
            "idempotent": endpoint.idempotent,
            "validate": endpoint.validate_mode,
            "errors": {
                code: {"status": error.status, "retryable": error.retryable, "hint": error.hint}
                for code, error in endpoint.errors.items()
            },
        },
        input=unordered(endpoint.input.document),
        outputs={status: unordered(schema.document) for status, schema in endpoint.outputs.items()},
        tool=None if endpoint.tool is None else _tool(endpoint.tool),
        view=None if endpoint.tool is None or endpoint.tool.view is None else _view(endpoint.tool.view),
    )


def _places(request: RequestBuilder) -> dict[str, str]:
    """Where each argument goes and how it is spelled there: what plain HTTP clients see of it."""
    whole = {} if request.whole is None else {request.whole: "whole body"}
    places = {
        **{argument: "path" for argument, _, _ in request.segments},
        **{argument: "query" for argument, _ in request.query},
        **{argument: f"header {name}" for argument, name, _ in request.headers},
        **{argument: "cookie" for argument, _ in request.cookies},
        **{each.argument: "body" for each in request.fields},
        **whole,
    }
    kind = next((kind for kind, encoder in ENCODERS.items() if encoder is request.encoder), "json")
    return {
        argument: " ".join(
            [place, *([kind] if "body" in place else []), *_spelled(request.rules.get(argument, NO_RULE))]
        )
        for argument, place in places.items()
    }


def _spelled(rule: SendRule) -> list[str]:
    """What a rule says of an argument's spelling, where it says anything."""
    said = {"name": rule.name, "style": rule.style, "explode": rule.explode, "encode": rule.encode, "empty": rule.empty}
    words = [f"{key}={value}" for key, value in said.items() if value is not None]
    return [*words, "reserved"] if rule.reserved else words


def _tool(tool: Tool) -> dict[str, Json]:
    return {
        "name": tool.name,
        "title": tool.title,
        "annotations": dict(tool.annotations),
        "safetyTier": tool.safety_tier,
        "cost": tool.cost,
        "latency": tool.latency,
        "confirm": None if tool.mcp is None else tool.mcp.confirm,
        "visibility": None if tool.ui is None else sorted(tool.ui.visibility),
    }


def _view(view: View) -> ShownView:
    budget = view.budget
    return ShownView(
        defaults=dict(view.defaults),
        output=None if view.output is None else unordered(view.output.document),
        project=view.project is not None,
        budget=None if budget is None else {"bytes": budget.bytes, "trim": budget.trim, "note": budget.note},
    )


def _row(operation: Operation) -> dict[str, Json]:
    documents: dict[str, Json] = {}

    def kept(document: Json) -> str:
        name = json_text.digest(document)
        documents[name] = document
        return name

    row: dict[str, Json] = {
        "id": operation.id,
        **operation.facts,
        "schemas": {
            "input": kept(operation.input),
            "output": {status: kept(document) for status, document in operation.outputs.items()},
        },
    }
    if operation.tool is not None:
        row["tool"] = dict(operation.tool)
    if operation.view is not None:
        view = operation.view
        row["toolView"] = {
            "defaults": kept(dict(view.defaults)) if view.defaults else None,
            "output": None if view.output is None else kept(view.output),
            "project": view.project,
        }
        if view.budget is not None:
            row["toolView"]["budget"] = dict(view.budget)
    return {**row, "documents": documents}


def _read_row(row: dict[str, Json], formats: str) -> Operation | Unreadable:
    documents = row["documents"]
    for name, document in documents.items():
        if json_text.digest(document) != name:
            return Unreadable(f"row `{row['id']}` was changed by hand: its digests no longer hold; {_ANEW}")
    view = row.get("toolView")
    schemas = [row["schemas"]["input"], *row["schemas"]["output"].values()]
    schemas += [] if view is None or view["output"] is None else [view["output"]]
    named = [*schemas, *([] if view is None or view["defaults"] is None else [view["defaults"]])]
    if missing := [name for name in named if name not in documents]:
        return Unreadable(f"row `{row['id']}` lacks the document {missing[0]}; {_ANEW}")
    for name in schemas:
        if isinstance(compiled := compile_schema(documents[name], formats=formats), tuple):
            return Unreadable(f"row `{row['id']}` has a schema that cannot be used: {compiled[0].message}; {_ANEW}")
    defaults = {} if view is None or view["defaults"] is None else documents[view["defaults"]]
    if not isinstance(defaults, dict):
        return Unreadable(f"row `{row['id']}` has defaults that are no object; {_ANEW}")
    return Operation(
        id=row["id"],
        facts={key: row[key] for key in _FACTS},
        input=documents[row["schemas"]["input"]],
        outputs={status: documents[name] for status, name in row["schemas"]["output"].items()},
        tool=row.get("tool"),
        view=None
        if view is None
        else ShownView(
            defaults,
            None if view["output"] is None else documents[view["output"]],
            view["project"],
            view.get("budget"),
        ),
    )


def _object(properties: dict[str, Json], *optional: str) -> dict[str, Json]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_TEXTS = {"type": "array", "items": _TEXT}
_FLAG = {"type": "boolean"}
_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_MAYBE_DIGEST = {"anyOf": [_DIGEST, {"type": "null"}]}

_FACTS: dict[str, Json] = {
    "request": {"type": "string", "pattern": "^[A-Z]+ /"},
    "send": {"type": "object", "additionalProperties": _TEXT},
    "kind": _TEXT,
    "expose": _TEXTS,
    "title": _MAYBE_TEXT,
    "description": _TEXT,
    "scopes": _TEXTS,
    "consumers": _TEXTS,
    "idempotent": _FLAG,
    "validate": _TEXT,
    "errors": {
        "type": "object",
        "additionalProperties": _object(
            {"status": {"type": "integer"}, "retryable": {"type": ["boolean", "null"]}, "hint": _MAYBE_TEXT}
        ),
    },
}

_SHAPE = _object(
    {
        "snapshotVersion": {"const": VERSION},
        "formats": {"enum": ["annotate", "assert"]},
        "operations": {
            "type": "array",
            "items": _object(
                {
                    "id": _TEXT,
                    **_FACTS,
                    "schemas": _object(
                        {"input": _DIGEST, "output": {"type": "object", "additionalProperties": _DIGEST}}
                    ),
                    "tool": _object(
                        {
                            "name": _TEXT,
                            "title": _MAYBE_TEXT,
                            "annotations": {"type": "object"},
                            "safetyTier": _MAYBE_TEXT,
                            "cost": _MAYBE_TEXT,
                            "latency": _MAYBE_TEXT,
                            "confirm": _MAYBE_TEXT,
                            "visibility": {"anyOf": [_TEXTS, {"type": "null"}]},
                        }
                    ),
                    "toolView": _object(
                        {
                            "defaults": _MAYBE_DIGEST,
                            "output": _MAYBE_DIGEST,
                            "project": _FLAG,
                            "budget": _object({"bytes": {"type": "integer"}, "trim": _MAYBE_TEXT, "note": _MAYBE_TEXT}),
                        },
                        "budget",
                    ),
                    "documents": {"type": "object"},
                },
                "tool",
                "toolView",
            ),
        },
    }
)


def _shape() -> Schema:
    compiled = compile_schema(_SHAPE)
    assert isinstance(compiled, Schema), compiled
    return compiled
