"""What a schema lets through, as plain shapes that can be met and joined; both only ever widen. Knows no document.

A shape says for each JSON type what its values are like. That is as much as a schema without `$ref` and combinators can
say, so whatever is said beyond it is dropped, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.schema.relation_graph import mark

Json = Any

KINDS = ("null", "boolean", "number", "string", "array", "object")

#: Meets and joins of one schema; beyond them every join is anything, and a meet is its first side.
_WORK = 50_000
_LARGEST_STEP = 2**53

#: A bound, and whether it excludes itself.
Limit = tuple[Json, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What is said of the values of one JSON type; None and empty say nothing."""

    members: tuple[Json, ...] | None = None
    #: Of a number itself, else of its length, items or properties.
    low: Limit | None = None
    high: Limit | None = None
    #: `integer`, `multipleOf`, `pattern`, `format`, `uniqueItems`, `dependentRequired`.
    words: Mapping[str, Json] = field(default_factory=dict)
    items: Shape | None = None
    properties: Mapping[str, Shape] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    #: Every property that is not named.
    rest: Shape | None = None

    def at(self, name: str) -> Shape:
        return self.properties.get(name) or self.rest or ANYTHING


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A set of JSON values: those of the kinds that are named here, as far as each says."""

    kinds: Mapping[str, Kind]
    #: `description` and `default`, which judge nothing.
    notes: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_anything(self) -> bool:
        return len(self.kinds) == len(KINDS) and all(kind is FREE for kind in self.kinds.values())

    @property
    def is_nothing(self) -> bool:
        return not self.kinds


FREE = Kind()
ANYTHING = Shape(dict.fromkeys(KINDS, FREE))
NOTHING = Shape({})


def shape_of(kinds: Mapping[str, Kind], notes: Mapping[str, Json] | None = None) -> Shape:
    """A shape of these kinds, without those that no value fits."""
    settled = {name: _settled(name, kinds[name]) for name in KINDS if name in kinds}
    return Shape({name: kind for name, kind in settled.items() if kind is not None}, notes or {})


class Algebra:
    """Meets and joins the shapes of one schema, within a bound on the work."""

    def __init__(self) -> None:
        self._left = _WORK
        #: By operation and operands, which are kept so that their ids stay theirs.
        self._known: dict[tuple[str, int, int], tuple[Shape, Shape, Shape]] = {}

    def meet(self, one: Shape, other: Shape) -> Shape:
        """What both allow, or more."""
        if other.is_anything and not other.notes:
            return one
        if one.is_anything and not one.notes:
            return other
        return self._once("meet", one, other, self._meet, one)

    def join(self, one: Shape, other: Shape) -> Shape:
        """What either allows, or more."""
        return self._once("join", one, other, self._join, ANYTHING)

    def join_all(self, shapes: Iterable[Shape]) -> Shape:
        """What any of them allows, or more."""
        joined: Shape | None = None
        for shape in shapes:
            joined = shape if joined is None else self.join(joined, shape)
        return NOTHING if joined is None else joined

    def _once(self, word: str, one: Shape, other: Shape, make: Callable[[Shape, Shape], Shape], beyond: Shape) -> Shape:
        if one is other:
            return one
        key = (word, id(one), id(other))
        if key not in self._known:
            self._left -= 1
            if self._left < 0:
                return beyond
            self._known[key] = (one, other, make(one, other))
        return self._known[key][2]

    def _meet(self, one: Shape, other: Shape) -> Shape:
        kinds = {
            name: self._meet_kind(kind, other.kinds[name]) for name, kind in one.kinds.items() if name in other.kinds
        }
        return shape_of(kinds, {**other.notes, **one.notes})

    def _meet_kind(self, one: Kind, other: Kind) -> Kind:
        if other is FREE or one is other:
            return one
        if one is FREE:
            return other
        names = dict.fromkeys((*one.properties, *other.properties))
        return Kind(
            members=_common(one.members, other.members),
            low=_pick(one.low, other.low, tighter=True, upper=False),
            high=_pick(one.high, other.high, tighter=True, upper=True),
            words=_both_words(one.words, other.words),
            items=self._meet_rest(one.items, other.items),
            properties={name: self.meet(one.at(name), other.at(name)) for name in names},
            required=tuple(dict.fromkeys((*one.required, *other.required))),
            rest=self._meet_rest(one.rest, other.rest),
        )

    def _meet_rest(self, one: Shape | None, other: Shape | None) -> Shape | None:
        if one is None or other is None:
            return one or other
        return self.meet(one, other)

    def _join(self, one: Shape, other: Shape) -> Shape:
        notes = {
            word: held[word]
            for word in ("description", "default")
            for held in (one.notes, other.notes)
            if word in held and _agree(word, one, other)
        }
        if one.is_anything or other.is_anything:
            return Shape(ANYTHING.kinds, notes)
        kinds: dict[str, Kind] = {}
        for name in KINDS:
            mine, theirs = one.kinds.get(name), other.kinds.get(name)
            found = self._join_kind(name, mine, theirs) if mine and theirs else mine or theirs
            if found is not None:
                kinds[name] = found
        return shape_of(kinds, notes)

    def _join_kind(self, name: str, one: Kind, other: Kind) -> Kind:
        if one is other:
            return one
        if (one.members is None) != (other.members is None):
            one, other = bounded(name, one), bounded(name, other)
        members = None
        if one.members is not None and other.members is not None:
            members = _distinct((*one.members, *other.members))
        names = dict.fromkeys((*one.properties, *other.properties))
        joined = Kind(
            members=members,
            low=_pick(one.low, other.low, tighter=False, upper=False),
            high=_pick(one.high, other.high, tighter=False, upper=True),
            words=_shared_words(one.words, other.words),
            items=self.join(one.items, other.items) if one.items and other.items else None,
            properties={key: self.join(one.at(key), other.at(key)) for key in names},
            required=tuple(key for key in one.required if key in other.required),
            rest=self.join(one.rest, other.rest) if one.rest and other.rest else None,
        )
        return freed(joined)


def freed(kind: Kind) -> Kind:
    """The kind itself, or the one FREE where it says nothing."""
    said = (kind.members, kind.low, kind.high, kind.items, kind.rest)
    return kind if any(part is not None for part in said) or kind.words or kind.properties or kind.required else FREE


def bounded(name: str, kind: Kind) -> Kind:
    """A kind with what its members are all like said as bounds, and no members."""
    if not kind.members or name not in ("number", "string", "array"):
        return replace(kind, members=None)
    sizes = kind.members if name == "number" else [len(member) for member in kind.members]
    whole = name == "number" and all(is_whole(member) for member in kind.members)
    return replace(
        kind,
        members=None,
        low=_pick(kind.low, (min(sizes), False), tighter=True, upper=False),
        high=_pick(kind.high, (max(sizes), False), tighter=True, upper=True),
        words={**kind.words, "integer": True} if whole else kind.words,
    )


def is_whole(number: Json) -> bool:
    """Whether JSON Schema calls a number an integer."""
    return isinstance(number, int) or (math.isfinite(number) and number == int(number))


def _settled(name: str, kind: Kind) -> Kind | None:
    """A kind without the members that its bounds exclude; None where no value is left."""
    if kind.members is not None:
        fitting = tuple(member for member in kind.members if _inside(name, kind, member))
        if not fitting:
            return None
        kind = kind if len(fitting) == len(kind.members) else replace(kind, members=fitting)
    if kind.low is not None and kind.high is not None:
        (low, open_below), (high, open_above) = kind.low, kind.high
        if low > high or (low == high and (open_below or open_above)):
            return None
    if any(kind.at(key).is_nothing for key in kind.required):
        return None
    if kind.items is not None and kind.items.is_nothing and kind.low is not None and kind.low[0] > 0:
        return None
    return freed(kind)


def _inside(name: str, kind: Kind, member: Json) -> bool:
    if name not in ("number", "string"):
        return True
    if kind.words.get("integer") and name == "number" and not is_whole(member):
        return False
    size = member if name == "number" else len(member)
    if kind.low is not None and (size < kind.low[0] or (size == kind.low[0] and kind.low[1])):
        return False
    return kind.high is None or size < kind.high[0] or (size == kind.high[0] and not kind.high[1])


def _pick(one: Limit | None, other: Limit | None, *, tighter: bool, upper: bool) -> Limit | None:
    """The tighter or the weaker of two bounds; the weaker is none where one side has none."""
    if one is None or other is None:
        return (one or other) if tighter else None
    larger, smaller = (one, other) if one[0] > other[0] else (other, one)
    if one[0] == other[0]:
        return one if one[1] == tighter else other
    return smaller if upper == tighter else larger


def _common(one: tuple[Json, ...] | None, other: tuple[Json, ...] | None) -> tuple[Json, ...] | None:
    if one is None or other is None:
        return one if other is None else other
    known = {mark(member) for member in other}
    return tuple(member for member in one if mark(member) in known)


def _distinct(members: tuple[Json, ...]) -> tuple[Json, ...]:
    return tuple(
        {mark(member): member for member in reversed(members)}[each] for each in dict.fromkeys(map(mark, members))
    )


def _both_words(one: Mapping[str, Json], other: Mapping[str, Json]) -> dict[str, Json]:
    words = {**other, **one}
    steps = one.get("multipleOf"), other.get("multipleOf")
    if isinstance(steps[0], int) and isinstance(steps[1], int):
        common = math.lcm(*(step for step in steps if isinstance(step, int)))
        words["multipleOf"] = common if common <= _LARGEST_STEP else steps[0]
    if "dependentRequired" in one and "dependentRequired" in other:
        words["dependentRequired"] = {**other["dependentRequired"], **one["dependentRequired"]}
    return words


def _shared_words(one: Mapping[str, Json], other: Mapping[str, Json]) -> dict[str, Json]:
    words = {word: held for word, held in one.items() if word in other and other[word] == held}
    steps = one.get("multipleOf"), other.get("multipleOf")
    if isinstance(steps[0], int) and isinstance(steps[1], int):
        words["multipleOf"] = math.gcd(*(step for step in steps if isinstance(step, int)))
    return words


def _agree(word: str, one: Shape, other: Shape) -> bool:
    """Whether two notes can stand for both: equal ones, or a description that only one has."""
    if word in one.notes and word in other.notes:
        return bool(mark(one.notes[word]) == mark(other.notes[word]))
    return word == "description"
