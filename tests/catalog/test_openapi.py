"""The served OpenAPI document: what the contract declares of requests and full answers, and nothing of tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog.openapi import openapi
from gateway.contract.model import Contract
from gateway.json_pointer import follow
from tests.rig import accepted

Json = Any

HEAD = """
    version: 1
    backends:
      api: {url: http://127.0.0.1:1/base/, passthrough: 127.0.0.1:18080}
      other: {url: http://127.0.0.1:2}
"""


def served(contract: Contract) -> bytes:
    return openapi(contract, contract.endpoints.values())


def document_of(folder: Path, text: str) -> Json:
    return json.loads(served(accepted(folder, HEAD + text)))


def references(node: Json) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)


def assert_whole(document: Json) -> None:
    """Every reference leads to something inside the document."""
    for reference in references(document):
        assert reference.startswith("#/components/schemas/")
        assert follow(document, reference[1:]) is not None, reference


LIST = """
    endpoints:
      people.list:
        backend: api
        request: GET /people/{team}?kind=full
        title: People
        description: Lists people.
        expose: [http, mcp]
        input:
          type: object
          required: [team, since]
          properties:
            team: {type: string, description: Team slug}
            since: {type: string}
            include: {type: array, items: {type: string}}
            filter: {type: object}
            who: {type: string}
            session: {type: string}
        send:
          include: {style: pipeDelimited, name: inc, empty: omit}
          filter: {encode: json}
          who: {in: header, name: X-Who}
          session: {in: cookie}
        output:
          type: object
          properties: {people: {type: array, items: {$ref: "#/schemas/Person"}}}
        VIEW
      people.make:
        backend: api
        request: POST /people/{group}
        description: Makes a person.
        expose: [http, mcp]
        input:
          type: object
          required: [group, name]
          properties: {group: {type: string}, name: {type: string}, boss: {$ref: "#/schemas/Person"}}
        send: {name: {name: full_name}}
        output: {"201": {$ref: "#/schemas/Person"}, "202": {type: object}}
      hidden: {backend: api, request: GET /hidden, description: Not http., expose: [mcp]}
    schemas:
      Person: {type: object, properties: {id: {type: integer}, boss: {$ref: "#/schemas/Person"}}}
"""
VIEW = """tool:
          view:
            defaults: {include: []}
            output: {type: object, properties: {people: {type: array, items: {type: object, properties: {id: {type: integer}}}}}}
"""  # noqa: E501  # a schema in one line


@pytest.mark.requirement("196-c-openapi-unchanged")
def test_the_document_is_the_same_bytes_with_and_without_views(tmp_path: Path) -> None:
    texts = {}
    for name, view in (("with", VIEW), ("without", "")):
        (tmp_path / name).mkdir()
        texts[name] = served(accepted(tmp_path / name, HEAD + LIST.replace("VIEW", view)))
    assert texts["with"] == texts["without"]
    assert b"people.list" in texts["with"]


def test_a_request_is_described_as_it_is_sent(tmp_path: Path) -> None:
    document = document_of(tmp_path, LIST.replace("VIEW", ""))
    assert_whole(document)
    assert document["openapi"] == "3.1.1"
    assert document["paths"]["/people/{group}"]["get"] == {
        "operationId": "people.list",
        "summary": "People",
        "description": "Lists people.",
        "servers": [{"url": "http://127.0.0.1:18080/base"}],
        "parameters": [
            {
                "name": "group",  # as the other template of this path names it
                "in": "path",
                "required": True,
                "description": "Team slug",
                "schema": {"type": "string", "description": "Team slug"},
            },
            {"name": "kind", "in": "query", "required": True, "schema": {"const": "full"}},
            {"name": "since", "in": "query", "required": True, "schema": {"type": "string"}},
            {
                "name": "inc",
                "in": "query",
                "style": "pipeDelimited",
                "schema": {"type": "array", "items": {"type": "string"}},
            },
            {"name": "filter", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            {"name": "X-Who", "in": "header", "schema": {"type": "string"}},
            {"name": "session", "in": "cookie", "schema": {"type": "string"}},
        ],
        "responses": {
            "2XX": {
                "description": "The full answer.",
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "properties": {
                                "people": {"type": "array", "items": {"$ref": "#/components/schemas/Person"}}
                            },
                        }
                    }
                },
            },
            "default": {"description": "Whatever else the backend answers."},
        },
    }


def test_templates_that_differ_in_names_alone_are_one_path(tmp_path: Path) -> None:
    document = document_of(tmp_path, LIST.replace("VIEW", ""))
    assert list(document["paths"]) == ["/people/{group}"]
    (item,) = document["paths"].values()
    (name,) = {operation["parameters"][0]["name"] for operation in item.values()}
    assert f"{{{name}}}" in next(iter(document["paths"]))
    assert "hidden" not in json.dumps(document)


def test_a_body_has_its_wire_names_and_each_status_its_answer(tmp_path: Path) -> None:
    document = document_of(tmp_path, LIST.replace("VIEW", ""))
    (item,) = document["paths"].values()
    person = {"$ref": "#/components/schemas/Person"}
    assert item["post"]["requestBody"] == {
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {"full_name": {"type": "string"}, "boss": person},
                    "required": ["full_name"],
                }
            }
        },
        "required": True,
    }
    assert list(item["post"]["responses"]) == ["201", "202", "default"]
    assert document["components"]["schemas"]["Person"]["properties"]["boss"] == person


CASES = """
    endpoints:
      a.form:
        backend: api
        request: POST /form
        description: A form.
        expose: [http]
        input: {type: object, properties: {tags: {type: array, items: {type: string}}, meta: {type: object}}}
        send: {body: {type: form}, tags: {explode: false}, meta: {encode: json}}
      b.whole:
        backend: api
        request: PUT /whole
        description: One argument is the body.
        expose: [http]
        input: {type: object, required: [items], properties: {items: {type: array}}}
        send: {body: {argument: items}}
      c.same:
        backend: other
        request: PUT /whole
        description: The same of another backend.
        expose: [http]
      d.choice:
        backend: other
        request: GET /choice
        description: Branches declare arguments.
        expose: [http]
        input: {type: object, oneOf: [{properties: {id: {type: integer}}}, {properties: {name: {type: string}}}]}
      e.file: {backend: other, request: GET /file, description: A file., expose: [http], kind: media}
"""


def test_forms_whole_bodies_files_and_branches(tmp_path: Path) -> None:
    document = document_of(tmp_path, CASES)
    paths = document["paths"]
    form = paths["/form"]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
    assert form["encoding"] == {"tags": {"explode": False}, "meta": {"contentType": "application/json"}}
    whole = paths["/whole"]["put"]["requestBody"]
    assert whole == {"content": {"application/json": {"schema": {"type": "array"}}}, "required": True}
    assert [each["name"] for each in paths["/choice"]["get"]["parameters"]] == ["id", "name"]
    assert paths["/file"]["get"]["responses"]["2XX"]["content"] == {"*/*": {}}
    assert "servers" not in paths["/file"]["get"], "a backend's own address is nobody's business"


def test_one_path_and_method_of_two_backends_are_two_items(tmp_path: Path) -> None:
    paths = document_of(tmp_path, CASES)["paths"]
    assert paths["/whole"]["put"]["operationId"] == "b.whole"
    assert paths["/whole#c.same"]["put"]["operationId"] == "c.same"


def test_a_name_of_two_meanings_is_two_components(tmp_path: Path) -> None:
    endpoint = """
      {id}:
        backend: other
        request: GET /{id}
        description: Has its own definitions.
        expose: [http]
        output: {{$ref: "#/$defs/Node", $defs: {{Node: {{type: object, properties: {{v: {{type: {kind}}}, next: {{$ref: "#/$defs/Node"}}}}}}}}}}
"""  # noqa: E501  # a schema in one line
    text = "    endpoints:" + "".join(
        endpoint.format(id=id_, kind=kind) for id_, kind in (("a", "string"), ("b", "integer"))
    )
    document = document_of(tmp_path, text)
    assert_whole(document)
    kinds = {}
    for path in ("/a", "/b"):
        schema = document["paths"][path]["get"]["responses"]["2XX"]["content"]["application/json"]["schema"]
        node = follow(document, schema["$ref"][1:])
        assert node["properties"]["next"] == schema
        kinds[path] = node["properties"]["v"]["type"]
    assert kinds == {"/a": "string", "/b": "integer"}


def test_a_schema_that_refers_to_itself_becomes_a_component(tmp_path: Path) -> None:
    text = """
    endpoints:
      tree:
        backend: other
        request: GET /tree
        description: A tree.
        expose: [http]
        output:
          type: object
          properties: {kids: {type: array, items: {$ref: "#"}}, "a b/c": {$ref: "#/properties/kids"}}
"""
    document = document_of(tmp_path, text)
    assert_whole(document)


def test_a_listener_on_every_address_is_named_by_a_variable(tmp_path: Path) -> None:
    text = """
    version: 1
    gateway: {insecure: true}
    backends: {api: {url: "http://127.0.0.1:1", passthrough: "0.0.0.0:18080"}}
    endpoints: {a: {request: GET /a, description: A., expose: [http]}}
"""
    document = json.loads(served(accepted(tmp_path, text)))
    (server,) = document["paths"]["/a"]["get"]["servers"]
    assert server["url"] == "http://{host}:18080"
    assert server["variables"]["host"]["default"] == "localhost"
