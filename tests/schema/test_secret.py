"""What a schema says is for writing only is hidden at every depth, and whichever branch says so."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema import Schema, compile_schema

SECRET = {"type": "string", "writeOnly": True}
PAIR = {"type": "object", "properties": {"user": {"type": "string"}, "pass": SECRET}}

CASES: list[tuple[str, Any, Any, Any]] = [
    ("nothing of a schema without a secret", {"properties": {"a": {}}}, {"a": "x"}, {"a": "x"}),
    ("a property", {"properties": {"a": SECRET, "b": {}}}, {"a": "x", "b": "y"}, {"a": "*", "b": "y"}),
    ("a password", {"properties": {"a": {"format": "password"}}}, {"a": "x"}, {"a": "*"}),
    ("an object whole", {"properties": {"a": {**PAIR, "writeOnly": True}}}, {"a": {"user": "x"}}, {"a": "*"}),
    ("inside an object", {"properties": {"a": PAIR}}, {"a": {"pass": "y"}}, {"a": {"pass": "*"}}),
    ("behind a reference", {"$defs": {"p": PAIR}, "$ref": "#/$defs/p"}, {"pass": "y"}, {"pass": "*"}),
    ("through a cycle", {"properties": {"a": SECRET, "in": {"$ref": "#"}}}, {"in": {"a": "x"}}, {"in": {"a": "*"}}),
    ("each item", {"items": SECRET}, ["x", "y"], ["*", "*"]),
    ("one item of a tuple", {"prefixItems": [{}, SECRET]}, ["x", "y"], ["x", "*"]),
    ("every value of a map", {"additionalProperties": SECRET}, {"k": "x"}, {"k": "*"}),
    ("by a pattern", {"patternProperties": {"^k": SECRET}}, {"k": "x"}, {"k": "*"}),
    ("in all of", {"allOf": [PAIR]}, {"pass": "y"}, {"pass": "*"}),
    ("in one branch of several", {"oneOf": [PAIR, {"properties": {"pass": {}}}]}, {"pass": "y"}, {"pass": "*"}),
    ("under a condition", {"if": {}, "then": PAIR}, {"pass": "y"}, {"pass": "*"}),
    ("beside a key", {"dependentSchemas": {"user": PAIR}}, {"pass": "y"}, {"pass": "*"}),
    ("no argument of that name", {"properties": {"writeOnly": {}}}, {"writeOnly": True}, {"writeOnly": True}),
]  # fmt: skip


@pytest.mark.parametrize(("document", "value", "shown"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_it_hides(document: Any, value: Any, shown: Any) -> None:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    assert schema.hidden(value, lambda _: "*") == shown
