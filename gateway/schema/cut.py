"""Cutting a value down to what its schema declares, compiled once into functions; knows no validator but by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal

from gateway.record import record
from gateway.schema.keywords import Path
from gateway.schema.place import Choice, Document, Part, declares, opens, spread
from gateway.schema.within import drops_all_of

#: Gives a value back as it may be shown: the same object where nothing is dropped.
Cut = Callable[[Any], Any]
#: Whether a value fits a part of the document.
Fits = Callable[[Part, Any], bool]
#: Whether a key matches a pattern of `patternProperties`.
Matches = Callable[[str, str], bool]

#: So many combinations of branches are kept compiled per place; a backend cannot fill the memory with more.
_KEPT = 256
_DROP = object()


class Place:
    """A place of the document: the function for its values, replaced by a more direct one once it is compiled.

    `covers` is there once it is known that an object is kept as it stands where all its keys are of one set: it asks
    for that in C, which is a quarter of what calling `cut` takes.
    """

    __slots__ = ("covers", "cut")

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self.covers: Callable[[Any], bool] | None = None


@record
class _Kind:
    """What a function is compiled for; `other` takes every other value of its place."""

    name: Literal["object", "array"]
    types: type | tuple[type, ...]
    other: Cut


class Cutting:
    """The cutting functions of one document, each made when its place is first met."""

    def __init__(self, document: Document, fits: Fits, matches: Matches) -> None:
        self._document = document
        self._fits = fits
        self._matches = matches
        self._places: dict[frozenset[Path], Place] = {}
        self._closing = _lead_to_closed(document.top())

    def root(self) -> Place | None:
        """The place of the whole document, or None where it can never drop anything."""
        return self._place((self._document.top(),))

    def drops_all_of(self, full: Cutting) -> bool:
        """Whether this cut alone leaves what is left where `full` is cut by first; False where that is not certain."""
        return drops_all_of(self._document.top(), full._document.top(), full._closes)

    def _closes(self, parts: tuple[Part, ...]) -> bool:
        """Whether anything may be dropped of values that all these parts judge, at any depth."""
        return any(part.path in self._closing for part in parts)

    def _place(self, parts: tuple[Part, ...]) -> Place | None:
        """The place of values that all these parts judge; None where they can never drop anything."""
        if not self._closes(parts):
            return None
        key = frozenset(part.path for part in parts)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = self._later(parts)
        return known

    def _later(self, parts: tuple[Part, ...]) -> Place:
        """Compiles at the first object and the first array, so that a schema may lead back to itself."""
        of_object: Cut | None = None
        of_array: Cut | None = None

        def cut(value: Any) -> Any:
            nonlocal of_object, of_array
            if isinstance(value, dict):
                if of_object is None:
                    place.cut = of_object = self._choosing(parts, frozenset(), _Kind("object", dict, cut))
                    place.covers = getattr(of_object, "covers", None)
                return of_object(value)
            if isinstance(value, (list, tuple)):
                if of_array is None:
                    place.cut = of_array = self._choosing(parts, frozenset(), _Kind("array", (list, tuple), cut))
                return of_array(value)
            return value

        place = Place(cut)
        return place

    def _choosing(self, parts: tuple[Part, ...], settled: frozenset[Choice], kind: _Kind) -> Cut:
        flat, choices = spread(parts, kind.name)
        open_choices = tuple(choice for choice in choices if choice not in settled)
        if not open_choices:
            return self._object(flat, kind) if kind.name == "object" else self._array(flat, kind)
        settled |= frozenset(open_choices)
        compiled: dict[tuple[tuple[Part, ...], ...], Cut] = {}

        types, other = kind.types, kind.other

        def cut(value: Any) -> Any:
            if not isinstance(value, types):
                return other(value)
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

    def _object(self, flat: tuple[Part, ...], kind: _Kind) -> Cut:
        if not any(declares(part.node) for part in flat):
            return _whole_unless(kind)
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
            return _cut_object(declared, rule(None, ()), kind.other)
        rules: dict[tuple[str, ...], Any] = {}
        other = kind.other

        def cut(value: Any) -> Any:
            if not isinstance(value, dict):
                return other(value)
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
                shown = held if how is None else how.cut(held)
                changed = changed or shown is not held
                kept[key] = shown
            return kept if changed else value

        return cut

    def _array(self, flat: tuple[Part, ...], kind: _Kind) -> Cut:
        length = max((len(part.node.get("prefixItems", ())) for part in flat), default=0)

        def at(index: int) -> Place | None:
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

        return _cut_array(tuple(at(index) for index in range(length)), at(length), kind)

    def _contained(self, parts: tuple[Part, ...], contained: tuple[Part, ...]) -> Place:
        """An item that `contains` asks for keeps what `contains` declares of it."""

        def cut(value: Any) -> Any:
            known = self._place((*parts, *(part for part in contained if self._fits(part, value))))
            return value if known is None else known.cut(value)

        return Place(cut)


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


def _cut_object(declared: dict[str, Any], rest: Any, other: Cut) -> Cut:
    """Objects whose keys are known by name; `rest` says how all other keys are cut."""
    if rest is not _DROP and rest is not None:
        return _cut_map(declared, rest, other)
    drops = rest is _DROP
    names = frozenset(declared)
    covers, known = names.issuperset, names.__contains__
    count = len(names)
    inner = [(name, how) for name, how in declared.items() if how is not None]

    # The common case costs one pass in C: does any key have to go? Then only what may shrink inside is looked at.
    def cut(value: Any) -> Any:
        if not isinstance(value, dict):
            return other(value)
        kept = value
        if drops and (len(value) > count or not covers(value)):
            kept = {}
            for key in filter(known, value):
                kept[key] = value[key]
        for name, how in inner:
            held = value.get(name)
            if held is not None and not (type(held) is dict and how.covers is not None and how.covers(held)):
                shown = how.cut(held)
                if shown is not held:
                    if kept is value:
                        kept = dict(value)
                    kept[name] = shown
        return kept

    if drops and not inner:
        cut.covers = covers  # type: ignore[attr-defined]  # told to the place, which has no other way to know
    return cut


def _cut_map(declared: dict[str, Any], rest: Place, other: Cut) -> Cut:
    def cut(value: Any) -> Any:
        if not isinstance(value, dict):
            return other(value)
        kept = value
        for key, held in value.items():
            how = declared.get(key, rest)
            if how is not None:
                shown = how.cut(held)
                if shown is not held:
                    if kept is value:
                        kept = dict(value)
                    kept[key] = shown
        return kept

    return cut


def _cut_array(prefix: tuple[Place | None, ...], rest: Place | None, kind: _Kind) -> Cut:
    other = kind.other

    def cut(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return other(value)
        shown = list(value)
        for index, item in enumerate(value):
            how = prefix[index] if index < len(prefix) else rest
            if how is not None:
                shown[index] = how.cut(item)
        # Equal means unchanged: a cut only ever takes keys away, and shared items compare by identity.
        return value if shown == value else shown

    if prefix:
        return cut
    if rest is None:
        return _whole_unless(kind)

    def rows(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return other(value)
        covers, one = rest.covers, rest.cut
        if covers is None:
            shown = [*map(one, value)]
        else:
            shown = [row if type(row) is dict and covers(row) else one(row) for row in value]
        return value if shown == value else shown

    return rows


def _whole_unless(kind: _Kind) -> Cut:
    types, other = kind.types, kind.other

    def cut(value: Any) -> Any:
        return value if isinstance(value, types) else other(value)

    return cut


def _lead_to_closed(top: Part) -> frozenset[Path]:
    """The parts at or below which something may be dropped."""
    above: dict[Path, list[Path]] = {}
    reached: dict[Path, Part] = {top.path: top}
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
