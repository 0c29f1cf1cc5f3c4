"""Defaults are filled and stringified JSON is read where the schema leaves no doubt; the value is not touched."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gateway.schema import Schema, compile_schema
from gateway.schema.complete import Completing
from gateway.schema.place import Document


def compiled(document: Any) -> Schema:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    return schema


FILLED: list[tuple[str, Any, Any, Any]] = [
    ("absent", {"properties": {"limit": {"default": 5}}}, {}, {"limit": 5}),
    ("passed, even as null", {"properties": {"limit": {"default": 5}}}, {"limit": None}, {"limit": None}),
    (
        "at depth, through items and $ref",
        {
            "properties": {"rows": {"items": {"$ref": "#/$defs/R"}}},
            "$defs": {"R": {"properties": {"a": {"default": [1]}}}},
        },
        {"rows": [{}, {"a": 2}]},
        {"rows": [{"a": [1]}, {"a": 2}]},
    ),
    (
        "inside a default",
        {"properties": {"o": {"default": {}, "properties": {"a": {"default": 1}}}}},
        {},
        {"o": {"a": 1}},
    ),
    ("an absent parent is not invented", {"properties": {"o": {"properties": {"a": {"default": 1}}}}}, {}, {}),
    (
        "beside a $ref wins over behind it",
        {"properties": {"a": {"$ref": "#/$defs/A", "default": 2}}, "$defs": {"A": {"default": 1}}},
        {},
        {"a": 2},
    ),
    (
        "two defaults that differ are none",
        {"allOf": [{"properties": {"a": {"default": 1}}}, {"properties": {"a": {"default": True}}}]},
        {},
        {},
    ),
    (
        "nor is one of several branches",
        {"anyOf": [{"properties": {"a": {"default": 1}}}, {"properties": {"b": {"default": 1}}}]},
        {},
        {},
    ),
    (
        "an object or null is no choice",
        {"properties": {"o": {"anyOf": [{"type": "null"}, {"properties": {"a": {"default": 1}}, "type": "object"}]}}},
        {"o": {}},
        {"o": {"a": 1}},
    ),
]


@pytest.mark.parametrize(("document", "value", "filled"), [case[1:] for case in FILLED], ids=[c[0] for c in FILLED])
def test_defaults_are_filled_where_one_is_named(document: Any, value: Any, filled: Any) -> None:
    before = copy.deepcopy(value)
    assert compiled(document).fill(value) == filled
    assert value == before


def test_each_value_gets_a_fresh_default() -> None:
    schema = compiled({"properties": {"a": {"default": []}}})
    first, second = schema.fill({}), schema.fill({})
    first["a"].append(1)
    assert second == {"a": []}


LIST = {"type": "array", "items": {"type": "object", "properties": {"tags": {"type": "array"}}}}
DECODED: list[tuple[str, Any, Any, Any]] = [
    ("a list", {"properties": {"ids": LIST}}, {"ids": "[]"}, {"ids": []}),
    (
        "at every depth",
        {"properties": {"ids": LIST}},
        {"ids": '[{"tags":"[1]"}, "{\\"tags\\":[]}"]'},
        {"ids": [{"tags": [1]}, {"tags": []}]},
    ),
    ("an object or null", {"properties": {"o": {"type": ["object", "null"]}}}, {"o": '{"a":1}'}, {"o": {"a": 1}}),
    (
        "through $ref",
        {"properties": {"o": {"$ref": "#/$defs/O"}}, "$defs": {"O": {"type": "object"}}},
        {"o": "{}"},
        {"o": {}},
    ),
    ("not where text is accepted", {"properties": {"o": {"type": ["object", "string"]}}}, {"o": "{}"}, {"o": "{}"}),
    ("not where anything is", {"properties": {"o": {}}}, {"o": "{}"}, {"o": "{}"}),
    ("not another kind", {"properties": {"ids": LIST}}, {"ids": "{}"}, {"ids": "{}"}),
    ("not what is no JSON", {"properties": {"ids": LIST}}, {"ids": "[1"}, {"ids": "[1"}),
    ("not a number", {"properties": {"n": {"type": "integer"}}}, {"n": "1"}, {"n": "1"}),
]


@pytest.mark.parametrize(("document", "value", "decoded"), [case[1:] for case in DECODED], ids=[c[0] for c in DECODED])
def test_stringified_json_is_read_where_no_text_is_wanted(document: Any, value: Any, decoded: Any) -> None:
    before = copy.deepcopy(value)
    assert compiled(document).decode_text(value) == decoded
    assert value == before


NODE: Any = {"properties": {"child": {"$ref": "#/$defs/N", "default": {}}}}
ENDLESS: list[tuple[str, Any, tuple[str | int, ...]]] = [
    ("through a reference", {"$ref": "#/$defs/N", "$defs": {"N": NODE}}, ("$defs", "N", "properties", "child")),
    (
        "where nothing but a property leads there",
        {"properties": {"a": {"properties": {"n": {"$ref": "#/$defs/N"}}}}, "$defs": {"N": NODE}},
        ("$defs", "N", "properties", "child"),
    ),
    ("behind a reference", {"properties": {"c": {"$ref": "#"}}, "default": {}}, ()),
    (
        "through items of a default",
        {"properties": {"c": {"default": [{}], "items": {"$ref": "#"}}}},
        ("properties", "c"),
    ),
    (
        "by turns",
        {"properties": {"a": {"default": {}, "properties": {"b": {"default": {}, "$ref": "#"}}}}},
        ("properties", "a"),
    ),
    (
        "across `allOf`",
        {"allOf": [{"properties": {"c": {"default": {}}}}, {"properties": {"c": {"$ref": "#"}}}]},
        ("allOf", 0, "properties", "c"),
    ),
]


@pytest.mark.parametrize(("document", "path"), [case[1:] for case in ENDLESS], ids=[c[0] for c in ENDLESS])
def test_a_default_that_holds_itself_again_is_refused(document: Any, path: tuple[str | int, ...]) -> None:
    faults = compile_schema(document)
    assert isinstance(faults, tuple), "it compiled"
    assert (*path, "default") in [fault.path for fault in faults]
    assert "holds itself again" in faults[0].message


def test_a_chain_of_defaults_is_filled_and_one_without_measure_is_refused() -> None:
    def chain(length: int) -> Any:
        links = {f"N{at}": {"properties": {"n": {"$ref": f"#/$defs/N{at + 1}", "default": {}}}} for at in range(length)}
        return {"$ref": "#/$defs/N0", "$defs": {**links, f"N{length}": {}}}

    assert compiled(chain(3)).fill({}) == {"n": {"n": {"n": {}}}}
    assert isinstance(compile_schema(chain(2000)), tuple)


def test_defaults_that_fan_out_are_looked_at_once_each() -> None:
    links = {
        f"N{at}": {"properties": {name: {"$ref": f"#/$defs/N{at + 1}", "default": {}} for name in "ab"}}
        for at in range(40)
    }
    document = {"properties": {"n": {"$ref": "#/$defs/N0"}}, "$defs": {**links, "N40": {}}}
    assert isinstance(compile_schema(document), Schema)


def test_a_recursive_schema_may_have_defaults_that_end() -> None:
    schema = compiled({"properties": {"child": {"$ref": "#"}, "list": {"default": [], "items": {"$ref": "#"}}}})
    assert schema.fill({"child": {}}) == {"child": {"list": []}, "list": []}


def test_filling_ends_where_a_default_would_hold_itself_again() -> None:
    """Only a document that was never looked at can have one; filling it is safe all the same."""
    completing = Completing(Document({"$ref": "#/$defs/N", "$defs": {"N": NODE}}))
    assert completing.fill({}) == {"child": {}}
