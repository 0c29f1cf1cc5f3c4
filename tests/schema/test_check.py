"""What a violation says: where, which rule, what was expected and which type was found; never the value."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.json_text import NotJson, parse
from gateway.schema import Schema, Violation, compile_schema


def compiled(document: Any, formats: str = "annotate") -> Schema:
    schema = compile_schema(document, formats=formats)
    assert isinstance(schema, Schema), schema
    return schema


def kind(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": ["kind"], "properties": {"kind": {"const": name}, **properties}}


CLOSED = {
    "type": "object",
    "required": ["team"],
    "properties": {"team": {"type": "string"}, "limit": {"type": "integer"}},
    "additionalProperties": False,
}
KINDS = {"oneOf": [kind("a", x={"type": "integer"}), kind("b", x={"type": "string"}, y={"type": "integer"})]}

TOLD: list[tuple[Any, Any, list[tuple[str, str, str]]]] = [
    (
        CLOSED,
        {"limti": 1},
        [
            ("/limti", "additionalProperties", "`limti` is not declared; did you mean `limit`?"),
            ("", "required", "`team` is required and missing"),
        ],
    ),
    (
        CLOSED,
        {"team": "x", "zzz": 1},
        [("/zzz", "additionalProperties", "`zzz` is not declared; declared are `team` and `limit`")],
    ),
    (
        {"type": "object", "additionalProperties": False},
        {"x": 1, "y": 2},
        [
            ("/x", "additionalProperties", "`x` is not declared; leave it out"),
            ("/y", "additionalProperties", "`y` is not declared; leave it out"),
        ],
    ),
    (
        {"properties": {"": {"additionalProperties": False}}},
        {"": {"1": {"x": {}}}},
        [("//1", "additionalProperties", "`1` is not declared; leave it out")],
    ),
    (
        {"properties": {}, "additionalProperties": False},
        {"x": 1},
        [("/x", "additionalProperties", "`x` is not declared; leave it out")],
    ),
    (
        {"allOf": [{"properties": {"limit": {}}}], "unevaluatedProperties": False},
        {"limti": 1},
        [("/limti", "unevaluatedProperties", "`limti` is not declared; did you mean `limit`?")],
    ),
    ({"type": ["string", "null"]}, 1, [("", "type", "expected null or string, found integer")]),
    (
        {"enum": ["asc", "desc", None]},
        "acs",
        [("", "enum", 'expected one of "asc", "desc" or null, found string; did you mean "asc"?')],
    ),
    (
        {"enum": list(range(30))},
        "x",
        [("", "enum", "expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8 or 21 more, found string")],
    ),
    ({"const": "a"}, "secret", [("", "const", 'expected "a", found another string')]),
    ({"minimum": 5}, 3, [("", "minimum", "expected at least 5, found integer below it")]),
    ({"multipleOf": 0.1}, 3.14, [("", "multipleOf", "expected a multiple of 0.1, found number that is none")]),
    ({"minLength": 3}, "ab", [("", "minLength", "expected at least 3 characters, found string of 2")]),
    ({"maxItems": 1}, [1, 2], [("", "maxItems", "expected at most 1 item, found array of 2")]),
    ({"pattern": r"^\bx$"}, "y", [("", "pattern", r"expected a string that matches ^\bx$, found string")]),
    (
        {"uniqueItems": True},
        [1, 1],
        [("", "uniqueItems", "expected items that all differ, found array with equal ones")],
    ),
    (
        {"contains": {"type": "string"}, "minContains": 2},
        ["a"],
        [("", "minContains", "expected at least 2 items fitting `contains`, found array with fewer")],
    ),
    (
        {"not": {"type": "string"}},
        "a",
        [("", "not", "expected what `not` does not describe, found string that fits it")],
    ),
    (
        {"propertyNames": {"maxLength": 2}},
        {"abc": 1},
        [("", "propertyNames", "the key `abc` is not allowed: expected at most 2 characters, found string of 3")],
    ),
    (
        {"dependentRequired": {"a": ["b"]}},
        {"a": 1},
        [("", "dependentRequired", "`b` is required beside `a` and missing")],
    ),
    ({"properties": {"a": False}}, {"a": 1}, [("/a", "false", "nothing is allowed here, found integer")]),
    ({"enum": []}, 1, [("", "enum", "nothing is allowed here, found integer")]),
    # of several branches, the one that got furthest
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3, [("", "anyOf", "expected string or null, found integer")]),
    (
        {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"id": {"type": "integer"}}}]},
        {"id": "x"},
        [("/id", "type", "expected integer, found string")],
    ),
    (
        KINDS,
        {"kind": "b", "x": 5, "y": "q"},
        [("/x", "type", "expected string, found integer"), ("/y", "type", "expected integer, found string")],
    ),
    (KINDS, {"kind": "c"}, [("/kind", "enum", 'expected one of "a" or "b", found string')]),
    (
        {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
        3,
        [("", "oneOf", "expected to fit exactly one branch of `oneOf`, found integer that fits branch 1 and branch 2")],
    ),
]


@pytest.mark.parametrize(("document", "value", "told"), TOLD, ids=[case[2][0][2] for case in TOLD])
def test_a_violation_names_place_rule_and_expectation(
    document: Any, value: Any, told: list[tuple[str, str, str]]
) -> None:
    found = compiled(document).check(value)
    assert sorted((one.pointer, one.rule, one.message) for one in found) == sorted(told)


def test_a_limit_bounds_what_is_told() -> None:
    schema = compiled({"items": {"type": "string"}})
    assert len(schema.check([0] * 100)) == 20
    assert len(schema.check([0] * 100, limit=3)) == 3


def test_the_schema_path_is_the_place_of_writing() -> None:
    schema = compiled({"properties": {"x": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "string"}}})
    assert schema.check({"x": 1}) == [
        Violation("/x", "type", "expected string, found integer", "/$defs/N/type", "integer")
    ]


def test_the_value_itself_is_never_told() -> None:
    secret = "hunter2hunter2"
    for document in ({"type": "integer"}, {"const": 1}, {"enum": ["a"]}, {"maxLength": 3}, {"pattern": "^a$"}, False):
        for violation in compiled(document).check(secret):
            assert secret not in violation.message


@pytest.mark.parametrize(
    ("document", "value", "pointer", "message"),
    [
        ({"type": "object"}, {1: 2}, "", "expected an object whose keys are text, found object"),
        ({"items": {"type": "string"}}, ["a", {1}], "/1", "expected a JSON value, found set"),
        ({"items": {"pattern": "a"}}, ["\ud800"], "/0", "expected text that UTF-8 can hold, found string"),
    ],
)
def test_what_is_no_json_is_a_violation_and_no_exception(document: Any, value: Any, pointer: str, message: str) -> None:
    schema = compiled(document)
    assert not schema.valid(value)
    assert [(one.pointer, one.rule, one.message) for one in schema.check(value)] == [(pointer, "json", message)]


BIG = 12345678901234567890123


@pytest.mark.parametrize(
    ("document", "value", "valid"),
    [
        ({"type": "integer"}, BIG, True),
        ({"type": "integer"}, 10**400, True),
        ({"minimum": BIG}, BIG, True),
        ({"minimum": BIG}, BIG - 1, False),
        ({"exclusiveMaximum": BIG}, BIG - 1, True),
        ({"exclusiveMaximum": BIG}, BIG, False),
        ({"maximum": 1e30}, BIG, True),
        ({"maximum": 9007199254740992.0}, 9007199254740993, False),
        ({"multipleOf": 7}, BIG * 7, True),
        ({"multipleOf": 7}, BIG * 7 + 1, False),
        ({"multipleOf": BIG}, BIG * 3, True),
        ({"multipleOf": BIG}, BIG * 3 + 1, False),
        ({"enum": [BIG]}, BIG + 1, False),
        ({"const": {"a": [BIG]}}, {"a": [BIG]}, True),
        ({"const": {"a": [BIG]}}, {"a": [BIG + 1]}, False),
        ({"const": float(BIG)}, BIG, False),
        ({"uniqueItems": True}, [BIG, BIG + 1], True),
        ({"uniqueItems": True}, [{"a": BIG}, {"a": BIG}], False),
        ({"uniqueItems": True}, [2**60, float(2**60)], False),
        ({"uniqueItems": True}, [2**60 + 1, float(2**60)], True),
        ({"minItems": 2.0}, [1], False),
    ],
    ids=str,
)
def test_integers_of_any_size_are_exact(document: Any, value: Any, valid: bool) -> None:
    schema = compiled(document)
    assert schema.valid(value) is valid
    assert (schema.check(value) == []) is valid


# Public bug reports, with the right behaviour.
REPORTED = [
    ("SCH-02", {"uniqueItems": True}, b"[1,true]", True),
    ("SCH-02", {"uniqueItems": True}, b"[[1],[true]]", True),
    ("SCH-02", {"uniqueItems": True}, b"[1,1.0]", False),
    ("SCH-02", {"enum": [[False]]}, b"[0]", False),
    ("SCH-03", {"multipleOf": 0.1}, b"10.1", True),
    ("SCH-03", {"multipleOf": 0.01}, b"300.52", True),
    ("SCH-03", {"multipleOf": 0.001}, b"0.95", True),
    ("SCH-03", {"multipleOf": 0.01}, b"10001.12", True),
    ("SCH-04", {"multipleOf": 11.0}, b"9007199254740995", True),
    ("SCH-14", {"type": ["string", "null"], "enum": ["a", None]}, b"null", True),
    (
        "SCH-09 siblings of $ref apply",
        {"$ref": "#/$defs/S", "maxLength": 1, "$defs": {"S": {"type": "string"}}},
        b'"ab"',
        False,
    ),
    (
        "JSN-16 either kind",
        {"properties": {"replies": {"oneOf": [{"const": ""}, {"type": "object"}]}}},
        b'{"replies":""}',
        True,
    ),
]


@pytest.mark.parametrize(
    ("document", "text", "valid"), [case[1:] for case in REPORTED], ids=[case[0] for case in REPORTED]
)
def test_reported_cases_are_judged_rightly(document: Any, text: bytes, valid: bool) -> None:
    value = parse(text)
    assert not isinstance(value, NotJson)
    assert compiled(document).valid(value) is valid


def test_res_01_a_null_where_text_is_described_has_its_place_and_types() -> None:
    (violation,) = compiled({"properties": {"foo": {"type": "string"}}}).check({"foo": None})
    assert violation == Violation("/foo", "type", "expected string, found null", "/properties/foo/type", "null")


def test_sch_12_a_discriminator_never_changes_the_outcome() -> None:
    one = {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}
    schema = compiled({"oneOf": [one, one], "discriminator": {"propertyName": "kind", "mapping": {"A": "A", "B": "B"}}})
    assert [violation.rule for violation in schema.check({"kind": "A"})] == ["oneOf"]


def test_sch_13_each_item_is_judged_on_its_own() -> None:
    room = {"type": "object", "required": ["@type"], "discriminator": {"propertyName": "@type"}}
    bedroom = {"allOf": [room, {"properties": {"@type": {"const": "BedRoom"}, "numberOfBeds": {"type": "integer"}}}]}
    kitchen = {"allOf": [room, {"properties": {"@type": {"const": "Kitchen"}}}]}
    schema = compiled({"items": {"oneOf": [bedroom, kitchen]}})
    assert schema.valid([{"@type": "BedRoom", "numberOfBeds": 2}, {"@type": "Kitchen"}])
    assert [one.pointer for one in schema.check([{"@type": "BedRoom", "numberOfBeds": "2"}])] == ["/0/numberOfBeds"]


@pytest.mark.parametrize(
    "key", ["a/b", "a~b", "", "0", "007", "16x16", r"/wp/v2/posts/(?P<id>[\d]+)"], ids="JSN-16 {}".format
)
def test_pointers_escape_any_key(key: str) -> None:
    (violation,) = compiled({"properties": {key: {"type": "string"}}}).check({key: 1})
    assert violation.pointer == "/" + key.replace("~", "~0").replace("/", "~1")
    assert violation.schema_path == f"/properties{violation.pointer}/type"
    (violation,) = compiled({"additionalProperties": {"items": {"type": "string"}}}).check({key: ["a", 1]})
    assert violation.pointer == "/" + key.replace("~", "~0").replace("/", "~1") + "/1"
