"""A schema in the compact structural subset of RFC 0112, at least as wide as it was; knows no tool and no catalog.

None of `$ref oneOf allOf anyOf not patternProperties dependentSchemas` is left at any depth. Every value that satisfies
the schema satisfies the compact one; the other way round holds as far as plain keywords can say it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gateway.json_text import encode
from gateway.schema.keywords import ANNOTATIONS, TYPES, Path
from gateway.schema.relation_graph import kind_of, mark
from gateway.schema.resolve import resolve
from gateway.schema.widen_shape import ANYTHING, KINDS, NOTHING, Algebra, Kind, Limit, Shape, bounded, freed, shape_of

Json = Any

#: How deep and how large a compact schema may be: what is repeated by reference is written out in it each time, and
#: where that takes more text than the schema itself, less of its depth is said.
_DEPTH = 16
_NODES = 1_500
_SMALL = 1_024
#: Schemas inside schemas, with those that judge the same value.
_READ_DEPTH = 48

#: Per kind: the lower and upper bound's keyword, and the words that are kept as they are.
_BOUNDS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_WORDS = {
    "number": ("multipleOf",),
    "string": ("pattern", "format"),
    "array": ("uniqueItems",),
    "object": ("dependentRequired",),
}

#: Lower bounds on a size, which say nothing where they are 0.
_SILENT_AT_0 = ("minLength", "minItems", "minProperties")


def widen(document: Json, shorten: Callable[[str], str] = str) -> dict[str, Json]:
    """The compact form of a self-contained schema whose values are objects; `shorten` is applied to descriptions."""
    reading = _Reading(document)
    shape = reading.algebra.meet(reading.shape((), document), shape_of({"object": Kind()}))
    root = shape.kinds.get("object", freed(Kind()))
    return _written(Shape({"object": root}, shape.notes), _Writing(shorten), max(_SMALL, len(encode(document))))


def _written(root: Shape, writing: _Writing, largest: int) -> dict[str, Json]:
    """The schema of a root that is an object, as deep as it stays within `largest` bytes."""
    schema: dict[str, Json] = {}
    for depth in range(_DEPTH, 0, -1):
        if depth > 1 and writing.size(root, depth) > _NODES:
            continue
        written = writing.written(root, depth)
        schema = {"type": "object", "properties": written.pop("properties", {}), **written}
        if len(encode(schema)) <= largest:
            break
    return {**schema, "type": "object"}


class _Reading:
    """Reads the schemas of one document to shapes, each once."""

    def __init__(self, document: Json) -> None:
        self.algebra = Algebra()
        self._document = document
        self._known: dict[Path, Shape] = {}
        self._open: set[Path] = set()

    def shape(self, path: Path, node: Json) -> Shape:
        """What the schema at a path lets through, or more."""
        if not isinstance(node, dict):
            return NOTHING if node is False else ANYTHING
        if path in self._known:
            return self._known[path]
        # In a cycle, and very deep down, what kind of value it is may still be said.
        if path in self._open or len(self._open) > _READ_DEPTH:
            return shape_of(_typed(node))
        self._open.add(path)
        shape = self._known[path] = self._read(path, node)
        self._open.discard(path)
        return shape

    def _read(self, path: Path, node: dict[str, Json]) -> Shape:
        shape = self._own(path, node)
        for at, inner in self._conjuncts(path, node):
            shape = self.algebra.meet(shape, self.shape(at, inner))
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                branches = [self.shape((*path, keyword, index), inner) for index, inner in enumerate(node[keyword])]
                shape = self.algebra.meet(shape, self.algebra.join_all(branches))
        if "then" in node or "else" in node:
            shape = self.algebra.meet(shape, self._conditional(path, node))
        if "not" in node:
            shape = _without(shape, node["not"])
        if "unevaluatedProperties" in node:
            shape = self.algebra.meet(shape, self._evaluated(path, node))
        alternatives = _alternatives(node)
        if alternatives:
            said = shape.notes.get("description", "")
            shape = Shape(shape.kinds, {**shape.notes, "description": f"{said} {alternatives}".strip()})
        return shape

    def _conjuncts(self, path: Path, node: dict[str, Json]) -> Iterator[tuple[Path, Json]]:
        """The schemas that judge the same value whatever it is."""
        if "$ref" in node:
            target = resolve(self._document, node["$ref"])
            if not isinstance(target, str):
                yield target
        for index, inner in enumerate(node.get("allOf", ())):
            yield (*path, "allOf", index), inner

    def _conditional(self, path: Path, node: dict[str, Json]) -> Shape:
        """`if` and `then`, or `else`: a value for which `else` decides may be any value."""
        if "if" not in node:
            return ANYTHING
        sides = {word: self.shape((*path, word), node.get(word, True)) for word in ("if", "then", "else")}
        return self.algebra.join(self.algebra.meet(sides["if"], sides["then"]), sides["else"])

    def _evaluated(self, path: Path, node: dict[str, Json]) -> Shape:
        """What `unevaluatedProperties` says: each property is one that some schema in place declares, or fits it."""
        declared: dict[str, list[Shape]] = {}
        others = [self.shape((*path, "unevaluatedProperties"), node["unevaluatedProperties"])]
        for at, inner in self._in_place(path, node):
            for name, schema in inner.get("properties", {}).items():
                declared.setdefault(name, []).append(self.shape((*at, "properties", name), schema))
            for pattern, schema in inner.get("patternProperties", {}).items():
                others.append(self.shape((*at, "patternProperties", pattern), schema))
            for word in ("additionalProperties", "unevaluatedProperties"):
                if word in inner and inner is not node:
                    others.append(self.shape((*at, word), inner[word]))
        if "additionalProperties" in node:
            others.append(self.shape((*path, "additionalProperties"), node["additionalProperties"]))
        rest = self.algebra.join_all(others)
        properties = {name: self.algebra.join_all([*shapes, rest]) for name, shapes in declared.items()}
        return shape_of({**ANYTHING.kinds, "object": freed(Kind(properties=properties, rest=_said(rest)))})

    def _in_place(self, path: Path, node: dict[str, Json]) -> Iterator[tuple[Path, dict[str, Json]]]:
        """Every schema that may evaluate properties of the same value, the schema itself first."""
        waiting: list[tuple[Path, Json]] = [(path, node)]
        seen: set[Path] = set()
        while waiting:
            at, inner = waiting.pop()
            if at in seen or not isinstance(inner, dict):
                continue
            seen.add(at)
            yield at, inner
            waiting += self._conjuncts(at, inner)
            for word in ("anyOf", "oneOf"):
                waiting += [((*at, word, index), branch) for index, branch in enumerate(inner.get(word, ()))]
            waiting += [((*at, word), inner[word]) for word in ("if", "then", "else") if word in inner]
            dependent = inner.get("dependentSchemas", {})
            waiting += [((*at, "dependentSchemas", name), schema) for name, schema in dependent.items()]

    def _own(self, path: Path, node: dict[str, Json]) -> Shape:
        """What a schema's own plain keywords say."""
        kinds = _typed(node)
        for name, (low, high) in _BOUNDS.items():
            if name in kinds:
                kinds[name] = replace(kinds[name], low=_least(node.get(low)), high=_limit(node.get(high)))
        if "number" in kinds:
            kinds["number"] = _number(kinds["number"], node)
        for name, words in _WORDS.items():
            said = {word: node[word] for word in words if node.get(word, False) is not False}
            if name in kinds and said:
                kinds[name] = replace(kinds[name], words={**kinds[name].words, **said})
        if "array" in kinds:
            kinds["array"] = self._array(kinds["array"], path, node)
        if "object" in kinds:
            kinds["object"] = self._object(kinds["object"], path, node)
        notes: dict[str, Json] = {word: node[word] for word in ("description", "default") if word in node}
        shape = shape_of({name: freed(kind) for name, kind in kinds.items()}, notes)
        for values in ([node["const"]] if "const" in node else None, node.get("enum")):
            if values is not None:
                shape = self.algebra.meet(shape, _members(values))
        return shape

    def _array(self, kind: Kind, path: Path, node: dict[str, Json]) -> Kind:
        prefix = [
            self.shape((*path, "prefixItems", index), item) for index, item in enumerate(node.get("prefixItems", ()))
        ]
        rest = self.shape((*path, "items"), node.get("items", True))
        low, high = kind.low, kind.high
        if rest.is_nothing and (high is None or high[0] > len(prefix)):
            high = (len(prefix), False)
        if "contains" in node:  # that many items at least; which ones is not said
            low = _least(max(node.get("minContains", 1), low[0] if low else 0))
        return replace(kind, low=low, high=high, items=_said(self.algebra.join_all([*prefix, rest])))

    def _object(self, kind: Kind, path: Path, node: dict[str, Json]) -> Kind:
        named = node.get("properties", {})
        properties = {name: self.shape((*path, "properties", name), inner) for name, inner in named.items()}
        rest = self.shape((*path, "additionalProperties"), node.get("additionalProperties", True))
        for pattern, inner in node.get("patternProperties", {}).items():
            rest = self.algebra.join(rest, self.shape((*path, "patternProperties", pattern), inner))
        kind = replace(kind, properties=properties, required=tuple(node.get("required", ())), rest=_said(rest))
        names = self.shape((*path, "propertyNames"), node.get("propertyNames", True)).kinds.get("string")
        if names is None:
            return replace(kind, high=(0, False))
        if names.members is None:
            return kind
        barred = {name: NOTHING for name in properties if name not in names.members}
        return replace(kind, properties={**{name: kind.at(name) for name in names.members}, **barred}, rest=NOTHING)


class _Writing:
    """Writes shapes down as schemas."""

    def __init__(self, shorten: Callable[[str], str]) -> None:
        self._shorten = shorten
        self._sizes: dict[tuple[int, int], int] = {}

    def size(self, shape: Shape, depth: int) -> int:
        """How many schemas it takes to write a shape down to a depth."""
        key = (id(shape), depth)
        if key not in self._sizes:
            inner = (
                held for kind in shape.kinds.values() for held in (*kind.properties.values(), kind.rest, kind.items)
            )
            self._sizes[key] = 1 + sum(self.size(held, depth - 1) for held in inner if held) if depth else 1
        return self._sizes[key]

    def written(self, shape: Shape, depth: int) -> dict[str, Json]:
        """The schema that says a shape, down to a depth and of the types alone there."""
        schema: dict[str, Json] = {}
        types = _types(shape)
        if types is not None:
            schema["type"] = types[0] if len(types) == 1 else types
        if "description" in shape.notes:
            schema["description"] = self._shorten(shape.notes["description"])
        if "default" in shape.notes:
            schema["default"] = shape.notes["default"]
        if depth <= 0:
            return schema
        members = _enum(shape)
        if members is not None:
            schema["enum"] = members
        for name, kind in shape.kinds.items():
            shown = replace(kind, low=None, high=None) if members is not None else bounded(name, kind)
            _write_plain(schema, name, shown)
            if kind.items is not None:
                self._write_items(schema, kind.items, depth)
            if name == "object":
                self._write_object(schema, kind, depth)
        return schema

    def _write_items(self, schema: dict[str, Json], items: Shape, depth: int) -> None:
        if items.is_nothing:
            schema["maxItems"] = 0
        else:
            schema["items"] = self.written(items, depth - 1)

    def _write_object(self, schema: dict[str, Json], kind: Kind, depth: int) -> None:
        properties = {
            name: self.written(inner, depth - 1) for name, inner in kind.properties.items() if not inner.is_nothing
        }
        if properties:
            schema["properties"] = properties
        if kind.required:
            schema["required"] = list(kind.required)
        if kind.rest is not None:
            schema["additionalProperties"] = False if kind.rest.is_nothing else self.written(kind.rest, depth - 1)


def _write_plain(schema: dict[str, Json], name: str, kind: Kind) -> None:
    """Bounds and words; they judge values of their own type alone, so several types stand side by side."""
    for limit, word, strict_word in zip((kind.low, kind.high), *_limit_words(name), strict=True):
        if limit is not None and (limit[0] or word not in _SILENT_AT_0):
            schema[strict_word if limit[1] else word] = limit[0]
    schema.update({word: held for word, held in kind.words.items() if word != "integer"})


def _limit_words(name: str) -> tuple[tuple[str, str], tuple[str, str]]:
    words = _BOUNDS.get(name, ("minimum", "maximum"))
    return words, words if name in _BOUNDS else ("exclusiveMinimum", "exclusiveMaximum")


def _types(shape: Shape) -> list[str] | None:
    """The types of a shape in JSON Schema's words; None where it has all of them."""
    whole = "number" in shape.kinds and bool(bounded("number", shape.kinds["number"]).words.get("integer"))
    if len(shape.kinds) == len(KINDS) and not whole:
        return None
    return ["integer" if name == "number" and whole else name for name in shape.kinds]


def _enum(shape: Shape) -> list[Json] | None:
    """Every value of a shape, where there are few: all of its kinds have members, or few values by nature."""
    few: Mapping[str, tuple[Json, ...]] = {"null": (None,), "boolean": (False, True)}
    if all(kind.members is None for kind in shape.kinds.values()):
        return None
    members: list[Json] = []
    for name, kind in shape.kinds.items():
        found = kind.members if kind.members is not None else few.get(name)
        if found is None:
            return None
        members += found
    return members


def _typed(node: dict[str, Json]) -> dict[str, Kind]:
    """The kinds that a schema's `type` names."""
    written = node.get("type", TYPES)
    types = [written] if isinstance(written, str) else written
    kinds = {name: Kind() for name in KINDS if name in types}
    if "integer" in types and "number" not in types:
        kinds["number"] = Kind(words={"integer": True})
    return kinds


def _members(values: list[Json]) -> Shape:
    by_kind: dict[str, list[Json]] = {}
    for value in values:
        by_kind.setdefault(kind_of(value), []).append(value)
    return shape_of({name: Kind(members=tuple(held)) for name, held in by_kind.items()})


def _number(kind: Kind, node: dict[str, Json]) -> Kind:
    low, high = _limit(node.get("minimum")), _limit(node.get("maximum"))
    strict_low, strict_high = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    if strict_low is not None and (low is None or strict_low >= low[0]):
        low = (strict_low, True)
    if strict_high is not None and (high is None or strict_high <= high[0]):
        high = (strict_high, True)
    return replace(kind, low=low, high=high)


def _limit(value: Json) -> Limit | None:
    return None if value is None else (value, False)


def _least(value: Json) -> Limit | None:
    """A lower bound on a size; 0 says nothing."""
    return _limit(value) if value else None


def _said(shape: Shape) -> Shape | None:
    return None if shape.is_anything else shape


def _without(shape: Shape, refused: Json) -> Shape:
    """A shape without what `not` refuses, where that is a type or some values; what it holds is never widened."""
    if not isinstance(refused, dict):
        return shape if refused is False else NOTHING
    words = [word for word in refused if word not in ANNOTATIONS]
    if not words:
        return NOTHING
    if words == ["type"]:
        types = [refused["type"]] if isinstance(refused["type"], str) else refused["type"]
        whole = "number" in shape.kinds and shape.kinds["number"].words.get("integer")
        gone = {"number" if name == "integer" and whole else name for name in types}
        return Shape({name: kind for name, kind in shape.kinds.items() if name not in gone}, shape.notes)
    if words not in (["const"], ["enum"]):
        return shape
    values = {mark(value) for value in (refused["enum"] if "enum" in refused else [refused["const"]])}
    few: Mapping[str, tuple[Json, ...]] = {"null": (None,), "boolean": (False, True)}
    kinds: dict[str, Kind] = {}
    for name, kind in shape.kinds.items():
        members = kind.members if kind.members is not None else few.get(name)
        left = None if members is None else tuple(member for member in members if mark(member) not in values)
        kinds[name] = (
            kind if members is None or left is None or len(left) == len(members) else replace(kind, members=left)
        )
    return shape_of(kinds, shape.notes)


def _alternatives(node: dict[str, Json]) -> str | None:
    """One sentence for a choice between arguments, which no plain keyword can say."""
    for keyword, start in (("oneOf", "Exactly one of"), ("anyOf", "At least one of")):
        branches = node.get(keyword, ())
        wanted = [branch.get("required", ()) if isinstance(branch, dict) else () for branch in branches]
        shared = set(wanted[0]).intersection(*wanted) if wanted else set()
        apart = [[name for name in names if name not in shared] for names in wanted]
        if len(apart) > 1 and all(apart):
            return f"{start}: {' | '.join(' with '.join(names) for names in apart)}."
    return None
