"""Does every value of one schema satisfy another: yes, no with a counterexample, or unknown; knows no contract.

Yes is proven by a search that found no difference, No is a value that the validators themselves tell apart; whatever is
neither is Unknown. `fits_slice` asks the same of a view: does every full answer, once cut to the view, satisfy it?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.schema.relation_graph import Graph, Unclear
from gateway.schema.relation_moves import Fact
from gateway.schema.relation_reason import place_and_reason, readable
from gateway.schema.relation_scalar import Empty, Result, Stuck
from gateway.schema.relation_search import Search
from gateway.schema.schema import Schema, compile_schema


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
    result = _search(_document(narrow), _document(wide), formats)
    if isinstance(result, Empty):
        return Yes()
    if isinstance(result, Stuck):
        return Unknown(_stuck(result))
    sides = _compiled(narrow, formats), _compiled(wide, formats)
    if isinstance(sides[0], Unknown):
        return sides[0]
    if isinstance(sides[1], Unknown):
        return sides[1]
    if not sides[0].valid(result.value) or sides[1].valid(result.value):
        return Unknown("a difference was not ruled out, and no value was found that shows one")
    return No(*_told(_document(wide), result.value, result.value, names))


def _search(narrow: Any, wide: Any, formats: str) -> Result:
    try:
        graph = Graph([narrow, wide], assert_formats=formats == "assert")
        return Search(graph).find(frozenset([Fact(graph.root(0), True), Fact(graph.root(1), False)]))
    except Unclear as why:
        return Stuck(str(why))
    except RecursionError:
        return Stuck("the schemas are nested too deeply to be followed")


def _told(document: Any, shown: Any, counterexample: Any, names: tuple[str, str]) -> tuple[str, Any, str]:
    path, reason = place_and_reason(document, shown, *names)
    return path, counterexample, reason


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
