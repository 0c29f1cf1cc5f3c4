"""What the strictest client's own validator makes of published answers: random schemas, one process for many."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.catalog.publish import published
from tests.catalog.test_publish import DOCUMENTS, VALUES
from tests.surfaces.mcp import javascript

Json = Any
_BATCHES = st.lists(st.tuples(DOCUMENTS, st.lists(VALUES, min_size=1, max_size=8)), min_size=40, max_size=40)


def valid_under(document: Json, values: list[Json]) -> list[Json]:
    validator = jsonschema_rs.Draft202012Validator(document)
    try:
        return [value for value in values if validator.is_valid(value)]
    except ValueError:  # a reference that leads back to itself without a step into the value
        return []


def every_valid_value_is_taken(batch: list[tuple[Json, list[Json]]]) -> None:
    asked = [
        (
            published([document], portable=True, wrapped=True),
            [{"result": value} for value in valid_under(document, values)],
        )
        for document, values in batch
    ]
    verdicts = asyncio.run(javascript.run("check.mjs", stdin=asked))
    assert [question for question, taken in zip(asked, verdicts, strict=True) if not all(taken)] == []


_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@given(_BATCHES)
@settings(max_examples=3, **_SETTINGS)  # type: ignore[arg-type]  # one mapping for two kinds of setting
def test_ajv_takes_every_answer_that_is_valid(batch: list[tuple[Json, list[Json]]]) -> None:
    every_valid_value_is_taken(batch)


@pytest.mark.long
@given(_BATCHES)
@settings(max_examples=40, **_SETTINGS)  # type: ignore[arg-type]  # one mapping for two kinds of setting
def test_ajv_takes_every_answer_that_is_valid_at_length(batch: list[tuple[Json, list[Json]]]) -> None:
    every_valid_value_is_taken(batch)
