"""The shortest string that matches some patterns and not others, or the proof that there is none; knows no schema."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NoReturn

from gateway.record import record

# Surrogates are no characters of a JSON text.
_ALL = ((0, 0xD7FF), (0xE000, 0x10FFFF))
_DIGIT = ((0x30, 0x39),)
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
_LINE_END = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_PRETTY = (*range(0x61, 0x7B), *range(0x30, 0x3A), *range(0x41, 0x5B), 0x2D, 0x5F, 0x20)
_MOST_STATES, _MOST_STEPS = 1500, 6000

Ranges = tuple[tuple[int, int], ...]


@record
class Strings:
    """The strings of `low` to `high` characters that match all `patterns` and none of `off_patterns`, but `barred`."""

    patterns: frozenset[str]
    off_patterns: frozenset[str]
    low: int
    high: int | None
    barred: frozenset[str]


@record
class PatternDoubt:
    """Why it stays open."""

    reason: str


def find_string(wanted: Strings) -> str | PatternDoubt | None:
    """The shortest such string, None where there is provably none."""
    if wanted.high is not None and wanted.low > wanted.high:
        return None
    machines: list[tuple[_Machine, bool]] = []
    signed = [(p, True) for p in sorted(wanted.patterns)] + [(p, False) for p in sorted(wanted.off_patterns)]
    for pattern, holds in signed:
        machine = _machine(pattern)
        if isinstance(machine, PatternDoubt):
            return machine
        machines.append((machine, holds))
    if wanted.low > _MOST_STEPS and machines:
        return PatternDoubt("a `minLength` this large cannot be weighed beside a `pattern`")
    if not machines:
        return _without_patterns(wanted)
    return _walk(machines, wanted)


def _without_patterns(wanted: Strings) -> str | PatternDoubt | None:
    if wanted.low == 0 and wanted.high == 0:
        return None if "" in wanted.barred else ""
    length = max(wanted.low, 1)
    if length > 1_000_000:
        return PatternDoubt("a `minLength` this large is not tried")
    # One more last character than there are barred strings: one of them is free, and so nothing is proven empty here.
    for number in range(len(wanted.barred) + 1):
        text = "x" * (length - 1) + chr(_PRETTY[number] if number < len(_PRETTY) else 0x4E00 + number)
        if text not in wanted.barred:
            return text
    raise AssertionError("more barred strings than there are barred strings")


@dataclass(slots=True)
class _Machine:
    """A nondeterministic automaton; state 0 starts, state 1 accepts, and both loop on any character."""

    #: Moves without a character; `^` only at the start, `$` only at the end.
    free: list[list[tuple[int, str]]] = field(default_factory=lambda: [[], []])
    taking: list[list[tuple[Ranges, int]]] = field(default_factory=lambda: [[(_ALL, 0)], [(_ALL, 1)]])

    def state(self) -> int:
        if len(self.free) > _MOST_STATES:
            _give_up("it is too large")
        self.free.append([])
        self.taking.append([])
        return len(self.free) - 1

    def closure(self, states: frozenset[int], *, start: bool, end: bool) -> frozenset[int]:
        reached, todo = set(states), list(states)
        while todo:
            for target, guard in self.free[todo.pop()]:
                if target not in reached and (not guard or (start and guard == "^") or (end and guard == "$")):
                    reached.add(target)
                    todo.append(target)
        return frozenset(reached)

    def step(self, states: frozenset[int], character: int) -> frozenset[int]:
        return frozenset(
            target for state in states for ranges, target in self.taking[state] if _within(character, ranges)
        )


_Place = tuple[tuple[frozenset[int], ...], int, str | None]


def _walk(machines: list[tuple[_Machine, bool]], wanted: Strings) -> str | PatternDoubt | None:
    """Breadth first through all automata at once, so the first string met at a place is a shortest one."""
    alphabet = _alphabet([machine for machine, _ in machines], wanted.barred)
    prefixes = {text[:length] for text in wanted.barred for length in range(len(text) + 1)}
    first: _Place = (tuple(frozenset([0]) for _ in machines), 0, "" if "" in prefixes else None)
    came: dict[_Place, tuple[_Place, str] | None] = {first: None}
    queue = deque([first])
    depth = {first: 0}
    while queue:
        place = queue.popleft()
        sets, length, prefix = place
        start = place is first
        if length >= wanted.low and prefix not in wanted.barred and _accepted(machines, sets, start):
            return _spell(place, came) if wanted.high is None or depth[place] <= wanted.high else None
        # Shortest first: whatever lies deeper is longer still.
        if wanted.high is not None and depth[place] >= wanted.high:
            continue
        closed = [machine.closure(s, start=start, end=False) for (machine, _), s in zip(machines, sets, strict=True)]
        for character in alphabet:
            stepped = tuple(m.step(s, ord(character)) for (m, _), s in zip(machines, closed, strict=True))
            grown = None if prefix is None or prefix + character not in prefixes else prefix + character
            following: _Place = (stepped, min(length + 1, max(wanted.low, 1)), grown)
            if following not in came:
                came[following] = (place, character)
                depth[following] = depth[place] + 1
                queue.append(following)
        if len(came) > _MOST_STEPS:
            return PatternDoubt("the patterns are too large to be compared")
    return None


def _accepted(machines: list[tuple[_Machine, bool]], sets: tuple[frozenset[int], ...], start: bool) -> bool:
    return all(
        (1 in m.closure(s, start=start, end=True)) == holds for (m, holds), s in zip(machines, sets, strict=True)
    )


def _spell(place: _Place, came: dict[_Place, tuple[_Place, str] | None]) -> str:
    characters: list[str] = []
    step = came[place]
    while step is not None:
        place, character = step
        characters.append(character)
        step = came[place]
    return "".join(reversed(characters))


def _alphabet(machines: list[_Machine], barred: frozenset[str]) -> list[str]:
    """One character of each class that no automaton and no barred string tells apart."""
    cuts = {0, 0xD800, 0xE000, 0x110000}
    for machine in machines:
        for moves in machine.taking:
            cuts.update(edge for ranges, _ in moves for low, high in ranges for edge in (low, high + 1))
    cuts.update(edge for text in barred for character in text for edge in (ord(character), ord(character) + 1))
    edges = sorted(cuts)
    classes = [(low, high - 1) for low, high in pairwise(edges) if low != 0xD800]
    return sorted((_pretty(low, high) for low, high in classes if low <= high), key=_plainness)


def _pretty(low: int, high: int) -> str:
    return chr(next((code for code in _PRETTY if low <= code <= high), low))


def _plainness(character: str) -> int:
    return _PRETTY.index(ord(character)) if ord(character) in _PRETTY else 1000 + ord(character)


def _within(character: int, ranges: Ranges) -> bool:
    return any(low <= character <= high for low, high in ranges)


class _Unread(Exception):
    """The pattern holds something this reader does not follow."""


def _give_up(why: str) -> NoReturn:
    raise _Unread(why)


@lru_cache(maxsize=1024)
def _machine(pattern: str) -> _Machine | PatternDoubt:
    machine = _Machine()
    try:
        reader = _Reader(pattern, machine)
        reader.alternatives(0, 1)
        if reader.rest():
            _give_up("of an unmatched parenthesis")
    except _Unread as why:
        return PatternDoubt(f"the pattern `{pattern}` cannot be weighed: {why}")
    return machine


class _Reader:
    """ECMA-262 patterns without lookaround, backreference, word boundary, Unicode property, flag or name."""

    def __init__(self, pattern: str, machine: _Machine) -> None:
        self._text = pattern
        self._at = 0
        self._machine = machine

    def rest(self) -> str:
        return self._text[self._at :]

    def alternatives(self, start: int, end: int) -> None:
        """Read up to a closing parenthesis or the end, leading from `start` to `end`."""
        self._sequence(start, end)
        while self._take("|"):
            self._sequence(start, end)

    def _sequence(self, start: int, end: int) -> None:
        here = self._machine.state()
        self._free(start, here)
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            here = self._repeated(here)
        self._free(here, end)

    def _free(self, start: int, end: int, guard: str = "") -> None:
        self._machine.free[start].append((end, guard))

    def _repeated(self, here: int) -> int:
        begin = self._at
        after = self._atom(here)
        finish = self._at
        low, high = self._counts()
        if (low, high) == (1, 1):
            return after
        self._take("?")
        resume, self._at = self._at, begin
        if self._text[begin] in "^$":
            _give_up("an anchor is repeated")
        # The copy read above is left without a way on; the atom is read again as often as it may occur.
        last = here
        for _ in range(low):
            last = self._again(begin, last)
        if high is None:
            loop = self._machine.state()
            self._free(last, loop)
            self._free(self._again(begin, loop), loop)
            last = loop
        else:
            way_out = self._machine.state()
            for _ in range(high - low):
                self._free(last, way_out)
                last = self._again(begin, last)
            self._free(last, way_out)
            last = way_out
        self._at = max(resume, finish)
        return last

    def _again(self, begin: int, here: int) -> int:
        self._at = begin
        own = self._machine.state()
        self._free(here, own)
        return self._atom(own)

    def _counts(self) -> tuple[int, int | None]:
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        if not self._take("{"):
            return 1, 1
        inside, closed, _ = self.rest().partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not low.isascii() or not low.isdigit() or (high and not (high.isascii() and high.isdigit())):
            _give_up("of a brace that is no count")
        self._at += len(inside) + 1
        return int(low), (int(high) if high else None) if comma else int(low)

    def _atom(self, here: int) -> int:
        after = self._machine.state()
        character = self._next()
        if character in "^$":
            self._free(here, after, character)
        elif character == "(":
            if self.rest().startswith("?"):
                if not self.rest().startswith("?:"):
                    _give_up("of a group that begins with `(?`")
                self._at += 2
            self.alternatives(here, after)
            if not self._take(")"):
                _give_up("of an unmatched parenthesis")
        elif character in "*+?{}]":
            _give_up(f"of a bare `{character}`")
        else:
            self._machine.taking[here].append((self._ranges(character), after))
        return after

    def _ranges(self, character: str) -> Ranges:
        if character == ".":
            return _outside(_LINE_END)
        if character == "[":
            return self._class()
        return self._escape() if character == "\\" else ((ord(character), ord(character)),)

    def _class(self) -> Ranges:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            low = self._member()
            if self.rest().startswith("-") and not self.rest().startswith("-]"):
                self._at += 1
                high = self._member()
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
                    _give_up("of a range between classes")
                found.append((low[0][0], high[0][0]))
            else:
                found.extend(low)
        return _outside(tuple(found)) if negated else tuple(found)

    def _member(self) -> Ranges:
        character = self._next()
        return self._escape() if character == "\\" else ((ord(character), ord(character)),)

    def _escape(self) -> Ranges:
        character = self._next()
        match character:
            case "d" | "w" | "s":
                return {"d": _DIGIT, "w": _WORD, "s": _SPACE}[character]
            case "D" | "W" | "S":
                return _outside({"D": _DIGIT, "W": _WORD, "S": _SPACE}[character])
            case "x" | "u":
                return ((code := self._hexadecimal(2 if character == "x" else 4), code),)
        if character in _CONTROLS:
            return ((_CONTROLS[character], _CONTROLS[character]),)
        if not character.isascii() or character.isalnum():
            _give_up(f"of the escape `\\{character}`")
        return ((ord(character), ord(character)),)

    def _hexadecimal(self, digits: int) -> int:
        text = self.rest()[:digits]
        if len(text) < digits or not all(digit in "0123456789abcdefABCDEF" for digit in text):
            _give_up("of an escape that is not hexadecimal")
        code = int(text, 16)
        if 0xD800 <= code <= 0xDFFF:
            _give_up("of half a surrogate pair")
        self._at += digits
        return code

    def _next(self) -> str:
        if self._at >= len(self._text):
            _give_up("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, expected: str) -> bool:
        if self.rest()[:1] != expected:
            return False
        self._at += 1
        return True


def _outside(ranges: Ranges) -> Ranges:
    return tuple(_gaps(sorted(ranges)))


def _gaps(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for low, high in _ALL:
        at = low
        for first, last in ranges:
            if first > at and at <= high:
                yield (at, min(first - 1, high))
            at = max(at, last + 1)
        if at <= high:
            yield (at, high)
