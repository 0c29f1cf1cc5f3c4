"""JMESPath at load and on values at hand: tables, no processes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.projection import Projected, Projection, ProjectionFault, Reason, compile_jmespath, lost_arguments
from gateway.projection.expression import search

LOST = [
    ("full[?category == input.category].{key: key}", ("input.category",)),
    ("full.rows[].{a: input.category, b: input.category}", ("input.category",)),
    ("full.rows[*].[input.category][]", ("input.category",)),
    ("map(&input.category, full.rows)", ("input.category",)),
    ("full[?a.b.c == input.limit.deep]", ("input.limit",)),
    ("{rows: full.rows[].{b: input.other}, of: input.category}", ()),
    ("[input.category, full.rows[?a == `1`]]", ()),
    ("full.rows[?input == 'x']", ()),
    ("@ | input.category", ()),
]


@pytest.mark.parametrize(("expression", "lost"), LOST)
def test_an_argument_that_is_looked_up_in_an_element_is_told(expression: str, lost: tuple[str, ...]) -> None:
    compiled = compile_jmespath(expression)
    assert isinstance(compiled, Projection)
    assert lost_arguments(compiled, {"category", "limit"}) == lost


REFUSED = [
    ("", "the JMESPath expression is empty"),
    ("full.", "the JMESPath expression ends too early, at column 6"),
    ("full.rows[", "the JMESPath expression ends too early, at column 11"),
    ("full.a b", "the JMESPath expression does not parse at column 8: unexpected 'b'"),
    ("full.`1`", "the JMESPath expression does not parse at column 6: unexpected '1'"),
    ("full.#", "the JMESPath expression does not parse at column 6: Unknown token #"),
    ("full[?a=1]", "the JMESPath expression does not parse at column 8: Unknown token '='"),
    ("'abc", "the JMESPath expression does not parse at column 1: Unclosed ' delimiter"),
    ("{a: full.a,\n b: full.#}", "the JMESPath expression does not parse at line 2, column 10: Unknown token #"),
    ("[full, `abc`]", "a literal between backticks in the JMESPath expression is not JSON, at column 8"),
    ("lenght(full)", "the JMESPath function lenght() at column 1 does not exist"),
    ("full | length(@, @)", "the JMESPath function length() at column 8 takes 1 argument, not 2"),
    ("not_null()", "the JMESPath function not_null() at column 1 takes at least 1 argument, not 0"),
    (
        "people[].name",
        "'people' at column 1 of the JMESPath expression is always null: the root has full, input and source",
    ),
    (
        "{a: full.x[].{b: c}, d: inputs}",
        "'inputs' at column 25 of the JMESPath expression is always null: the root has full, input and source",
    ),
    ("@ | ful", "'ful' at column 5 of the JMESPath expression is always null: the root has full, input and source"),
    ("(" * 3000, "the JMESPath expression is nested too deeply"),
    ("full" + " " * 70_000, "the JMESPath expression is longer than 64 KiB"),
]


@pytest.mark.parametrize(("expression", "sentence"), REFUSED)
def test_an_expression_that_cannot_work_is_refused_with_its_column(expression: str, sentence: str) -> None:
    assert compile_jmespath(expression) == sentence


def test_the_names_at_the_root_are_the_callers_to_say() -> None:
    assert isinstance(compile_jmespath("status == 'finished'", root=None), Projection)
    assert isinstance(compile_jmespath("answer.status", root=("answer",)), Projection)
    assert isinstance(compile_jmespath("status", root=("answer",)), str)


SHOWN: list[tuple[str, Any, Any]] = [
    ("full", [], []),
    ("full", None, None),
    ("full.items[*].id", {"items": []}, []),
    ("full.items[*].id", {}, None),
    ("full.items[].id", {"items": [{"id": 1}, {"no": 2}]}, [1]),
    ("full.a && 'yes'", {"a": []}, []),  # an empty list is false in JMESPath, and && gives back the false operand
    ("full.a || 'none'", {"a": 0}, 0),  # while the number 0 is true
    ("full.n", {"n": 12345678901234567890123}, 12345678901234567890123),
    ("sum(full.n)", {"n": [2**60, 1]}, 2**60 + 1),
    ("full.n[?@ == `9007199254740993`]", {"n": [9007199254740993, 9007199254740992]}, [9007199254740993]),
    ("[input.limit, source]", {}, [25, "mcp"]),
    ('full."$ref"', {"$ref": 1}, 1),
    ("full.*.a", {"z": {"a": 1}, "b": {"a": 2}}, [1, 2]),
    ("`[1]`", {}, [1]),
]


@pytest.mark.parametrize(("expression", "full", "shown"), SHOWN)
def test_an_expression_shows(expression: str, full: Any, shown: Any) -> None:
    assert _search(expression, full) == Projected(shown)


FAULTS = [
    ("sort_by(full, &a)", [{"a": 1}, {"a": "x"}], Reason.RAISED, "JMESPathTypeError: In function sort_by()"),
    ("length(full)", 1, Reason.RAISED, "JMESPathTypeError: In function length()"),
    ("sum(full)", [1e308, 1e308], Reason.NOT_JSON, "the result holds NaN or Infinity"),
    ("[&full]", {}, Reason.NOT_JSON, "the result holds an expression reference"),
]


@pytest.mark.parametrize(("expression", "full", "reason", "text"), FAULTS)
def test_a_fault_of_an_expression_is_a_value(expression: str, full: Any, reason: Reason, text: str) -> None:
    fault = _search(expression, full)
    assert isinstance(fault, ProjectionFault)
    assert fault.reason is reason
    assert fault.text.startswith(text)


def test_a_result_shares_nothing_with_the_answer_or_the_expression() -> None:
    full = {"rows": [{"id": 1}]}
    projection = _compiled('{a: full.rows, b: full.rows, c: `{"x": []}`}')
    for _ in range(2):
        shown = search(projection, {"full": full, "input": {}, "source": ""}, 100)
        assert shown == Projected({"a": [{"id": 1}], "b": [{"id": 1}], "c": {"x": []}})
        assert isinstance(shown, Projected)
        shown.value["a"].clear()
        shown.value["b"][0]["id"] = 2
        shown.value["c"]["x"].append(1)
    assert full == {"rows": [{"id": 1}]}


def test_a_result_that_grows_beyond_the_bound_is_left_to_a_worker() -> None:
    doubling = "full" + " | [@, @]" * 40
    assert search(_compiled(doubling), {"full": 1}, 1000) is None


@pytest.mark.parametrize(
    ("expression", "breadth"),
    [
        ("full.a.b", 1),
        ("full.rows[].{id: id, name: name}", 2),
        ("full" + " | [@, @]" * 10, 1024),
        ("full.rows[?id > `3`].id", 2),
    ],
)
def test_breadth_bounds_the_work(expression: str, breadth: int) -> None:
    assert _compiled(expression).breadth == breadth


def test_equal_expressions_are_equal_projections() -> None:
    assert compile_jmespath("full.a") == compile_jmespath("full.a") != compile_jmespath("full.b")
    assert json.dumps(repr(compile_jmespath("full.a"))).count("full.a") == 1


def _compiled(expression: str) -> Projection:
    projection = compile_jmespath(expression)
    assert isinstance(projection, Projection), projection
    return projection


def _search(expression: str, full: Any) -> Projected | ProjectionFault | None:
    return search(_compiled(expression), {"full": full, "input": {"limit": 25}, "source": "mcp"}, 1000)


NUMBERS = [
    ("12", 12),
    ("-0.5e-3", -0.0005),
    ("1E2", 100.0),
    ("123456789012345678901234567890", 123456789012345678901234567890),
    ("1_000", None),
    (" 1 ", None),
    ("1\n", None),
    ("\uff11\uff12", None),
    ("\u0661", None),
    ("+1", None),
    ("01", None),
    (".5", None),
    ("5.", None),
    ("0x10", None),
    ("NaN", None),
    ("Infinity", None),
    ("1e400", None),
    ("9" * 5000, None),
    ("", None),
    ("\ud800", None),
    (7, 7),
    (7.5, 7.5),
    (True, None),
    (None, None),
    ([1], None),
    ({}, None),
]


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_to_number_takes_what_json_calls_a_number_and_nothing_else(value: Any, number: Any) -> None:
    projection = compile_jmespath("to_number(full)")
    assert isinstance(projection, Projection)
    found = search(projection, {"full": value, "input": {}, "source": "mcp"}, 1000)
    assert isinstance(found, Projected)
    assert (type(found.value), found.value) == (type(number), number)
