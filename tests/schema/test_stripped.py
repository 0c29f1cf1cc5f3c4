"""A schema by which values are cut says what items there are beyond its first ones, and declares what it requires."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema import Schema, compile_schema, faults_of_cutting

FIRST: Any = {"prefixItems": [{"properties": {"name": {}}}]}
NEEDS: Any = {"required": ["id"], "properties": {"name": {}}}

FAULTY: list[tuple[str, Any, tuple[str | int, ...]]] = [
    ("at the root", FIRST, ("prefixItems",)),
    ("inside", {"properties": {"rows": FIRST}}, ("properties", "rows", "prefixItems")),
    ("behind a reference", {"items": {"$ref": "#/$defs/F"}, "$defs": {"F": FIRST}}, ("$defs", "F", "prefixItems")),
    ("in a branch", {"anyOf": [FIRST, {"type": "null"}]}, ("anyOf", 0, "prefixItems")),
    ("under what has items elsewhere", {"items": FIRST}, ("items", "prefixItems")),
    ("where more may come", {**FIRST, "maxItems": 2}, ("prefixItems",)),
    (
        "behind a reference that says so in one place only",
        {
            "properties": {"a": {"$ref": "#/$defs/F", "items": False}, "b": {"$ref": "#/$defs/F"}},
            "$defs": {"F": FIRST},
        },
        ("$defs", "F", "prefixItems"),
    ),
    ("required at the root", NEEDS, ("required",)),
    ("required in a row", {"items": NEEDS}, ("items", "required")),
    (
        "required behind a reference",
        {"items": {"$ref": "#/$defs/N"}, "$defs": {"N": NEEDS}},
        ("$defs", "N", "required"),
    ),
    (
        "required where it may be null",
        {"anyOf": [NEEDS | {"type": "object"}, {"type": "null"}]},
        ("anyOf", 0, "required"),
    ),
    ("required and closed", {**NEEDS, "additionalProperties": False}, ("required",)),
]
SOUND: list[tuple[str, Any]] = [
    ("no further items", {**FIRST, "items": False}),
    ("further items of a kind", {**FIRST, "items": {"properties": {"a": {}}}}),
    ("any further items, said so", {**FIRST, "unevaluatedItems": True}),
    ("none can come", {**FIRST, "maxItems": 1}),
    ("said beside a reference", {"$ref": "#/$defs/F", "items": False, "$defs": {"F": FIRST}}),
    ("said around it", {"allOf": [FIRST], "unevaluatedItems": False}),
    ("said by a sibling", {"allOf": [FIRST, {"items": False}]}),
    ("said by a member", {**FIRST, "allOf": [{"items": False}]}),
    ("judged and not cut by", {"not": FIRST, "propertyNames": NEEDS}),
    ("never used", {"$defs": {"F": FIRST, "N": NEEDS}}),
    ("declared", {**NEEDS, "properties": {"id": {}}}),
    ("open", {**NEEDS, "additionalProperties": True}),
    ("open as a map", {"required": ["id"]}),
    ("declared by a pattern, maybe", {**NEEDS, "patternProperties": {"d": {}}}),
    ("declared by a sibling", {"allOf": [NEEDS, {"properties": {"id": {}}}]}),
    ("declared by a sibling further up", {"allOf": [{"items": NEEDS}, {"items": {"properties": {"id": {}}}}]}),
    ("leads back to itself", {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
]


@pytest.mark.parametrize(("document", "path"), [case[1:] for case in FAULTY], ids=[c[0] for c in FAULTY])
def test_what_a_cut_would_leak_or_break_is_a_fault(document: Any, path: tuple[str | int, ...]) -> None:
    assert isinstance(compile_schema(document), Schema), "it judges well all the same"
    assert [fault.path for fault in faults_of_cutting(document)] == [path]


@pytest.mark.parametrize("document", [case[1] for case in SOUND], ids=[case[0] for case in SOUND])
def test_what_a_cut_keeps_to_is_none(document: Any) -> None:
    assert isinstance(compile_schema(document), Schema)
    assert faults_of_cutting(document) == ()
