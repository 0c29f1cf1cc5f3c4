"""A bundled schema stands on its own; what a Schema says of its root is read through `$ref` and `allOf`."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema import Schema, SchemaFault, bundle, compile_schema

PERSON: Any = {"type": "object", "properties": {"boss": {"$ref": "f#/Person"}, "team": {"$ref": "f#/Team"}}}
OUTER: dict[str, tuple[str, Any]] = {
    "f#/Person": ("Person", PERSON),
    "f#/Team": ("Team", {"type": "string"}),
    "g#/Team": ("Team", {"type": "integer"}),
    "f#/Unused": ("Unused", {}),
    "f#/Odd": ("a/b~c%", {"enum": [{"$ref": "data"}]}),
    "f#/Any": ("Any", True),
}


def compiled(document: Any) -> Schema:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    return schema


BUNDLED: list[tuple[str, Any, Any]] = [
    ("nothing to do", {"type": "string"}, {"type": "string"}),
    ("a boolean", True, True),
    (
        "reachable definitions only, cycles kept",
        {"items": {"$ref": "f#/Person"}},
        {
            "items": {"$ref": "#/$defs/Person"},
            "$defs": {
                "Person": {
                    "type": "object",
                    "properties": {"boss": {"$ref": "#/$defs/Person"}, "team": {"$ref": "#/$defs/Team"}},
                },
                "Team": {"type": "string"},
            },
        },
    ),
    (
        "two of one name",
        {"prefixItems": [{"$ref": "f#/Team"}, {"$ref": "g#/Team"}, {"$ref": "f#/Team"}]},
        {
            "prefixItems": [{"$ref": "#/$defs/Team"}, {"$ref": "#/$defs/Team_2"}, {"$ref": "#/$defs/Team"}],
            "$defs": {"Team": {"type": "string"}, "Team_2": {"type": "integer"}},
        },
    ),
    (
        "own definitions keep their names and their order",
        {"$ref": "#/$defs/B", "$defs": {"A": True, "Gone": True, "B": {"items": {"$ref": "#/$defs/A"}}}},
        {"$ref": "#/$defs/B", "$defs": {"A": True, "B": {"items": {"$ref": "#/$defs/A"}}}},
    ),
    (
        "a name that is taken",
        {"$ref": "#/$defs/Team", "$defs": {"Team": {"items": {"$ref": "f#/Team"}}}},
        {
            "$ref": "#/$defs/Team",
            "$defs": {"Team": {"items": {"$ref": "#/$defs/Team_2"}}, "Team_2": {"type": "string"}},
        },
    ),
    (
        "a property named $ref is data",
        {"properties": {"$ref": {"$ref": "f#/Team"}}, "enum": [{"$ref": "f#/Person"}]},
        {
            "properties": {"$ref": {"$ref": "#/$defs/Team"}},
            "enum": [{"$ref": "f#/Person"}],
            "$defs": {"Team": {"type": "string"}},
        },
    ),
    (
        "an odd name is escaped",
        {"$ref": "f#/Odd"},
        {"$ref": "#/$defs/a~1b~0c%25", "$defs": {"a/b~c%": {"enum": [{"$ref": "data"}]}}},
    ),
    ("the whole stays the whole", {"properties": {"next": {"$ref": "#"}}}, {"properties": {"next": {"$ref": "#"}}}),
]


@pytest.mark.parametrize(("node", "document"), [case[1:] for case in BUNDLED], ids=[case[0] for case in BUNDLED])
def test_a_bundle_is_self_contained(node: Any, document: Any) -> None:
    found = bundle(node, OUTER.get)
    assert found == document
    assert list(found.get("$defs", ())) == list(document.get("$defs", ())) if isinstance(found, dict) else True
    compiled(found)


def test_an_unknown_reference_is_a_fault_with_its_path() -> None:
    faults = bundle({"properties": {"a": {"$ref": "f#/Nobody"}}, "items": {"$ref": "f#/Person"}}, OUTER.get)
    assert isinstance(faults, tuple)
    assert [fault.path for fault in faults] == [("properties", "a", "$ref")]


def test_a_fault_in_a_definition_has_the_path_of_the_definition() -> None:
    faults = bundle({"$ref": "f#/Bad"}, {"f#/Bad": ("Bad", {"items": {"$ref": "f#/Nobody"}})}.get)
    assert faults == (
        SchemaFault(
            ("$defs", "Bad", "items", "$ref"),
            "`f#/Nobody` cannot be resolved: it leads out of this document, and nothing is ever fetched",
        ),
    )


def test_what_needs_no_change_is_shared() -> None:
    team = {"type": "string"}
    document = bundle({"properties": {"team": team, "boss": {"$ref": "f#/Person"}}}, OUTER.get)
    assert isinstance(document, dict)
    assert document["properties"]["team"] is team


INPUT = {
    "$ref": "#/$defs/Base",
    "type": "object",
    "required": ["team", "limit"],
    "properties": {"limit": {"type": "integer"}, "next": {"$ref": "#"}},
    "$defs": {
        "Base": {"required": ["team"], "properties": {"team": {"$ref": "#/$defs/Team"}}},
        "Team": {"minLength": 1},
    },
}


def test_the_root_is_read_through_its_references() -> None:
    schema = compiled(INPUT)
    assert schema.is_object
    assert schema.property_names == ("limit", "next", "team")
    assert schema.required == {"team", "limit"}
    assert schema.property_document("nobody") is None
    assert schema.property_schema("nobody") is None
    assert schema.property_document("team") == {"$ref": "#/$defs/Team", "$defs": {"Team": {"minLength": 1}}}


def test_a_property_is_judged_as_it_is_inside() -> None:
    following = compiled(INPUT).property_schema("next")
    assert following is not None
    assert following.valid({"team": "a", "limit": 1, "next": {"team": "b", "limit": 2}})
    assert [one.pointer for one in following.check({"team": "a", "limit": 1, "next": {"team": "", "limit": 2}})] == [
        "/next/team"
    ]


def test_required_names_can_be_made_optional() -> None:
    schema = compiled(INPUT)
    relaxed = compiled(schema.optional({"team"}))
    assert not schema.valid({"limit": 1})
    assert relaxed.valid({"limit": 1})
    assert not relaxed.valid({"team": "a"})
    assert schema.document is INPUT


@pytest.mark.parametrize(
    ("document", "is_object"),
    [
        ({"type": "object"}, True),
        ({"type": ["object", "null"]}, False),
        ({"properties": {}}, False),
        ({"anyOf": [{"type": "object"}, {"const": {}}]}, True),
        (True, False),
    ],
)
def test_only_objects_can_be_told_from_the_schema(document: Any, is_object: bool) -> None:
    assert compiled(document).is_object is is_object


def test_equal_documents_share_what_is_compiled() -> None:
    first, second = compiled({"type": "object", "maxProperties": 7}), compiled({"type": "object", "maxProperties": 7})
    assert first._engine is second._engine


def test_the_cost_of_a_definition_does_not_grow_with_those_before_it() -> None:
    """Definitions of one wanted name each: names in use are looked up, and never gathered anew."""
    hashed = 0

    class Name(str):
        __slots__ = ()

        def __hash__(self) -> int:
            nonlocal hashed
            hashed += 1
            return super().__hash__()

        def __eq__(self, other: object) -> bool:
            return str.__eq__(self, other)

    def definitions(count: int) -> int:
        nonlocal hashed
        hashed = 0
        nodes = {f"f#/{number}": (Name(f"N{number}"), {"const": number}) for number in range(count)}
        document = bundle({"anyOf": [{"$ref": ref} for ref in nodes]}, nodes.get)
        assert isinstance(document, dict)
        assert len(document["$defs"]) == count
        return hashed

    assert definitions(200) <= 2 * definitions(100)
