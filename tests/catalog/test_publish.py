"""Published schemas: self-contained, acyclic, readable by every client, and never narrower than what is checked."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the Python client's engine has no stubs
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog.positions import every
from gateway.catalog.publish import published, with_default

Json = Any

NODE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}
TREE = {"$ref": "#/$defs/N", "$defs": {"N": NODE, "Unused": {"type": "string"}}}


def shown(document: Json, *, portable: bool = True, wrapped: bool = False) -> dict[str, Json]:
    return published([document], portable=portable, wrapped=wrapped)


def within(schema: Json, *, portable: bool = True) -> Json:
    """A schema as it is published under a property."""
    return shown({"type": "object", "properties": {"x": schema}}, portable=portable)["properties"]["x"]


@pytest.mark.parametrize(
    ("case", "before", "after"),
    [
        # CAT-12 and CAT-10: the cycle is cut, and says what kind of value it was
        (
            "a cycle ends where it closes",
            TREE,
            {
                "type": "object",
                "$ref": "#/$defs/N",
                "$defs": {
                    "N": {"type": "object", "properties": {"kids": {"type": "array", "items": {"type": "object"}}}}
                },
            },
        ),
        (
            "a reference to the root is a cycle",
            {"type": "object", "properties": {"next": {"$ref": "#"}}},
            {"type": "object", "properties": {"next": {"type": "object"}}},
        ),
        (
            "a cycle over two definitions",
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {
                    "A": {"allOf": [{"$ref": "#/$defs/B"}]},
                    "B": {"additionalProperties": {"$ref": "#/$defs/A"}},
                },
            },
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"B": {"additionalProperties": {}}, "A": {"allOf": [{"$ref": "#/$defs/B"}]}},
            },
        ),
        (
            "the root says object literally",
            {"allOf": [{"type": "object"}]},
            {"type": "object", "allOf": [{"type": "object"}]},
        ),
        ("a list of one type is that type", {"type": ["object"]}, {"type": "object"}),
        (
            "a definition with an awkward name gets a plain one",
            {
                "type": "object",
                "properties": {"p": {"$ref": "#/$defs/People%20List~1v1"}},
                "$defs": {"People List/v1": {"type": "string"}},
            },
            {
                "type": "object",
                "properties": {"p": {"$ref": "#/$defs/People_List_1v1"}},
                "$defs": {"People_List_1v1": {"type": "string"}},
            },
        ),
        (
            "a reference into a definition",
            {
                "type": "object",
                "properties": {"p": {"$ref": "#/$defs/A/properties/x"}},
                "$defs": {"A": {"properties": {"x": {"type": "string"}}}},
            },
            {
                "type": "object",
                "properties": {"p": {"$ref": "#/$defs/A.properties.x"}},
                "$defs": {"A.properties.x": {"type": "string"}},
            },
        ),
        (
            "the dialect is named where it is the one of today",
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
            {"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"},
        ),
        (
            "another dialect's name is left out",
            {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"},
            {"type": "object"},
        ),
    ],
)
def test_a_root(case: str, before: Json, after: Json) -> None:
    assert shown(before) == after, case


@pytest.mark.parametrize(
    ("case", "before", "after"),
    [
        # CAT-14
        ("nullable says nothing here", {"nullable": True, "enum": ["a", None]}, {"enum": ["a", None]}),
        # CAT-19
        (
            "null stays valid, and no type is added",
            {"anyOf": [{"type": "string", "maxLength": 2000}, {"type": "null"}], "title": "value"},
            {"anyOf": [{"type": "string", "maxLength": 2000}, {"type": "null"}], "title": "value"},
        ),
        ("a property that takes anything is still an object", True, {}),
        ("a property that takes nothing is still an object", False, {"not": {}}),
        (
            "a default beside a reference",
            {"$ref": "#/properties/y", "default": 3, "title": "T"},
            {"allOf": [{"$ref": "#/$defs/properties.y"}], "default": 3, "title": "T"},
        ),
        ("a pattern that JavaScript refuses", {"type": "string", "pattern": r"\_"}, {"type": "string"}),
        (
            "an identifier is no reader's business",
            {"$id": "https://example.org/x", "$comment": "c", "type": "string"},
            {"type": "string"},
        ),
    ],
)
@pytest.mark.parametrize("portable", [True, False])
def test_a_property(case: str, before: Json, after: Json, portable: bool) -> None:
    document = {"type": "object", "properties": {"x": before, "y": {"type": "integer"}}}
    assert shown(document, portable=portable)["properties"]["x"] == after, case


@pytest.mark.parametrize(
    ("case", "before", "after"),
    [
        (
            "a tuple is a list of any of its kinds",
            {"prefixItems": [{"type": "string"}, {"type": "null"}], "items": False},
            {"maxItems": 2, "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        ),
        (
            "a tuple with a rest",
            {"prefixItems": [{"type": "string"}], "items": {"type": "null"}},
            {"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        ),
        ("an open tuple is open", {"prefixItems": [{"type": "string"}], "minItems": 1}, {"minItems": 1}),
        ("formats are judged too differently", {"type": "string", "format": "date-time"}, {"type": "string"}),
        ("fractions of doubles too", {"multipleOf": 0.01, "minimum": 0}, {"minimum": 0}),
        (
            "64-bit neighbours are one double",
            {"type": "array", "uniqueItems": True, "items": {"exclusiveMaximum": 2**63}},
            {"type": "array", "items": {}},
        ),
        ("unevaluatedProperties", {"type": "object", "unevaluatedProperties": False}, {"type": "object"}),
        (
            "dependentSchemas and dependentRequired",
            {"dependentSchemas": {"a": {"required": ["b"]}}, "dependentRequired": {"a": ["b"]}},
            {},
        ),
        ("contains that need not be there", {"contains": {"type": "null"}, "minContains": 0, "maxContains": 2}, {}),
        (
            "contains that must be there twice",
            {"contains": {"type": "null"}, "minContains": 2},
            {"contains": {"type": "null"}},
        ),
        ("a choice of nothing", {"enum": []}, {"allOf": [{"not": {}}]}),
        ("words of older drafts", {"dependencies": {"a": ["b"]}, "additionalItems": False, "id": "x"}, {}),
        ("a pattern that Python reads as less", {"pattern": r"^\W$"}, {}),
        ("a pattern that Python does not read", {"pattern": r"^\p{L}+$"}, {}),
        ("a pattern that all read", {"pattern": r"^[a-z]+\.\d{2}$"}, {"pattern": r"^[a-z]+\.\d{2}$"}),
        # what is wider inside must not make it narrower outside
        ("not", {"not": {"format": "uri", "type": "string"}}, {}),
        ("oneOf", {"oneOf": [{"format": "uri"}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        (
            "oneOf beside anyOf",
            {"oneOf": [{"format": "uri"}], "anyOf": [{"type": "string"}]},
            {"anyOf": [{"type": "string"}], "allOf": [{"anyOf": [{}]}]},
        ),
        (
            "oneOf that is read as it is",
            {"oneOf": [{"type": "null"}, {"type": "string"}]},
            {"oneOf": [{"type": "null"}, {"type": "string"}]},
        ),
        ("if", {"if": {"format": "uri"}, "then": {"type": "null"}, "else": True, "type": "string"}, {"type": "string"}),
        ("then", {"if": {"type": "string"}, "then": {"format": "uri"}}, {"if": {"type": "string"}, "then": {}}),
        (
            "a lost name opens what is additional",
            {"patternProperties": {r"\_": {"type": "string"}, "^a": {"type": "null"}}, "additionalProperties": False},
            {"patternProperties": {"^a": {"type": "null"}}},
        ),
    ],
)
def test_a_property_of_an_answer(case: str, before: Json, after: Json) -> None:
    assert within(before) == after, case


def test_an_input_loses_what_a_wider_neighbour_would_make_narrower() -> None:
    closed = {"allOf": [{"$ref": "#/$defs/N"}], "unevaluatedProperties": False}
    cyclic = {"type": "object", "properties": {"n": closed}, "$defs": {"N": {"properties": {"n": closed}}}}
    cut = shown(cyclic, portable=False)
    assert cut["$defs"]["N"] == {"properties": {"n": {"allOf": [{}]}}}
    assert cut["properties"]["n"] == {"allOf": [{"$ref": "#/$defs/N"}]}
    assert within({"contains": {"pattern": r"\_"}, "maxContains": 1}, portable=False) == {"contains": {}}


def test_a_reference_to_something_wider_is_wider() -> None:
    document = {"type": "object", "properties": {"x": {"not": {"$ref": "#/properties/y"}}, "y": {"format": "uri"}}}
    assert shown(document) == {"type": "object", "properties": {"x": {}, "y": {}}}


def test_an_input_keeps_what_the_dialect_has() -> None:
    kept = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time", "$anchor": "when"},
            "pair": {"prefixItems": [{"$ref": "#/$defs/address"}]},
        },
        "dependentRequired": {"when": ["pair"]},
        "allOf": [{"if": {"required": ["when"]}, "then": {"required": ["pair"]}}],
        "unevaluatedProperties": False,
        "x-order": ["when"],
        "$defs": {"address": {"$anchor": "addressDef", "type": "object"}},
    }
    assert shown(kept, portable=False) == kept


def test_arguments_that_are_named_like_keywords_survive() -> None:
    names = [
        "$ref",
        "$defs",
        "$id",
        "oneOf",
        "title",
        "nullable",
        "format",
        "prefixItems",
        "required",
        "default",
        "properties",
    ]
    document = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "default": {"$ref": "x", "nullable": True},
    }
    assert shown(document) == document
    assert shown(document, portable=False) == document


def test_a_root_that_is_no_object_is_wrapped() -> None:  # CAT-05
    wrapped = shown(
        {"type": "array", "items": {"$ref": "#/$defs/I"}, "$defs": {"I": {"type": "integer"}}}, wrapped=True
    )
    assert wrapped == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/I"}}},
        "required": ["result"],
        "$defs": {"I": {"type": "integer"}},
    }


def test_answers_of_several_statuses_are_any_of_theirs_and_keep_their_definitions_apart() -> None:
    ok = {"type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"type": "string"}}}
    created = {"type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"type": "integer"}}}
    both = published([ok, created], portable=True)
    assert both["type"] == "object"
    assert both["$defs"] == {"T": {"type": "string"}, "T_2": {"type": "integer"}}
    assert [one["properties"]["a"]["$ref"] for one in both["anyOf"]] == ["#/$defs/T", "#/$defs/T_2"]


def test_a_thousand_definitions_in_one_chain_are_published() -> None:  # CAT-10: load time and depth are bounded
    chain: dict[str, Json] = {f"D{i}": {"properties": {"next": {"$ref": f"#/$defs/D{i + 1}"}}} for i in range(1000)}
    chain["D1000"] = {"properties": {"back": {"$ref": "#/$defs/D0"}}}
    assert len(shown({"type": "object", "properties": {"d": {"$ref": "#/$defs/D0"}}, "$defs": chain})["$defs"]) == 1001


def test_the_document_is_not_changed() -> None:
    before = json.dumps(TREE)
    shown(TREE)
    with_default(TREE, [])
    assert json.dumps(TREE) == before


# Random schemas over a small world, so that random values often fit them.
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 2**53, 2**53 + 1, 2**63 - 1]),
    st.sampled_from(["", "a", "b", "é", "a1", "2020-01-01"]),
)
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)
_TYPES = st.sampled_from(["null", "boolean", "object", "array", "number", "string", "integer"])
_REFERENCES = st.sampled_from(["#", "#/$defs/P", "#/$defs/Q", "#/$defs/Q/not"])
_PATTERNS = st.sampled_from(["^a", r"\d", r"^\W$", r"\_", r"^\p{L}$"])
_LEAVES = st.one_of(
    st.booleans(),
    st.fixed_dictionaries({"type": _TYPES}),
    st.fixed_dictionaries({"const": _SCALARS}),
    st.fixed_dictionaries({"enum": st.lists(_SCALARS, max_size=3)}),
    st.fixed_dictionaries({"pattern": _PATTERNS}),
    st.fixed_dictionaries({"format": st.sampled_from(["date-time", "uri"])}),
    st.fixed_dictionaries({"multipleOf": st.sampled_from([0.1, 2])}),
    st.fixed_dictionaries({"exclusiveMaximum": st.sampled_from([2, 2**53 + 1])}),
    st.fixed_dictionaries({"required": st.lists(st.sampled_from("abc"), max_size=1)}),
    st.fixed_dictionaries({"$ref": _REFERENCES}),
)


def _composed(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    listed = st.lists(inner, min_size=1, max_size=2)
    one = dict.fromkeys(
        (
            "items",
            "additionalProperties",
            "contains",
            "not",
            "if",
            "then",
            "else",
            "unevaluatedProperties",
            "unevaluatedItems",
        ),
        inner,
    )
    many = dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), listed)
    rest = {
        "properties": named,
        "dependentSchemas": named,
        "patternProperties": st.dictionaries(_PATTERNS, inner, max_size=2),
        "minContains": st.integers(0, 2),
        "maxContains": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "$ref": _REFERENCES,
        "dependentRequired": st.just({"a": ["b"]}),
        "maxItems": st.integers(0, 2),
    }
    return st.lists(st.sampled_from(sorted({**one, **many, **rest})), min_size=1, max_size=3, unique=True).flatmap(
        lambda keywords: st.fixed_dictionaries({keyword: {**one, **many, **rest}[keyword] for keyword in keywords})
    )


_SCHEMAS = st.recursive(_LEAVES, _composed, max_leaves=6)
DOCUMENTS = st.builds(
    lambda root, p, q: {**(root if isinstance(root, dict) else {}), "$defs": {"P": p, "Q": {"not": q}}},
    _SCHEMAS,
    _SCHEMAS,
    _SCHEMAS,
)


@given(DOCUMENTS, st.lists(VALUES, min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_what_is_published_takes_every_value_that_is_checked_as_valid(document: Json, values: list[Json]) -> None:
    source = jsonschema_rs.Draft202012Validator(document)
    answer = shown(document, wrapped=True)
    argument = shown(
        {"type": "object", "properties": {"result": {"$ref": "#/$defs/R"}}, "$defs": {"R": {}}}, portable=False
    )
    argument = published([document], portable=False, wrapped=True)
    readers = [
        jsonschema_rs.Draft202012Validator(argument).is_valid,
        jsonschema_rs.Draft202012Validator(answer).is_valid,
        jsonschema_rs.Draft7Validator(answer).is_valid,
        jsonschema.Draft202012Validator(answer).is_valid,
    ]
    for value in values:
        try:
            valid = source.is_valid(value)
        except ValueError:  # a reference that leads back to itself without a step into the value
            return
        if valid:
            assert [reader({"result": value}) for reader in readers] == [True] * 4


@given(DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_what_is_published_has_no_cycle_and_nothing_dangling(document: Json) -> None:
    for portable in (True, False):
        answer = published([document], portable=portable, wrapped=True)
        definitions = answer.get("$defs", {})
        referred = {
            name: {schema["$ref"] for schema in every(body) if "$ref" in schema}
            for name, body in {**definitions, "": {**answer, "$defs": {}}}.items()
        }
        open_names = {f"#/$defs/{name}" for name in definitions}
        assert set().union(*referred.values()) == open_names
        order: list[str] = list(definitions)
        for name in definitions:  # a definition only refers to those before it
            assert {order.index(target.removeprefix("#/$defs/")) for target in referred[name]} <= set(
                range(order.index(name))
            )
