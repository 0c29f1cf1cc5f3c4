"""Where and why a counterexample breaks a schema, in a contract author's words; finds no counterexample itself."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs

from gateway.json_text import type_name
from gateway.schema.relation_graph import kind_of
from gateway.schema.schema import Schema

_PLAIN_KEY = re.compile(r"[A-Za-z_$@][A-Za-z0-9_$@-]*\Z")
_BRANCHES = ("anyOf", "oneOf")


def place_and_reason(schema: Schema, value: Any, narrow: str, wide: str) -> tuple[str, str]:
    """The path and sentence of the first fault, looking into the alternative that the value comes nearest to."""
    try:
        faults = list(jsonschema_rs.Draft202012Validator(schema.document).iter_errors(value))
    except ValueError:
        faults = []
    if faults:
        return _told(faults[0], narrow, wide)
    # A pattern that the engine reads in another spelling, or an asserted format: the schema's own words do.
    violations = schema.check(value, 1)
    if not violations:
        return "", f"{narrow} may hold a value that {wide} refuses"
    parts = violations[0].pointer.split("/")[1:]
    return readable([int(part) if part.isdigit() else part for part in parts], []), violations[0].message


def _told(fault: jsonschema_rs.ValidationError, narrow: str, wide: str) -> tuple[str, str]:
    nearest = _nearest(fault)
    if nearest is not fault:
        return _told(nearest, narrow, wide)
    path = readable(fault.instance_path, fault.evaluation_path)
    rule, found = fault.kind.name, fault.instance
    match rule:
        case "required":
            name = fault.kind.value
            return _below(path, name), f"{wide} requires `{name}`, which {narrow} does not guarantee"
        case "type":
            if found is None:
                return path, f"{narrow} may be null here"
            return path, f"{narrow} may be {_a(type_name(found))} here, where {wide} wants {_types(fault.kind.value)}"
        case "enum" | "const" | "constant":
            if kind_of(found) in ("object", "array"):
                return path, f"{wide} lists the values allowed here, and {narrow} may hold another"
            return path, f"enum member {json.dumps(found, ensure_ascii=False)} is left out"
        case "additionalProperties" | "unevaluatedProperties":
            names = ", ".join(f"`{name}`" for name in list(fault.kind.value)[:3])
            return path, f"{wide} allows only the keys it declares, and {narrow} may hold {names}"
        case "anyOf" | "oneOf" | "not":
            return path, _combined(fault, narrow, wide)
        case "falseSchema" | "false" | "false schema":
            return path, f"{narrow} may hold something here, where {wide} allows nothing"
    return path, f"{narrow} may be {_short(found)} here, which breaks {wide}'s `{rule}`"


def _combined(fault: jsonschema_rs.ValidationError, narrow: str, wide: str) -> str:
    match fault.kind:
        case jsonschema_rs.ValidationErrorKind.OneOfMultipleValid():
            return f"{narrow} may be {_short(fault.instance)} here, which fits more than one `oneOf` branch of {wide}"
        case jsonschema_rs.ValidationErrorKind.Not():
            return f"{narrow} may be {_short(fault.instance)} here, which {wide} excludes by `not`"
    return f"{narrow} may be {_short(fault.instance)} here, which fits no alternative of {wide}"


def _nearest(fault: jsonschema_rs.ValidationError) -> jsonschema_rs.ValidationError:
    """The fault inside the alternative of `anyOf` or `oneOf` that the value comes nearest to, if there is one."""
    match fault.kind:
        case jsonschema_rs.ValidationErrorKind.AnyOf() | jsonschema_rs.ValidationErrorKind.OneOfNotValid():
            here = len(fault.instance_path)
            near = [group for group in fault.kind.context if group and not any(_misses(one, here) for one in group)]
            # The fewer and the deeper its faults, the nearer is an alternative; a tie is told as neither.
            ranks = sorted((len(group), -len(group[0].instance_path)) for group in near)
            if ranks and (len(ranks) == 1 or (ranks[0] != ranks[1] and ranks[0][0] == 1)):
                return min(near, key=lambda group: (len(group), -len(group[0].instance_path)))[0]
    return fault


def _misses(fault: jsonschema_rs.ValidationError, depth: int) -> bool:
    """Whether the value is of another type than the alternative, or of another tag one level below."""
    at = len(fault.instance_path)
    return (at <= depth and fault.kind.name == "type") or (at <= depth + 1 and fault.kind.name in ("const", "constant"))


def readable(instance_path: list[str | int], evaluation_path: list[str | int]) -> str:
    """A path such as `people[].name`: `[]` any item, `[0]` a place of a tuple, `*` any key of a map."""
    path = ""
    steps = iter(evaluation_path)
    for part in instance_path:
        keyword = next((step for step in steps if step in _LEADING), None)
        if keyword in ("properties", "prefixItems", "patternProperties"):
            next(steps, None)
        if isinstance(part, int):
            path += f"[{part}]" if keyword == "prefixItems" else "[]"
        elif keyword in ("additionalProperties", "patternProperties"):
            path = f"{path}.*" if path else "*"
        else:
            path = _below(path, part)
    return path


_LEADING = ("properties", "items", "prefixItems", "additionalProperties", "patternProperties", "contains")


def _below(path: str, name: str) -> str:
    if not _PLAIN_KEY.match(name):
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name


def _a(kind: str) -> str:
    return "null" if kind == "null" else f"an {kind}" if kind[0] in "aoi" else f"a {kind}"


def _types(types: Any) -> str:
    return " or ".join(_a(kind) for kind in ([types] if isinstance(types, str) else types))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else _a(kind_of(value))
