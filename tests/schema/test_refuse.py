"""A document that cannot be honoured is refused whole, with the path of every fault and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema import Schema, SchemaFault, compile_schema

REFUSED: list[tuple[Any, tuple[str | int, ...], str]] = [
    ({"requried": ["a"]}, ("requried",), "did you mean `required`?"),
    ({"properties": {"a": {"minlength": 1}}}, ("properties", "a", "minlength"), "did you mean `minLength`?"),
    ({"nullable": True, "type": "string"}, ("nullable",), '`type: [string, "null"]`'),
    ({"type": 5}, ("type",), "`type` is one of array, boolean"),
    ({"type": "strnig"}, ("type",), 'did you mean "string"?'),
    ({"type": ["string", "nul"]}, ("type",), 'did you mean "null"?'),
    ({"minLength": -1}, ("minLength",), "expected at least 0"),
    ({"minimum": "5"}, ("minimum",), "expected number, found string"),
    ({"required": "a"}, ("required",), "expected array, found string"),
    ({"properties": {"a": {"required": True}}}, ("properties", "a", "required"), "stands beside `properties`"),
    ({"exclusiveMinimum": True, "minimum": 1}, ("exclusiveMinimum",), "leave `minimum` out"),
    ({"allOf": []}, ("allOf",), "at least 1 item"),
    ({"properties": {"a": 5}}, ("properties", "a"), "a schema is an object, true or false; found integer"),
    (5, (), "found integer"),
    (None, (), "found null"),
    ({"$schema": "http://json-schema.org/draft-07/schema#"}, ("$schema",), "only the dialect"),
    ({"dependencies": {"a": ["b"]}}, ("dependencies",), "write `dependentRequired`"),
    ({"additionalItems": False}, ("additionalItems",), "write `prefixItems` and `items`"),
    ({"$ref": "#/$defs/A"}, ("$ref",), "there is no `$defs` in this document"),
    ({"$ref": "https://example.com/a.json"}, ("$ref",), "nothing is ever fetched"),
    ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, ("$ref",), "nothing is ever fetched"),
    ({"$ref": "#name"}, ("$ref",), "there is no `$anchor: name`"),
    ({"$defs": {"A": {"$id": "https://example.com/a"}}}, ("$defs", "A", "$id"), "no address of its own"),
    ({"$dynamicRef": "#a"}, ("$dynamicRef",), "write `$ref`"),
    ({"allOf": [{"$ref": "#"}]}, ("allOf", 0), "leads back to itself"),
    ({"patternProperties": {"<": {}, r"\<": {}}}, ("patternProperties", r"\<"), "means the same"),
    ({"default": float("nan")}, (), "not JSON"),
]


@pytest.mark.parametrize(("document", "path", "message"), REFUSED, ids=[str(case[2]) for case in REFUSED])
def test_a_fault_has_its_path_and_a_repair(document: Any, path: tuple[str | int, ...], message: str) -> None:
    faults = compile_schema(document)
    assert isinstance(faults, tuple), "it compiled"
    assert [fault.path for fault in faults if message in fault.message] == [path], faults


def test_every_fault_is_told_at_once() -> None:
    document = {"type": "objet", "properties": {"a": {"pattern": "(?=x)"}, "b": {"$ref": "#/$defs/B"}}, "titel": "x"}
    faults = compile_schema(document)
    assert isinstance(faults, tuple)
    assert [fault.path for fault in faults] == [
        ("properties", "a", "pattern"),
        ("properties", "b", "$ref"),
        ("titel",),
        ("type",),
    ]


def test_array_form_of_items_names_its_successor() -> None:
    faults = compile_schema({"items": [{}]})
    assert isinstance(faults, tuple)
    assert faults[0] == SchemaFault(
        ("items",), "`items` is one schema for all items; write `prefixItems` for a list of schemas"
    )


def test_annotations_are_borne() -> None:
    quiet = {
        "x-internal": {"nullable": True},
        "title": "t",
        "readOnly": True,
        "discriminator": {"propertyName": "kind"},
        "xml": {},
        "externalDocs": {},
        "example": 1,
        "$comment": "c",
        "$id": "https://example.com/root",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "contentMediaType": "application/json",
        "format": "no-such-format",
    }
    assert isinstance(compile_schema(quiet), Schema)


def test_a_property_named_like_a_keyword_is_data() -> None:
    document = {"properties": {"nullable": {"type": "boolean"}, "$ref": {"type": "string"}}, "enum": [{"requried": 1}]}
    assert isinstance(compile_schema(document), Schema)


def test_an_unknown_format_is_refused_where_formats_are_asserted() -> None:
    faults = compile_schema({"format": "datetime"}, formats="assert")
    assert isinstance(faults, tuple)
    assert faults[0].message == "format `datetime` cannot be checked; did you mean `date-time`?"


def test_a_format_judges_only_where_it_is_asserted() -> None:
    annotated, asserted = (compile_schema({"format": "ipv4"}, formats=formats) for formats in ("annotate", "assert"))
    assert isinstance(annotated, Schema)
    assert isinstance(asserted, Schema)
    assert annotated.valid("300.1.1.1")
    assert not asserted.valid("300.1.1.1")
    assert asserted.check("300.1.1.1")[0].message == "expected a string of format ipv4, found string"


def test_two_definitions_that_only_name_each_other_are_refused() -> None:
    faults = compile_schema(
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"anyOf": [{"$ref": "#/$defs/A"}, True]}}}
    )
    assert isinstance(faults, tuple)
    assert "leads back to itself" in faults[0].message


def test_a_cycle_through_a_value_is_fine() -> None:
    assert isinstance(compile_schema({"properties": {"next": {"$ref": "#"}}}), Schema)
