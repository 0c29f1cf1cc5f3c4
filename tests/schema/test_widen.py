"""The compact form of a schema: as wide as the schema or wider, plain at every depth, and still precise."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.contract.schemas import closed
from gateway.schema import Schema, compile_schema
from gateway.schema.widen import widen
from tests.schema.test_relation_random import NAMES, SCALARS, document, objects, sample, schema

Json = Any

BANNED = {"$ref", "oneOf", "allOf", "anyOf", "not", "patternProperties", "dependentSchemas"}
#: Every keyword, of any draft, under which schemas stand; the walker enters what it does not know as well.
HELD = {
    *("items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties"),
    *("propertyNames", "if", "then", "else", "contentSchema", "extends", "disallow"),
}
LISTED = {"prefixItems"}
NAMED = {"properties", "$defs", "definitions", "dependencies"}
DATA = {"enum", "const", "default", "examples", "required", "dependentRequired", "description"}
ALLOWED = {
    *("type", "properties", "required", "items", "additionalProperties", "enum", "description", "default"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    "dependentRequired",
}


def places(node: Json) -> Iterator[dict[str, Json]]:
    """Every schema at any depth, by position: what is data, or is named like a keyword, is not entered as a schema."""
    if isinstance(node, bool):
        return
    assert isinstance(node, dict), node
    yield node
    for word, held in node.items():
        if word in DATA:
            continue
        if word in NAMED:
            for inner in held.values():
                if not isinstance(inner, list):  # array-form `dependencies`
                    yield from places(inner)
        elif isinstance(held, list) and (word in LISTED or word in HELD):
            for inner in held:
                yield from places(inner)
        elif isinstance(held, (dict, bool)) and (word in HELD or word not in ALLOWED):
            yield from places(held)


def banned(node: Json) -> set[str]:
    """The keywords of the compact view's list that a schema uses at any depth."""
    return {word for place in places(node) for word in place if word in BANNED}


def assert_compact(compact: dict[str, Json]) -> None:
    assert compact["type"] == "object"
    assert isinstance(compact["properties"], dict)
    assert banned(compact) == set()
    for place in places(compact):
        assert set(place) <= ALLOWED, place


def compiled(node: Json) -> Schema:
    made = compile_schema(node)
    assert isinstance(made, Schema), made
    return made


@pytest.mark.parametrize(
    "hidden",
    [
        {"$defs": {"A": {"$ref": "#/$defs/B"}}},
        {"definitions": {"A": {"allOf": []}}},
        {"if": {"not": {}}},
        {"then": {"properties": {"a": {"oneOf": []}}}},
        {"unevaluatedProperties": {"anyOf": []}},
        {"unevaluatedItems": {"patternProperties": {}}},
        {"dependencies": {"a": {"dependentSchemas": {}}}},
        {"items": [{"$ref": "#"}]},
        {"contentSchema": {"allOf": []}},
        {"prefixItems": [{"items": {"not": {}}}]},
        {"contains": {"propertyNames": {"anyOf": []}}},
        {"some-later-keyword": {"oneOf": []}},
    ],
)
def test_the_walker_sees_where_the_suite_is_blind(hidden: Json) -> None:
    assert banned({"type": "object", "properties": {"x": hidden}})
    assert banned({"type": "object", "properties": {}, **hidden})


def test_the_walker_takes_no_argument_and_no_data_for_a_keyword() -> None:
    node = {"type": "object", "properties": {word: {"enum": [{word: 1}], "default": {word: {}}} for word in BANNED}}
    assert banned(node) == set()


def under(node: Json, **root: Json) -> Json:
    """How a schema comes out as the schema of a property."""
    compact = widen({"type": "object", "properties": {"x": node}, **root})
    assert_compact(compact)
    return compact["properties"].get("x", False)


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("case", "before", "after"),
    [
        (
            "plain schemas stay",
            {"type": "string", "minLength": 1, "pattern": "^a"},
            {"type": "string", "minLength": 1, "pattern": "^a"},
        ),
        ("true says nothing", True, {}),
        (
            "allOf meets",
            {"allOf": [{"minimum": 1}, {"type": "integer", "minimum": 3}]},
            {"type": "integer", "minimum": 3},
        ),
        (
            "a list of constants is one enum",
            {"oneOf": [{"const": "a"}, {"const": "b"}]},
            {"type": "string", "enum": ["a", "b"]},
        ),
        ("or null is a type", {"anyOf": [STRING, {"type": "null"}]}, {"type": ["null", "string"]}),
        (
            "null joins the enum",
            {"anyOf": [{"enum": ["a"]}, {"type": "null"}]},
            {"type": ["null", "string"], "enum": [None, "a"]},
        ),
        (
            "disjoint types keep what each says",
            {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 1}]},
            {"type": ["integer", "string"], "minimum": 1, "maxLength": 3},
        ),
        (
            "an enum beside an open type becomes bounds",
            {"anyOf": [{"enum": ["aa", "bbb"]}, INTEGER]},
            {"type": ["integer", "string"], "minLength": 2, "maxLength": 3},
        ),
        (
            "the weakest bound holds",
            {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "minimum": 2, "maximum": 9}]},
            {"type": "integer", "minimum": 2},
        ),
        (
            "an excluding bound is weighed too",
            {"anyOf": [{"type": "number", "exclusiveMinimum": 2}, {"type": "number", "minimum": 2}]},
            {"type": "number", "minimum": 2},
        ),
        ("integers and numbers are numbers", {"anyOf": [INTEGER, {"type": "number"}]}, {"type": "number"}),
        (
            "unlike patterns are dropped",
            {"anyOf": [{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}]},
            STRING,
        ),
        (
            "not of a value leaves the enum's others",
            {"enum": ["a", "b"], "not": {"const": "a"}},
            {"type": "string", "enum": ["b"]},
        ),
        ("not of a type leaves the others", {"type": ["string", "null"], "not": {"type": "null"}}, STRING),
        ("any other not is dropped", {"type": "string", "not": {"pattern": "a"}}, STRING),
        ("if alone says nothing", {"type": "string", "if": {"minLength": 2}}, STRING),
        (
            "then and else are joined",
            {"type": "integer", "if": {"minimum": 5}, "then": {"maximum": 9}, "else": {"minimum": 0, "maximum": 4}},
            {"type": "integer", "minimum": 0, "maximum": 9},
        ),
        ("then alone is not for all", {"type": "integer", "if": {"minimum": 5}, "then": {"maximum": 9}}, INTEGER),
        (
            "contains tells how many at least",
            {"type": "array", "contains": {"not": {"const": 1}}, "maxContains": 1},
            {"type": "array", "minItems": 1},
        ),
        (
            "a tuple's items are any of them",
            {"type": "array", "prefixItems": [STRING, INTEGER], "items": False},
            {"type": "array", "maxItems": 2, "items": {"type": ["integer", "string"]}},
        ),
        ("an open tuple says nothing of items", {"type": "array", "prefixItems": [STRING]}, {"type": "array"}),
        (
            "pattern properties join what is left",
            {
                "type": "object",
                "properties": {"a": INTEGER},
                "patternProperties": {"^x": STRING},
                "additionalProperties": False,
            },
            {"type": "object", "properties": {"a": INTEGER}, "additionalProperties": STRING},
        ),
        (
            "dependent schemas are dropped, names stay",
            {"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}, "dependentRequired": {"a": ["c"]}},
            {"type": "object", "dependentRequired": {"a": ["c"]}},
        ),
        (
            "a property of no value is left out",
            {"type": "object", "properties": {"a": False, "b": INTEGER}},
            {"type": "object", "properties": {"b": INTEGER}},
        ),
        (
            "what only annotates is left out",
            {"type": "string", "title": "T", "examples": ["e"], "x-y": 1, "$comment": "c", "deprecated": True},
            STRING,
        ),
        (
            "names from a list are the only properties",
            {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": INTEGER},
            {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "additionalProperties": False},
        ),
        (
            "no name at all leaves the empty object",
            {"type": "object", "propertyNames": False},
            {"type": "object", "maxProperties": 0},
        ),
        (
            "a branch that no value fits is left out",
            {
                "anyOf": [
                    {"type": "string", "enum": []},
                    {"type": "integer", "minimum": 3, "maximum": 2},
                    {"type": "boolean"},
                ]
            },
            {"type": "boolean"},
        ),
    ],
)
def test_each_construct_is_widened_by_the_table(case: str, before: Json, after: Json) -> None:
    assert under(before) == after, case


def test_a_reference_is_written_out_with_what_stands_beside_it() -> None:
    found = under(
        {"$ref": "#/$defs/N", "minLength": 3, "description": "Own."},
        **{"$defs": {"N": {"type": "string", "maxLength": 9, "description": "N."}}},
    )
    assert found == {"type": "string", "description": "Own.", "minLength": 3, "maxLength": 9}


def test_a_cycle_ends_at_the_type() -> None:
    tree = {"$ref": "#/$defs/T"}
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": tree}, "name": STRING}}
    found = under(tree, **{"$defs": {"T": node}})
    assert found["properties"] == {"kids": {"type": "array", "items": {"type": "object"}}, "name": STRING}


def test_what_is_repeated_by_reference_is_written_out_within_a_bound() -> None:
    names = [f"N{number}" for number in range(30)]
    definitions: dict[str, Json] = {
        name: {
            "type": "object",
            "properties": {"l": {"$ref": f"#/$defs/{following}"}, "r": {"$ref": f"#/$defs/{following}"}},
        }
        for name, following in zip(names, [*names[1:], "End"], strict=True)
    }
    compact = widen(
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/N0"}}, "$defs": {**definitions, "End": STRING}}
    )
    assert_compact(compact)
    assert 30 < sum(1 for _ in places(compact)) <= 1_500


@pytest.mark.parametrize("levels", [30, 60])
def test_what_is_nested_very_deeply_ends_at_a_type(levels: int) -> None:
    node: Json = STRING
    for _ in range(levels):
        node = {"type": "object", "properties": {"a": {"anyOf": [node, {"type": "null"}]}}}
    assert_compact(widen(node))


def test_a_compact_schema_is_no_longer_than_the_schema() -> None:
    """What is referred to often says less of its depth, rather than the same again and again."""
    deep: Json = {
        "type": "object",
        "properties": {f"p{number}": {**STRING, "description": "d" * 80} for number in range(9)},
    }
    node = {
        "type": "object",
        "properties": {f"x{number}": {"$ref": "#/$defs/D"} for number in range(9)},
        "$defs": {"D": deep},
    }
    compact = widen(node)
    assert len(str(compact)) < len(str(node))
    assert compact["properties"] == {f"x{number}": {"type": "object"} for number in range(9)}


@pytest.mark.parametrize("count", [8, 40])
def test_many_branches_over_many_references_take_bounded_work(count: int) -> None:
    definitions: dict[str, Json] = {
        f"N{number}": {
            "oneOf": [
                {
                    "properties": {
                        "a": {"$ref": f"#/$defs/N{number + 1}"},
                        f"p{branch}": {"$ref": f"#/$defs/N{number + 1}"},
                    }
                }
                for branch in range(6)
            ]
        }
        for number in range(count)
    }
    assert_compact(
        widen(
            {
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/N0"}},
                "$defs": {**definitions, f"N{count}": STRING},
            }
        )
    )


CHOICE: dict[str, Json] = {
    "oneOf": [
        {"properties": {"id": INTEGER}, "required": ["id"]},
        {"properties": {"name": STRING}, "required": ["name"]},
    ]
}


def test_a_closed_choice_keeps_both_arguments_and_says_that_it_is_one() -> None:
    compact = widen(closed(CHOICE))
    assert compact == {
        "type": "object",
        "properties": {"id": INTEGER, "name": STRING},
        "description": "Exactly one of: id | name.",
        "additionalProperties": False,
    }


def test_an_open_choice_cannot_say_what_an_argument_of_another_branch_is() -> None:
    assert widen(CHOICE)["properties"] == {"id": {}, "name": {}}


def test_branches_that_are_closed_themselves_keep_their_arguments() -> None:
    node = {"oneOf": [{**branch, "type": "object", "additionalProperties": False} for branch in CHOICE["oneOf"]]}
    compact = widen(node)
    assert compact["properties"] == {"id": INTEGER, "name": STRING}
    assert compact["additionalProperties"] is False
    assert "required" not in compact


def test_what_all_branches_require_stays_required() -> None:
    node = {
        "type": "object",
        "properties": {"k": STRING},
        "anyOf": [{"required": ["k", "a"]}, {"required": ["b", "k"]}],
    }
    compact = widen(node)
    assert compact["required"] == ["k"]
    assert compact["description"] == "At least one of: a | b."


def test_arguments_that_are_named_like_keywords_stay() -> None:
    names = [*sorted(BANNED), "title", "default", "examples", "items", "properties", "$defs"]
    node = {
        "type": "object",
        "properties": {name: {"type": "string", "default": name} for name in names},
        "required": names,
    }
    compact = widen(node)
    assert list(compact["properties"]) == names
    assert compact["required"] == names
    assert compact["properties"]["oneOf"] == {"type": "string", "default": "oneOf"}


def test_data_that_looks_like_a_schema_stays_data() -> None:
    node = {"enum": [{"$ref": "#/nowhere", "oneOf": []}], "default": {"not": {"allOf": []}}}
    assert under(node) == {"type": "object", **node}


@pytest.mark.parametrize(
    "node", [True, {}, False, {"type": "string"}, {"not": {}}, {"$ref": "#/$defs/N", "$defs": {"N": {}}}]
)
def test_the_root_is_always_an_object_with_properties(node: Json) -> None:
    assert widen(node) == {"type": "object", "properties": {}}


def test_the_same_schema_gives_the_same_text() -> None:
    node = document(Random(7))
    assert list(map(str, widen(copy.deepcopy(node)).items())) == list(map(str, widen(node).items()))


# Traps: each of these refuses a valid value when a construct is converted in the way that seems natural.
@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"contains": {"not": {"const": 1}}, "maxContains": 1}, [1, 2]),
        ({"contains": {"const": 1}, "minContains": 0}, []),
        ({"anyOf": [{"enum": ["a"]}, {"type": "integer"}]}, 5),
        ({"anyOf": [{"maximum": 1}, {"maximum": 5}]}, 4),
        ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, 7),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, 1),
        ({"not": {"anyOf": [{"type": "string", "minLength": 3}]}}, "ab"),
        ({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["b"]}]}, {"a": 1, "b": 2}),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}),
        (
            {"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}], "unevaluatedProperties": False},
            {"a": 1, "b": 2},
        ),
        ({"if": {"properties": {"c": {}}, "required": ["c"]}, "unevaluatedProperties": False}, {"c": 1}),
        (
            {
                "dependentSchemas": {"a": {"properties": {"b": {}}}},
                "properties": {"a": {}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "b": 2},
        ),
        ({"anyOf": [{"additionalProperties": {"type": "string"}}, {}], "unevaluatedProperties": False}, {"z": "s"}),
        ({"allOf": [{"unevaluatedProperties": {"type": "string"}}], "unevaluatedProperties": False}, {"z": "s"}),
        ({"anyOf": [{"multipleOf": 4}, {"multipleOf": 6}]}, 6),
        ({"anyOf": [{"multipleOf": 4}, {"multipleOf": 6}]}, 4),
        ({"anyOf": [{"items": {"type": "string"}}, {"minItems": 1}]}, [1]),
        ({"anyOf": [{"additionalProperties": {"type": "string"}}, {"required": ["a"]}]}, {"a": 1}),
        ({"properties": {"a": {}}, "propertyNames": {"enum": ["a"]}}, {"a": 1}),
        ({"patternProperties": {"^a": {}}, "unevaluatedProperties": False}, {"ab": 1}),
        (
            {
                "anyOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["a"]}],
                "unevaluatedProperties": {"type": "integer"},
            },
            {"a": 1},
        ),
        ({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}]}, 12),
        ({"type": "integer"}, 5.0),
        ({"enum": [1]}, 1.0),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1]),
        ({"type": ["integer", "number"]}, 1.5),
        ({"anyOf": [{"const": 1.5}, {"type": "integer", "minimum": 4}]}, 1.5),
    ],
)
def test_a_value_that_fits_still_fits(node: Json, value: Json) -> None:
    for root in (
        {"type": "object", "properties": {"x": node}},
        {"type": "object", "additionalProperties": {"anyOf": [node, False]}},
    ):
        assert compiled(root).valid({"x": value})
        assert compiled(widen(root)).valid({"x": value}), widen(root)


def composed(random: Random) -> dict[str, Json]:
    """An object as contracts write it: own properties, a choice of others, and closed as a whole."""
    node = objects(random, 2)
    for word in random.sample(("oneOf", "anyOf", "allOf", "if", "dependentSchemas"), random.randint(1, 2)):
        parts = [objects(random, 1) for _ in range(random.randint(1, 3))]
        if word == "if":
            node.update(zip(("if", "then", "else"), parts, strict=False))
        else:
            node[word] = {random.choice(NAMES): parts[0]} if word == "dependentSchemas" else parts
    if random.random() < 0.6:
        node.setdefault("unevaluatedProperties", False if random.random() < 0.8 else schema(random, 1))
    return node


def some_input(random: Random) -> dict[str, Json]:
    """The schema of some arguments; the form that a contract gives it half the time."""
    node = document(random)
    if random.random() < 0.5:
        node = {**composed(random), "$defs": node["$defs"]}
    return closed(node) if random.random() < 0.5 else node


def nearby(random: Random, value: Json) -> Json:
    """A value changed in one place."""
    if isinstance(value, dict) and value and random.random() < 0.7:
        key = random.choice(list(value))
        if random.random() < 0.3:
            return {name: held for name, held in value.items() if name != key}
        return {**value, key: nearby(random, value[key])}
    if isinstance(value, dict):
        return {**value, random.choice(NAMES): random.choice(SCALARS)}
    if isinstance(value, list) and value and random.random() < 0.7:
        index = random.randrange(len(value))
        return [*value[:index], nearby(random, value[index]), *value[index + 1 :]]
    return random.choice(SCALARS)


def judged(seed: int, told: Counter[str], samples: int = 16) -> None:
    """Hold one random schema's compact form against its values."""
    random = Random(seed)
    node = some_input(random)
    full = compile_schema(node)
    if not isinstance(full, Schema):
        told["refused at load"] += 1
        return
    before = copy.deepcopy(node)
    compact = widen(node)
    assert node == before
    assert_compact(compact)
    wide = compiled(compact)
    leaning = [sample(random, node, node, 5) for _ in range(samples)]
    values = [value for value in (*leaning, *(nearby(random, value) for value in leaning)) if isinstance(value, dict)]
    valid = [full.valid(value) for value in values]
    if not any(valid):
        told["met by no sample"] += 1
        return
    told["schemas"] += 1
    for value, fits in zip(values, valid, strict=True):
        if fits:
            told["valid"] += 1
            assert wide.valid(value), (seed, node, compact, value)
        else:
            told["invalid"] += 1
            told["refused"] += not wide.valid(value)


FORMS = [pytest.param(1_500, id="short"), pytest.param(80_000, id="long", marks=pytest.mark.long)]


@pytest.mark.parametrize("form", FORMS)
def test_whatever_fits_the_schema_fits_the_compact_one(form: int) -> None:
    told: Counter[str] = Counter()

    @settings(max_examples=form, deadline=None, database=None)
    @given(st.integers(min_value=0, max_value=2**60))
    def run(seed: int) -> None:
        judged(seed, told)

    run()
    share = told["refused"] / told["invalid"]
    print(f"{dict(told)}: {share:.1%} of the invalid values are still refused")
    assert told["valid"] > form * 2.5
    assert share > (0.85 if form > 10_000 else 0.8)  # a small sample strays
