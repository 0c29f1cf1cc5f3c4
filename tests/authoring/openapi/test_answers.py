"""What comes back: outputs by status, files and streams, and what described failures say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.authoring.openapi.importing import Choice
from tests.authoring.openapi.describing import answering, made, v2, v3

Json = Any
A = {"type": "object", "properties": {"a": {"type": "string"}}}
B = {"type": "array", "items": {"type": "integer"}}


def answer(schema: Json = None, media: str = "application/json") -> Json:
    return {"description": "Ok.", **({} if schema is None else {"content": {media: {"schema": schema}}})}


@pytest.mark.parametrize(
    ("answers", "output"),
    [
        ({"200": answer(A)}, A),
        ({"201": answer(A), "404": answer(B)}, A),
        ({"default": answer(A)}, A),
        ({"200": answer(A), "default": answer(B)}, A),
        ({"200": answer(A), "202": answer(B)}, {"200": A, "202": B}),
        ({"2XX": answer(A), "204": answer()}, {"204": None, "2XX": A}),
        ({"200": answer(A, "application/hal+json")}, A),
        ({"200": answer(A, "*/*")}, A),
        ({"200": {"description": "Ok.", "content": {"application/json": {}}}}, True),
    ],
)
def test_the_output_is_what_is_described(answers: Json, output: Json, tmp_path: Path) -> None:
    assert made(tmp_path, v3({"responses": answers})).endpoint()["output"] == output


def test_an_answer_of_swagger_2_has_its_schema_beside_it(tmp_path: Path) -> None:  # CAT-13
    answers = {"200": {"$ref": "#/responses/Ok"}, "500": {"description": "No."}}
    described = v2({"responses": answers}, responses={"Ok": {"description": "Ok.", "schema": A}})
    assert made(tmp_path, described).endpoint()["output"] == A


def test_of_a_read_that_says_nothing_of_its_answer_the_author_is_told(tmp_path: Path) -> None:
    result = made(tmp_path, v3({}))
    assert "output" not in result.endpoint()
    assert any("the tool answers empty; write `output: true`" in note for note in result.notes)
    assert made(tmp_path, v3({}, method="delete")).notes == ()


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        (v3({"responses": {"200": answer({"type": "string"}, "image/png")}}), "media"),
        (v3({"responses": {"200": answer({"type": "string", "format": "binary"}, "*/*")}}), "media"),
        (
            v2({"responses": {"200": {"description": "Ok.", "schema": {"type": "file"}}}, "produces": ["image/png"]}),
            "media",
        ),
        (v2({"responses": {"200": {"description": "Ok.", "schema": A}}, "produces": ["text/xml"]}), "media"),
        (v3({"responses": {"200": answer({"type": "string"}, "text/event-stream")}}), "stream"),
    ],
)
def test_what_is_no_json_is_a_file_or_a_stream(description: Json, kind: str, tmp_path: Path) -> None:
    result = made(tmp_path, description)
    assert result.endpoint()["kind"] == kind
    assert (result.contract.endpoints["op"].tool is None) == (kind == "stream")


def failing(*schemas: Json) -> dict[str, Json]:
    statuses = ("400", "404", "409")
    return {"200": answer(A), **{status: answer(schema) for status, schema in zip(statuses, schemas, strict=False)}}


def error(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schemas", "facts"),
    [
        ([error(message=TEXT)], {"message": "/message"}),
        ([error(errorCode=TEXT, detail=TEXT), error(other=TEXT)], {"code": "/errorCode", "message": "/detail"}),
        ([error(error=error(type=TEXT, message=TEXT))], {"code": "/error/type", "message": "/error/message"}),
        ([error(error=error(code=TEXT, message=TEXT))], None),  # what is read without being told
        ([{"allOf": [error(code={"type": "integer"}, message=TEXT)]}], {"message": "/message"}),
        ([TEXT], None),
    ],
)
def test_the_backend_says_where_error_bodies_keep_their_facts(schemas: list[Json], facts: Json, tmp_path: Path) -> None:
    result = made(tmp_path, v3({"responses": failing(*schemas)}))
    assert result.written["backends"]["things"].get("errors") == facts


def test_codes_that_an_error_body_lists_are_declared(tmp_path: Path) -> None:
    responses = failing(
        error(code={"type": "string", "enum": ["BAD_NAME", "not a code"]}, message=TEXT),
        error(code={"type": "string", "enum": ["GONE_AWAY", "NEVER_WAS"]}, message=TEXT),
    )
    responses["400"]["description"] = "The name\nis bad."
    result = made(tmp_path, v3({"responses": responses}))
    assert result.endpoint()["errors"] == {
        "BAD_NAME": {"status": 400, "hint": "The name is bad."},
        "GONE_AWAY": {"status": 404},
        "NEVER_WAS": {"status": 404},
    }


def test_headers_and_links_of_answers_are_told_once(tmp_path: Path) -> None:
    answers = answering(A)["paths"]["/things"]["get"]["responses"]
    answers["200"] |= {
        "headers": {"X-Total": {"schema": {"type": "integer"}}},
        "links": {"next": {"operationId": "op"}},
    }
    described = v3({"responses": answers, "callbacks": {"done": {}}}, webhooks={"x": {}})
    assert [note.partition(": ")[::2] for note in made(tmp_path, described).notes] == [
        ("#/webhooks", "webhooks are calls that the API makes; they are left out"),
        ("#/paths/~1things/get/callbacks", "callbacks are calls that the API makes; they are left out"),
        ("#/paths/~1things/get/responses/200/links", "links of answers have no place in a contract; they are left out"),
        (
            "#/paths/~1things/get/responses/200/headers",
            "headers of answers have no place in a contract; they are left out",
        ),
    ]


def test_observe_is_for_descriptions_that_are_not_to_be_trusted(tmp_path: Path) -> None:
    assert made(tmp_path, answering(A), Choice(observe=True)).endpoint()["validate"] == "observe"
    assert "validate" not in made(tmp_path, answering(A)).endpoint()
