"""Schemas as public bug reports have them: OpenAPI's own words, branches told apart, directions."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema import Schema, compile_schema


def compiled(document: Any) -> Schema:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    return schema


@pytest.mark.parametrize(
    "document",
    [
        {"nullable": True, "allOf": [{"$ref": "#/$defs/M"}], "$defs": {"M": {"type": "string"}}},
        {"$ref": "#/$defs/M", "nullable": True, "$defs": {"M": {"type": "string"}}},
        {"type": "string", "nullable": True, "enum": ["A", "B"]},
        {"items": {"properties": {"a": {"nullable": False, "type": "string"}}}},
    ],
    ids=["SCH-08", "SCH-09", "RES-02", "inside"],
)
def test_nullable_is_refused_with_what_to_write_instead(document: Any) -> None:
    """Decision 0070."""
    faults = compile_schema(document)
    assert isinstance(faults, tuple)
    (fault,) = faults
    assert fault.path[-1] == "nullable"
    assert 'type: [string, "null"]' in fault.message


@pytest.mark.parametrize(
    ("document", "value", "valid"),
    [
        ({"type": ["string", "null"], "enum": ["A", None]}, None, True),
        ({"type": ["string", "null"], "enum": ["A", "B"]}, None, False),  # enum judges as well
        ({"anyOf": [{"enum": ["A", "B"]}, {"type": "null"}]}, None, True),
    ],
)
def test_res_02_null_beside_an_enum_is_what_the_enum_says(document: Any, value: Any, valid: bool) -> None:
    assert compiled(document).valid(value) is valid


def test_sch_11_required_means_required_whatever_the_direction() -> None:
    """Decision 0071: a contract has a schema for each direction, and `readOnly` and `writeOnly` judge nothing."""
    both = {"properties": {"id": {"readOnly": True}, "password": {"writeOnly": True}}}
    assert compiled({**both, "required": ["id"]}).valid({"id": 1})
    assert not compiled({**both, "required": ["id", "password"]}).valid({"id": 1})


KIND = {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}
TWICE = {
    "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
    "discriminator": {"propertyName": "kind", "mapping": {"A": "#/$defs/A", "B": "#/$defs/B"}},
    "$defs": {"A": KIND, "B": KIND},
}


def test_sch_12_a_discriminator_changes_no_outcome_and_the_fault_names_the_branches() -> None:
    schema = compiled(TWICE)
    assert not schema.valid({"kind": "A"})
    (violation,) = schema.check({"kind": "A"})
    assert violation.rule == "oneOf"
    assert "fits branch 1 and branch 2" in violation.message


ROOMS = {
    "type": "array",
    "items": {"oneOf": [{"$ref": "#/$defs/BedRoom"}, {"$ref": "#/$defs/Kitchen"}], "discriminator": {}},
    "$defs": {
        "Room": {"type": "object", "required": ["@type"], "properties": {"@type": {"type": "string"}}},
        "BedRoom": {
            "allOf": [{"$ref": "#/$defs/Room"}],
            "required": ["numberOfBeds"],
            "properties": {"@type": {"const": "BedRoom"}, "numberOfBeds": {"type": "integer"}},
        },
        "Kitchen": {"allOf": [{"$ref": "#/$defs/Room"}], "properties": {"@type": {"const": "Kitchen"}}},
    },
}


def test_sch_13_each_item_is_judged_and_cut_by_its_own_branch() -> None:
    schema = compiled(ROOMS)
    rooms = [{"@type": "BedRoom", "numberOfBeds": 2, "x": 1}, {"@type": "Kitchen", "numberOfBeds": 2}]
    assert schema.check(rooms) == []
    assert schema.cut(rooms) == [{"@type": "BedRoom", "numberOfBeds": 2}, {"@type": "Kitchen"}]
    (violation,) = schema.check([rooms[1], {"@type": "BedRoom"}])
    assert (violation.pointer, violation.rule) == ("/1", "required")
