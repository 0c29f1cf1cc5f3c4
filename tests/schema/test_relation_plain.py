"""Slices that plainly fit are told at once; whatever is not plain is left to the search, and never called fitting."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema.relation_plain import plainly_fits

Json = Any


def obj(required: str = "", **properties: Json) -> dict[str, Json]:
    return {"type": "object", "required": required.split(), "properties": properties}


INT, TEXT, MAYBE = {"type": "integer"}, {"type": "string"}, {"type": ["string", "null"]}
ROW = obj("id", id=INT, name=TEXT, note=MAYBE)
CYCLE = {"$ref": "#/$defs/N", "$defs": {"N": obj("v", v=INT, next={"$ref": "#/$defs/N"})}}


@pytest.mark.parametrize(
    ("full", "view"),
    [
        (ROW, obj("id", id=INT)),
        (ROW, obj("id", id={"type": "number"}, note=MAYBE)),
        (ROW, obj("", gone=TEXT, id=INT)),
        (ROW, {**obj("id", id=INT), "additionalProperties": False}),
        (
            obj("rows", rows={"type": "array", "items": ROW}),
            obj("rows", rows={"type": "array", "items": obj("id", id=INT)}),
        ),
        ({"enum": ["a", "b"]}, {"enum": ["b", "a", "c"]}),
        ({"type": "integer", "minimum": 1, "maximum": 9}, {"type": "integer", "minimum": 1}),
        (CYCLE, {"$ref": "#/$defs/M", "$defs": {"M": obj("", v=INT, next={"$ref": "#/$defs/M"})}}),
        (ROW, {"type": "object"}),
        (ROW, True),
    ],
)
def test_it_plainly_fits(full: Json, view: Json) -> None:
    assert plainly_fits(full, view)


@pytest.mark.parametrize(
    ("full", "view"),
    [
        (ROW, obj("name", name=TEXT)),
        (ROW, obj("", note=TEXT)),
        (ROW, obj("", id=TEXT)),
        ({**ROW, "additionalProperties": True}, obj("", gone=TEXT)),
        ({**ROW, "allOf": [obj("", gone=INT)]}, obj("", gone=TEXT)),
        (obj("", a={"allOf": [obj("", b=INT)], "properties": {"c": INT}}), obj("", a=obj("", b=TEXT))),
        ({"allOf": [obj("", a=obj("", b=INT))], **obj("", a=obj("", c=INT))}, obj("", a=obj("", b=TEXT))),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}),
        ({"type": "string"}, {"enum": ["a"]}),
        ({"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "array", "prefixItems": [TEXT], "items": INT}, {"type": "array", "items": INT}),
        ({"type": "array"}, {"type": "array", "items": INT}),
        ({"type": "array", "items": ROW}, {"type": "array", "items": obj("", id=INT), "uniqueItems": True}),
        ({"type": "object", "required": ["x"], "properties": {"y": INT}}, obj("x", x=INT)),
        (obj("id", id=INT), obj("id", other=INT)),
        ({}, obj("", id=INT)),
        (ROW, {**ROW, "maxProperties": 1}),
        (ROW, {"$ref": "#/$defs/A", "minProperties": 1, "$defs": {"A": ROW}}),
        (ROW, False),
    ],
)
def test_it_is_left_to_the_search(full: Json, view: Json) -> None:
    assert not plainly_fits(full, view)
