"""Schemas of a description as JSON Schema 2020-12, shared ones by name. Knows no operation and no contract key.

Null of OpenAPI 3.0 is read as meant (docs/decisions/0074); one schema becomes two where `readOnly` or `writeOnly` makes
a request and an answer differ (0071).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from gateway import json_text
from gateway.authoring.openapi.description import Description, Node
from gateway.authoring.openapi.sound import is_short, is_sound, types_of
from gateway.contract.refusal import Path, quoted
from gateway.record import record
from gateway.schema import Schema, compile_schema
from gateway.schema.keywords import MANY, NAMED, ONE

Json = Any
Direction = Literal["input", "output"]


class Key(NamedTuple):
    """A shared schema: where it is written, for which direction, and whether it stands in for its own base."""

    file: str
    path: Path
    direction: Direction
    #: Without its `oneOf` and `anyOf`, for a subtype that names it under `allOf`.
    base: bool = False


@record
class Flat:
    """An object whose properties can stand by themselves."""

    properties: dict[str, Node]
    required: frozenset[str]
    description: str | None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What judges no value, or is read elsewhere.
_QUIET = _words(
    "$schema $id $comment $anchor $dynamicAnchor $recursiveAnchor $vocabulary id xml externalDocs readOnly writeOnly"
    " nullable discriminator example examples default $defs definitions dependencies additionalItems required"
    " collectionFormat deprecated allowEmptyValue"
)
_COMPOSING = _words(
    "allOf anyOf oneOf not if then else $ref dependentSchemas patternProperties additionalProperties"
    " unevaluatedProperties propertyNames"
)
_COMPOSING_TOO = _COMPOSING - {"additionalProperties", "unevaluatedProperties", "propertyNames"}
#: Beside or around a schema, these judge the same value.
_JUDGING_TOO = _words("allOf anyOf oneOf not if then else dependentSchemas")
#: All that an object may say and still be only a list of its properties.
_FLAT = _words(
    "type properties required allOf $ref description title example examples xml externalDocs readOnly writeOnly"
    " deprecated default additionalProperties nullable x-nullable"
)
_MOST_MEMBERS = 200


@dataclass
class Translator:
    """The schemas of one description, translated as they are asked for."""

    description: Description
    dialect: Literal["2.0", "3.0", "3.1"]
    done: dict[Key, Json] = field(default_factory=dict)
    _waiting: list[Key] = field(default_factory=list)

    # what endpoints ask for

    def schema(
        self, node: Node, direction: Direction, *, keep_default: bool = False, skip: frozenset[str] = frozenset()
    ) -> Json:
        """A schema where it stands, a `Key` under `$ref` for each shared one; keys in `skip` say nothing."""
        found = self._schema(node, direction, keep_default=keep_default, skip=skip)
        self._translate_waiting()
        return found

    def flat(self, node: Node) -> Flat | None:
        """The properties of an object, its `allOf` included; None where it is more than that."""
        properties: dict[str, Node] = {}
        required: set[str] = set()
        said: list[str] = []
        declared = False
        waiting, steps = [node], 0
        while waiting:
            found, steps = self.description.follow(waiting.pop(0)), steps + 1
            if found is None or not isinstance(found.value, dict) or steps > _MOST_MEMBERS:
                return None
            value = found.value
            if any(key not in _FLAT and not key.startswith("x-") for key in value) or self._allows_null(value):
                return None
            if (
                value.get("type", "object") not in ("object", ["object"])
                or value.get("additionalProperties", False) is not False
            ):
                return None
            declared = declared or isinstance(value.get("properties"), dict)
            for name, each in found.get("properties").items():
                if properties.get(name, each) != each:
                    return None
                properties[name] = each
            names = value.get("required")
            required |= {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
            said += [text] if (text := found.text("description")) else []
            waiting += found.get("allOf").each()
        if not properties and not declared:
            return None
        shown = {name: each for name, each in properties.items() if not self._is_hidden(each, "input")}
        return Flat(shown, frozenset(required & shown.keys()), said[0] if said else None)

    def types(self, node: Node | None) -> frozenset[str]:
        """The JSON types that a schema allows, as far as it says; empty where it does not."""
        found = None if node is None else self.description.follow(node)
        if found is None or not isinstance(found.value, dict):
            return frozenset()
        types = types_of(found.value)
        if not types:
            members = [each for key in ("allOf", "oneOf", "anyOf") for each in found.get(key).each()]
            followed = [self.description.follow(each) for each in members[:_MOST_MEMBERS]]
            types = {name for each in followed if each is not None for name in types_of(each.value)}
        return frozenset(types - {"null"})

    def items(self, node: Node | None) -> Node | None:
        """What a list is made of."""
        found = None if node is None else self.description.follow(node)
        return (
            found.get("items")
            if found is not None and isinstance(found.value, dict) and "items" in found.value
            else None
        )

    def is_file(self, node: Node | None) -> bool:
        """Whether a value is bytes that are no text."""
        found = None if node is None else self.description.follow(node)
        if found is None or not isinstance(found.value, dict):
            return False
        value = found.value
        if value.get("type") == "array":
            inner = self.description.follow(found.get("items"))
            value = inner.value if inner is not None and isinstance(inner.value, dict) else {}
        media = self.dialect == "3.1" and isinstance(value.get("contentMediaType"), str)
        octets = media and "contentEncoding" not in value
        return value.get("format") == "binary" or value.get("type") == "file" or octets

    def want(self, key: Key) -> None:
        """Have one shared schema translated, and what it refers to."""
        self._waiting.append(key)
        self._translate_waiting()

    # one schema

    def _translate_waiting(self) -> None:
        while self._waiting:
            key = self._waiting.pop()
            if key not in self.done:
                skipped: frozenset[str] = frozenset(("oneOf", "anyOf")) if key.base else frozenset()
                self.done[key] = self._schema(self.node(key), key.direction, skip=skipped)

    def node(self, key: Key) -> Node:
        return self.description.file(key.file).get(*key.path)

    def _note(self, node: Node, key: str | None, sentence: str) -> None:
        self.description.notes.add((node if key is None else node.get(key)).place, sentence)

    def _schema(
        self,
        node: Node,
        direction: Direction,
        *,
        keep_default: bool = False,
        skip: frozenset[str] = frozenset(),
        alone: bool = True,
    ) -> Json:
        """`alone`: no other schema around judges the same value."""
        value = node.value
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            self._note(node, None, "this is no schema; any value is allowed here")
            return {}
        if isinstance(value.get("$ref"), str):
            reference = self._reference(node, direction)
            if self.dialect != "3.1":  # Reference Object: what stands beside a `$ref` says nothing
                said = {"description": value["description"]} if node.text("description") else {}
                if value.get("x-nullable") is True and reference:
                    return {"anyOf": [reference, {"type": "null"}], **said}
                return {**reference, **said}
            rest = Node({key: held for key, held in value.items() if key != "$ref"}, node.file, node.path)
            return {**reference, **self._keywords(rest, direction, keep_default, skip, alone=False)}
        return self._keywords(node, direction, keep_default, skip, alone=alone)

    def _reference(self, node: Node, direction: Direction) -> dict[str, Json]:
        reference = node.value["$ref"]
        target = self.description.target(reference, node.file)
        if isinstance(target, str):
            self._note(node, "$ref", f"{target}; any value is allowed here")
            return {}
        if not isinstance(target.value, (dict, bool)):
            self._note(node, "$ref", f"{quoted(reference)} names no schema; any value is allowed here")
            return {}
        key = Key(target.file, target.path, direction)
        self._waiting.append(key)
        return {"$ref": key}

    def _keywords(
        self, node: Node, direction: Direction, keep_default: bool, skip: frozenset[str], *, alone: bool
    ) -> Json:
        written: dict[str, Json] = {}
        alone = alone and _JUDGING_TOO.isdisjoint(node.value)
        for key, held in node.value.items():
            if key in skip or key in _QUIET or key.startswith("x-"):
                continue
            self._keyword(written, node, key, held, direction, alone)
        self._older_drafts(written, node, direction)
        self._required(written, node, direction, alone)
        self._bounds(written)
        self._annotations(written, node, keep_default)
        self._open_tail(written)
        return _with_null(written) if self._allows_null(node.value) else written

    def _keyword(
        self, written: dict[str, Json], node: Node, key: str, held: Json, direction: Direction, alone: bool
    ) -> None:
        at = node.get(key)
        if key in ONE:
            if key == "items" and isinstance(held, list):  # a list of schemas, in drafts before 2020-12
                written["prefixItems"] = [self._schema(each, direction, alone=alone) for each in at.each()]
            elif isinstance(held, (dict, bool)):
                written[key] = self._schema(at, direction, alone=alone)
            else:
                self._drop(node, key)
        elif key in MANY:
            if isinstance(held, list) and held:
                written[key] = [self._schema(each, direction, alone=alone) for each in at.each()]
            else:
                self._drop(node, key)
        elif key in NAMED:
            if not isinstance(held, dict):
                self._drop(node, key)
                return
            written[key] = {
                name: self._schema(each, direction, alone=alone)
                for name, each in at.items()
                if not (key == "properties" and self._is_hidden(each, direction))
                and not (key == "patternProperties" and not self._pattern(each, name))
            }
        elif (sound := is_sound(key, held)) is not None:
            if sound and (key != "pattern" or self._pattern(at, held)):
                written[key] = held
            elif not sound:
                self._drop(node, key)
        else:
            self._note(node, key, f"`{key}` is no keyword of JSON Schema 2020-12 that a contract has; it is left out")

    def _drop(self, node: Node, key: str) -> None:
        held = node.value[key]
        if held is None or (isinstance(held, str) and not held.strip()) or (key == "type" and held == "file"):
            return
        self._note(node, key, f"`{key}` has a value that it cannot have ({quoted(held)}); it is left out")

    def _pattern(self, at: Node, pattern: str) -> bool:
        compiled = compile_schema({"pattern": pattern})
        if isinstance(compiled, Schema):
            return True
        self.description.notes.add(at.place, f"{compiled[0].message}; the pattern is left out")
        return False

    def _older_drafts(self, written: dict[str, Json], node: Node, direction: Direction) -> None:
        for name, held in node.get("dependencies").items():
            if isinstance(held.value, list) and all(isinstance(each, str) for each in held.value):
                written.setdefault("dependentRequired", {})[name] = list(dict.fromkeys(held.value))
            else:
                written.setdefault("dependentSchemas", {})[name] = self._schema(held, direction)
        if "prefixItems" in written and isinstance(node.value.get("additionalItems"), (dict, bool)):
            written.setdefault("items", self._schema(node.get("additionalItems"), direction))

    def _required(self, written: dict[str, Json], node: Node, direction: Direction, alone: bool) -> None:
        """`required` counts for what this direction has (0071); a closed object declares what it requires."""
        names = node.value.get("required")
        if not isinstance(names, list):
            if names is not None and not isinstance(names, bool):
                self._drop(node, "required")
            return
        hidden = {name for name, each in node.get("properties").items() if self._is_hidden(each, direction)}
        kept = list(dict.fromkeys(name for name in names if isinstance(name, str) and name not in hidden))
        if False in (
            written.get("additionalProperties"),
            written.get("unevaluatedProperties"),
        ) and _COMPOSING_TOO.isdisjoint(written):
            for name in [name for name in kept if name not in written.get("properties", {})]:
                self._note(
                    node, "required", f"{quoted(name)} is required and forbidden at once; it is no longer required"
                )
                kept.remove(name)
        if kept:
            written["required"] = kept
        if alone and written.get("properties") and _COMPOSING.isdisjoint(written):
            for name in kept:
                if name not in written["properties"]:
                    self._note(node, "required", f"{quoted(name)} is required and not described; any value is allowed")
                    written["properties"][name] = {}

    def _bounds(self, written: dict[str, Json]) -> None:
        """A true beside a bound is the bound that excludes itself; drafts before 6."""
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(written.get(exclusive), bool) and written.pop(exclusive) and bound in written:
                written[exclusive] = written.pop(bound)

    def _annotations(self, written: dict[str, Json], node: Node, keep_default: bool) -> None:
        if node.value.get("deprecated") is True:
            written["deprecated"] = True
        default = node.value.get("default")
        if default is not None:
            # A contract's `default` is sent where nothing is passed; in a body that would change what is not meant.
            if keep_default:
                written["default"] = default
            elif is_short(default):
                words = f"Default: {json_text.encode(default).decode()}."
                written["description"] = f"{written.get('description', '').strip()} {words}".strip()
        examples = node.value.get("examples")
        sample = examples if isinstance(examples, list) else [node.value["example"]] if "example" in node.value else []
        short = [each for each in sample if each is not None and is_short(each)]
        if short:
            written["examples"] = short[:3]

    def _open_tail(self, written: dict[str, Json]) -> None:
        """Of a list that may be longer than what is said of its first items, the rest is anything."""
        first = written.get("prefixItems")
        if first and "items" not in written and "unevaluatedItems" not in written:
            written["items"] = written.get("maxItems", len(first) + 1) > len(first)

    def _allows_null(self, value: dict[str, Json]) -> bool:
        return (self.dialect == "3.0" and value.get("nullable") is True) or (
            self.dialect != "3.1" and value.get("x-nullable") is True
        )

    def _is_hidden(self, node: Node, direction: Direction) -> bool:
        """Whether a property belongs to the other direction alone."""
        word = "readOnly" if direction == "input" else "writeOnly"
        value = node.value
        if isinstance(value, dict) and isinstance(value.get("$ref"), str) and value.get(word) is not True:
            target = self.description.target(value["$ref"], node.file)
            value = None if isinstance(target, str) else target.value
        return isinstance(value, dict) and value.get(word) is True


def _with_null(written: dict[str, Json]) -> Json:
    """`nullable: true` as those who write it mean it: null is allowed, whatever stands beside."""
    if not any(key in written for key in (*MANY, "not", "$ref", "const", "if")):
        if "type" not in written and "enum" not in written:
            return written
        if isinstance(written.get("type"), str):
            written["type"] = [written["type"], "null"]
        elif "type" in written and "null" not in written["type"]:
            written["type"] = [*written["type"], "null"]
        if "enum" in written and None not in written["enum"]:
            written["enum"] = [*written["enum"], None]
        return written
    if written.keys() <= {"anyOf", "description", "title"}:
        return {**written, "anyOf": [*written["anyOf"], {"type": "null"}]}
    outside = {key: written.pop(key) for key in ("title", "description", "default") if key in written}
    return {"anyOf": [written, {"type": "null"}], **outside}
