"""A slice that drops all that the full answer's schema would: said only where one cut does for both."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gateway.schema import Schema, compile_schema
from tests.schema.test_cut_random import VALUES


def _schema(document: Any) -> Schema:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    return schema


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


PERSON = _object(
    id={}, name={}, owner=_object(login={}, phone={}), tags={"type": "array", "items": _object(a={}, b={})}
)


@pytest.mark.parametrize(
    "slice_",
    [
        _object(id={}, owner=_object(login={})),
        _object(tags={"type": "array", "items": _object(a={})}),
        _object(owner={"$ref": "#/$defs/o"}) | {"$defs": {"o": _object(phone={})}},
        {"allOf": [_object(id={}), _object(owner=_object(login={}))]},
        _object(id={}) | {"additionalProperties": False},
        PERSON,
    ],
)
def test_a_slice_of_named_keys_drops_all_that_goes(slice_: Any) -> None:
    assert _schema(slice_).drops_all_of(_schema(PERSON))


@pytest.mark.parametrize(
    ("slice_", "why"),
    [
        (_object(id={}, owner={}), "the owner stays whole, though its output is closed"),
        (_object(id={}, owner={"type": "object"}), "so it does where only its type is told"),
        (_object(tags={"type": "array"}), "rows stay whole"),
        (_object(more={}), "a key that the output drops"),
        (_object(owner=_object(login={}, mail={})), "one that it drops further in"),
        (_object(id={}) | {"additionalProperties": {}}, "it takes whatever keys there are"),
        (_object(id={}) | {"patternProperties": {"^n": {}}}, "keys go by patterns"),
        ({"anyOf": [_object(id={}), _object(name={})]}, "the value decides"),
        (_object(tags={"type": "array", "prefixItems": [_object(a={})]}), "items behind the first stay whole"),
        ({"type": "object"}, "it drops nothing"),
    ],
)
def test_a_slice_that_may_keep_more_is_not_trusted(slice_: Any, why: str) -> None:
    assert not _schema(slice_).drops_all_of(_schema(PERSON)), why


@pytest.mark.parametrize("full", [{}, {"type": "object"}, _object(id={}) | {"additionalProperties": {}}])
def test_nothing_has_to_go_where_the_output_is_open(full: Any) -> None:
    assert _schema(_object(id={})).drops_all_of(_schema(full))


def test_a_schema_that_leads_back_to_itself_is_followed_once() -> None:
    tree = {"$defs": {"t": _object(name={}, secret={}, below={"type": "array", "items": {"$ref": "#/$defs/t"}})}}
    shown = {"$defs": {"t": _object(name={}, below={"type": "array", "items": {"$ref": "#/$defs/t"}})}}
    wide = {"$defs": {"t": _object(name={}, other={}, below={"type": "array", "items": {"$ref": "#/$defs/t"}})}}
    full, root = _schema({"$ref": "#/$defs/t", **tree}), {"$ref": "#/$defs/t"}
    assert _schema({**root, **shown}).drops_all_of(full)
    assert not _schema({**root, **wide}).drops_all_of(full)


NAMES = st.sampled_from("abc")
PLAIN = st.recursive(
    st.sampled_from([{}, {"type": "string"}, {"type": "object"}, {"type": "array"}]),
    lambda inner: st.one_of(
        st.builds(
            lambda properties, more: {"properties": properties, **more},
            st.dictionaries(NAMES, inner, min_size=1, max_size=3),
            st.sampled_from([{}, {}, {}, {"additionalProperties": {}}, {"patternProperties": {"a": {}}}]),
        ),
        st.builds(lambda items: {"type": ["array", "object"], "items": items}, inner),
        st.builds(lambda members: {"allOf": members}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda members: {"anyOf": members}, st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=6,
)


def _holds(full: Any, slice_: Any, value: Any) -> None:
    both, one = _schema(full), _schema(slice_)
    assume(one.drops_all_of(both))
    assert json.dumps(one.cut(value)) == json.dumps(one.cut(both.cut(value)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(PLAIN, PLAIN, VALUES)
def test_where_it_is_said_one_cut_is_both(full: Any, slice_: Any, value: Any) -> None:
    _holds(full, slice_, value)


@pytest.mark.long
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(PLAIN, PLAIN, VALUES)
def test_where_it_is_said_one_cut_is_both_in_the_long_form(full: Any, slice_: Any, value: Any) -> None:
    _holds(full, slice_, value)
