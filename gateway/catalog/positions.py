"""Where schemas stand inside a schema; what stands elsewhere is data, also where it is named like a keyword. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Json = Any

#: Keywords whose value is a schema, a list of schemas, or schemas by name.
ONE = frozenset(
    {
        "items",
        "additionalProperties",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)
LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
#: Definitions are schemas too, but only those that something refers to matter.
DEFINITIONS = frozenset({"$defs", "definitions"})


def subschemas(schema: Json) -> Iterator[tuple[str, Json]]:
    """The schemas directly inside a schema, each with its keyword; definitions are not among them."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ONE:
            yield keyword, value
        elif keyword in LIST and isinstance(value, list):
            for item in value:
                yield keyword, item
        elif keyword in NAMED and isinstance(value, dict):
            for item in value.values():
                yield keyword, item


def rebuilt(keyword: str, value: Json, change: Callable[[Json], Json]) -> Json:
    """A keyword's value with `change` made to each schema directly inside it; data is left as it is."""
    if keyword in ONE:
        return change(value)
    if keyword in LIST and isinstance(value, list):
        return [change(item) for item in value]
    if keyword in NAMED and isinstance(value, dict):
        return {name: change(item) for name, item in value.items()}
    return value


def every(schema: Json) -> Iterator[dict[str, Json]]:
    """Each schema at any depth that is an object, the root first; definitions are not entered."""
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting.extend(reversed([inner for _, inner in subschemas(found)]))
