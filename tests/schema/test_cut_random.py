"""What holds of every cut: the result is valid, cutting again changes nothing, and no key is left undeclared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.schema import Schema, compile_schema
from tests.schema.test_cut import is_left_of

NAMES = st.sampled_from("abcde")
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x", "y"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=5)),
    max_leaves=12,
)
LEAVES = st.sampled_from([True, {}, {"type": "string"}, {"type": ["integer", "null"]}, {"type": "object"}])


def _object(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object schema whose keywords do not depend on keys that it does not declare."""
    return st.fixed_dictionaries(
        {"properties": st.dictionaries(NAMES, inner, min_size=1, max_size=3)},
        optional={
            "type": st.sampled_from(["object", ["object", "null"]]),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "[bc]"]), inner, max_size=1),
            "additionalProperties": inner,
        },
    )


def _array(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {}, optional={"type": st.just("array"), "items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2)}
    )


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda members: {"allOf": members}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda members: {"anyOf": members}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda to: {"$ref": f"#/$defs/{to}"}, st.sampled_from("PQ")),
    )


SCHEMAS = st.recursive(LEAVES, lambda inner: st.one_of(_object(inner), _array(inner), _combined(inner)), max_leaves=8)
#: Definitions are objects, so that a reference never leads back to itself in place.
DOCUMENTS = st.builds(
    lambda root, p, q: {"$defs": {"P": p, "Q": q}, **(root if isinstance(root, dict) else {"not": False})},
    SCHEMAS,
    _object(SCHEMAS),
    _object(SCHEMAS),
)


def _holds(document: Any, value: Any) -> None:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    before = json.dumps(value)
    shown = schema.cut(value)
    assert json.dumps(value) == before
    assert is_left_of(shown, value)
    assert (shown is value) is (schema.undeclared(value) == [])
    if schema.valid(value):
        assert schema.valid(shown), (document, value, shown)
    once = json.dumps(shown)
    if "anyOf" not in json.dumps(document):  # which branches a value fits may change with the keys it loses
        assert json.dumps(schema.cut(shown)) == once
        assert not _undeclared(document, document, shown)


def _undeclared(document: Any, node: Any, value: Any) -> bool:
    """A slow second opinion: whether an object holds a key that no schema at its place declares."""
    here = _at_place(document, [node])
    if isinstance(value, dict):
        declaring = [
            one
            for one in here
            if one.get("properties") or one.get("patternProperties") or "additionalProperties" in one
        ]
        if not declaring:
            return False
        for key, held in value.items():
            inner: list[Any] = []
            for one in declaring:
                own = [one["properties"][key]] if key in one.get("properties", {}) else []
                own += [sub for text, sub in one.get("patternProperties", {}).items() if _matches(text, key)]
                if not own and one.get("additionalProperties", False) is not False:
                    own = [one["additionalProperties"]]
                inner += own
            if not inner or _undeclared(document, {"allOf": inner}, held):
                return True
    if isinstance(value, list):
        for index, held in enumerate(value):
            inner = []
            for one in here:
                prefix = one.get("prefixItems", [])
                inner += [prefix[index]] if index < len(prefix) else [one["items"]] if "items" in one else []
            if inner and _undeclared(document, {"allOf": inner}, held):
                return True
    return False


def _at_place(document: Any, nodes: list[Any]) -> list[dict[str, Any]]:
    found = []
    for node in nodes:
        if isinstance(node, dict):
            found.append(node)
            inner = list(node.get("allOf", []))
            if "$ref" in node:
                inner.append(document["$defs"][node["$ref"][-1]])
            found += _at_place(document, inner)
    return found


def _matches(pattern: str, key: str) -> bool:
    return key.startswith("a") if pattern == "^a" else key in ("b", "c")


@given(DOCUMENTS, VALUES)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_a_cut_is_valid_idempotent_and_declared(document: Any, value: Any) -> None:
    _holds(document, value)


@pytest.mark.long
@given(DOCUMENTS, VALUES)
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_cut_is_valid_idempotent_and_declared_long(document: Any, value: Any) -> None:
    _holds(document, value)
