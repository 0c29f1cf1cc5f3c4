"""The whole import: what is offered as a tool, ids, backends, and one clear line for what is no description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.authoring.openapi.importing import Choice, Refused
from tests.authoring.openapi.describing import answering, made, tried, v2, v3

Json = Any


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("{", "this is not JSON: EOF while parsing an object at line 1 column 1"),
        ('{"openapi": "3.0.0", "openapi": "3.0.1"}', "this is not JSON"),
        ("[1]", "this is no OpenAPI description: it is not a mapping"),
        ("a: [\n", "line 2, column 1: a `{` or `[` is not closed"),
        ("a: &a [*a]", "line 1, column 8: the anchor of the alias `*a` stands inside what it repeats; write it out"),
        ("a: 1\na: 2", "line 2, column 1: this key is already written on line 1"),
        ("just text", "this is no OpenAPI description: it is not a mapping"),
        ("a: \x00", "line 1, column 4: the character U+0000 is not allowed in YAML"),
        ("\xff\xfe\x00a", "line 1, column 1: the file is not UTF-8 text"),
        ('{"a": ' * 300 + "1" + "}" * 300, "this is not JSON: recursion limit exceeded"),
        ("a: " + "[" * 300, "line 1, column 103: this is more than 100 levels deep"),
        ("{}", "it has neither `openapi` nor `swagger` at its root"),
        ('{"swagger": "1.2", "paths": {}}', "Swagger 1.2 is not read"),
        ('{"openapi": "4.0.0", "paths": {}}', "OpenAPI 4.0.0 is not read"),
        ('{"openapi": 3, "paths": {}}', "OpenAPI 3 is not read"),
        ('{"openapi": "3.1.0"}', "the description has no `paths`"),
        ('{"openapi": "3.1.0", "paths": []}', "the description has no `paths`"),
        ('{"openapi": "3.1.0", "paths": {"/a": {}}}', "the description has no operation that could be read"),
        ('{"openapi": "3.1.0", "paths": {"/a": {"trace": {}}}}', "no operation could be imported; #/paths/~1a/trace: "),
    ],
)
def test_what_is_no_description_is_refused_with_one_line(text: str, said: str, tmp_path: Path) -> None:
    refused = tried(tmp_path, text.encode("latin-1"))
    assert isinstance(refused, Refused)
    assert said in refused.message
    assert "\n" not in refused.message
    assert not refused.misused


def test_a_description_nested_as_deep_as_can_be_read_is_no_traceback(tmp_path: Path) -> None:
    schema: Json = {"type": "string"}
    for _ in range(45):
        schema = {"type": "object", "properties": {"a": schema}}
    other = answering({"type": "string"})["paths"]["/things"]["get"]
    description = answering(schema)
    description["paths"]["/others"] = {"get": {**other, "operationId": "other"}}
    result = made(tmp_path, description)
    assert result.written["endpoints"].keys() in ({"op", "other"}, {"other"})
    for _ in range(45):
        schema = {"type": "object", "properties": {"a": schema}}
    description["paths"]["/things"] = answering(schema)["paths"]["/things"]
    result = made(tmp_path, description)
    assert result.written["endpoints"].keys() == {"other"}
    assert any("GET /things is left out: `check` would refuse it: " in note for note in result.notes)


def several(**operations: Json) -> dict[str, Json]:
    described = v3({})
    described["paths"] = {"/things/{id}": {method: {"responses": {}, **each} for method, each in operations.items()}}
    return described


def test_what_reads_is_a_tool_and_what_writes_is_one_where_it_is_chosen(tmp_path: Path) -> None:
    described = several(get={}, post={}, delete={"operationId": "drop"})
    tools = {
        "": {"get_things_id": "read"},
        "all": {"get_things_id": "read", "post_things_id": "write", "drop": "write"},
        "only": {"drop": "write", "post_things_id": "write"},
    }
    for word, choice in {
        "": Choice(),
        "all": Choice(all=True),
        "only": Choice(only=("POST /things/{id}", "drop")),
    }.items():
        contract = made(tmp_path, described, choice).contract
        found = {each.id: each.tool.safety_tier for each in contract.endpoints.values() if each.tool}
        assert found == tools[word]
    text = made(tmp_path, described, Choice()).imported.contract
    assert text.count("expose: [http] # no tool, since it writes: [http, mcp, agent, cli] makes it one") == 2
    text = made(tmp_path, several(head={}), Choice()).imported.contract
    assert "expose: [http] # no tool, since it answers nothing: [http, mcp, agent, cli] makes it one" in text


def test_an_operation_that_is_not_there_is_a_slip_of_the_caller(tmp_path: Path) -> None:
    refused = tried(tmp_path, several(get={"operationId": "getThing"}), Choice(only=("getThings",)))
    assert refused == Refused('--only: there is no operation "getThings"; did you mean "getThing"?', misused=True)


@pytest.mark.parametrize(
    ("operations", "ids"),
    [
        ({"get": {"operationId": "things.get"}}, ["things.get"]),
        ({"get": {"operationId": "Things/get one!"}}, ["Things_get_one"]),
        ({"get": {}, "put": {"operationId": " "}}, ["get_things_id", "put_things_id"]),
        # of two with one name none keeps it, so that their order decides nothing
        ({"get": {"operationId": "thing"}, "put": {"operationId": "Thing"}}, ["get_things_id", "put_things_id"]),
        ({"get": {"operationId": "a.b"}, "put": {"operationId": "a_b"}}, ["get_things_id", "put_things_id"]),
        ({"get": {"operationId": "x" * 300}}, ["x" * 150]),
        ({"get": {"operationId": "日本"}}, ["get_things_id"]),
    ],
)
def test_ids_are_names_that_tools_can_have(operations: Json, ids: list[str], tmp_path: Path) -> None:
    assert list(made(tmp_path, several(**operations)).contract.endpoints) == ids


def test_paths_that_read_the_same_get_ids_that_differ(tmp_path: Path) -> None:
    described = v3({})
    described["paths"] = {path: {"get": {"responses": {}}} for path in ("/a/b", "/a_b", "/a.b")}
    names = list(made(tmp_path, described).contract.endpoints)
    described["paths"] = dict(reversed(described["paths"].items()))
    assert names == list(made(tmp_path, described).contract.endpoints)[::-1]
    assert len(set(names)) == 3


@pytest.mark.parametrize(
    ("description", "url", "said"),
    [
        (v2({}, schemes=["http", "https"], basePath="/v1/"), "https://things.example/v1", "http://things.example/v1"),
        (v2({}, basePath="v1"), "http://things.example/v1", None),
        (v2({}, host="", basePath="/v1"), "http://127.0.0.1:8000/v1", "names no host"),
        (v2({}, schemes=["ws"]), "http://127.0.0.1:8000", "ws:// is no http or https URL"),
        (v3({}, servers=[]), "http://127.0.0.1:8000", "names no host"),
        (v3({}, servers=[{"url": "/v1"}]), "http://127.0.0.1:8000/v1", "names no host"),
        (
            v3(
                {},
                servers=[
                    {"url": "https://{at}.example/{v}/", "variables": {"at": {"default": "eu"}, "v": {"default": "2"}}}
                ],
            ),
            "https://eu.example/2",
            None,
        ),
        (
            v3({}, servers=[{"url": "https://a.example"}, {"url": "https://b.example"}]),
            "https://a.example",
            "https://b.example",
        ),
        (
            v3({}, servers=[{"url": "wss://a.example"}, {"url": "https://b.example"}]),
            "https://b.example",
            "https://b.example",
        ),
        (
            v3({}, servers=[{"url": "https://me:secret@a.example/x?y=z"}]),
            "https://a.example/x",
            "its credentials, query",
        ),
        (v3({}, servers=[{"url": "http://h/${file:/etc/passwd}"}]), "http://127.0.0.1:8000", "no http or https URL"),
    ],
)
def test_the_backend_is_the_first_server_and_others_are_told(
    description: Json, url: str, said: str, tmp_path: Path
) -> None:
    description = json.loads(json.dumps(description).replace('"host": "", ', ""))
    result = made(tmp_path, description)
    (backend,) = result.contract.backends.values()
    assert (backend.name, backend.url) == ("things", url)
    told = [note for note in result.notes if note.startswith(("#/servers", "#/host"))]
    assert bool(told) == (said is not None)
    if said is not None:
        assert said in told[0]


def test_operations_with_servers_of_their_own_get_backends_of_their_own(tmp_path: Path) -> None:
    described = several(get={}, put={"servers": [{"url": "https://writes.example"}]})
    result = made(tmp_path, described)
    assert {each.id: each.backend for each in result.contract.endpoints.values()} == {
        "get_things_id": "things",
        "put_things_id": "things-2",
    }
    assert result.contract.backends["things-2"].url == "https://writes.example"
    result = made(tmp_path, described, Choice(url="http://127.0.0.1:9/x", all=True))
    assert [each.url for each in result.contract.backends.values()] == ["http://127.0.0.1:9/x"]


def test_credentials_stand_in_comments_and_no_secret_is_asked_for_by_itself(tmp_path: Path) -> None:
    schemes = {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "basic": {"type": "http", "scheme": "basic"},
        "token": {"type": "http", "scheme": "bearer"},
        "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://login.example/${X}"}}},
        "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "mutual": {"type": "mutualTLS"},
    }
    result = made(tmp_path, v3({}, method="delete", components={"securitySchemes": schemes}))
    assert [note.partition(": ")[2].partition(" needs")[0] for note in result.notes] == [
        "`key` (a key in the header `X-Key`)",
        "`basic` (HTTP Basic)",
        "`token` (a bearer token)",
        "`oauth` (OAuth 2, flow clientCredentials)",
        "`session` (a key in the cookie `sid`)",
        "`mutual` (of the type `mutualTLS`)",
    ]
    assert '#     header: {name: X-Key, value: "${API_KEY}"}' in result.imported.contract
    assert "https://login.example/$${X}" in result.imported.contract
    assert result.contract.backends["things"].auth is None


def test_texts_of_a_description_stay_texts(tmp_path: Path) -> None:
    odd = "# x\n  evil: true\n\x1b[2J\u2028${HOME}"
    described = several(get={"operationId": odd, "summary": odd, "description": odd, "tags": [odd]})
    described["info"] = {"title": odd, "version": odd}
    described["paths"]["/things/{id}"]["get"]["parameters"] = [
        {"name": odd, "in": "query", "description": odd, "schema": {"type": "string", "enum": [odd], "default": odd}}
    ]
    result = made(tmp_path, described)
    (endpoint,) = result.contract.endpoints.values()
    assert "evil: true" in endpoint.description
    (argument,) = set(endpoint.input.property_names) - {"id"}
    assert endpoint.input.property_document(argument)["enum"] == [odd]
    assert "\x1b" not in result.imported.contract
    assert all(note.isprintable() for note in result.notes)


@pytest.mark.parametrize(
    ("said", "title", "description"),
    [
        ({"summary": "Short."}, None, "Short."),
        ({"description": "Long."}, None, "Long."),
        ({"summary": "Short.", "description": "Long."}, "Short.", "Long."),
        ({"summary": "Same.", "description": "Same."}, None, "Same."),
        ({"summary": "s" * 101, "description": "Long."}, None, "s" * 101 + "\n\nLong."),
        ({"summary": " ", "description": "\n"}, None, "GET /things/{id}."),
        ({"summary": "Old.", "deprecated": True}, None, "Old. Deprecated."),
        ({"description": "a\r\n\r\n\r\n\r\n  b\t\n"}, None, "a\n\n  b"),
    ],
)
def test_title_and_description(said: Json, title: str | None, description: str, tmp_path: Path) -> None:
    endpoint = made(tmp_path, several(get={"operationId": "op", **said})).contract.endpoints["op"]
    assert (endpoint.title, endpoint.description) == (title, description)


@pytest.mark.parametrize(
    "broken",
    [
        {"/a": None},
        {"/a": {"get": None}},
        {"/a": {"get": {"parameters": {"a": 1}, "responses": []}}},
        {"/a": {"get": {"parameters": [None, 1, {"$ref": 1}, {"name": 1, "in": "query"}], "responses": {"200": 1}}}},
        {"/a": {"get": {"parameters": [{"name": "a", "in": ["x"]}]}}},
        {"/a": {"post": {"requestBody": [], "responses": {"200": {"content": []}}}}},
        {"/a": {"post": {"requestBody": {"content": {"application/json": None}}}}},
        {"/a": {"post": {"requestBody": {"content": {"application/json": {"schema": 3}}}}}},
        {"/a": {"get": {"operationId": {}, "summary": 3, "description": [], "tags": 1, "servers": [1]}}},
        {"/a": {"$ref": "#/paths/~1a"}},
        {"a": {"get": {}}, "/{": {"get": {}}, "/../a": {"get": {}}, "/{}": {"get": {}}},
        {"/a": {"get": {"responses": {"200": {"$ref": "#/nothing"}}, "callbacks": 3}}},
        {
            "/a": {
                "get": {
                    "responses": {"200": {"content": {"application/json": {"schema": {"properties": [], "allOf": {}}}}}}
                }
            }
        },
    ],
)
@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
def test_what_is_broken_inside_leaves_the_rest(broken: Json, version: str, tmp_path: Path) -> None:
    described = v2({}) if version == "2.0" else v3({}, version=version)
    described["paths"] |= broken
    assert "op" in made(tmp_path, described).contract.endpoints
