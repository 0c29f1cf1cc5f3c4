"""Whether a view can be cut from every full answer: the cases that the load refuses, allows, or only warns of."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema import compile_schema
from gateway.schema.fit import No, Unknown, Yes
from gateway.schema.relation import fits_slice
from gateway.schema.schema import Schema
from tests.schema.test_relation import ANY, INTEGER, NULL, STRING, obj, rows, tagged

PERSON = obj({"id": STRING, "name": {"type": ["string", "null"]}, "ssn": STRING}, "id", "ssn")
PEOPLE = obj({"people": rows(PERSON), "total": INTEGER}, "people")


def missing(name: str) -> str:
    return f"the view requires `{name}`, which the full answer does not guarantee"


def cyclic(*required: str, closed: bool) -> Any:
    node = obj({"id": STRING, "kids": rows({"$ref": "#/$defs/N"})}, *required)
    if closed:
        return {"$ref": "#/$defs/N", "$defs": {"N": {**node, "additionalProperties": False}}}
    return {"$ref": "#/$defs/N", "$defs": {"N": {**node, "properties": {**node["properties"], "size": INTEGER}}}}


FILLED: list[tuple[str, Any, Any]] = [
    ("a key that the view leaves out", PEOPLE, obj({"people": rows(obj({"id": STRING}, "id"))}, "people")),
    (
        "a closed view, as other keys are cut",
        PEOPLE,
        obj({"people": rows(obj({"id": STRING}, additionalProperties=False))}, additionalProperties=False),
    ),
    ("closed at every depth of a cycle", cyclic("id", closed=False), cyclic("id", closed=True)),
    (
        "members of allOf that declare each other's keys",
        obj({"a": STRING, "b": STRING}, "a", "b"),
        {"allOf": [obj({"a": STRING}, "a"), obj({"b": STRING}, "b")]},
    ),
    (
        "closed branches with tags",
        {"oneOf": [tagged("x", a=STRING), tagged("y", b=STRING)]},
        {"oneOf": [{**tagged("x"), "additionalProperties": False}, {**tagged("y"), "additionalProperties": False}]},
    ),
    (
        "a nullable closed object",
        obj({"p": {"anyOf": [PERSON, NULL]}}),
        obj({"p": {"anyOf": [obj({"id": STRING}, "id", additionalProperties=False), NULL]}}),
    ),
    (
        "a map stays a map",
        {"type": "object", "additionalProperties": PERSON},
        {"additionalProperties": obj({"id": STRING}, "id")},
    ),
    (
        "an open object stays whole",
        obj({"meta": {"type": "object", "minProperties": 1}}),
        obj({"meta": {"type": "object", "minProperties": 1}}),
    ),
    ("no more keys than are declared", obj({}), obj({"a": ANY, "b": ANY}, maxProperties=2)),
    ("a key that the full answer does not declare never arrives", obj({"a": STRING}), obj({"a": STRING, "b": STRING})),
    ("unique scalars", obj({"tags": rows(STRING, uniqueItems=True)}), obj({"tags": rows(STRING, uniqueItems=True)})),
]

REFUSED: list[tuple[Any, Any, str, str]] = [
    (PEOPLE, obj({"people": rows(obj({"id": STRING, "name": STRING}, "name"))}), "people[].name", missing("name")),
    (PEOPLE, obj({"people": rows(obj({"name": STRING}))}), "people[].name", "the full answer may be null here"),
    (PEOPLE, obj({"total": STRING}), "total", "the full answer may be an integer here, where the view wants a string"),
    (obj({"s": {"enum": ["ok", "blocked"]}}), obj({"s": {"enum": ["ok"]}}), "s", 'enum member "blocked" is left out'),
    (PEOPLE, obj({"people": rows(PERSON)}, "people", "total"), "total", missing("total")),
    (obj({"a": STRING}, "a"), obj({"b": STRING}, "a"), "a", missing("a")),
    (obj({"a": STRING}, "a", "b"), obj({"b": ANY}, "b"), "b", missing("b")),
    (cyclic(closed=False), cyclic("id", closed=True), "id", missing("id")),
]


@pytest.mark.parametrize(("full", "view"), [pytest.param(f, v, id=name) for name, f, v in FILLED])
def test_a_view_that_every_full_answer_fills(full: Any, view: Any) -> None:
    assert fits_slice(full, view) == Yes()


@pytest.mark.parametrize(("full", "view", "path", "reason"), REFUSED)
def test_a_view_that_some_full_answer_cannot_fill(full: Any, view: Any, path: str, reason: str) -> None:
    answer = fits_slice(full, view)
    assert isinstance(answer, No)
    assert (answer.path, answer.reason) == (path, reason)
    inside, outside = _compiled(full), _compiled(view)
    assert inside.valid(answer.counterexample)
    assert not outside.valid(outside.cut(inside.cut(answer.counterexample)))


def test_rows_that_may_be_equal_once_they_are_cut_are_only_warned_of() -> None:
    full = rows(obj({"id": INTEGER, "note": STRING}, "id", "note"), uniqueItems=True, maxItems=3)
    view = rows(obj({"id": INTEGER}, "id"), uniqueItems=True)
    assert fits_slice(full, view) == Unknown(
        "`uniqueItems` cannot be weighed: items that differ may be equal once undeclared keys are cut"
    )


def test_an_absent_key_that_only_one_branch_declares_is_not_promised() -> None:
    full = obj({"k": STRING, "x": STRING}, "k", "x")
    view = {"anyOf": [obj({"k": {"const": "a"}}, "k"), obj({"x": STRING}, "x")]}
    assert fits_slice(full, view) == Yes()


def _compiled(document: Any) -> Schema:
    schema = compile_schema(document)
    assert isinstance(schema, Schema)
    return schema
