"""Does every value of one schema satisfy another: yes, no with a counterexample, or unknown; knows no contract.

Yes is proven by a search that found no difference, No is a value that the validators themselves tell apart; whatever is
neither is Unknown. `fits_slice` asks it of a view: does every full answer, stripped and then cut, satisfy it?
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gateway.record import record
from gateway.schema.fit import Fits, No, Unknown, Yes
from gateway.schema.relation_graph import Graph, Unclear
from gateway.schema.relation_moves import Fact
from gateway.schema.relation_plain import plainly_fits
from gateway.schema.relation_reason import place_and_reason, readable
from gateway.schema.relation_scalar import Empty, Stuck
from gateway.schema.relation_search import Search
from gateway.schema.relation_slice import left, opened
from gateway.schema.schema import Schema, compile_schema

_FRAMES = 20_000
_LONG = 12
#: Steps of a search: what a load may spend on one question, and on one that only may help another.
_MANY, _FEW = 10_000, 300


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
    return _Question((_document(narrow),), _document(wide), narrow, wide, formats, names).answer()


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
    inside, outside = _compiled(full, formats), _compiled(view, formats)
    if isinstance(inside, Unknown):
        return inside
    if isinstance(outside, Unknown):
        return outside
    document = inside.document
    if plainly_fits(document, outside.document):
        return Yes()
    try:
        wanted = opened(outside.document)
        asked = _Question((left(document),), wanted, inside, outside, formats, names, cut=True)
        answer = asked.answer()
        if not isinstance(answer, Unknown):
            return answer
        # What is left of an answer need not be a full answer; where it always is one, more is known of it.
        narrower = replace(asked, narrow=(*asked.narrow, document)).answer(_FEW)
        if isinstance(narrower, No):
            return narrower
        if isinstance(narrower, Yes):
            stays = _search((document,), opened(document), formats, most=_FEW)
            if isinstance(stays, Yes):
                return narrower
        some = replace(asked, narrow=(document,), wide=False).answer(_FEW)
    except Unclear as why:
        return Unknown(str(why))
    return some if isinstance(some, No) else answer


@record
class _Question:
    """Is there a value of all `narrow` that `wide` refuses, and do the schemas themselves say so too?"""

    narrow: tuple[Any, ...]
    wide: Any
    inside: Any
    outside: Any
    formats: str
    names: tuple[str, str]
    cut: bool = False

    def answer(self, most: int = _MANY) -> Fits:
        found = _search(self.narrow, self.wide, self.formats, most=most)
        if isinstance(found, Yes):
            return found
        shown = self._shown(found)
        if shown is None:
            # Once more, without what was doubtful.
            shown = self._shown(_search(self.narrow, self.wide, self.formats, bold=True, most=_FEW))
        return shown or (found.doubt if isinstance(found, _Candidate) else found)

    def _shown(self, found: Yes | Unknown | _Candidate) -> No | Unknown | None:
        """A no, where the schemas themselves tell the value apart."""
        if not isinstance(found, _Candidate):
            return None
        inside, outside = _compiled(self.inside, self.formats), _compiled(self.outside, self.formats)
        if isinstance(inside, Unknown):
            return inside
        if isinstance(outside, Unknown):
            return outside
        value = outside.cut(inside.cut(found.value)) if self.cut else found.value
        if not inside.valid(found.value) or outside.valid(value):
            return None
        path, reason = place_and_reason(outside, value, *self.names)
        return No(path, found.value, reason)


@record
class _Candidate:
    """A value that ought to show a difference, and what to answer where it does not."""

    value: Any
    doubt: Unknown


def _search(
    narrow: tuple[Any, ...], wide: Any, formats: str, *, bold: bool = False, most: int
) -> Yes | Unknown | _Candidate:
    try:
        graph = Graph([*narrow, wide], assert_formats=formats == "assert")
        search = Search(graph, bold=bold, most=most)
        with _deep():
            sides = [Fact(graph.root(index), True) for index in range(len(narrow))]
            result = search.find(frozenset([*sides, Fact(graph.root(len(narrow)), False)]))
    except Unclear as why:
        return Unknown(str(why))
    except RecursionError:
        return Unknown("the schemas refer to each other through too many levels to be followed")
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
    if len(stuck.path) > _LONG:
        return f"deep inside `{readable(list(stuck.path[:_LONG]), [])}`: {stuck.reason}"
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
