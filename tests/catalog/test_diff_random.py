"""Random pairs of schemas: where nothing is called breaking, no old call is refused and no reader is surprised."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog.diff_change import SchemaChange, Verdict
from gateway.catalog.diff_schema import Side, compare
from gateway.schema import Schema, compile_schema
from gateway.schema.bundle import bundle_part
from tests.schema.test_relation_random import pair, sample

FORMS = [pytest.param(150, id="short"), pytest.param(10_000, id="long", marks=pytest.mark.long)]


def judged(seed: int, side: Side, samples: int = 25) -> str:
    """The gravest verdict on one pair, after values were held against it."""
    random = Random(seed)
    old, new = pair(random)
    before, after = compile_schema(old), compile_schema(new)
    if not isinstance(before, Schema) or not isinstance(after, Schema):
        return "refused"
    changes = compare(old, new, side)
    for change in changes:
        if change.counterexample is not None:
            assert shows(change, old, new, side), (seed, old, new, change)
    if any(change.verdict is Verdict.BREAKING for change in changes):
        return "breaking"
    for node in (old, new):
        for _ in range(samples):
            value = sample(random, node, node, 5)
            if side is Side.CALLERS:
                sent = before.cut(value)
                assert not before.valid(sent) or after.valid(sent), (seed, old, new, changes, sent)
            else:
                # What a schema requires without declaring it is cut, and no answer of it can be right.
                told = after.cut(value)
                taken = before.valid(told) or before.valid(before.cut(told))
                assert not after.valid(told) or taken, (seed, old, new, changes, value)
    return "compatible" if changes else "same"


def shows(change: SchemaChange, old: Any, new: Any, side: Side) -> bool:
    """Whether a counterexample is a value of whoever stays as they are, at its place or of the object around it."""
    assert change.counterexample is not None
    sender = old if side is Side.CALLERS else new
    ends = [change.at, *([change.at[:-2]] if change.at[-2:-1] == ("properties",) else [])]
    parts = [part for at in ends if (part := part_at(sender, at)) is not None]
    return len(parts) < len(ends) or any(part.valid(change.counterexample.value) for part in parts)


def part_at(document: Any, at: tuple[str | int, ...]) -> Schema | None:
    """The schema at a place; None where a reference leads there, or nothing."""
    node = document
    for key in at:
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    compiled = compile_schema(bundle_part(document, node))
    assert isinstance(compiled, Schema)
    return compiled


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_called_compatible_is(form: int, side: Side) -> None:
    verdicts: Counter[str] = Counter()

    @settings(max_examples=form, deadline=None, database=None)
    @given(st.integers(min_value=0, max_value=2**60))
    def run(seed: int) -> None:
        verdicts[judged(seed, side)] += 1

    run()
    assert verdicts["breaking"] > form / 10
    assert verdicts["compatible"] > form / 50


@pytest.mark.parametrize("side", Side)
def test_a_schema_and_itself_differ_in_nothing(side: Side) -> None:
    for seed in range(300):
        schema, _ = pair(Random(seed))
        if isinstance(compile_schema(schema), Schema):
            assert compare(schema, schema, side) == [], (seed, schema)
