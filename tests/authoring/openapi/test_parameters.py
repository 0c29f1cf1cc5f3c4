"""Parameters of each version become arguments: under which name, with which schema, and sent where and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.authoring.openapi.describing import made, v2, v3

Json = Any
TEXTS = {"type": "array", "items": {"type": "string"}}


def query(**said: Json) -> dict[str, Json]:
    return {"name": "q", "in": "query", **said}


@pytest.mark.parametrize(
    ("parameter", "rule"),
    [
        (query(type="string"), None),
        (query(**TEXTS, collectionFormat="multi"), None),  # CAT-13: what a list of each form is in 2.0
        (query(**TEXTS, collectionFormat="csv"), {"explode": False}),
        (query(**TEXTS), {"explode": False}),
        (query(**TEXTS, collectionFormat="ssv"), {"style": "spaceDelimited"}),
        (query(**TEXTS, collectionFormat="pipes"), {"style": "pipeDelimited"}),
        (query(**TEXTS, collectionFormat="multi", allowEmptyValue=True), {"empty": "blank"}),
        ({"name": "q", "in": "header", **TEXTS}, {"in": "header"}),
        ({"name": "q", "in": "header", "type": "integer"}, {"in": "header"}),
    ],
)
def test_a_parameter_of_swagger_2_is_sent_as_it_says(parameter: Json, rule: Json, tmp_path: Path) -> None:
    endpoint = made(tmp_path, v2({"parameters": [parameter]})).endpoint()
    assert endpoint.get("send", {}).get("q") == rule


@pytest.mark.parametrize(
    ("parameter", "rule"),
    [
        (query(schema=TEXTS), None),
        (query(schema=TEXTS, explode=True, style="form"), None),
        (query(schema=TEXTS, explode=False), {"explode": False}),
        (query(schema=TEXTS, style="pipeDelimited"), {"style": "pipeDelimited"}),
        (query(schema=TEXTS, style="spaceDelimited", explode=True), {"style": "spaceDelimited", "explode": True}),
        (query(schema={"type": "string"}, allowReserved=True), {"reserved": True}),
        (query(schema={"type": "object"}, style="deepObject", explode=True), {"style": "deepObject"}),
        (query(content={"application/json": {"schema": {"type": "object"}}}), {"encode": "json"}),
        (query(content={"text/plain": {"schema": {"type": "string"}}}), None),
        ({"name": "q", "in": "cookie", "schema": {"type": "string"}}, {"in": "cookie"}),
        ({"name": "q", "in": "header", "schema": TEXTS}, {"in": "header"}),
    ],
)
def test_a_parameter_of_openapi_3_is_sent_as_it_says(parameter: Json, rule: Json, tmp_path: Path) -> None:
    endpoint = made(tmp_path, v3({"parameters": [parameter]})).endpoint()
    assert endpoint.get("send", {}).get("q") == rule
    assert "q" in endpoint["input"]["properties"]


def test_what_a_parameter_of_swagger_2_says_of_its_values_is_its_schema(tmp_path: Path) -> None:
    parameter = query(type="integer", minimum=1, maximum=9, exclusiveMaximum=True, default=3, description="How many.")
    endpoint = made(tmp_path, v2({"parameters": [parameter]})).endpoint()
    assert endpoint["input"] == {
        "type": "object",
        "properties": {
            "q": {"type": "integer", "description": "How many.", "minimum": 1, "exclusiveMaximum": 9, "default": 3}
        },
    }


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        (query(**TEXTS, collectionFormat="tsv"), "the query parameter `q`: `collectionFormat: tsv` has no spelling"),
        ({"name": "q", "in": "header", **TEXTS, "collectionFormat": "pipes"}, "the header `q`: `collectionFormat"),
        (query(type="array", items=TEXTS), "a list of lists or objects has no spelling there"),
        (
            {"name": "Authorization", "in": "header", "type": "string"},
            "the header `Authorization` is the gateway's own",
        ),
        ({"name": "a b", "in": "header", "type": "string"}, "`a b` is no name for a header"),
        ({"name": "b", "in": "cookie", "type": "string"}, "a parameter of Swagger 2.0 is not sent there"),
        ({"name": "id", "in": "path", "required": True, "type": "string"}, "the path has no `{id}`"),
        ({"in": "query", "type": "string"}, "this parameter has no name"),
        ({"$ref": "#/parameters/none"}, '"#/parameters/none" names nothing; this is left out'),
    ],
)
def test_what_has_no_form_is_left_out_and_said(parameter: Json, said: str, tmp_path: Path) -> None:
    result = made(tmp_path, v2({"parameters": [parameter]}))
    assert "input" not in result.endpoint()
    assert any(said in note and note.startswith("#/paths/~1things/get/parameters/0") for note in result.notes)


@pytest.mark.parametrize(
    "parameter",
    [
        query(schema=TEXTS, style="deepObject"),
        query(schema={"type": "object"}),  # its keys are not known
        query(schema={"type": "object", "properties": {"a": {"type": "string"}}}, explode=False),
        {"name": "q", "in": "cookie", "schema": TEXTS},
        {"name": "q", "in": "header", "schema": {"type": "object"}},
    ],
)
def test_an_optional_one_is_left_out_and_a_required_one_takes_its_operation_along(
    parameter: Json, tmp_path: Path
) -> None:
    other = {"get": {"operationId": "other", "responses": {}}}
    description = v3({"parameters": [parameter]})
    description["paths"]["/others"] = other
    result = made(tmp_path, description)
    assert result.written["endpoints"].keys() == {"op", "other"}
    assert "input" not in result.endpoint()

    parameter = {**parameter, "required": True}
    description["paths"]["/things"]["get"]["parameters"] = [parameter]
    result = made(tmp_path, description)
    assert result.written["endpoints"].keys() == {"other"}
    assert any("GET /things is left out" in note and "and it is required" in note for note in result.notes)
    assert result.imported.told("a")[-1] == "a: 1 of 2 operations imported, 1 of them as tools"


def test_keys_of_an_exploded_object_are_arguments_of_their_own(tmp_path: Path) -> None:
    page = {"type": "object", "required": ["page"], "properties": {"page": {"type": "integer"}, "sort": TEXTS}}
    parameter = query(schema={"$ref": "#/components/schemas/Page"}, required=True)
    endpoint = made(tmp_path, v3({"parameters": [parameter]}, components={"schemas": {"Page": page}})).endpoint()
    assert endpoint["input"] == {
        "type": "object",
        "required": ["page"],
        "properties": {"page": {"type": "integer"}, "sort": TEXTS},
    }


def test_names_are_such_as_models_can_write_and_clash_with_nothing(tmp_path: Path) -> None:
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "id", "in": "query", "schema": {"type": "string"}},
        {"name": "ID", "in": "header", "schema": {"type": "string"}},
        {"name": "filter[name]", "in": "query", "schema": {"type": "string"}},
        {"name": "$top", "in": "query", "schema": {"type": "integer"}},
        {"name": "имя", "in": "query", "schema": {"type": "string"}},
    ]
    endpoint = made(tmp_path, v3({"parameters": parameters}, "/things/{id}")).endpoint()
    assert list(endpoint["input"]["properties"]) == ["id", "query_id", "filter_name", "top", "argument", "ID"]
    assert endpoint["send"] == {
        "query_id": {"name": "id"},
        "filter_name": {"name": "filter[name]"},
        "top": {"name": "$top"},
        "argument": {"name": "имя"},
        "ID": {"in": "header"},
    }


@pytest.mark.parametrize(
    ("path", "parameters", "request_line", "arguments", "required"),
    [
        ("/a/{id}", [], "GET /a/{id}", ["id"], ["id"]),  # not described
        ("/a?id={id}&x=1", [query(name="id", type="string")], "GET /a?x=1", ["id"], ["id"]),
        ("/a{?page,size}", [query(name="page", type="integer")], "GET /a", ["page"], None),
        ("/a/ü", [], "GET /a/%C3%BC", [], None),
        ("/a#b", [], "GET /a", [], None),  # a fragment is never sent
    ],
)
def test_a_path_is_written_as_it_goes_on_the_wire(
    path: str, parameters: Json, request_line: str, arguments: list[str], required: Json, tmp_path: Path
) -> None:
    endpoint = made(tmp_path, v2({"parameters": parameters}, path)).endpoint()
    assert endpoint["request"] == request_line
    assert list(endpoint.get("input", {}).get("properties", {})) == arguments
    assert endpoint.get("input", {}).get("required") == required


def test_an_operation_overrides_the_parameters_of_its_path(tmp_path: Path) -> None:
    description = v2({"parameters": [query(type="integer")]})
    description["paths"]["/things"]["parameters"] = [query(type="string"), query(name="all", type="boolean")]
    properties = made(tmp_path, description).endpoint()["input"]["properties"]
    assert properties == {"q": {"type": "integer"}, "all": {"type": "boolean"}}


def test_what_carries_a_credential_is_no_argument(tmp_path: Path) -> None:
    key = {"type": "apiKey", "in": "query", "name": "q"}
    result = made(tmp_path, v2({"parameters": [query(type="string")]}, securityDefinitions={"key": key}))
    assert "input" not in result.endpoint()
    assert any("`q` is the credential `key`, which the backend's `auth` sends" in note for note in result.notes)
    assert '#     query: {name: q, value: "${API_KEY}"}' in result.imported.contract


def test_a_default_that_breaks_its_own_schema_is_left_out(tmp_path: Path) -> None:
    result = made(tmp_path, v2({"parameters": [query(type="integer", default="ten")]}))
    assert result.endpoint()["input"]["properties"] == {"q": {"type": "integer"}}
    assert any("the default of `q` breaks its own schema" in note for note in result.notes)
