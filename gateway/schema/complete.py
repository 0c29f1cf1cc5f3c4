"""Completing a caller's value: schema defaults filled in, stringified JSON read; knows no validator."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from gateway.json_text import NotJson, canonical, parse
from gateway.schema.keywords import Path, subschemas
from gateway.schema.place import Document, Part, spread
from gateway.schema.violation import SchemaFault

#: So many defaults may be filled into each other.
_DEEPEST = 64
_NONE = object()

#: The places whose defaults are being filled, from the outermost one.
Trail = tuple[frozenset[Path], ...]


class Completing:
    """Fills and decodes along one document. Where a value would have to choose a branch, nothing is done."""

    def __init__(self, document: Document) -> None:
        self._top = (document.top(),)
        # Most documents have no default, and most values no JSON in a string: neither is walked along its schema then.
        self._has_defaults = _names_default(document.root)

    def fill(self, value: Any) -> Any:
        """A value with the defaults of absent properties, at every depth."""
        return _fill(value, self._top) if self._has_defaults else value

    def decode(self, value: Any) -> Any:
        """A value with strings read as JSON where an array or object is wanted and a string is not."""
        return _decode(value, self._top) if _may_hold_json(value) else value


def endless_defaults(root: Any) -> list[SchemaFault]:
    """The places of a sound document whose default, once filled, lacks what has that same default again."""
    if not _names_default(root, (dict, list)):  # others hold nothing to fill
        return []
    document = Document(root)
    endless: dict[Path, None] = {}
    done: set[frozenset[Path]] = set()
    waiting: list[tuple[Path, Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            values: tuple[Any, ...] = ({}, node.get("default"))
            for value in values:
                endless.update(dict.fromkeys(_endless(value, (document.part(path, node),), (), done)))
            waiting += subschemas(node, path)
    message = "the default holds itself again once its own defaults are filled in; take it out, or make it `null`"
    return [SchemaFault((*path, "default"), message) for path in sorted(endless, key=str)]


def _endless(value: Any, parts: tuple[Part, ...], trail: Trail, done: set[frozenset[Path]]) -> Iterator[Path]:
    """As `_fill` goes, and each default is gone through once."""
    if isinstance(value, dict):
        flat, _ = spread(parts, "object")
        for key, held in value.items():
            yield from _endless(held, _at_key(flat, key), trail, done)
        for name in _absent(value, flat):
            judges = _at_key(flat, name)
            default = _default(judges)
            place = _place(judges)
            if default is _NONE or place in done:
                continue
            if place in trail or len(trail) == _DEEPEST:
                yield _written(judges)
                continue
            yield from _endless(default, judges, (*trail, place), done)
            done.add(place)
    elif isinstance(value, list):
        flat, _ = spread(parts, "array")
        for index, item in enumerate(value):
            yield from _endless(item, _at_index(flat, index), trail, done)


def _place(parts: tuple[Part, ...]) -> frozenset[Path]:
    return frozenset(part.path for part in parts)


def _absent(value: dict[str, Any], flat: tuple[Part, ...]) -> list[str]:
    names = dict.fromkeys(name for part in flat for name in part.node.get("properties", ()))
    return [name for name in names if name not in value]


def _names_default(node: Any, types: tuple[type, ...] = (object,)) -> bool:
    """Whether a default may be declared somewhere; an argument of that name counts too, which does no harm."""
    if isinstance(node, dict):
        if "default" in node and isinstance(node["default"], types):
            return True
        return any(_names_default(held, types) for held in node.values())
    return isinstance(node, list) and any(_names_default(held, types) for held in node)


def _may_hold_json(value: Any) -> bool:
    """Whether some text in a value may be an array or object written as JSON."""
    if isinstance(value, str):
        return value.lstrip()[:1] in ("[", "{")
    if isinstance(value, dict):
        return any(map(_may_hold_json, value.values()))
    return isinstance(value, list) and any(map(_may_hold_json, value))


def _fill(value: Any, parts: tuple[Part, ...], trail: Trail = ()) -> Any:
    if not parts:
        return value
    if isinstance(value, dict):
        flat, _ = spread(parts, "object")
        filled = {key: _fill(held, _at_key(flat, key), trail) for key, held in value.items()}
        for name in _absent(value, flat):
            judges = _at_key(flat, name)
            default = _default(judges)
            # What would never end is refused where it is seen in the schema; where it is not, it ends here.
            if default is not _NONE and len(trail) < _DEEPEST and (place := _place(judges)) not in trail:
                filled[name] = _fill(copy.deepcopy(default), judges, (*trail, place))
        return filled
    if isinstance(value, list):
        flat, _ = spread(parts, "array")
        return [_fill(item, _at_index(flat, index), trail) for index, item in enumerate(value)]
    return value


def _default(parts: tuple[Part, ...]) -> Any:
    """The one default that these schemas name. The nearest wins: one beside a `$ref` over one behind it."""
    found = [part.node["default"] for part in parts if "default" in part.node]
    if not found:
        found = [behind for part in parts if (behind := _default(part.in_place)) is not _NONE]
    return found[0] if found and all(canonical(other) == canonical(found[0]) for other in found) else _NONE


def _written(parts: tuple[Part, ...]) -> Path:
    """Where the default of these schemas is written."""
    for part in parts:
        if "default" in part.node:
            return part.path
    return _written(tuple(inner for part in parts for inner in part.in_place))


def _decode(value: Any, parts: tuple[Part, ...]) -> Any:
    if not parts:
        return value
    if isinstance(value, str):
        types = frozenset.intersection(*(part.types for part in parts))
        if "string" in types or not types & {"array", "object"}:
            return value
        read = parse(value.encode("utf-8", "surrogatepass"))
        wanted = (isinstance(read, list) and "array" in types) or (isinstance(read, dict) and "object" in types)
        if isinstance(read, NotJson) or not wanted:
            return value
        return _decode(read, parts)
    if isinstance(value, dict):
        flat, _ = spread(parts, "object")
        return {key: _decode(held, _at_key(flat, key)) for key, held in value.items()}
    if isinstance(value, list):
        flat, _ = spread(parts, "array")
        return [_decode(item, _at_index(flat, index)) for index, item in enumerate(value)]
    return value


def _at_key(flat: tuple[Part, ...], key: str) -> tuple[Part, ...]:
    found: list[Part] = []
    for part in flat:
        if key in part.node.get("properties", ()):
            found.append(part.under("properties", key))
        elif "patternProperties" not in part.node and (inner := part.one("additionalProperties")):
            found.append(inner)
    return tuple(found)


def _at_index(flat: tuple[Part, ...], index: int) -> tuple[Part, ...]:
    found: list[Part] = []
    for part in flat:
        if index < len(part.node.get("prefixItems", ())):
            found.append(part.under("prefixItems", index))
        elif inner := part.one("items"):
            found.append(inner)
    return tuple(found)
