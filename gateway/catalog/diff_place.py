"""One place of a schema as it is compared: flat, without words, and what of it can be gone through key by key. Pure."""

from __future__ import annotations

import re
from typing import Any

from gateway import json_text
from gateway.schema.keywords import KNOWN, MANY, NAMED, ONE
from gateway.schema.resolve import resolve

Json = Any

#: Keywords of a place that can be gone through key by key; each other one that judges makes it one question.
_INNER = frozenset({"properties", "required", "additionalProperties", "items"})
_OWN = frozenset(
    {
        *("type", "format", "pattern", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minProperties", "maxProperties"),
    }
)


def structured(node: dict[str, Json]) -> bool:
    """Whether a flat place says all that it says by its keys or items and by plain bounds."""
    named = node.get("type")
    types = {named} if isinstance(named, str) else set(named or ())
    return bool(types & {"object", "array"}) and node.keys() <= _INNER | _OWN | {"$defs"}


def takes(node: dict[str, Json], kind: str) -> bool:
    """Whether a structured place may be of a type."""
    return kind in ([node["type"]] if isinstance(node["type"], str) else node["type"])


def own_bounds(node: dict[str, Json]) -> dict[str, Json]:
    """What a place says of itself, without what is below it."""
    return {keyword: held for keyword, held in node.items() if keyword in _OWN}


def kept(node: dict[str, Json]) -> Json:
    """What an answer keeps of keys that no property declares: an object that declares some is cut to them."""
    return node.get("additionalProperties", "properties" not in node)


def flattened(document: Json, node: Json, depth: int = 0) -> dict[str, Json] | None:
    """A place as one flat object: its references followed, and parts that add to each other put together.

    None where it cannot be said so.
    """
    if not isinstance(node, dict) or depth > 50:
        return None
    if "$ref" not in node and "allOf" not in node:
        return node
    own = {keyword: held for keyword, held in node.items() if keyword not in ("$ref", "allOf", "$defs")}
    parts: list[Json] = list(node.get("allOf", ()))
    if "$ref" in node:
        target = resolve(document, node["$ref"])
        parts.insert(0, None if isinstance(target, str) else target[1])
    closed = own.pop("unevaluatedProperties", None)
    flat = [flattened(document, part, depth + 1) for part in parts]
    together: dict[str, Json] | None = {key: held for key, held in own.items() if key != "$anchor"}
    for part in flat:
        together = None if together is None or part is None else _together(part, together)
    if together is None or closed is None:
        return together
    return {"additionalProperties": closed, **together}


def _together(one: dict[str, Json], other: dict[str, Json]) -> dict[str, Json] | None:
    """Two parts that must both hold, as one; None where that takes more than putting them side by side."""
    one = {keyword: held for keyword, held in one.items() if keyword not in ("$defs", "$anchor")}
    shared = one.keys() & other.keys()
    # `additionalProperties` means the keys that its own part does not declare.
    if any("additionalProperties" in part and "properties" in rest for part, rest in ((one, other), (other, one))):
        return None
    joined = {**one, **other}
    for keyword in shared:
        if keyword == "required":
            joined[keyword] = sorted({*one[keyword], *other[keyword]})
        elif keyword == "properties":
            if any(
                json_text.canonical(one[keyword][n]) != json_text.canonical(other[keyword][n])
                for n in one[keyword]
                if n in other[keyword]
            ):
                return None
            joined[keyword] = {**one[keyword], **other[keyword]}
        elif json_text.canonical(one[keyword]) != json_text.canonical(other[keyword]):
            return None
    return joined


def without_words(schema: Json, ignored: frozenset[str]) -> Json:
    """A schema without what judges no value."""
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Json] = {}
    for keyword, held in schema.items():
        if keyword in ignored or keyword not in KNOWN:
            continue
        if keyword in ONE:
            plain[keyword] = without_words(held, ignored)
        elif keyword in MANY and isinstance(held, list):
            plain[keyword] = [without_words(item, ignored) for item in held]
        elif keyword in NAMED and isinstance(held, dict):
            plain[keyword] = {name: without_words(item, ignored) for name, item in held.items()}
        else:
            plain[keyword] = held
    return plain


def points_inside(*documents: Json) -> bool:
    """Whether a reference names a place other than a definition, so that equal text may mean different things."""
    return any(re.search(rb'"\$ref":"#(?!/\$defs/)', json_text.canonical(document)) for document in documents)


def definitions(schema: Json) -> dict[str, Json]:
    return {"$defs": schema["$defs"]} if isinstance(schema, dict) and "$defs" in schema else {}


def without_definitions(schema: Json) -> Json:
    return {key: held for key, held in schema.items() if key != "$defs"} if isinstance(schema, dict) else schema
