"""Schema documents as interned nodes, so that equal subschemas are one object; judges no value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from gateway.json_text import encode
from gateway.record import record
from gateway.schema.keywords import ANNOTATIONS
from gateway.schema.resolve import resolve

KINDS = ("object", "array", "string", "number", "boolean", "null")

# Keywords that bind a value in jsonschema-rs's 2020-12 and that this engine does not model. `dependencies` is not of
# 2020-12, yet the validator honours it; `format` joins them where formats are asserted.
_OPAQUE = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef", "dependencies"})
#: A keyword of the engine's own: something that is neither known to hold nor to be broken; its value says why.
DOUBT = "toolview:doubt"

_DEFINITIONS = ("$defs", "definitions")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_EVALUATING = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "contains"}
)
_BRANCHES = ("allOf", "anyOf", "oneOf")


class Unclear(Exception):
    """The document leaves the ground this engine stands on; the text says where."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One subschema: its asserting keywords, children already nodes. Interned by its graph, so identity is equality."""

    words: Mapping[str, Any]
    #: Kept by `Fact`, so that there is one fact of each kind.
    facts: dict[bool, Any] = field(default_factory=dict)


_SHALLOW = frozenset({"type", "enum", "const", "false", "pattern", "minLength", "maxLength", *_NUMBERS})


def shallow(node: Node) -> bool:
    """Whether a node speaks of a value without its parts, so that a question about it costs next to nothing."""
    return _SHALLOW.issuperset(node.words)


@record
class Properties:
    """`properties`, `patternProperties` and `additionalProperties` of one schema: they only have a meaning together."""

    named: tuple[tuple[str, Node], ...]
    patterns: tuple[tuple[str, Node], ...]
    other: Node

    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.named)


@record
class Items:
    """`prefixItems` and `items` of one schema."""

    prefix: tuple[Node, ...]
    rest: Node


@record
class Contains:
    """`contains` with its two counts."""

    node: Node
    low: int
    high: int | None


@record
class Values:
    """The members of an `enum` or `const`, and what they are compared by."""

    members: tuple[Any, ...]
    marks: frozenset[Any]

    @staticmethod
    def of(members: Iterable[Any]) -> Values:
        listed = tuple(members)
        return Values(listed, frozenset(mark(member) for member in listed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and self.marks == other.marks

    def __hash__(self) -> int:
        return hash(self.marks)


def exact(number: Any) -> Fraction:
    """The number that a JSON text spells: a double stands for its shortest spelling, as in jsonschema-rs."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def kind_of(value: Any) -> str:
    """Which of the six JSON types a value has."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def mark(value: Any) -> Any:
    """A hashable stand-in for a JSON value: equal exactly where JSON Schema calls the values equal."""
    kind = kind_of(value)
    if kind == "object":
        return ("object", frozenset((key, mark(item)) for key, item in value.items()))
    if kind == "array":
        return ("array", tuple(mark(item) for item in value))
    return (kind, exact(value) if kind == "number" else value)


@runtime_checkable
class Written(Protocol):
    """A document that is only written as far as its references are followed."""

    root: Any

    def target(self, reference: str) -> Any: ...


class Graph:
    """The documents of one question, read as far as it asks."""

    def __init__(self, documents: Iterable[Any], *, assert_formats: bool = False) -> None:
        self._documents = list(documents)
        self._assert_formats = assert_formats
        self._interned: dict[Any, Node] = {}
        self._seen: dict[tuple[int, int], Node] = {}
        self._targets: dict[tuple[int, str], Node] = {}
        self._kept: list[Any] = []
        self._shared = _shared_definitions(self._documents)
        self.anything = self.make({})
        self.nothing = self.make(False)

    def root(self, index: int) -> Node:
        document = self._documents[index]
        return self._node(document.root if isinstance(document, Written) else document, index)

    def make(self, schema: Any) -> Node:
        """A node of the engine's own, without references."""
        self._kept.append(schema)
        return self._node(schema, -1)

    def any_of(self, branches: tuple[Node, ...]) -> Node:
        return self._intern({"anyOf": branches})

    def values(self, members: Iterable[Any]) -> Node:
        return self._intern({"enum": Values.of(members)})

    def plain(self, node: Node) -> Node:
        """The node at the end of references that stand alone."""
        for _ in range(100):
            if node.words.keys() != {"$ref"}:
                return node
            node = self.target(node.words["$ref"])
        raise Unclear("a reference leads back to itself before any value is read")

    def target(self, reference: tuple[int, str]) -> Node:
        """The node a `$ref` leads to."""
        found = self._targets.get(reference)
        if found is None:
            index, pointer = reference
            document = self._documents[index]
            schema = document.target(pointer) if isinstance(document, Written) else _at(document, pointer)
            found = self._node(schema, index)
            self._targets[reference] = found
        return found

    def _node(self, schema: Any, index: int) -> Node:
        if isinstance(schema, bool):
            return self._intern({} if schema else {"false": True})
        if not isinstance(schema, dict):
            raise Unclear("a schema is neither an object nor a boolean")
        key = (id(schema), index)
        found = self._seen.get(key)
        if found is None:
            found = self._intern(self._words(schema, index))
            self._seen[key] = found
        return found

    def _intern(self, words: dict[str, Any]) -> Node:
        key = tuple(sorted(words.items(), key=lambda item: item[0]))
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = Node(words)
        return found

    def _words(self, schema: dict[str, Any], index: int) -> dict[str, Any]:
        words: dict[str, Any] = {}
        at_root = index >= 0 and schema is self._documents[index]
        schema = _evaluated(schema)
        if ("$id" in schema and not at_root) or "$vocabulary" in schema:
            raise Unclear("an `$id` inside the schema moves what its references mean")
        if "$ref" in schema:
            words["$ref"] = self._reference(schema["$ref"], index)
        if "type" in schema:
            types = schema["type"]
            words["type"] = frozenset([types] if isinstance(types, str) else types)
        if "enum" in schema:
            words["enum"] = Values.of(schema["enum"])
        if "const" in schema:
            words["const"] = Values.of([schema["const"]])
        words.update((word, exact(schema[word])) for word in _NUMBERS if word in schema)
        words.update((word, int(schema[word])) for word in _COUNTS if word in schema)
        for word in _BRANCHES:
            if word in schema:
                words[word] = tuple(self._node(branch, index) for branch in schema[word])
        if DOUBT in schema:
            words[DOUBT] = schema[DOUBT]
        if "pattern" in schema:
            words["pattern"] = schema["pattern"]
        if "format" in schema and self._assert_formats:
            words["format"] = schema["format"]
        if schema.get("uniqueItems") is True:
            words["uniqueItems"] = True
        if schema.get("required"):
            words["required"] = tuple(dict.fromkeys(schema["required"]))
        for word in ("not", "propertyNames"):
            if word in schema:
                words[word] = self._node(schema[word], index)
        words.update(self._grouped(schema, index))
        for word in _OPAQUE.intersection(schema):
            # Its meaning hangs on its siblings, so it is only ever equal within one whole schema.
            said = {key: part for key, part in schema.items() if key not in ANNOTATIONS and key not in _DEFINITIONS}
            text = json.dumps(said, sort_keys=True)
            words[word] = (index if '"$ref"' in text else -1, text)
        return words

    def _grouped(self, schema: dict[str, Any], index: int) -> Iterator[tuple[str, Any]]:
        def node(part: Any) -> Node:
            return self._node(part, index)

        if not schema.keys().isdisjoint(("properties", "patternProperties", "additionalProperties")):
            named = tuple((name, node(part)) for name, part in schema.get("properties", {}).items())
            patterns = tuple((text, node(part)) for text, part in schema.get("patternProperties", {}).items())
            yield "properties", Properties(named, patterns, node(schema.get("additionalProperties", True)))
        if "prefixItems" in schema or "items" in schema:
            prefix = tuple(node(part) for part in schema.get("prefixItems", ()))
            yield "items", Items(prefix, node(schema.get("items", True)))
        if "contains" in schema:
            high = schema.get("maxContains")
            counts = (int(schema.get("minContains", 1)), None if high is None else int(high))
            yield "contains", Contains(node(schema["contains"]), *counts)
        if "if" in schema and ("then" in schema or "else" in schema):
            yield "if", (node(schema["if"]), node(schema.get("then", True)), node(schema.get("else", True)))
        if schema.get("dependentRequired"):
            yield (
                "dependentRequired",
                tuple((name, tuple(others)) for name, others in schema["dependentRequired"].items()),
            )
        if schema.get("dependentSchemas"):
            yield "dependentSchemas", tuple((name, node(part)) for name, part in schema["dependentSchemas"].items())

    def _reference(self, reference: str, index: int) -> tuple[int, str]:
        name = _definition_name(reference)
        return (0 if name in self._shared and index >= 0 else index, reference)


def _evaluated(schema: dict[str, Any]) -> dict[str, Any]:
    """`unevaluated…` written as the plainer keyword, where nothing beside it could evaluate keys or items."""
    if schema.keys().isdisjoint(_OPAQUE) or not schema.keys().isdisjoint(_EVALUATING):
        return schema
    plainer = dict(schema)
    for word, plain in (("unevaluatedProperties", "additionalProperties"), ("unevaluatedItems", "items")):
        if word in plainer:
            plainer.setdefault(plain, plainer.pop(word))
    return plainer


def _definition_name(reference: str) -> str | None:
    parts = reference.split("/", 3)
    if len(parts) < 3 or parts[1] not in _DEFINITIONS:
        return None
    return f"{parts[1]}/{parts[2]}"


def _at(document: Any, reference: str) -> Any:
    found = resolve(document, reference)
    if isinstance(found, str):
        raise Unclear(f"the reference `{reference}` cannot be resolved: {found}")
    return found[1]


def _shared_definitions(documents: list[Any]) -> frozenset[str]:
    """Definitions that mean the same in every document: equal texts whose references lead to such definitions again."""
    if len(documents) < 2 or not all(isinstance(document, dict) for document in documents):
        return frozenset()
    texts: dict[str, bytes] = {}
    uses: dict[str, set[str | None]] = {}
    for group in _DEFINITIONS:
        first = documents[0].get(group)
        if not isinstance(first, dict):
            continue
        for name, schema in first.items():
            others = [document[group].get(name) for document in documents[1:] if isinstance(document.get(group), dict)]
            if len(others) < len(documents) - 1:
                continue
            text = encode(schema)
            if all(encode(other) == text for other in others):
                texts[f"{group}/{name}"] = text
                uses[f"{group}/{name}"] = {_definition_name(reference) for reference in _references(schema)}
    shared = set(texts)
    while stray := {name for name in shared if not uses[name] <= shared}:
        shared -= stray
    return frozenset(shared)


def _references(schema: Any) -> Iterator[str]:
    # A property named `$ref` or an enum member counts too, which only makes fewer definitions shared.
    if isinstance(schema, dict):
        for key, part in schema.items():
            if key == "$ref" and isinstance(part, str):
                yield part
            else:
                yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)
