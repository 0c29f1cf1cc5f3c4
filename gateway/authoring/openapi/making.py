"""An endpoint while it is put together: its arguments by name, and where each goes. Knows one operation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.authoring.openapi.description import Node
from gateway.authoring.openapi.normal import Credential, Operation, Parameter
from gateway.authoring.openapi.translate import Translator
from gateway.schema import Schema, compile_schema

Json = Any


class Stop(Exception):
    """The operation cannot be expressed."""

    def __init__(self, at: Node, reason: str) -> None:
        super().__init__(reason)
        self.at, self.reason = at, reason


@dataclass
class Making:
    """An endpoint while it is put together."""

    operation: Operation
    translator: Translator
    credentials: Sequence[Credential]
    kind: str = "json"
    properties: dict[str, Json] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    send: dict[str, Json] = field(default_factory=dict)
    #: Names on the wire that are taken, by place.
    wires: set[tuple[str, str]] = field(default_factory=set)
    comments: list[str] = field(default_factory=list)
    #: Names of the path's placeholders.
    placeholders: tuple[str, ...] = ()

    def note(self, at: Node, sentence: str) -> None:
        self.translator.description.notes.add(at.place, sentence)
        self.comments.append(sentence)


def unfit(making: Making, parameter: Parameter, reason: str) -> None:
    """What may be left out is; without what is required there is no call."""
    said = f"the {_PLACES.get(parameter.where, parameter.where)} `{parameter.name}`: {reason}"
    if parameter.required or parameter.where == "path":
        raise Stop(parameter.at, f"{said}, and it is required")
    making.note(parameter.at, f"{said}; it is left out")


_PLACES = {"query": "query parameter", "path": "path parameter", "field": "form field"}


def schema_of(making: Making, parameter: Parameter) -> Json:
    """The schema of one argument, its description with it."""
    written: Json = {"type": "string"}
    if parameter.schema is not None:
        own = parameter.schema.value is parameter.at.value  # Swagger 2.0: the parameter is its own schema
        skip = _OWN if own else frozenset[str]()
        keep = parameter.where != "field"
        written = making.translator.schema(parameter.schema, "input", keep_default=keep, skip=skip)
    written = described({} if isinstance(written, bool) else written, parameter.description)
    if parameter.deprecated:
        written["deprecated"] = True
    if "default" in written and not _fits(written):
        making.note(parameter.at, f"the default of `{parameter.name}` breaks its own schema; it is left out")
        del written["default"]
    return written


_OWN = frozenset(("name", "in", "required", "description"))


def described(written: Json, description: str | None) -> Json:
    text = paragraphs(description or "")
    inner = written.get("description")
    if not text or text == inner:
        return written
    if inner and inner.startswith("Default: "):
        text = f"{text} {inner}"
    return {**written, "description": text}


def _fits(written: dict[str, Json]) -> bool:
    """Whether a default is a value of its own schema; where others are referred to, it is left to `check`."""
    own = {key: held for key, held in written.items() if not key.startswith(("$", "all", "any", "one"))}
    try:
        schema = compile_schema(own)
    except RecursionError:
        return False
    return not isinstance(schema, Schema) or schema.valid(written["default"])


def declare(making: Making, parameter: Parameter, rule: dict[str, Json], schema: Json) -> None:
    """Declare an argument under a name that models can write, and say where it goes if that is not plain."""
    where, wire = ("body" if parameter.where == "field" else parameter.where), parameter.name
    taken = (where, wire.lower() if where == "header" else wire)
    if taken in making.wires:
        making.note(parameter.at, f"`{wire}` is described twice in the {where}; the first one is kept")
        return
    making.wires.add(taken)
    name = _argument_name(making, wire, where)
    by_default = "path" if where == "path" and name == wire else _default_place(making.operation.method)
    rule = {
        **({} if where == by_default else {"in": where}),
        **({} if name == wire else {"name": wire}),
        **rule,
    }
    if rule:
        making.send[name] = {key: rule[key] for key in _RULE_ORDER if key in rule}
    making.properties[name] = schema
    if parameter.required or where == "path":
        making.required.append(name)


_RULE_ORDER = ("in", "name", "style", "explode", "reserved", "encode", "empty")


_IN_QUERY = ("GET", "HEAD", "DELETE")


def _default_place(method: str) -> str:
    return "query" if method in _IN_QUERY else "body"


def _argument_name(making: Making, wire: str, where: str) -> str:
    """A name that every model's API takes, none of another argument, and not that of the body's own group."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", wire).strip("_")[:56] or "argument"
    reserved = {*making.properties, *(() if where == "path" else making.placeholders)}
    if making.operation.body is not None:
        reserved.add("body")
    candidates = [plain, f"{where}_{plain}", *(f"{where}_{plain}_{count}" for count in range(2, len(reserved) + 3))]
    return next(name for name in candidates if name not in reserved)


def paragraphs(text: str) -> str:
    """A text without trailing spaces, tabs and odd line ends: what a block of YAML shows as it is."""
    lines = [line.replace("\t", "  ").rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def spelling(parameter: Parameter) -> dict[str, Json]:
    """`style` and `explode` where they differ from what a contract does by itself."""
    if parameter.where in ("path", "header"):
        return {}
    style = parameter.style if parameter.style not in (None, "form", "simple") else None
    rule: dict[str, Json] = {} if style is None else {"style": style}
    by_default = style is None
    explode = by_default if parameter.explode is None else parameter.explode
    return rule if explode == by_default else {**rule, "explode": explode}
