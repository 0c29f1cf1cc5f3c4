"""What the tool of an endpoint says of itself, from contracts as operators write them; and when the digest moves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.catalog.advertise import Advertised, advertise, catalog_digest
from gateway.contract import Contract, load

Json = Any
PLAIN = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


@pytest.fixture
def tool(tmp_path: Path) -> Any:
    """Makes one endpoint of its keys, and what its tool says."""

    def made(endpoint: Json, **document: Json) -> Advertised:
        whole = {
            "version": 1,
            "backends": {"b": {"url": "http://127.0.0.1:9"}},
            "endpoints": {"thing.get": {"request": "GET /thing", "description": " What it is for. ", **endpoint}},
            **document,
        }
        path = tmp_path / "gateway.yaml"
        path.write_text(yaml.safe_dump(whole))
        contract = load(path)
        assert isinstance(contract, Contract), contract
        return advertise(contract.endpoints["thing.get"])

    return made


def test_a_plain_tool(tool: Any) -> None:
    said = tool({"output": PLAIN, "tool": {"title": "A thing"}})
    assert said.mcp() == {
        "name": said.name,
        "title": "A thing",
        "description": "What it is for.",
        "inputSchema": {"type": "object", "additionalProperties": False},
        "outputSchema": PLAIN,
        "annotations": dict(said.annotations),
    }
    assert said.annotations["readOnlyHint"] is True
    assert said.wrapped is False


@pytest.mark.requirement("196-4-view-schema-is-advertised")
def test_a_view_shows_its_own_shape_and_not_the_full_one(tool: Any) -> None:  # CAT-15
    full = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    view = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
    assert tool({"output": full, "tool": {"view": {"output": view}}}).output_schema == view


@pytest.mark.requirement("196-2-advertised-default", "196-2-default-beside-ref")
def test_a_view_default_is_shown_and_its_argument_is_not_required(tool: Any) -> None:
    said = tool(
        {
            "input": {
                "type": "object",
                "required": ["q", "limit", "unit"],
                "properties": {
                    "q": {"type": "string"},
                    "limit": {"type": "integer"},
                    "unit": {"$ref": "#/schemas/Unit", "description": "u"},
                },
            },
            "output": PLAIN,
            "tool": {"view": {"defaults": {"limit": 25, "unit": "m"}}},
        },
        schemas={"Unit": {"enum": ["m", "ft"]}},
    )
    assert said.input_schema["required"] == ["q"]
    assert said.input_schema["properties"]["limit"] == {"type": "integer", "default": 25}
    assert said.input_schema["properties"]["unit"] == {
        "allOf": [{"$ref": "#/$defs/Unit"}],
        "description": "u",
        "default": "m",
    }
    assert said.input_schema["$defs"] == {"Unit": {"enum": ["m", "ft"]}}


def test_a_root_that_may_be_no_object_is_wrapped(tool: Any) -> None:  # CAT-05
    for output in ({"type": "array", "items": {"type": "integer"}}, {"type": ["object", "null"]}, {"type": "string"}):
        said = tool({"output": output})
        assert said.wrapped is True
        assert said.output_schema == {"type": "object", "properties": {"result": output}, "required": ["result"]}


def test_answers_by_status_may_be_any_of_theirs(tool: Any) -> None:
    said = tool({"output": {"200": PLAIN, "201": {"type": "object", "properties": {"id": {"type": "integer"}}}}})
    assert said.output_schema == {
        "type": "object",
        "anyOf": [PLAIN, {"type": "object", "properties": {"id": {"type": "integer"}}}],
    }
    assert tool({"output": {"200": PLAIN, "203": PLAIN}}).output_schema == PLAIN
    assert tool({"output": {"200": PLAIN, "204": {"type": "null"}}}).wrapped is True


def test_a_tool_without_output_or_with_a_file_advertises_none(tool: Any) -> None:
    assert tool({}).output_schema is None
    assert tool({}).wrapped is False
    assert tool({"kind": "media"}).output_schema is None


def test_a_schema_of_schemas_is_cut_where_it_closes_while_the_contract_keeps_it_whole(
    tool: Any,
) -> None:  # CAT-10, CAT-12
    comment = {"type": "object", "properties": {"text": {"type": "string"}, "parent": {"$ref": "#/schemas/Comment"}}}
    said = tool({"output": {"$ref": "#/schemas/Comment"}}, schemas={"Comment": comment})
    assert said.output_schema == {
        "type": "object",
        "$ref": "#/$defs/Comment",
        "$defs": {
            "Comment": {"type": "object", "properties": {"text": {"type": "string"}, "parent": {"type": "object"}}}
        },
    }


def said(**changed: Json) -> Advertised:
    made = Advertised(
        name="t",
        title=None,
        description="d",
        input_schema={"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {"default": 1}}},
        output_schema={"type": "object", "$defs": {"R": {"required": ["x", "y"]}}},
        wrapped=False,
        annotations={"readOnlyHint": True},
    )
    return replace(made, **changed)


def test_the_digest_is_16_hex_and_does_not_depend_on_order() -> None:
    digest = catalog_digest([said(), said(name="u")])
    assert len(digest) == 16
    assert int(digest, 16) >= 0
    assert catalog_digest([said(name="u"), said()]) == digest
    turned = {"properties": {"b": {"default": 1}, "a": {}}, "required": ["b", "a"], "type": "object"}
    assert catalog_digest([said(input_schema=turned), said(name="u")]) == digest
    definitions = {"type": "object", "$defs": {"R": {"required": ["y", "x"]}}}
    assert catalog_digest([said(output_schema=definitions), said(name="u")]) == digest


@pytest.mark.requirement("s12-76-digest")
@pytest.mark.parametrize(
    "changed",
    [
        {"name": "v"},
        {"description": "e"},
        {"input_schema": {"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {"default": 2}}}},
        {"input_schema": {"type": "object", "required": ["a"], "properties": {"a": {}, "b": {"default": 1}}}},
        {"output_schema": None},
        {"output_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": False}},
    ],
)
def test_the_digest_moves_with_what_a_tool_says(changed: Json) -> None:
    assert catalog_digest([said(**changed)]) != catalog_digest([said()])


def test_the_order_of_lists_that_are_data_moves_the_digest() -> None:
    one, other = (
        {"type": "object", "properties": {"a": {"default": {"required": order}}}} for order in (["x", "y"], ["y", "x"])
    )
    assert catalog_digest([said(input_schema=one)]) != catalog_digest([said(input_schema=other)])


def test_the_digest_is_the_same_on_every_machine() -> None:
    assert catalog_digest([]) == "4f53cda18c2baa0c"
    assert json.dumps(said().mcp()) == json.dumps(said().mcp())
