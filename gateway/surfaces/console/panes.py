"""A full answer and the card made of it, as lines of text of which each says whether the card kept it. Pure.

Knows JSON values only: no endpoint, no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from gateway import json_text
from gateway.record import record

Json = Any

#: The most lines of one answer that are shown, and the most characters of one value.
LINES, CHARACTERS = 3000, 400


class Line(NamedTuple):
    """One line of an answer, indented as JSON is for people."""

    text: str
    dropped: bool


@record
class Pane:
    """An answer's lines, at most `LINES` of them, and how many of its values there are and were kept."""

    lines: tuple[Line, ...]
    #: Whether there are further lines.
    cut: bool
    values: int
    kept: int


#: Takes out of a text what may not be shown.
Hide = Callable[[str], str]
#: What of a value was kept: all, nothing, or so much of each part in turn.
_Mark = bool | list[Any]


def pane(value: Json, hide: Hide) -> Pane:
    """An answer by itself."""
    return _drawn(value, True, hide)


def sliced(full: Json, card: Json, hide: Hide) -> Pane:
    """A full answer against the card that was cut out of it: what stands at the same place was kept."""
    return _drawn(full, _at_same_place(full, card), hide)


def projected(full: Json, card: Json, hide: Hide) -> Pane:
    """A full answer against a card that a projection made: what the card holds anywhere counts as kept.

    A short value, `true` or `null` is found everywhere by chance; it counts only under the key that it had.
    """
    return _drawn(full, _found(full, None, frozenset(_leaves(card, None))), hide)


def _at_same_place(full: Json, card: Json) -> _Mark:
    if isinstance(full, dict) and isinstance(card, dict):
        return [key in card and _at_same_place(item, card[key]) for key, item in full.items()]
    if isinstance(full, list) and isinstance(card, list):
        return [at < len(card) and _at_same_place(item, card[at]) for at, item in enumerate(full)]
    return True


def _found(full: Json, key: str | None, leaves: frozenset[tuple[str | None, str]]) -> _Mark:
    if not isinstance(full, (dict, list)) or not full:
        return _leaf(full, key) in leaves
    if isinstance(full, dict):
        marks = [_found(item, name, leaves) for name, item in full.items()]
    else:
        marks = [_found(item, key, leaves) for item in full]
    if all(mark is True for mark in marks):
        return True
    return False if all(mark is False for mark in marks) else marks


def _leaves(value: Json, key: str | None) -> Iterator[tuple[str | None, str]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, name)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _leaves(item, key)
    else:
        yield _leaf(value, key)


def _leaf(value: Json, key: str | None) -> tuple[str | None, str]:
    """A value as it is looked for: a number that a projection made a text of is still that number."""
    text = value if isinstance(value, str) else json_text.encode(value).decode()
    return (key if len(text) < 3 or value is None or isinstance(value, (bool, dict, list)) else None), text


def _drawn(value: Json, mark: _Mark, hide: Hide) -> Pane:
    lines = list(islice(_lines(value, mark, hide, "", "", ""), LINES + 1))
    values, kept = _counted(value, mark)
    return Pane(tuple(lines[:LINES]), len(lines) > LINES, values, kept)


def _lines(value: Json, mark: _Mark, hide: Hide, indent: str, before: str, after: str) -> Iterator[Line]:
    dropped = mark is False
    if not isinstance(value, (dict, list)) or not value:
        yield Line(indent + before + _short(value, hide) + after, dropped)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield Line(indent + before + opening, dropped)
    last = len(value) - 1
    named = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    for at, (name, item) in enumerate(named):
        key = "" if name is None else _short(name, hide) + ": "
        part = mark[at] if isinstance(mark, list) else mark
        yield from _lines(item, part, hide, indent + "  ", key, "," if at < last else "")
    yield Line(indent + closing + after, dropped)


def _short(value: Json, hide: Hide) -> str:
    text = hide(json_text.encode(value).decode())
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}… ({len(text):,} characters)"


def _counted(value: Json, mark: _Mark) -> tuple[int, int]:
    """How many values there are in one, and how many of them were kept; an empty container is one."""
    if not isinstance(value, (dict, list)) or not value:
        return 1, int(mark is True)
    parts = value.values() if isinstance(value, dict) else value
    counts = [_counted(part, mark[at] if isinstance(mark, list) else mark) for at, part in enumerate(parts)]
    return sum(count for count, _ in counts), sum(kept for _, kept in counts)
