"""Lists of tools as public bug reports want them, from contracts as they are written to the bytes of the list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from gateway import json_text
from gateway.authoring.cost import costs
from gateway.catalog.positions import every
from gateway.generation import index
from gateway.surfaces.mcp.answers import Listing
from tests.rig import accepted, backend, contract_at, http, running
from tests.surfaces.mcp.fakes import served

Json = Any


def contract(url: str, schemas: Json, output: Json) -> str:
    """A contract of one tool; flow YAML is JSON."""
    endpoints = {"one": {"request": "GET /x", "description": "Told.", "output": output}}
    written = {"backends": {"b": {"url": url}}, "schemas": schemas, "endpoints": endpoints}
    return "version: 1\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in written.items())


def cycles(published: Json, above: tuple[str, ...] = ()) -> Iterator[str]:
    """The references that lead back to where they stand in."""
    for schema in every(published if not above else published["$defs"][above[-1]]):
        if (reference := schema.get("$ref")) is not None:
            name = reference.removeprefix("#/$defs/")
            if name in above:
                yield name
            else:
                yield from cycles(published, (*above, name))


TEXT = {"type": "string"}
A: Json = {"$ref": "#/schemas/A"}
B: Json = {"$ref": "#/schemas/B"}
#: By the way a schema leads back to itself: the schemas, an answer that keeps them and one that breaks them below the
#: place where the published schema is cut.
CYCLES: dict[str, tuple[Json, Json, Json, str]] = {
    "a property": (
        {"A": {"type": "object", "properties": {"text": TEXT, "parent": A}}},
        {"text": "a", "parent": {"parent": {"text": "c"}}},
        {"text": "a", "parent": {"parent": {"text": 7}}},
        "/parent/parent/text",
    ),
    "items": (
        {"A": {"type": "object", "properties": {"text": TEXT, "kids": {"type": "array", "items": A}}}},
        {"kids": [{"kids": []}, {"text": "b"}]},
        {"kids": [{"kids": [{"text": 7}]}]},
        "/kids/0/kids/0/text",
    ),
    "allOf": (
        {"A": {"type": "object", "properties": {"text": TEXT, "in": {"allOf": [A]}}}},
        {"in": {"in": {"text": "c"}}},
        {"in": {"in": {"text": 7}}},
        "/in/in/text",
    ),
    "oneOf": (
        {"A": {"type": "object", "properties": {"text": TEXT, "in": {"oneOf": [{"type": "null"}, A]}}}},
        {"in": {"in": None}},
        {"in": {"in": {"text": 7}}},
        "/in/in/text",
    ),
    "additionalProperties": (
        {"A": {"type": "object", "properties": {"text": TEXT}, "additionalProperties": A}},
        {"x": {"y": {"text": "c"}}},
        {"x": {"y": {"text": 7}}},
        "/x/y/text",
    ),
    "two that call each other": (
        {
            "A": {"type": "object", "properties": {"text": TEXT, "b": B}},
            "B": {"type": "object", "properties": {"a": A}},
        },
        {"b": {"a": {"b": {"a": {"text": "c"}}}}},
        {"b": {"a": {"text": 7}}},
        "/b/a/text",
    ),
}


@pytest.mark.parametrize("by", CYCLES)
async def test_cat_10_cat_12_a_cycle_is_cut_in_the_list_and_whole_in_the_check(by: str, tmp_path: Path) -> None:
    schemas, kept, broken, pointer = CYCLES[by]
    bodies = iter([kept, broken])
    async with backend(lambda _: http(next(bodies))) as api:
        loaded = accepted(tmp_path, contract(api.url, schemas, A))
        (tool,) = index(loaded).catalog("mcp", None).tools
        assert tool.output_schema is not None
        assert list(cycles(tool.output_schema)) == []
        async with running(loaded) as gateway:
            fits, breaks = await gateway.call("one"), await gateway.call("one")
    assert fits.value == kept
    assert breaks.failure is not None
    assert breaks.failure.code == "BACKEND_ANSWER_INVALID"
    assert breaks.failure.details["violations"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    "schemas",
    [{"A": A}, {"A": {"allOf": [A]}}, {"A": {"oneOf": [TEXT, A]}}, {"A": {"not": B}, "B": {"anyOf": [A]}}],
    ids=["a reference", "allOf", "oneOf", "two"],
)
def test_cat_10_a_schema_that_is_only_itself_is_refused(schemas: Json, tmp_path: Path) -> None:
    refusals = contract_at(tmp_path, contract("http://127.0.0.1:9", schemas, A))
    assert isinstance(refusals, tuple)
    assert ["leads back to itself" in refusal.message for refusal in refusals] == [True]


@pytest.mark.parametrize("reference", ["#/components/schemas/Pet", "#/$defs/Pet", "#/definitions/Pet", "#/schemas/Pet"])
def test_cat_08_a_reference_that_names_nothing_is_refused(reference: str, tmp_path: Path) -> None:
    refusals = contract_at(tmp_path, contract("http://127.0.0.1:9", {}, {"$ref": reference}))
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == ["endpoints.one.output.$ref"]


@pytest.mark.parametrize("written", [".nan", ".inf", "1e400", '"\\ud800"', "&x {k: *x}"])
@pytest.mark.parametrize("keyword", ["default", "const", "examples"])
def test_cat_11_what_no_list_could_be_written_with_is_refused_at_load(
    written: str, keyword: str, tmp_path: Path
) -> None:
    text = contract("http://127.0.0.1:9", {}, {"type": "object", "properties": {"x": {keyword: "HERE"}}})
    refusals = contract_at(tmp_path, text.replace('"HERE"', f"[{written}]"))
    assert isinstance(refusals, tuple)
    assert all(refusal.line == 4 for refusal in refusals)


def test_cat_11_a_list_is_written_once(tmp_path: Path) -> None:
    loaded = accepted(tmp_path, contract("http://127.0.0.1:9", CYCLES["items"][0], A))
    listing = Listing(index(loaded).catalog("mcp", None), private=False)
    for modern in (True, False):
        assert listing.result(modern=modern) is listing.result(modern=modern)


async def test_cat_15_output_schemas_can_be_left_out_of_the_list_and_answers_stay(tmp_path: Path) -> None:
    rows = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    async with backend(http([{"id": 1, "more": 2}])) as api:
        text = contract(api.url, {}, rows)
        quiet = text.replace("version: 1", "version: 1\ngateway: {mcp: {output_schema: false}}")
        sizes, seen = [], []
        for written in (text, quiet):
            loaded = accepted(tmp_path, written)
            sizes.append((await costs(loaded)).total.mcp)
            async with running(loaded) as gateway, served(gateway.gateway) as url, Client(url) as client:
                (tool,) = (await client.list_tools()).tools
                result = await client.call_tool("one", {})
            assert result.structured_content == {"result": [{"id": 1}]}
            seen.append(tool.output_schema is not None)
    assert seen == [True, False]
    assert sizes[1] < sizes[0]


def test_cat_15_the_order_of_a_contract_does_not_show_in_the_list(tmp_path: Path) -> None:
    def listed(names: list[str]) -> bytes:
        rows = [f"  {name}: {{request: GET /{name}, description: The {name}.}}" for name in names]
        text = "\n".join(["version: 1", "backends: {b: {url: 'http://127.0.0.1:9'}}", "endpoints:", *rows, ""])
        return json_text.encode([tool.mcp() for tool in index(accepted(tmp_path, text)).catalog("mcp", None).tools])

    assert listed(["b", "a", "B", "_", "a-b"]) == listed(["a-b", "_", "B", "a", "b"])
