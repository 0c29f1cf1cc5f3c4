"""Numbers and strings that meet a set of moves, or the proof that none does; knows no schema."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from gateway.record import record
from gateway.schema.relation_graph import exact
from gateway.schema.relation_moves import Bound, Match, Move, Multiple, Size
from gateway.schema.relation_pattern import Strings, find_string

_TRIES = 2000


class Empty:
    """No value: proven."""


EMPTY = Empty()


@record
class Stuck:
    """Neither a value nor a proof; `path` leads to where it stuck."""

    reason: str
    path: tuple[str | int, ...] = ()


@record
class Found:
    """A value; not `sure` where something was demanded that this engine does not model."""

    value: Any
    sure: bool = True


Result = Empty | Stuck | Found


@dataclass(slots=True)
class Numbers:
    """What is demanded of a number."""

    low: Fraction | None = None
    low_strict: bool = False
    high: Fraction | None = None
    high_strict: bool = False
    steps: list[Fraction] = field(default_factory=list)
    off_steps: list[Fraction] = field(default_factory=list)

    def add(self, move: Move) -> bool:
        """Take a demand; False where it plainly contradicts another."""
        match move:
            case Bound(side=-1, limit=limit, strict=strict):
                if self.low is None or (limit, strict) > (self.low, self.low_strict):
                    self.low, self.low_strict = limit, strict
            case Bound(limit=limit, strict=strict):
                if self.high is None or (-limit, strict) > (-self.high, self.high_strict):
                    self.high, self.high_strict = limit, strict
            case Multiple(step=step, holds=True):
                self.steps.append(step)
            case Multiple(step=step):
                self.off_steps.append(step)
        return not self._crossed() and not self._always_on()

    def _crossed(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_strict or self.high_strict))

    def _always_on(self) -> bool:
        step = _common(self.steps)
        return step is not None and any((step / off).denominator == 1 for off in self.off_steps)

    def copy(self) -> Numbers:
        return Numbers(self.low, self.low_strict, self.high, self.high_strict, list(self.steps), list(self.off_steps))

    def settle(self, barred: frozenset[Any]) -> Result:
        step = _common(self.steps)
        candidates, complete = self._on(step) if step is not None else self._off()
        for number in itertools.islice(candidates, _TRIES):
            if ("number", number) in barred or any((number / off).denominator == 1 for off in self.off_steps):
                continue
            value = _spelled(number)
            if value is not None:
                return Found(value)
            complete = False
        return EMPTY if complete else Stuck("no number was found that keeps to both sides' bounds")

    def _on(self, step: Fraction) -> tuple[Iterator[Fraction], bool]:
        """Multiples of `step` inside the bounds, near zero first, and whether these are all and few."""
        first = None if self.low is None else _first(self.low, step, self.low_strict)
        last = None if self.high is None else -_first(-self.high, step, self.high_strict)
        if first is not None and last is not None:
            count = last - first + 1
            return (step * (first + n) for n in range(max(count, 0))), count <= _TRIES
        if first is not None:
            start = max(first, 0) if first <= 0 else first
            return (step * (start + n) for n in itertools.count()), False
        if last is not None:
            start = 0 if last >= 0 else last
            return (step * (start - n) for n in itertools.count()), False
        return (step * sign * n for n in itertools.count() for sign in (1, -1)), False

    def _off(self) -> tuple[Iterator[Fraction], bool]:
        low, high = self.low, self.high
        if low is not None and high is not None:
            if low == high:
                return iter([low]), True
            return self._between(low, high), False
        if low is not None:
            return self._between(low, low + 4096), False
        if high is not None:
            return self._between(high - 4096, high), False
        return self._between(Fraction(-4096), Fraction(4096)), False

    def _between(self, low: Fraction, high: Fraction) -> Iterator[Fraction]:
        if not self.low_strict and self.low is not None:
            yield low
        if not self.high_strict and self.high is not None:
            yield high
        whole = max(math.ceil(low), min(0, math.floor(high)))
        for number in range(whole, whole + 200):
            if low < number < high:
                yield Fraction(number)
        for digits in range(1, 16):
            scale = 10**digits
            start = math.floor(max(low, Fraction(min(0, math.floor(high)))) * scale)
            for number in range(start, start + 12):
                if low < Fraction(number, scale) < high:
                    yield Fraction(number, scale)


@dataclass(slots=True)
class Texts:
    """What is demanded of a string."""

    low: int = 0
    high: int | None = None
    patterns: set[str] = field(default_factory=set)
    off_patterns: set[str] = field(default_factory=set)
    formats: set[str] = field(default_factory=set)
    off_formats: set[str] = field(default_factory=set)

    def add(self, move: Move) -> bool:
        """Take a demand; False where it plainly contradicts another."""
        match move:
            case Size(low=low, high=high):
                self.low = max(self.low, low)
                self.high = high if self.high is None else self.high if high is None else min(high, self.high)
            case Match(text=text, holds=holds, format=False):
                (self.patterns if holds else self.off_patterns).add(text)
            case Match(text=text, holds=holds):
                (self.formats if holds else self.off_formats).add(text)
        crossed = self.high is not None and self.low > self.high
        return not crossed and not self.patterns & self.off_patterns and not self.formats & self.off_formats

    def copy(self) -> Texts:
        sets = (set(part) for part in (self.patterns, self.off_patterns, self.formats, self.off_formats))
        return Texts(self.low, self.high, *sets)

    def settle(self, barred: frozenset[Any]) -> Result:
        texts = frozenset(value for kind, value in barred if kind == "string")
        wanted = Strings(frozenset(self.patterns), frozenset(self.off_patterns), self.low, self.high, texts)
        found = find_string(wanted)
        if isinstance(found, str):
            return Found(found, sure=not self.formats and not self.off_formats)
        if found is None:
            return EMPTY
        return Stuck(found.reason)


@dataclass(slots=True)
class Plain:
    """What is demanded of a boolean or null: nothing but not to be barred."""

    values: tuple[Any, ...]

    def add(self, move: Move) -> bool:
        return True

    def copy(self) -> Plain:
        return self

    def settle(self, barred: frozenset[Any]) -> Result:
        kind = "null" if self.values == (None,) else "boolean"
        left = [value for value in self.values if (kind, value) not in barred]
        return Found(left[0]) if left else EMPTY


def _common(steps: list[Fraction]) -> Fraction | None:
    """The least common multiple of all steps."""
    if not steps:
        return None
    whole = math.lcm(*(step.numerator for step in steps))
    return Fraction(whole, math.gcd(*(step.denominator for step in steps)))


def _first(low: Fraction, step: Fraction, strict: bool) -> int:
    index = math.ceil(low / step)
    return index + 1 if strict and index * step == low else index


def _spelled(number: Fraction) -> int | float | None:
    """The JSON number that spells this value, if a double's shortest spelling does."""
    if number.denominator == 1:
        return number.numerator
    try:
        value = float(number)
    except OverflowError:
        return None
    return value if math.isfinite(value) and exact(value) == number else None
