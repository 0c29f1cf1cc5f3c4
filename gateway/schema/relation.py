"""Does every value of one schema satisfy another: yes, no with a counterexample, or unknown; knows no contract.

Yes is proven by a search that found no difference, No is a value that the validators themselves tell apart; whatever is
neither is Unknown. `fits_slice` asks it of a view: does every full answer, stripped and then cut, satisfy it?
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gateway.schema.relation_graph import Graph, Unclear
from gateway.schema.relation_moves import Fact
from gateway.schema.relation_reason import place_and_reason, readable
from gateway.schema.relation_scalar import Empty, Stuck
from gateway.schema.relation_search import Search
from gateway.schema.relation_slice import left, opened
from gateway.schema.schema import Schema, compile_schema

_FRAMES = 20_000


@dataclass(frozen=True, slots=True)
class Yes:
    """Every value of the one satisfies the other."""


@dataclass(frozen=True, slots=True)
class No:
    """A value of the one that the other refuses."""

    #: Where, as `people[].name`; "" is the root.
    path: str
    #: Valid under the one, and refused by the other.
    counterexample: Any
    #: One sentence for whoever wrote the schemas.
    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was shown; the reason says what stood in the way."""

    reason: str


Fits = Yes | No | Unknown


def fits(
    narrow: Any,
    wide: Any,
    *,
    formats: str = "annotate",
    names: tuple[str, str] = ("the narrow schema", "the wide schema"),
) -> Fits:
    """Whether every JSON value valid under `narrow` satisfies `wide`.

    Both are self-contained documents or compiled schemas; `names` are what the reasons call them.
    """
    return _answer([_document(narrow)], _document(wide), formats, lambda: _Fit.of(narrow, wide, formats), names)


def fits_slice(
    full: Any,
    view: Any,
    *,
    formats: str = "annotate",
    names: tuple[str, str] = ("the full answer", "the view"),
) -> Fits:
    """Whether every full answer, stripped by its own schema and then cut to what the view declares, satisfies the view.

    A counterexample is a full answer that is valid and of which the view refuses what is left.
    """
    sides = _Fit.of(full, view, formats)
    if isinstance(sides, Unknown):
        return sides
    full_document, cutting = sides.inside.document, _Fit(sides.inside, sides.outside, cut=True)
    try:
        stripped, wanted = left(full_document), opened(cutting.outside.document)
        own = opened(full_document)
    except Unclear as why:
        return Unknown(str(why))
    answer = _answer([stripped], wanted, formats, lambda: cutting, names)
    if not isinstance(answer, Unknown):
        return answer
    # What is left of an answer need not be a full answer; where it always is one, more is known of it.
    again = _answer([stripped, full_document], wanted, formats, lambda: cutting, names)
    if isinstance(again, No) or (isinstance(again, Yes) and isinstance(_search([full_document], own, formats), Yes)):
        return again
    some = _answer([full_document], False, formats, lambda: cutting, names)
    return some if isinstance(some, No) else answer


@dataclass(frozen=True, slots=True)
class _Fit:
    """Both sides compiled, to hold a counterexample against."""

    inside: Schema
    outside: Schema
    cut: bool = False

    @staticmethod
    def of(narrow: Any, wide: Any, formats: str) -> _Fit | Unknown:
        inside, outside = _compiled(narrow, formats), _compiled(wide, formats)
        if isinstance(inside, Unknown):
            return inside
        return outside if isinstance(outside, Unknown) else _Fit(inside, outside)

    def shown(self, value: Any) -> Any:
        return self.outside.cut(self.inside.cut(value)) if self.cut else value

    def tells_apart(self, value: Any) -> bool:
        return self.inside.valid(value) and not self.outside.valid(self.shown(value))


def _answer(
    narrow: list[Any], wide: Any, formats: str, compiled: Callable[[], _Fit | Unknown], names: tuple[str, str]
) -> Fits:
    """Search, and trust only a value that the validators tell apart; what was doubtful is left out the second time."""
    first: Unknown | None = None
    for bold in (False, True):
        found = _search(narrow, wide, formats, bold)
        if isinstance(found, Yes) and not bold:
            return found
        if isinstance(found, _Candidate):
            sides = compiled()
            if isinstance(sides, Unknown):
                return sides
            if sides.tells_apart(found.value):
                path, reason = place_and_reason(sides.outside, sides.shown(found.value), *names)
                return No(path, found.value, reason)
        first = first or (
            found.doubt if isinstance(found, _Candidate) else found if isinstance(found, Unknown) else None
        )
    assert first is not None
    return first


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A value that ought to show a difference, and what to answer where it does not."""

    value: Any
    doubt: Unknown


def _search(narrow: list[Any], wide: Any, formats: str, bold: bool = False) -> Yes | Unknown | _Candidate:
    try:
        graph = Graph([*narrow, wide], assert_formats=formats == "assert")
        search = Search(graph, bold=bold)
        with _deep():
            sides = [Fact(graph.root(index), True) for index in range(len(narrow))]
            result = search.find(frozenset([*sides, Fact(graph.root(len(narrow)), False)]))
    except Unclear as why:
        return Unknown(str(why))
    except RecursionError:
        return Unknown("the schemas are nested too deeply to be followed")
    if isinstance(result, Empty):
        return Yes()
    if isinstance(result, Stuck):
        return Unknown(_stuck(result))
    doubts = [*search.doubts, "a difference was not ruled out, and no value was found that shows one"]
    return _Candidate(result.value, Unknown(doubts[0]))


@contextmanager
def _deep() -> Iterator[None]:
    """Room for a search through hundreds of definitions; it is plain Python, so its depth costs heap and no C stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _stuck(stuck: Stuck) -> str:
    if not stuck.path:
        return stuck.reason
    return f"at `{readable(list(stuck.path), [])}`: {stuck.reason}"


def _document(schema: Any) -> Any:
    return schema if isinstance(schema, dict | bool) else schema.document


def _compiled(schema: Any, formats: str) -> Schema | Unknown:
    if isinstance(schema, Schema):
        return schema
    compiled = compile_schema(_document(schema), formats=formats)
    if isinstance(compiled, Schema):
        return compiled
    return Unknown(f"a schema cannot be compiled: {compiled[0].message}")
