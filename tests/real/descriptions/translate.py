"""A schema of OpenAPI 3.0 as JSON Schema 2020-12, for answers; knows no file and nothing of the gateway."""

from __future__ import annotations

from enum import Enum
from typing import Any

Json = Any

COMPONENTS = "#/components/schemas/"
SCHEMAS = "#/schemas/"

#: Keywords of OpenAPI 3.0 that hold a schema, a list of schemas, a map of schemas.
ONE = ("items", "additionalProperties", "not")
MANY = ("allOf", "anyOf", "oneOf")
NAMED = ("properties",)

#: Keywords that judge a value and mean the same in both languages.
_JUDGING = ("enum", "format", "pattern", "required", "type", "multipleOf", "maximum", "minimum", "uniqueItems")
_SIZES = ("maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties")
SAME = (*_JUDGING, *_SIZES)

#: Those that 2020-12 says otherwise.
OTHER = ("nullable", "exclusiveMinimum", "exclusiveMaximum", "readOnly", "writeOnly")


class Null(Enum):
    """What `nullable: true` allows (docs/decisions/0074)."""

    #: As 3.0.3 was clarified: null beside a `type`, and only where an `enum` lists it.
    WRITTEN = "written"
    #: As those who write it mean it: null, whatever stands beside.
    MEANT = "meant"


def translate(node: Json, null: Null) -> Json:
    """The same schema in 2020-12. Whatever judges no answer is left out, descriptions and `discriminator` with it."""
    if not isinstance(node, dict):
        return node
    if "$ref" in node:  # OAS 3.0.3 "Reference Object": additional properties are ignored
        return {"$ref": node["$ref"].replace(COMPONENTS, SCHEMAS, 1)}
    written = {key: _held(key, held, null) for key, held in node.items() if key in (*SAME, *ONE, *MANY, *NAMED)}
    _without_write_only(written, node)
    _with_bounds(written, node)
    return _with_null(written, null) if node.get("nullable") is True else written


def _held(key: str, held: Json, null: Null) -> Json:
    if key in ONE:
        return translate(held, null)
    if key in MANY:
        return [translate(item, null) for item in held]
    if key in NAMED:
        return {name: translate(item, null) for name, item in held.items()}
    return held


def _without_write_only(written: dict[str, Json], node: dict[str, Json]) -> None:
    """OAS 3.0.3 "Schema Object": where a property is `writeOnly`, `required` applies to the request alone."""
    secret = {name for name, item in node.get("properties", {}).items() if item.get("writeOnly") is True}
    if secret and "required" in written:
        written["required"] = [name for name in written["required"] if name not in secret]


def _with_bounds(written: dict[str, Json], node: dict[str, Json]) -> None:
    """A true beside a bound becomes the bound that excludes itself."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if node.get(exclusive) is True and bound in written:
            written[exclusive] = written.pop(bound)


def _with_null(written: dict[str, Json], null: Null) -> Json:
    if "type" in written and (null is Null.WRITTEN or not any(key in written for key in (*MANY, "not"))):
        written["type"] = [written["type"], "null"]
        if null is Null.MEANT and "enum" in written and None not in written["enum"]:
            written["enum"] = [*written["enum"], None]
        return written
    if null is Null.WRITTEN or not written:
        return written
    if written.keys() == {"anyOf"}:
        return {"anyOf": [*written["anyOf"], {"type": "null"}]}
    return {"anyOf": [written, {"type": "null"}]}
