"""Which parts of a value are for writing only, by what its schema says of them; knows no validator.

A value that one branch of several calls a secret is one: who is shown too little can ask, who was shown too much
cannot forget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gateway.schema.keywords import Path
from gateway.schema.place import Document, Part

#: Gives what is shown instead of a value.
Hide = Callable[[Any], Any]


class Secrets:
    """Hides along one document; most name no secret, and their values are given back as they are."""

    def __init__(self, document: Document) -> None:
        self._top = (document.top(),)
        self._names_any = _names_any(document.root)

    def hidden(self, value: Any, hide: Hide) -> Any:
        """The value with each part that is `writeOnly` or a `password`, at every depth, as `hide` gives it."""
        return _hidden(value, self._top, hide) if self._names_any else value


def _names_any(node: Any) -> bool:
    """Whether something may be called a secret; an argument of such a name counts too, which does no harm."""
    if isinstance(node, dict):
        return _is_secret(node) or any(map(_names_any, node.values()))
    return isinstance(node, list) and any(map(_names_any, node))


def _is_secret(node: dict[str, Any]) -> bool:
    return node.get("writeOnly") is True or node.get("format") == "password"


def _hidden(value: Any, parts: Iterable[Part], hide: Hide) -> Any:
    judging = _judging(parts)
    if any(_is_secret(part.node) for part in judging):
        return hide(value)
    if isinstance(value, dict):
        return {key: _hidden(held, _at_key(judging, key), hide) for key, held in value.items()}
    if isinstance(value, list):
        return [_hidden(item, _at_index(judging, index), hide) for index, item in enumerate(value)]
    return value


def _judging(parts: Iterable[Part]) -> list[Part]:
    """Every schema that judges the same value, or may, whatever the value is."""
    waiting, found = list(parts), dict[Path, Part]()
    while waiting:
        part = waiting.pop()
        if part.path in found:
            continue
        found[part.path] = part
        waiting += (*part.in_place, *part.listed("anyOf"), *part.listed("oneOf"))
        waiting += part.named("dependentSchemas").values()
        waiting += [inner for keyword in ("if", "then", "else") if (inner := part.one(keyword))]
    return list(found.values())


def _at_key(parts: list[Part], key: str) -> list[Part]:
    found = [part.under("properties", key) for part in parts if key in part.node.get("properties", ())]
    for part in parts:
        found += part.named("patternProperties").values()
        found += [
            inner for keyword in ("additionalProperties", "unevaluatedProperties") if (inner := part.one(keyword))
        ]
    return found


def _at_index(parts: list[Part], index: int) -> list[Part]:
    found = [part.under("prefixItems", index) for part in parts if index < len(part.node.get("prefixItems", ()))]
    found += [
        inner for part in parts for keyword in ("items", "unevaluatedItems", "contains") if (inner := part.one(keyword))
    ]
    return found
