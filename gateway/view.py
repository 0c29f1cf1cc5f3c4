"""A tool's view of an endpoint: fill its defaults on the way in, derive and check its answer on the way out.

Pure. Knows the contract's `View` and compiled schemas; knows nothing of calls, backends or surfaces.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from gateway import json_text
from gateway.contract.model import Budget, View
from gateway.json_pointer import follow, parts_of
from gateway.record import record
from gateway.schema import Schema, Violation

Json = Any


@record
class Shown:
    """What a tool's caller gets: the value, its one encoding, and what was stripped beyond the schema on the way."""

    value: Json
    body: bytes
    stripped: tuple[str, ...] = ()


@record
class Broken:
    """The derived answer breaks the schema that the tool advertises; `missing` where there is none at all."""

    violations: tuple[Violation, ...]
    missing: bool = False


@record
class NotJsonValue:
    """The derived answer cannot be written as JSON; `reason` is for the log."""

    reason: str


@record
class OverBudget:
    """The derived answer is larger than its budget, in bytes."""

    size: int
    budget: int


def fill_defaults(view: View | None, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments with the view's defaults under every top-level key that was not passed (ADR 0196 point 2).

    `null`, `[]`, `""`, `0` and `false` are passed values; there is no deep merge; each call gets a fresh copy.
    """
    if view is None or not view.defaults:
        return dict(arguments)
    filled = dict(arguments)
    for name, value in view.defaults.items():
        if name not in filled:
            filled[name] = copy.deepcopy(value)
    return filled


def show_full(full: Json, schema: Schema, *, holds: bool) -> Shown | Broken | NotJsonValue:
    """The full answer as it stands; `holds` says that it was already found valid as it stands."""
    if not holds and (violations := schema.check(full)):
        return Broken(tuple(violations))
    return _encoded(full)


def show_slice(full: Json, schema: Schema) -> Shown | Broken | NotJsonValue:
    """The full answer cut to what the view's schema declares; what a slice removes is its purpose and not reported."""
    return _checked(schema.cut(full), schema)


def show_projected(projected: Json, schema: Schema) -> Shown | Broken | NotJsonValue:
    """A projection's result, stripped of keys beyond its schema (they are reported) and checked (point 3)."""
    if projected is None and not schema.valid(None):
        return Broken((), missing=True)
    kept = schema.cut(projected)
    stripped = () if kept is projected or kept == projected else tuple(schema.undeclared(projected))
    shown = _checked(kept, schema)
    return Shown(shown.value, shown.body, stripped) if isinstance(shown, Shown) and stripped else shown


def within_budget(shown: Shown, budget: Budget, schema: Schema) -> Shown | OverBudget | Broken:
    """The answer where it fits; else, where the budget says how, with whole rows cut off the end of one list."""
    if len(shown.body) <= budget.bytes:
        return shown
    trimmed = _trimmed(shown.value, budget) if budget.trim is not None else None
    if trimmed is None:
        return OverBudget(len(shown.body), budget.bytes)
    if violations := schema.check(trimmed):
        return Broken(tuple(violations))
    return Shown(trimmed, json_text.encode(trimmed), shown.stripped)


def _checked(value: Json, schema: Schema) -> Shown | Broken | NotJsonValue:
    shown = _encoded(value)  # first: encoding bounds the depth that the validator then sees
    if isinstance(shown, Shown) and not schema.valid(value):
        return Broken(tuple(schema.check(value)))
    return shown


def _encoded(value: Json) -> Shown | NotJsonValue:
    try:
        return Shown(value, json_text.encode(value))
    except ValueError as fault:
        return NotJsonValue(str(fault))


def _trimmed(value: Json, budget: Budget) -> Json | None:
    """The value with the longest head of its list that fits, and the note; None where even an empty list does not."""
    parts = parts_of(budget.trim or "")
    rows = follow(value, budget.trim or "")
    if not isinstance(rows, list):
        return None

    def with_rows(shown: int) -> Json:
        trimmed = _replaced(value, parts, lambda _: rows[:shown])
        if budget.note is None:
            return trimmed
        return _replaced(trimmed, parts_of(budget.note), lambda _: {"shown": shown, "total": len(rows)})

    low, high = -1, len(rows)
    while high - low > 1:  # `low` rows fit, `high` rows do not
        middle = (low + high) // 2
        if len(json_text.encode(with_rows(middle))) <= budget.bytes:
            low = middle
        else:
            high = middle
    return None if low < 0 else with_rows(low)


def _replaced(value: Json, parts: list[str], change: Callable[[Json], Json]) -> Json:
    if not parts:
        return change(value)
    held = dict(value) if isinstance(value, dict) else {}
    held[parts[0]] = _replaced(held.get(parts[0]), parts[1:], change)
    return held
