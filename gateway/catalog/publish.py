"""A schema as clients are shown it: self-contained, without cycles, readable by their validators. Pure.

What is published may be wider than what the gateway checks, never narrower: a call that the gateway takes must pass a
client's check of its input, and an answer that it gives must pass a client's check of the output. So what a client
could not read is left out, and where leaving out would narrow (under `not`, `if`, `oneOf`) more is left out around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from gateway.catalog.javascript import compiles
from gateway.catalog.positions import DEFINITIONS, every, rebuilt

Json = Any

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Not for readers of a published schema; none of them says anything of a value.
_SILENT = DEFINITIONS | {"$id", "$comment", "nullable", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"}
# What a validator of draft 7 ignores or, for `format` and numbers in doubles, judges in its own way.
_UNPORTABLE = frozenset(
    {
        "unevaluatedItems",
        "unevaluatedProperties",
        "dependentSchemas",
        "dependentRequired",
        "minContains",
        "maxContains",
        "contentSchema",
        "format",
        "multipleOf",
        "uniqueItems",
    }
)
# What every validator knows, and what says something to a reader; of other words some validators have their own idea.
_PORTABLE = frozenset(
    {
        *("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "type", "enum", "const"),
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required"),
        *("minProperties", "maxProperties", "items", "prefixItems", "contains", "minItems", "maxItems"),
        *("minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    }
)
_EXACT_IN_DOUBLES = 2**53
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# Escapes that mean more characters in Python than in JavaScript, so that their opposites mean fewer.
_DIFFERS_IN_PYTHON = re.compile(r"\\(?![dws]|[^A-Za-z0-9])|\[\^[^\]]*\\[dws]")


def published(documents: Sequence[Json], *, portable: bool, wrapped: bool = False) -> dict[str, Json]:
    """The published schema of a value that keeps one of the documents; each is self-contained.

    `portable`: clients check values against it, with engines of different drafts. `wrapped`: the value stands under
    `result` in an object. The root is always literally of type object.
    """
    names: dict[str, Json] = {}
    roots = [_Published(document, names, portable=portable).root() for document in documents]
    shown = roots[0] if len(roots) == 1 else {"anyOf": roots}
    if wrapped:
        root: dict[str, Json] = {"type": "object", "properties": {"result": shown}, "required": ["result"]}
    else:
        root = {"type": "object", **{key: value for key, value in _object(shown).items() if key != "type"}}
    used = _reached(root, names)
    return {**root, "$defs": {name: names[name] for name in names if name in used}} if used else root


def with_default(schema: Json, value: Json) -> dict[str, Json]:
    """A schema that shows a default, also to readers who ignore what stands beside a `$ref`."""
    shown = {**_object(schema), "default": value}
    reference = shown.pop("$ref", None)
    if reference is None:
        return shown
    return {"allOf": [{"$ref": reference}, *shown.pop("allOf", [])], **shown}


class _Published:
    """One document on its way to being published; `definitions` collects what it refers to, by its published name."""

    def __init__(self, document: Json, definitions: dict[str, Json], *, portable: bool) -> None:
        self.document = document
        self.definitions = definitions
        self.portable = portable
        #: By pointer: the published name, and whether the published definition is wider than its source.
        self._known: dict[str, tuple[str, bool]] = {}
        #: References that would close a cycle: from the schema at one pointer to the schema at another.
        self._cuts: set[tuple[str, str]] = set()
        self._here = ""

    def root(self) -> Json:
        shown: Json = True
        for pointer in self._in_order():
            self._here = pointer
            if pointer:
                name = self._new_name(pointer)
                self.definitions[name] = None  # holds the place
                self.definitions[name], widened = self._shown(_at(self.document, pointer))
                self._known[pointer] = (name, widened)
            else:
                shown, _ = self._shown(self.document)
        if isinstance(shown, dict) and isinstance(self.document, dict) and self.document.get("$schema") == _DIALECT:
            return {"$schema": _DIALECT, **shown}
        return shown

    def _in_order(self) -> list[str]:
        """Pointers of every schema that is referred to, referred ones first; references back are noted as cuts."""
        order: list[str] = []
        path = [""]
        waiting = [self._references("")]
        seen = {""}
        while path:
            if not waiting[-1]:
                order.append(path.pop())
                waiting.pop()
                continue
            target = waiting[-1].pop(0)
            if target in path:
                self._cuts.add((path[-1], target))
            elif target not in seen:
                seen.add(target)
                path.append(target)
                waiting.append(self._references(target))
        return order

    def _references(self, pointer: str) -> list[str]:
        found = (schema["$ref"] for schema in every(_at(self.document, pointer)) if isinstance(schema.get("$ref"), str))
        return list(dict.fromkeys(_pointer(reference) for reference in found))

    def _new_name(self, pointer: str) -> str:
        parts = [part for part in pointer.split("/")[1:] if part not in DEFINITIONS]
        wished = re.sub(r"[^A-Za-z0-9_.-]", "_", ".".join(unquote(part) for part in parts))[:64] or "definition"
        name, number = wished, 2
        while name in self.definitions:
            name, number = f"{wished[:60]}_{number}", number + 1
        return name

    def _shown(self, schema: Json) -> tuple[Json, bool]:
        """A schema's published form, and whether that is wider."""
        if not isinstance(schema, dict):
            return schema, False
        shown: dict[str, Json] = {}
        wider: set[str] = set()  # keywords that came out wider
        for keyword, value in schema.items():
            if keyword in _SILENT or keyword == "$schema":
                continue
            if self._unreadable(keyword, value):
                wider.add(keyword)
            elif self.portable and keyword not in _PORTABLE:
                continue
            elif keyword == "$ref":
                self._show_reference(_pointer(value), shown, wider)
            else:
                self._show_keyword(keyword, value, shown, wider)
        if self.portable:
            _show_tuple(schema, shown, wider)
            _show_empty_enum(shown)
            if schema.get("minContains") == 0 and shown.pop("contains", None) is not None:
                wider.add("contains")
            _show_bounds(shown, wider)
        _keep_wider(shown, wider)
        if "default" in shown and "$ref" in shown:
            shown = with_default(shown, shown["default"])
        return shown, bool(wider)

    def _show_reference(self, target: str, shown: dict[str, Json], wider: set[str]) -> None:
        if (self._here, target) not in self._cuts:
            name, is_wider = self._known[target]
            shown["$ref"] = f"#/$defs/{name}"
            if is_wider:
                wider.add("$ref")
            return
        # The cycle ends here; what kind of value it is may still be said.
        wider.add("$ref")
        kind = _object(_at(self.document, target)).get("type")
        if isinstance(kind, str):
            shown.setdefault("type", kind)

    def _show_keyword(self, keyword: str, value: Json, shown: dict[str, Json], wider: set[str]) -> None:
        def change(inner: Json) -> Json:
            published_inner, is_wider = self._shown(inner)
            if is_wider:
                wider.add(keyword)
            return published_inner

        if keyword == "patternProperties" and isinstance(value, dict):
            readable = {pattern: inner for pattern, inner in value.items() if self._readable(pattern)}
            if len(readable) < len(value):
                wider.add("patternProperties keys")
            value = readable
        shown[keyword] = rebuilt(keyword, value, change)
        if keyword == "properties" and isinstance(value, dict):
            # SDKs refuse a whole list over a property whose schema is no object.
            shown[keyword] = {name: _object(inner) for name, inner in shown[keyword].items()}

    def _unreadable(self, keyword: str, value: Json) -> bool:
        """Whether some client would not understand a keyword, or understand another thing."""
        if keyword == "pattern":
            return not self._readable(value)
        return keyword in ("$dynamicRef", "$recursiveRef") or (self.portable and keyword in _UNPORTABLE)

    def _readable(self, pattern: Json) -> bool:
        """Whether every client compiles a pattern and, where it checks answers, takes it to mean no less."""
        if not isinstance(pattern, str) or not compiles(pattern):
            return False
        if not self.portable:
            return True
        if _DIFFERS_IN_PYTHON.search(pattern):
            return False
        try:
            re.compile(pattern)
        except (re.error, OverflowError):
            return False
        return True


def _show_tuple(schema: dict[str, Json], shown: dict[str, Json], wider: set[str]) -> None:
    """`prefixItems` is unknown before 2020-12, and `items` beside it meant every item: each may then be any of them."""
    prefix = shown.pop("prefixItems", None)
    if prefix is None:
        return
    wider.add("prefixItems")
    rest = shown.pop("items", True)
    if rest is False:
        shown["maxItems"] = min(len(prefix), schema.get("maxItems", len(prefix)))
    elif rest is True:
        return
    shown["items"] = {"anyOf": [item for item in (*prefix, rest) if item is not False]}


def _show_empty_enum(shown: dict[str, Json]) -> None:
    """A choice of nothing is refused by some validators; it means that no value fits."""
    if shown.get("enum") == []:
        del shown["enum"]
        shown["allOf"] = [*shown.get("allOf", ()), {"not": {}}]


def _show_bounds(shown: dict[str, Json], wider: set[str]) -> None:
    """A bound that doubles cannot tell from its neighbours must not exclude."""
    for keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        if abs(shown.get(keyword, 0)) >= _EXACT_IN_DOUBLES:
            del shown[keyword]
            wider.add(keyword)


def _keep_wider(shown: dict[str, Json], wider: set[str]) -> None:
    """Take away what a wider neighbour would turn into something narrower."""
    if not wider:
        return
    if "not" in wider:
        del shown["not"]
    if "if" in wider:
        for keyword in ("if", "then", "else"):
            shown.pop(keyword, None)
    if "contains" in wider:
        shown.pop("maxContains", None)
    if "patternProperties keys" in wider:
        shown.pop("additionalProperties", None)
    # What was evaluated may have been among what is gone.
    shown.pop("unevaluatedItems", None)
    shown.pop("unevaluatedProperties", None)
    if "oneOf" in wider:
        branches = {"anyOf": shown.pop("oneOf")}
        if "anyOf" in shown:
            shown["allOf"] = [*shown.get("allOf", ()), branches]
        else:
            shown.update(branches)


def _reached(root: Json, definitions: dict[str, Json]) -> set[str]:
    """The definitions that something still refers to, after all that was left out."""
    used: set[str] = set()
    waiting = [root]
    while waiting:
        for schema in every(waiting.pop()):
            name = schema.get("$ref", "").removeprefix("#/$defs/")
            if name and name not in used:
                used.add(name)
                waiting.append(definitions[name])
    return used


def _object(schema: Json) -> dict[str, Json]:
    """A schema as an object: what `true` and `false` mean."""
    if isinstance(schema, dict):
        return schema
    return {} if schema is True else {"not": {}}


def _pointer(reference: str) -> str:
    return unquote(reference.partition("#")[2])


def _at(document: Json, pointer: str) -> Json:
    found = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found[int(key)] if isinstance(found, list) else found[key]
    return found
