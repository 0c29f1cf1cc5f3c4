"""Schemas of each version as JSON Schema 2020-12, shared ones by name, and what of them cannot be honoured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.authoring.openapi.describing import answering, made, taking, v2, v3

Json = Any
NULL = {"type": "null"}
S = {"$ref": "#/components/schemas/S"}
HERE = {"$ref": "#/schemas/S"}
SHARED = {"schemas": {"S": {"type": "object", "properties": {"a": {"type": "string"}}}}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # docs/decisions/0074: as meant
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"allOf": [S], "nullable": True}, {"anyOf": [{"allOf": [HERE]}, NULL]}),
        ({"anyOf": [S], "nullable": True}, {"anyOf": [HERE, NULL]}),
        ({"type": "object", "allOf": [S], "nullable": True}, {"anyOf": [{"type": "object", "allOf": [HERE]}, NULL]}),
        ({**S, "nullable": True, "maxLength": 1}, HERE),  # SCH-09: beside a `$ref` nothing is said
        ({**S, "description": "Which."}, {**HERE, "description": "Which."}),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 0}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "string", "example": "a", "xml": {}, "x-a": 1}, {"type": "string", "examples": ["a"]}),
        ({"type": "object", "example": {"a": 1}}, {"type": "object"}),
        ({"properties": {"nullable": {"type": "string"}}}, {"properties": {"nullable": {"type": "string"}}}),
        (
            {"type": "array", "items": [{"type": "string"}]},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": True},
        ),
        ({"type": "string", "description": " "}, {"type": "string"}),
        # SCH-11: a secret that only a request has is neither shown nor missing in an answer
        (
            {"required": ["id", "key"], "properties": {"id": {"type": "string"}, "key": {"writeOnly": True}}},
            {"required": ["id"], "properties": {"id": {"type": "string"}}},
        ),
    ],
)
def test_3_0_says_otherwise_what_2020_12_says(schema: Json, expected: Json, tmp_path: Path) -> None:
    result = made(tmp_path, answering(schema, components=SHARED))
    assert result.endpoint()["output"] == expected
    assert len(result.notes) == 0


def test_3_1_is_2020_12_and_what_stands_beside_a_ref_counts(tmp_path: Path) -> None:
    schema = {**S, "minProperties": 1, "properties": {"b": {"type": ["string", "null"], "const": "x"}}}
    result = made(tmp_path, answering(schema, version="3.1.0", components=SHARED))
    assert result.endpoint()["output"] == {**HERE, "minProperties": 1, "properties": schema["properties"]}


def test_2_0_has_null_by_an_extension(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-nullable": True}}}
    answers = {"200": {"description": "Ok.", "schema": {"$ref": "#/definitions/A"}}}
    result = made(tmp_path, v2({"responses": answers}, definitions={"A": schema}))
    assert result.written["schemas"] == {"A": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}}


@pytest.mark.parametrize(
    ("schema", "expected", "said"),
    [
        ({"type": "float"}, {}, '`type` has a value that it cannot have ("float")'),
        ({"type": "integer", "minimum": "1"}, {"type": "integer"}, "`minimum` has a value"),
        ({"type": "string", "pattern": "(?=a)"}, {"type": "string"}, "a lookahead `(?=` needs backtracking"),
        ({"type": "string", "pattern": "("}, {"type": "string"}, "the pattern is left out"),
        ({"type": "string", "wrong": 1}, {"type": "string"}, "`wrong` is no keyword of JSON Schema"),
        ({"$ref": "#/components/schemas/None"}, {}, '"#/components/schemas/None" names nothing; any value is allowed'),
        ({"$ref": "https://elsewhere.example/a.json"}, {}, "is on the network, which is never read"),
        ({"$ref": "../a.json#/A"}, {}, "leads out of the description's folder"),
        ({"$ref": "absent.yaml#/A"}, {}, '"absent.yaml#/A": there is no such file'),
        ({"items": 3}, {}, "`items` has a value that it cannot have"),
        ({"enum": []}, {}, "`enum` has a value that it cannot have"),
        (
            {"required": ["a"], "properties": {"b": {"type": "string"}}},
            {"required": ["a"], "properties": {"b": {"type": "string"}, "a": {}}},
            '"a" is required and not described',
        ),
        (
            {"required": ["A"], "additionalProperties": False, "properties": {"a": {"type": "string"}}},
            {"additionalProperties": False, "properties": {"a": {"type": "string"}}},
            '"A" is required and forbidden at once',
        ),
    ],
)
def test_what_cannot_be_honoured_is_left_out_and_said_at_its_place(
    schema: Json, expected: Json, said: str, tmp_path: Path
) -> None:
    result = made(tmp_path, answering(schema))
    assert result.endpoint()["output"] == expected
    (note,) = result.notes
    assert note.startswith("#/paths/~1things/get/responses/200/content/application~1json/schema")
    assert said in note


def test_one_schema_is_two_where_a_request_and_an_answer_differ(tmp_path: Path) -> None:
    schemas = {
        "Thing": {
            "type": "object",
            "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}},
        },
        "Box": {
            "type": "object",
            "properties": {"things": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}},
        },
        "Same": {"type": "object", "properties": {"a": {"type": "string"}}},
    }
    both = {"type": "array", "items": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("Box", "Same")]}}
    description = taking(both, components={"schemas": schemas})
    answers = {"200": {"description": "Ok.", "content": {"application/json": {"schema": both}}}}
    description["paths"]["/things"]["post"]["responses"] = answers
    result = made(tmp_path, description)
    assert result.written["schemas"].keys() == {"Box", "BoxInput", "Same", "Thing", "ThingInput"}
    assert result.written["schemas"]["ThingInput"]["properties"].keys() == {"name"}
    assert result.endpoint()["input"]["properties"]["body"]["items"]["anyOf"] == [
        {"$ref": "#/schemas/BoxInput"},
        {"$ref": "#/schemas/Same"},
    ]


def test_a_base_that_names_its_subtypes_is_no_circle(tmp_path: Path) -> None:
    """What springdoc writes: the base is one of its subtypes, and each of them is all of the base."""
    animal = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        "discriminator": {"propertyName": "name"},
    }
    subtypes = {
        name: {
            "allOf": [
                {"$ref": "#/components/schemas/Animal"},
                {"required": [key], "properties": {key: {"type": "string"}}},
            ]
        }
        for name, key in (("Cat", "lives"), ("Dog", "tricks"))
    }
    description = answering(
        {"$ref": "#/components/schemas/Animal"}, components={"schemas": {"Animal": animal, **subtypes}}
    )
    result = made(tmp_path, description)
    assert result.written["schemas"].keys() == {"Animal", "AnimalBase", "Cat", "Dog"}
    assert result.written["schemas"]["AnimalBase"] == {"type": "object", "properties": {"name": {"type": "string"}}}
    output = result.contract.endpoints["op"].output
    assert output is not None
    assert output.valid({"name": "Tom", "lives": "9"})
    assert not output.valid({"name": "Tom"})


@pytest.mark.parametrize(
    "schemas",
    [
        {"A": {"$ref": "#/components/schemas/A"}},
        {"A": {"$ref": "#/components/schemas/B"}, "B": {"allOf": [{"$ref": "#/components/schemas/A"}]}},
        {"A": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "string"}]}},
    ],
)
def test_a_circle_before_any_value_is_cut_and_said(schemas: Json, tmp_path: Path) -> None:
    result = made(tmp_path, answering({"$ref": "#/components/schemas/A"}, components={"schemas": schemas}))
    assert any("refers to itself before any value is read" in note for note in result.notes)


def test_a_tree_goes_on_leading_to_itself(tmp_path: Path) -> None:
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}},
    }
    result = made(tmp_path, answering({"$ref": "#/components/schemas/Tree"}, components={"schemas": {"Tree": tree}}))
    assert result.written["schemas"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/schemas/Tree"}
    assert result.notes == ()


def test_files_beside_the_description_are_read(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "things.yaml").write_text(
        "Thing: {type: object, properties: {box: {$ref: '#/Box'}}}\n"
        "Box: {type: object, properties: {of: {$ref: more.json}}}"
    )
    (tmp_path / "shared" / "more.json").write_text('{"type": "string"}')
    result = made(tmp_path, answering({"$ref": "shared/things.yaml#/Thing"}))
    assert result.notes == ()
    assert result.endpoint()["output"] == {"$ref": "#/schemas/Thing"}
    assert result.written["schemas"] == {
        "Thing": {"type": "object", "properties": {"box": {"$ref": "#/schemas/Box"}}},
        "Box": {"type": "object", "properties": {"of": {"$ref": "#/schemas/more"}}},
        "more": {"type": "string"},
    }


def test_a_ref_into_the_middle_of_a_description_gets_a_name(tmp_path: Path) -> None:
    reference = {"$ref": "#/components/schemas/S/properties/a"}
    result = made(tmp_path, answering({"type": "array", "items": reference}, components=SHARED))
    assert result.written["schemas"] == {"S_a": {"type": "string"}}


def test_names_of_schemas_are_such_as_a_pointer_can_name(tmp_path: Path) -> None:
    schemas = {"a/b": {"type": "string"}, "a b": {"type": "integer"}, "x~y%": {"type": "boolean"}}
    refs = ["#/components/schemas/a~1b", "#/components/schemas/a b", "#/components/schemas/x~0y%25"]
    result = made(tmp_path, answering({"anyOf": [{"$ref": ref} for ref in refs]}, components={"schemas": schemas}))
    assert result.written["schemas"].keys() == {"a_b", "a_b_2", "x_y"}
    assert result.notes == ()


def test_a_name_in_an_enum_is_no_reference(tmp_path: Path) -> None:
    result = made(tmp_path, answering({"enum": [{"$ref": "#/schemas/Nothing"}]}))
    assert result.endpoint()["output"] == {"enum": [{"$ref": "#/schemas/Nothing"}]}


def test_properties_may_be_named_like_keywords(tmp_path: Path) -> None:
    properties = {
        name: {"type": "string"} for name in ("$ref", "properties", "<<", "required", "default", "no", "1", "")
    }
    result = made(
        tmp_path,
        v3(
            {
                "responses": answering({"type": "object", "properties": properties})["paths"]["/things"]["get"][
                    "responses"
                ]
            }
        ),
    )
    assert result.endpoint()["output"]["properties"] == properties
