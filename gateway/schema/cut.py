"""Cutting a value down to what its schema declares, compiled once into functions; knows no validator but by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from gateway.schema.place import Choice, Document, Part, opens, spread

#: Gives a value back as it may be shown: the same object where nothing is dropped.
Cut = Callable[[Any], Any]
#: Whether a value fits a part of the document.
Fits = Callable[[Part, Any], bool]
#: Whether a key matches a pattern of `patternProperties`.
Matches = Callable[[str, str], bool]

#: So many combinations of branches are kept compiled per place; a backend cannot fill the memory with more.
_KEPT = 256
_DROP = object()


class Cutting:
    """The cutting functions of one document, each made when its place is first met."""

    def __init__(self, document: Document, fits: Fits, matches: Matches) -> None:
        self._document = document
        self._fits = fits
        self._matches = matches
        self._places: dict[frozenset[Any], Cut] = {}
        self._closing = _lead_to_closed(document.top())

    def root(self) -> Cut | None:
        """The function for the whole document, or None where it can never drop anything."""
        return self._place((self._document.top(),))

    def _place(self, parts: tuple[Part, ...]) -> Cut | None:
        """The function for values that all these parts judge."""
        if not any(part.path in self._closing for part in parts):
            return None
        key = frozenset(part.path for part in parts)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = self._later(parts)
        return known

    def _later(self, parts: tuple[Part, ...]) -> Cut:
        """Compiles at the first object and the first array, so that a schema may lead back to itself."""
        of_object: Cut | None = None
        of_array: Cut | None = None

        def cut(value: Any) -> Any:
            nonlocal of_object, of_array
            if isinstance(value, dict):
                if of_object is None:
                    of_object = self._choosing(parts, frozenset(), "object")
                return of_object(value)
            if isinstance(value, (list, tuple)):
                if of_array is None:
                    of_array = self._choosing(parts, frozenset(), "array")
                return of_array(value)
            return value

        return cut

    def _choosing(self, parts: tuple[Part, ...], settled: frozenset[Choice], kind: str) -> Cut:
        flat, choices = spread(parts, kind)
        open_choices = tuple(choice for choice in choices if choice not in settled)
        if not open_choices:
            return self._object(flat) if kind == "object" else self._array(flat)
        settled |= frozenset(open_choices)
        compiled: dict[tuple[tuple[Part, ...], ...], Cut] = {}

        def cut(value: Any) -> Any:
            chosen = tuple(self._chosen(choice, value) for choice in open_choices)
            known = compiled.get(chosen)
            if known is None:
                more = tuple(part for group in chosen for part in group)
                known = self._choosing((*flat, *more), settled, kind)
                if len(compiled) < _KEPT:
                    compiled[chosen] = known
            return known(value)

        return cut

    def _chosen(self, choice: Choice, value: Any) -> tuple[Part, ...]:
        fits = self._fits
        if choice.kind == "key":
            return choice.parts if choice.key in value else ()
        fitting = tuple(part for part in choice.parts if fits(part, value))
        if choice.kind == "if":
            return (*fitting, *choice.then) if fitting else choice.else_
        # A value that fits no branch is not valid; what no branch declares is still dropped.
        return fitting or choice.parts

    def _object(self, flat: tuple[Part, ...]) -> Cut:
        if not any(_declares(part.node) for part in flat):
            return _whole
        names = dict.fromkeys(name for part in flat for name in part.node.get("properties", ()))
        patterns = tuple(dict.fromkeys(text for part in flat for text in part.node.get("patternProperties", ())))
        matches = self._matches

        def rule(name: str | None, matched: tuple[str, ...]) -> Any:
            """How the value of a key is cut: a function, None where it stays whole, or _DROP."""
            parts: list[Part] = []
            declared = False
            for part in flat:
                own = (
                    [part.under("properties", name)]
                    if name is not None and name in part.node.get("properties", ())
                    else []
                )
                own += [
                    part.under("patternProperties", text)
                    for text in matched
                    if text in part.node.get("patternProperties", ())
                ]
                if not own and part.node.get("additionalProperties", False) is not False:
                    declared = True
                    own = list(filter(None, [part.one("additionalProperties")]))
                parts += own
            if not parts and not declared:
                further = [part for part in flat if opens(part.node) == "unevaluatedProperties"]
                if not further:
                    return _DROP
                parts = [inner for part in further if (inner := part.one("unevaluatedProperties"))]
            return self._place(tuple(parts))

        def matched_by(key: str) -> tuple[str, ...]:
            return tuple(text for text in patterns if matches(text, key))

        declared = {name: rule(name, matched_by(name)) for name in names}
        if not patterns:
            return _cut_object(declared, rule(None, ()))
        rules: dict[tuple[str, ...], Any] = {}

        def cut(value: Any) -> Any:
            kept: dict[str, Any] = {}
            changed = False
            for key, held in value.items():
                how = declared.get(key, declared)
                if how is declared:
                    matched = matched_by(key)
                    if matched not in rules:
                        rules[matched] = rule(None, matched)
                    how = rules[matched]
                if how is _DROP:
                    changed = True
                    continue
                shown = held if how is None else how(held)
                changed = changed or shown is not held
                kept[key] = shown
            return kept if changed else value

        return cut

    def _array(self, flat: tuple[Part, ...]) -> Cut:
        length = max((len(part.node.get("prefixItems", ())) for part in flat), default=0)

        def at(index: int) -> Cut | None:
            parts: list[Part] = []
            declared = False
            for part in flat:
                if index < len(part.node.get("prefixItems", ())):
                    parts.append(part.under("prefixItems", index))
                    declared = True
                elif "items" in part.node:
                    parts += filter(None, [part.one("items")])
                    declared = True
            if not declared:
                parts = [inner for part in flat if (inner := part.one("unevaluatedItems"))]
            contained = tuple(inner for part in flat if (inner := part.one("contains")))
            if parts and contained and self._place((*parts, *contained)):
                return self._contained(tuple(parts), contained)
            return self._place(tuple(parts))

        return _cut_array(tuple(at(index) for index in range(length)), at(length))

    def _contained(self, parts: tuple[Part, ...], contained: tuple[Part, ...]) -> Cut:
        """An item that `contains` asks for keeps what `contains` declares of it."""

        def cut(value: Any) -> Any:
            known = self._place((*parts, *(part for part in contained if self._fits(part, value))))
            return value if known is None else known(value)

        return cut


def removed(before: Any, after: Any, path: str = "") -> list[str]:
    """The paths that a cut took away, as `rows[0].ssn`."""
    if before is after:
        return []
    if isinstance(before, dict):
        found = []
        for key, held in before.items():
            here = _below(path, key)
            found += removed(held, after[key], here) if key in after else [here]
        return found
    if isinstance(before, (list, tuple)):
        return [one for i, held in enumerate(before) for one in removed(held, after[i], f"{path}[{i}]")]
    return []


def _below(path: str, key: str) -> str:
    if not re.fullmatch(r"[^\s.\[\]\"]+", key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def _cut_object(declared: dict[str, Any], rest: Any) -> Cut:
    keys = frozenset(declared)
    inner = {name: how for name, how in declared.items() if how is not None}

    def drop(value: Any) -> Any:
        return value if value.keys() <= keys else {key: held for key, held in value.items() if key in keys}

    def cut(value: Any) -> Any:
        kept: dict[str, Any] = {}
        changed = False
        for key, held in value.items():
            how = declared.get(key, rest)
            if how is None:
                kept[key] = held
            elif how is _DROP:
                changed = True
            else:
                shown = kept[key] = how(held)
                if shown is not held:
                    changed = True
        return kept if changed else value

    if rest is _DROP and not inner:
        return drop
    return cut


def _cut_array(prefix: tuple[Cut | None, ...], rest: Cut | None) -> Cut:
    def rows(value: Any) -> Any:
        assert rest is not None
        shown = [rest(item) for item in value]
        return value if all(a is b for a, b in zip(shown, value, strict=True)) else shown

    def cut(value: Any) -> Any:
        shown = list(value)
        for index, item in enumerate(value):
            how = prefix[index] if index < len(prefix) else rest
            if how is not None:
                shown[index] = how(item)
        return value if all(a is b for a, b in zip(shown, value, strict=True)) else shown

    if not prefix:
        return _whole if rest is None else rows
    return cut


def _whole(value: Any) -> Any:
    return value


def _declares(node: dict[str, Any]) -> bool:
    """Whether a schema says anything of which keys there are."""
    return bool(
        node.get("properties")
        or node.get("patternProperties")
        or "additionalProperties" in node
        or "unevaluatedProperties" in node
    )


def _lead_to_closed(top: Part) -> frozenset[Any]:
    """The parts at or below which something may be dropped."""
    above: dict[Any, list[Any]] = {}
    reached: dict[Any, Part] = {top.path: top}
    waiting = [top]
    while waiting:
        part = waiting.pop()
        for inner in part.below():
            above.setdefault(inner.path, []).append(part.path)
            if inner.path not in reached:
                reached[inner.path] = inner
                waiting.append(inner)
    closing = {path for path, part in reached.items() if part.closes}
    spreading = list(closing)
    while spreading:
        for path in above.get(spreading.pop(), ()):
            if path not in closing:
                closing.add(path)
                spreading.append(path)
    return frozenset(closing)
