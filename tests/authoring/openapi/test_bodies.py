"""Request bodies become arguments, or one argument; what no tool can write stays with the pass-through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.authoring.openapi.describing import made, taking, v2, v3

Json = Any
THING: dict[str, Json] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
}
FILE = {"type": "string", "format": "binary"}


def form(schema: Json, media: str = "application/x-www-form-urlencoded", **content: Json) -> Json:
    return v3({"requestBody": {"required": True, "content": {media: {"schema": schema, **content}}}}, method="post")


def test_the_properties_of_an_object_are_arguments(tmp_path: Path) -> None:
    endpoint = made(tmp_path, taking(THING)).endpoint()
    assert endpoint["input"] == {"type": "object", "required": ["name"], "properties": THING["properties"]}
    assert "send" not in endpoint


def test_a_body_of_swagger_2_is_read_as_one(tmp_path: Path) -> None:  # CAT-13
    parameters = [{"name": "thing", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Thing"}}]
    endpoint = made(tmp_path, v2({"parameters": parameters}, method="post", definitions={"Thing": THING})).endpoint()
    assert endpoint["input"] == {"type": "object", "required": ["name"], "properties": THING["properties"]}


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"type": "array", "items": {"type": "string"}}, True),
        ({"type": "object", "additionalProperties": {"type": "string"}}, True),
        ({**THING, "additionalProperties": True}, True),
        ({**THING, "minProperties": 1}, True),
        ({**THING, "nullable": True}, True),
        ({"oneOf": [THING, {"type": "string"}]}, True),
        (THING, False),  # a call without a body is another call than one with an empty one
    ],
)
def test_any_other_body_is_one_argument(schema: Json, required: bool, tmp_path: Path) -> None:
    endpoint = made(tmp_path, taking(schema, required=required)).endpoint()
    assert endpoint["send"] == {"body": {"argument": "body"}}
    assert list(endpoint["input"]["properties"]) == ["body"]
    assert endpoint["input"].get("required") == (["body"] if required else None)


def test_members_of_all_of_are_put_together(tmp_path: Path) -> None:
    more: dict[str, Json] = {"properties": {"colour": {"enum": ["red"]}}}
    schema = {"allOf": [{"$ref": "#/components/schemas/Thing"}, more]}
    endpoint = made(tmp_path, taking(schema, components={"schemas": {"Thing": THING}})).endpoint()
    assert endpoint["input"]["properties"] == THING["properties"] | more["properties"]
    assert endpoint["input"]["required"] == ["name"]


def test_a_field_with_the_name_of_another_argument_gets_its_own(tmp_path: Path) -> None:
    description = taking({"type": "object", "properties": {"id": {"type": "string"}, "body": {"type": "string"}}})
    description["paths"] = {"/things/{id}": description["paths"]["/things"]}
    endpoint = made(tmp_path, description).endpoint()
    assert endpoint["input"]["properties"].keys() == {"id", "body_id", "body_body"}
    assert endpoint["send"] == {"body_id": {"name": "id"}, "body_body": {"name": "body"}}


def test_what_a_server_writes_is_no_argument_and_a_default_of_a_body_is_words(tmp_path: Path) -> None:
    """SCH-11: `readOnly` is not for requests. A default in a body would be sent: in a PATCH it would undo something."""
    schema = {
        "type": "object",
        "required": ["id", "state"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "state": {"type": "string", "default": "open", "description": "What it is."},
        },
    }
    endpoint = made(tmp_path, taking(schema, method="patch")).endpoint()
    state = {"type": "string", "description": 'What it is. Default: "open".'}
    assert endpoint["input"] == {"type": "object", "required": ["state"], "properties": {"state": state}}


def test_fields_of_a_form_are_spelled_as_their_encoding_says(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "meta": {"type": "object"},
            "range": {"type": "object"},
        },
    }
    encoding = {"ids": {"style": "form", "explode": False}, "range": {"style": "deepObject", "explode": True}}
    endpoint = made(tmp_path, form(schema, encoding=encoding)).endpoint()
    assert endpoint["send"] == {
        "body": {"type": "form"},
        "ids": {"explode": False},
        "meta": {"encode": "json"},
        "range": {"style": "deepObject"},
    }


def test_form_data_of_swagger_2_is_a_form(tmp_path: Path) -> None:  # CAT-13
    parameters = [
        {"name": "name", "in": "formData", "type": "string", "required": True},
        {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
    ]
    consumes = ["application/x-www-form-urlencoded"]
    endpoint = made(tmp_path, v2({"parameters": parameters, "consumes": consumes}, method="post")).endpoint()
    assert endpoint["send"] == {"body": {"type": "form"}, "tags": {"style": "pipeDelimited"}}
    result = made(tmp_path, v2({"parameters": parameters, "consumes": ["multipart/form-data"]}, method="post"))
    assert result.endpoint()["send"] == {"body": {"type": "multipart"}}
    assert any("the list `tags` is sent as a part for each item" in note for note in result.notes)


@pytest.mark.parametrize(
    ("description", "kind", "said"),
    [
        (form({"type": "object", "properties": {"f": FILE}}, "multipart/form-data"), "multipart", "the file `f`"),
        (
            v2({"parameters": [{"name": "f", "in": "formData", "type": "file"}]}, method="post"),
            "multipart",
            "the file `f`",
        ),
        (form({"type": "object"}, "multipart/form-data"), "multipart", "whose fields are not known"),
        (form(THING, "application/xml"), "raw", "the body is application/xml, which no tool can write"),
        (form(FILE, "application/octet-stream"), "raw", "the body is application/octet-stream"),
    ],
)
def test_what_no_tool_can_write_stays_with_the_pass_through(
    description: Json, kind: str, said: str, tmp_path: Path
) -> None:
    result = made(tmp_path, description)
    assert result.endpoint()["kind"] == kind
    assert result.endpoint()["expose"] == ["http"]
    assert result.contract.endpoints["op"].tool is None
    assert any(said in note for note in result.notes)


def test_json_is_taken_of_several_media_types(tmp_path: Path) -> None:
    content = {
        "application/xml": {"schema": THING},
        "application/x-www-form-urlencoded": {"schema": THING},
        "application/vnd.things+json": {"schema": THING},
    }
    result = made(tmp_path, v3({"requestBody": {"required": True, "content": content}}, method="post"))
    assert "send" not in result.endpoint()
    assert any(
        "described as application/vnd.things+json, and is sent as application/json" in note for note in result.notes
    )


def test_a_get_has_no_body(tmp_path: Path) -> None:
    description = taking(THING, method="get", required=False)
    description["paths"]["/others"] = taking(THING, method="get")["paths"]["/things"]
    description["paths"]["/others"]["get"]["operationId"] = "other"
    result = made(tmp_path, description)
    assert result.written["endpoints"].keys() == {"op"}
    assert "input" not in result.endpoint()
    assert sum("a GET with a body is no request of a contract" in note for note in result.notes) == 2


def test_a_delete_sends_its_body_as_one(tmp_path: Path) -> None:
    endpoint = made(tmp_path, taking(THING, method="delete")).endpoint()
    assert endpoint["send"] == {"name": {"in": "body"}, "size": {"in": "body"}}
