"""What tools with real schemas say of themselves: whole, without a cycle, and the same at every start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest

from gateway import json_text
from gateway.catalog.advertise import Advertised
from gateway.generation import index
from tests.real.cards import REAL, Real
from tests.real.measure import read
from tests.real.test_real_answers import contract, raw

Json = Any


@pytest.fixture(scope="module")
def tools() -> Mapping[str, Advertised]:
    return index(contract("http://127.0.0.1:9")).catalog("mcp", None).by_name


def references(document: Json) -> Iterator[str]:
    """Every `$ref` of a document; these contracts have no property of that name."""
    if isinstance(document, dict):
        if "$ref" in document:
            yield document["$ref"]
        for item in document.values():
            yield from references(item)
    elif isinstance(document, list):
        for item in document:
            yield from references(item)


def reached(document: Json, name: str, above: tuple[str, ...] = ()) -> int:
    """How many definitions a definition leads to; a cycle would not end, so it is an error here."""
    assert name not in above, f"{name} leads to itself"
    return sum(1 + reached(document, each, (*above, name)) for each in names(document["$defs"][name]))


def names(document: Json) -> list[str]:
    found = list(references(document))
    assert all(reference.startswith("#/$defs/") for reference in found), found
    return [reference.removeprefix("#/$defs/") for reference in found]


@pytest.mark.parametrize("real", REAL, ids=lambda real: real.tool)
def test_cat_08_cat_12_every_reference_resolves_inside_and_none_closes_a_circle(
    real: Real, tools: Mapping[str, Advertised]
) -> None:
    tool = tools[real.tool]
    for document in (tool.input_schema, tool.output_schema):
        assert document is not None
        for name in names(document):
            reached(document, name)


@pytest.mark.parametrize("real", REAL, ids=lambda real: real.tool)
def test_what_is_shown_fits_what_is_advertised(real: Real, tools: Mapping[str, Advertised]) -> None:
    tool = tools[real.tool]
    card = real.card(read(raw(real)))
    assert tool.output_schema is not None
    validator = jsonschema_rs.Draft202012Validator(tool.output_schema)
    validator.validate({"result": card} if tool.wrapped else card)


def test_cat_11_the_list_can_be_written_and_is_the_same_at_every_start(tools: Mapping[str, Advertised]) -> None:
    again = index(contract("http://127.0.0.1:10")).catalog("mcp", None)
    first = json_text.encode([tool.mcp() for tool in tools.values()])
    assert first == json_text.encode([tool.mcp() for tool in again.tools])
