"""What one document is compiled to, shared by all schemas with the same text. The only file that runs jsonschema-rs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

import jsonschema_rs

from gateway.json_pointer import pointer_of
from gateway.schema.complete import Completing
from gateway.schema.cut import Cutting, Place
from gateway.schema.explain import not_json, violations_of
from gateway.schema.keywords import ANNOTATIONS, KNOWN, MANY, NAMED, ONE, Path, subschemas
from gateway.schema.pattern import translate
from gateway.schema.place import Document, Part
from gateway.schema.secret import Secrets
from gateway.schema.violation import SchemaFault, Violation

#: A validator takes some fifteen times its document's text. One that is larger than this is compiled at load to
#: prove that it can be, and once more when its first value comes: thousands of endpoints, of which few are called.
_SMALL = 2048

#: Keywords that hold what a value may have to choose.
_CHOSEN = frozenset(("anyOf", "oneOf", "if", "contains"))

_engines: WeakValueDictionary[tuple[str, bytes], Engine] = WeakValueDictionary()


def engine_for(document: Any, formats: str) -> Engine | tuple[SchemaFault, ...]:
    """The engine of a document without faults; the same one for the same text while it is in use."""
    try:
        text = json.dumps(document, allow_nan=False).encode()
        key = formats, hashlib.blake2b(text, digest_size=16).digest()
        known = _engines.get(key)
        if known is None:
            known = _engines[key] = Engine(document, formats, keep=len(text) <= _SMALL)
    except (jsonschema_rs.ValidationError, ValueError) as fault:
        return (SchemaFault((), f"the schema cannot be compiled: {getattr(fault, 'message', fault)}"),)
    return known


class Engine:
    """A validator and what is made beside it when first asked for."""

    def __init__(self, document: Any, formats: str, *, keep: bool) -> None:
        self.document = document
        self.formats = formats
        validator = _compiled(_spelled(document), formats)
        if keep:
            self._validator = validator
        self._places: dict[Path, str] = {}
        self._keys: dict[str, jsonschema_rs.Validator] = {}

    def valid(self, value: Any) -> bool:
        try:
            return self._validator.is_valid(value)
        except ValueError:  # no JSON value
            return False

    def check(self, value: Any, limit: int) -> list[Violation]:
        try:
            if self._validator.is_valid(value):
                return []
            return violations_of(self._validator.iter_errors(value), self.document, value, limit)
        except ValueError:
            fault = not_json(value)
            if fault is None:
                raise
            return [fault]

    def cut(self, value: Any) -> Any:
        root = self._root
        return value if root is None else root.cut(value)

    def drops_all_of(self, full: Engine) -> bool:
        return self._cutting.drops_all_of(full._cutting)

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return _compiled(_spelled(self.document), self.formats)

    @cached_property
    def places(self) -> Document:
        return Document(self.document)

    @cached_property
    def completing(self) -> Completing:
        return Completing(self.places)

    @cached_property
    def secrets(self) -> Secrets:
        return Secrets(self.places)

    @cached_property
    def _cutting(self) -> Cutting:
        return Cutting(self.places, self._fits, self._matches)

    @cached_property
    def _root(self) -> Place | None:
        return self._cutting.root()

    @cached_property
    def _switch(self) -> jsonschema_rs.Validator:
        """All branches in one validator: `{place: value}` asks whether the value fits the schema at that place.

        One validator for each would compile what they share again and again, and takes a gigabyte for a few hundred
        definitions that refer to each other.
        """
        registry = jsonschema_rs.Registry([("urn:document", _spelled(self.document))])
        branches = {place: {"$ref": "urn:document#" + quote(place)} for place in _branches(self.document)}
        return jsonschema_rs.Draft202012Validator({"properties": branches}, registry=registry, **_options(self.formats))

    def _fits(self, part: Part, value: Any) -> bool:
        place = self._places.get(part.path)
        if place is None:
            place = self._places[part.path] = _place(part.path)
        try:
            return self._switch.is_valid({place: value})
        except ValueError:
            return False

    def _matches(self, pattern: str, key: str) -> bool:
        known = self._keys.get(pattern)
        if known is None:
            known = self._keys[pattern] = _compiled({"pattern": translate(pattern)}, "annotate")
        try:
            return known.is_valid(key)
        except ValueError:
            return False


def _branches(document: Any) -> Iterator[str]:
    """The places of all schemas that a value may have to choose."""
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, node = waiting.pop()
        for at, inner in subschemas(node, path):
            if at[len(path)] in _CHOSEN:
                yield _place(at)
            waiting.append((at, inner))


def _place(path: Path) -> str:
    """The pointer of a schema in the document as the engine reads it."""
    written: list[str | int] = []
    map_of: str | int | None = None
    for part in path:
        written.append(_pattern(str(part)) if map_of == "patternProperties" else part)
        map_of = part if map_of is None and part in NAMED else None
    return pointer_of(written)


def _options(formats: str) -> dict[str, Any]:
    return {
        "pattern_options": jsonschema_rs.RegexOptions(),
        "offline": True,
        "validate_formats": formats == "assert",
    }


def _compiled(document: Any, formats: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(document, **_options(formats))


def _spelled(node: Any) -> Any:
    """The document as the engine is to read it: its own spelling of patterns, nothing that judges no value."""
    if not isinstance(node, dict):
        return node
    written: dict[str, Any] = {}
    for keyword, held in node.items():
        if keyword in ONE:
            held = _spelled(held)
        elif keyword in MANY:
            held = [_spelled(item) for item in held]
        elif keyword in NAMED:
            held = {
                _pattern(name) if keyword == "patternProperties" else name: _spelled(item)
                for name, item in held.items()
            }
        elif keyword == "pattern":
            held = _pattern(held)
        elif keyword in ANNOTATIONS or keyword not in KNOWN:
            continue
        written[keyword] = held
    return written


def _pattern(pattern: str) -> str:
    spelled = translate(pattern)
    assert isinstance(spelled, str), "a document with such a pattern is refused"
    return spelled
