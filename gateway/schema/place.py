"""A schema document as places: which schemas judge the value that stands somewhere, and what they declare of it.

Knows no values and no validator: what depends on a value is left as a `Choice`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from gateway.record import record
from gateway.schema.keywords import MANY, NAMED, ONE, TYPES, Path, subschemas
from gateway.schema.resolve import resolve

_ALL = frozenset(TYPES) - {"integer"}
_OF_OBJECT = ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties")
_OF_ARRAY = ("prefixItems", "items", "unevaluatedItems")
#: Keywords whose schemas judge the value or something inside it, in a way that declares.
_JUDGING = (ONE | MANY | NAMED) - {"not", "propertyNames", "contentSchema", "$defs", "definitions"}
#: Keywords without which a schema declares nothing, nor does anything below it.
_SPEAKING = _JUDGING | {"$ref"}


class Part:
    """One schema of the document with its subschemas, read when first asked for."""

    __slots__ = ("_document", "closes", "else_", "if_", "in_place", "node", "path", "then", "types")

    def __init__(self, document: Document, path: Path, node: dict[str, Any]) -> None:
        self._document = document
        self.path = path
        self.node = node
        #: The schemas that judge the same value whatever it is: the target of `$ref`, the members of `allOf`.
        self.in_place: tuple[Part, ...] = ()
        #: JSON types that may pass; `number` stands for integers too.
        self.types: frozenset[str] = _ALL
        #: Whether an object here may lose a key.
        self.closes = _closes(node)
        self.if_: Part | None = None
        self.then: Part | None = None
        self.else_: Part | None = None

    def under(self, *keys: str | int) -> Part:
        node: Any = self.node
        for key in keys:
            node = node[key]
        return self._document.part((*self.path, *keys), node)

    def listed(self, keyword: str) -> tuple[Part, ...]:
        return tuple(self.under(keyword, index) for index in range(len(self.node.get(keyword, ()))))

    def named(self, keyword: str) -> dict[str, Part]:
        return {name: self.under(keyword, name) for name in self.node.get(keyword, ())}

    def one(self, keyword: str) -> Part | None:
        return self.under(keyword) if isinstance(self.node.get(keyword), dict) else None

    def below(self) -> Iterator[Part]:
        """Every schema at or below this one that may declare something of an object."""
        yield from self.in_place
        for path, node in subschemas(self.node, self.path):
            if path[len(self.path)] in _JUDGING and isinstance(node, dict) and not node.keys().isdisjoint(_SPEAKING):
                yield self._document.part(path, node)


@record
class Choice:
    """What the value decides: which of some schemas judge it too."""

    #: `branches`: those it fits, all of them where it fits none. `if`: then or else. `key`: where it has that key.
    #: `item`: where it fits.
    kind: Literal["branches", "if", "key", "item"]
    parts: tuple[Part, ...]
    key: str = ""
    then: tuple[Part, ...] = ()
    else_: tuple[Part, ...] = ()


class Document:
    """All parts of one document, each made once."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._parts: dict[Path, Part] = {}

    def part(self, path: Path, node: Any) -> Part:
        known = self._parts.get(path)
        if known is None:
            known = self._parts[path] = Part(self, path, node if isinstance(node, dict) else {})
            if node is False:
                known.types = frozenset()
            self._read(known)
        return known

    def top(self) -> Part:
        return self.part((), self.root)

    def _read(self, part: Part) -> None:
        node = part.node
        in_place = list(part.listed("allOf"))
        if "$ref" in node:
            target = resolve(self.root, node["$ref"])
            assert not isinstance(target, str), "a document with such a reference is refused"
            in_place.insert(0, self.part(*target))
        part.in_place = tuple(in_place)
        if "if" in node:
            part.if_, part.then, part.else_ = part.under("if"), part.one("then"), part.one("else")
        types = part.types & _own_types(node)
        for inner in in_place:
            types &= inner.types
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                types &= frozenset().union(*(branch.types for branch in part.listed(keyword)))
        part.types = types


def _own_types(node: dict[str, Any]) -> frozenset[str]:
    types = _ALL
    if "type" in node:
        written = node["type"] if isinstance(node["type"], list) else [node["type"]]
        types = frozenset("number" if name == "integer" else name for name in written)
    if "enum" in node:
        types &= frozenset(map(_type_of, node["enum"]))
    if "const" in node:
        types &= {_type_of(node["const"])}
    return types


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def _closes(node: dict[str, Any]) -> bool:
    if opens(node) is not None:
        return False
    return bool(
        node.get("properties")
        or node.get("patternProperties")
        or node.get("additionalProperties") is False
        or node.get("unevaluatedProperties") is False
    )


def declares(node: dict[str, Any]) -> bool:
    """Whether a schema says anything of which keys there are."""
    return bool(
        node.get("properties")
        or node.get("patternProperties")
        or "additionalProperties" in node
        or "unevaluatedProperties" in node
    )


def opens(node: dict[str, Any]) -> str | None:
    """The keyword by which this schema allows keys beyond its own, if any."""
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in node:
            if node[keyword] is not False:
                return keyword
            # `additionalProperties: false` has evaluated every key, nothing is left for the other keyword
            if keyword == "additionalProperties":
                return None
    return None


def speaks(part: Part, kind: str) -> bool:
    """Whether a schema, or one that judges in its place, says what an object or array may hold."""
    waiting, seen = [part], set()
    while waiting:
        here = waiting.pop()
        if here.path in seen:
            continue
        seen.add(here.path)
        if any(keyword in here.node for keyword in (_OF_OBJECT if kind == "object" else _OF_ARRAY)):
            return True
        waiting += here.in_place
        for keyword in ("anyOf", "oneOf"):
            waiting += here.listed(keyword)
        waiting += [inner for inner in (here.if_, here.then, here.else_) if inner]
        waiting += here.named("dependentSchemas").values()
    return False


def spread(parts: tuple[Part, ...], kind: str) -> tuple[tuple[Part, ...], tuple[Choice, ...]]:
    """All schemas that judge an object or array in this place, in order of writing, and what its value decides."""
    flat: dict[Path, Part] = {}
    choices: list[Choice] = []
    waiting = list(parts)
    while waiting:
        part = waiting.pop(0)
        if part.path in flat:
            continue
        flat[part.path] = part
        following: list[Part] = list(part.in_place)
        for keyword in ("anyOf", "oneOf"):
            branches = tuple(branch for branch in part.listed(keyword) if kind in branch.types)
            if len(branches) == 1:
                following += branches
            elif any(speaks(branch, kind) for branch in branches):
                choices.append(Choice("branches", branches))
        if part.if_ is not None:
            conditional = [inner for inner in (part.if_, part.then, part.else_) if inner]
            if any(speaks(inner, kind) for inner in conditional):
                then = (part.then,) if part.then else ()
                else_ = (part.else_,) if part.else_ else ()
                choices.append(Choice("if", (part.if_,), then=then, else_=else_))
        if kind == "object":
            for key, dependent in part.named("dependentSchemas").items():
                if speaks(dependent, kind):
                    choices.append(Choice("key", (dependent,), key))
        waiting[:0] = following
    return tuple(flat.values()), tuple(choices)
