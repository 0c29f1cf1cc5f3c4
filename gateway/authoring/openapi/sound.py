"""Whether a keyword's value is one that it may have, and what a schema names by itself. Knows no reference."""

from __future__ import annotations

import math
from typing import Any

from gateway.schema.keywords import TYPES

Json = Any

#: Keywords whose value must be a number, a size, a flag.
_NUMBERS = ("multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")
_SIZES = (
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "maxProperties",
    "minProperties",
    "maxContains",
    "minContains",
)
_TEXTS = ("description", "title", "format", "contentEncoding", "contentMediaType")


def is_sound(key: str, held: Json) -> bool | None:
    """Whether a keyword that holds no schema has a value it may have; None where there is no such keyword."""
    number = isinstance(held, (int, float)) and not isinstance(held, bool) and math.isfinite(held)
    if key in _NUMBERS:
        exclusive = key.startswith("exclusive") and isinstance(held, bool)
        return exclusive or (number and (key != "multipleOf" or held > 0))
    if key in _SIZES:
        return number and held >= 0 and float(held).is_integer()
    if key in _TEXTS:
        return isinstance(held, str) and bool(held.strip())
    match key:
        case "type":
            names = held if isinstance(held, list) else [held]
            return (
                bool(names) and all(name in TYPES for name in names if isinstance(name, str)) and _distinct_texts(names)
            )
        case "enum":
            return isinstance(held, list) and bool(held)
        case "const":
            return True
        case "pattern":
            return isinstance(held, str)
        case "uniqueItems":
            return isinstance(held, bool)
        case "dependentRequired":
            return isinstance(held, dict) and all(
                isinstance(each, list) and _distinct_texts(each) for each in held.values()
            )
    return None


def types_of(value: Json) -> set[str]:
    """The types that a schema names itself."""
    if not isinstance(value, dict):
        return set()
    said = value.get("type")
    if isinstance(said, str):
        return {said}
    if isinstance(said, list):
        return {each for each in said if isinstance(each, str)}
    return {"object"} if isinstance(value.get("properties"), dict) else set()


def _distinct_texts(names: list[Json]) -> bool:
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def is_short(value: Json) -> bool:
    return isinstance(value, (str, int, float)) and len(str(value)) <= 200
