"""Whether one schema fits another, kind by kind: yes, no with place and reason, or unknown and why."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.schema import compile_schema
from gateway.schema.fit import No, Unknown, Yes
from gateway.schema.relation import fits
from gateway.schema.schema import Schema

STRING, INTEGER, NUMBER, NULL = ({"type": kind} for kind in ("string", "integer", "number", "null"))
ANY: dict[str, Any] = {}


MAY_BE_NULL = "the narrow schema may be null here"


def missing(name: str) -> str:
    return f"the wide schema requires `{name}`, which the narrow schema does not guarantee"


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def rows(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def tagged(tag: str, **properties: Any) -> dict[str, Any]:
    return obj({"kind": {"const": tag}, **properties}, "kind")


def tree(leaf: dict[str, Any], **more: Any) -> dict[str, Any]:
    node = obj({"value": leaf, "children": rows({"$ref": "#/$defs/node"})}, "value", **more)
    return {"$ref": "#/$defs/node", "$defs": {"node": node}}


FITTING: list[tuple[str, Any, Any]] = [
    ("anything fits what allows anything", True, ANY),
    ("nothing fits everything", False, NULL),
    ("an integer is a number", INTEGER, NUMBER),
    ("a number that is a multiple of 2 is an integer", {"type": "number", "multipleOf": 2}, INTEGER),
    ("a multiple of 6 is a multiple of 2", {"type": "integer", "multipleOf": 6}, {"multipleOf": 2}),
    ("a multiple of 0.3 is a multiple of 0.1", {"type": "number", "multipleOf": 0.3}, {"multipleOf": 0.1}),
    (
        "multiples of 4 and of 6 are multiples of 12",
        {"allOf": [{"multipleOf": 4}, {"multipleOf": 6}]},
        {"multipleOf": 12},
    ),
    ("an integer above 2.5 is at least 3", {"type": "integer", "exclusiveMinimum": 2.5}, {"minimum": 3}),
    ("no integer lies between 1 and 2", {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, False),
    ("narrower bounds fit wider ones", {"minimum": 2, "maximum": 3}, {"minimum": 1, "exclusiveMaximum": 4}),
    ("narrower lengths fit wider ones", {"type": "string", "minLength": 2, "maxLength": 3}, {"maxLength": 3}),
    ("fewer enum members fit more", {"enum": ["a", "b"]}, {"enum": ["b", "a", "c"]}),
    ("1.0 is 1", {"const": 1.0}, {"enum": [1]}),
    ("enum members satisfy a type", {"enum": ["a", "b"]}, {"type": "string", "maxLength": 1}),
    ("enum members satisfy a pattern", {"enum": ["x-1", "x-2"]}, {"pattern": "^x-"}),
    ("a type without its enum", {"type": ["string", "null"], "enum": ["a"]}, STRING),
    ("a boolean is true or false", {"type": "boolean"}, {"enum": [True, False]}),
    ("a pattern implies a wider one", {"type": "string", "pattern": "^[a-f0-9]{24}$"}, {"pattern": "^[a-z0-9]+$"}),
    ("a pattern implies a length", {"type": "string", "pattern": "^[a-z]{2}$"}, {"minLength": 2, "maxLength": 2}),
    ("a union's members fit a wider union", {"oneOf": [STRING, INTEGER]}, {"anyOf": [NUMBER, STRING, NULL]}),
    ("a type list is a union", {"anyOf": [STRING, NULL]}, {"type": ["string", "null"]}),
    ("a required key satisfies an optional one", obj({"a": STRING}, "a"), obj({"a": STRING})),
    ("a key more is no harm to an open object", obj({"a": STRING, "b": NULL}), obj({"a": STRING})),
    ("a closed object fits an open one", obj({"a": STRING}, additionalProperties=False), obj({"a": STRING})),
    ("a closed object has no other keys", obj({}, additionalProperties=False), {"maxProperties": 0}),
    ("known keys fit a map", obj({"a": STRING}, additionalProperties=False), {"additionalProperties": STRING}),
    ("a map fits a wider map", {"additionalProperties": INTEGER}, {"additionalProperties": NUMBER}),
    (
        "keys of a pattern fit a map",
        {"patternProperties": {"^x-": INTEGER}, "additionalProperties": False},
        {"additionalProperties": NUMBER},
    ),
    ("names of a pattern", {"propertyNames": {"enum": ["a", "b"]}}, {"propertyNames": {"maxLength": 1}}),
    (
        "two names leave room for two keys",
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}},
        {"maxProperties": 2},
    ),
    ("required keys are counted", obj({}, "a", "b"), {"minProperties": 2}),
    ("what depends on a key", {"required": ["b"]}, {"dependentRequired": {"a": ["b"]}}),
    ("rows of narrower items", rows(obj({"a": STRING}, "a")), rows(obj({"a": STRING}))),
    ("an empty list fits any list", rows(STRING, maxItems=0), rows(INTEGER)),
    (
        "a tuple fits its rows",
        {"type": "array", "prefixItems": [INTEGER, NULL], "items": False},
        rows({"type": ["integer", "null"]}),
    ),
    ("a tuple ends", {"type": "array", "prefixItems": [INTEGER], "items": False}, {"maxItems": 1}),
    ("unique items of two values", rows({"enum": [1, 2]}, uniqueItems=True), {"maxItems": 2}),
    ("a list of one has no equal items", {"type": "array", "maxItems": 1}, {"uniqueItems": True}),
    ("items that all match contain one", rows({"const": 1}, minItems=1), {"contains": {"const": 1}}),
    (
        "allOf joins",
        {"allOf": [obj({"a": STRING}, "a"), obj({"b": STRING}, "b")]},
        obj({"a": STRING, "b": STRING}, "a", "b"),
    ),
    ("what is not null", {"type": ["string", "null"], "not": NULL}, STRING),
    (
        "if decides",
        {"if": STRING, "then": {"maxLength": 3}, "else": NULL},
        {"anyOf": [{"type": "string", "maxLength": 3}, NULL]},
    ),
    ("tags keep branches apart", {"anyOf": [tagged("a"), tagged("b")]}, {"oneOf": [tagged("b"), tagged("a")]}),
    ("a tree of integers is one of numbers", tree(INTEGER), tree(NUMBER)),
    (
        "a cycle without an end has no value",
        {"$ref": "#/$defs/a", "$defs": {"a": obj({"n": {"$ref": "#/$defs/a"}}, "n")}},
        False,
    ),
    ("equal schemas fit whatever they say", {"pattern": "(?<!a)b"}, {"pattern": "(?<!a)b", "title": "same"}),
    (
        "unevaluated keys are other keys",
        {"properties": {"a": ANY}, "unevaluatedProperties": False},
        {"propertyNames": {"const": "a"}},
    ),
]

APART: list[tuple[Any, Any, str, str]] = [
    (obj({"a": STRING}), obj({"a": STRING}, "a"), "a", missing("a")),
    (rows(obj({"n": STRING})), rows(obj({"n": STRING}, "n")), "[].n", missing("n")),
    (obj({"a": {"type": ["string", "null"]}}), obj({"a": STRING}), "a", MAY_BE_NULL),
    (NUMBER, INTEGER, "", "the narrow schema may be a number here, where the wide schema wants an integer"),
    (obj({"s": {"enum": ["ok", "blocked"]}}), obj({"s": {"enum": ["ok"]}}), "s", 'enum member "blocked" is left out'),
    ({"additionalProperties": NULL, "type": "object"}, {"additionalProperties": STRING}, "*", MAY_BE_NULL),
    ({"type": "array", "prefixItems": [STRING, NULL]}, {"prefixItems": [STRING, STRING]}, "[1]", MAY_BE_NULL),
    (obj({"a b": obj({"c": NULL})}), obj({"a b": obj({"c": STRING})}), '["a b"].c', MAY_BE_NULL),
    (
        tree(NUMBER),
        tree(INTEGER),
        "value",
        "the narrow schema may be a number here, where the wide schema wants an integer",
    ),
    (
        obj({"x": {"anyOf": [obj({"a": ANY}), NULL]}}),
        obj({"x": {"anyOf": [obj({"a": ANY}, "a"), NULL]}}),
        "x.a",
        missing("a"),
    ),
    ({"const": 3}, {"not": INTEGER}, "", "the narrow schema may be 3 here, which the wide schema excludes by `not`"),
    (
        {"const": 3},
        {"oneOf": [INTEGER, NUMBER]},
        "",
        "the narrow schema may be 3 here, which fits more than one `oneOf` branch of the wide schema",
    ),
    (
        obj({}),
        obj({}, additionalProperties=False),
        "",
        "the wide schema allows only the keys it declares, and the narrow schema may hold `a`",
    ),
    (
        {"minimum": 1, "type": "number"},
        {"minimum": 2},
        "",
        "the narrow schema may be 1 here, which breaks the wide schema's `minimum`",
    ),
]

REFUTED: list[tuple[str, Any, Any]] = [
    ("true is not 1", {"const": True}, {"enum": [1]}),
    ("lists of true and of 1 differ", {"const": [True]}, {"const": [1]}),
    ("a key that is only in one branch", {"anyOf": [obj({}, "a"), obj({})]}, {"required": ["a"]}),
    ("beyond what a double tells apart", {"const": 9007199254740993}, {"const": 9007199254740992}),
    ("a longer list", rows(STRING), {"maxItems": 3}),
    ("equal items", rows(STRING), {"uniqueItems": True}),
    ("a tuple's tail", {"type": "array", "prefixItems": [STRING]}, rows(STRING)),
    (
        "a pattern of keys",
        {"patternProperties": {"^x-": STRING}, "type": "object"},
        {"patternProperties": {"^x-": NULL}},
    ),
    (
        "a value that no tag keeps apart",
        {"anyOf": [tagged("a"), tagged("b")]},
        {"oneOf": [tagged("a"), obj({}, "kind")]},
    ),
    ("a required id of a pattern", obj({"id": {"type": "string", "pattern": "^[a-f0-9]{4}$"}}, "id"), obj({}, "name")),
    ("a final newline", {"type": "string", "pattern": "^a+"}, {"pattern": "^a+$"}),
    ("deep in a tree", tree(STRING), tree(STRING, maxProperties=1)),
    ("more than maxContains", rows(INTEGER), {"contains": {"const": 1}, "minContains": 0, "maxContains": 1}),
    ("an item too few", rows(INTEGER), {"contains": INTEGER}),
    ("a divisor of 0.01", {"type": "number", "multipleOf": 0.01}, {"multipleOf": 0.1}),
    ("not every name", {"type": "object"}, {"propertyNames": {"maxLength": 3}}),
]


@pytest.mark.parametrize(("narrow", "wide"), [pytest.param(n, w, id=name) for name, n, w in FITTING])
def test_fits(narrow: Any, wide: Any) -> None:
    assert fits(narrow, wide) == Yes()


@pytest.mark.parametrize(("narrow", "wide", "path", "reason"), APART)
def test_a_no_says_where_and_why(narrow: Any, wide: Any, path: str, reason: str) -> None:
    answer = fits(narrow, wide)
    assert isinstance(answer, No)
    assert (answer.path, answer.reason) == (path, reason)
    _tells_apart(narrow, wide, answer)


@pytest.mark.parametrize(("narrow", "wide"), [pytest.param(n, w, id=name) for name, n, w in REFUTED])
def test_a_no_shows_a_value(narrow: Any, wide: Any) -> None:
    answer = fits(narrow, wide)
    assert isinstance(answer, No)
    _tells_apart(narrow, wide, answer)


@pytest.mark.parametrize(
    ("narrow", "wide", "reason"),
    [
        (
            obj({"id": {"type": "string", "pattern": r"^\p{L}+$"}}),
            obj({"id": {"pattern": "^[a-z]+$"}}),
            r"at `id`: the pattern `^\p{L}+$` cannot be weighed: of the escape `\p`",
        ),
        (
            rows(INTEGER, contains=INTEGER, maxContains=1),
            {"type": "array", "maxItems": 1},
            "`maxContains` cannot be weighed",
        ),
    ],
)
def test_what_cannot_be_decided_says_what_stands_in_the_way(narrow: Any, wide: Any, reason: str) -> None:
    assert fits(narrow, wide) == Unknown(reason)


def test_compiled_schemas_are_taken_as_they_are() -> None:
    narrow, wide = _compiled(STRING), _compiled({"type": ["string", "null"]})
    assert fits(narrow, wide) == Yes()
    assert fits(wide, narrow, names=("the old answer", "the new one")) == No(
        "", None, "the old answer may be null here"
    )


def test_an_asserted_format_only_fits_itself() -> None:
    date, email = ({"type": "string", "format": name} for name in ("date", "email"))
    assert fits({**date, "maxLength": 20}, date, formats="assert") == Yes()
    assert fits(STRING, date) == Yes()
    assert isinstance(fits(STRING, date, formats="assert"), No)
    assert not isinstance(fits(date, email, formats="assert"), Yes)


def test_definitions_that_are_equal_in_both_documents_are_one() -> None:
    person = {"type": "string", "pattern": "(?<!x)y"}
    narrow = {"$ref": "#/$defs/Row", "$defs": {"Row": obj({"p": {"$ref": "#/$defs/P"}}, "p"), "P": person}}
    wide = {"properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": person}}
    assert fits(narrow, wide) == Yes()


def test_a_definition_of_the_same_name_and_another_meaning_is_another() -> None:
    def holding(inner: Any) -> Any:
        return {"$ref": "#/$defs/Row", "$defs": {"Row": obj({"p": {"$ref": "#/$defs/P"}}), "P": inner}}

    assert isinstance(fits(holding(ANY), holding(STRING)), No)
    assert fits(holding(STRING), holding(ANY)) == Yes()


def test_a_long_chain_of_definitions_is_followed_to_its_end() -> None:
    def chain(end: Any) -> Any:
        links = {f"d{n}": obj({"next": {"$ref": f"#/$defs/d{n + 1}"}}, "next") for n in range(150)}
        return {"$ref": "#/$defs/d0", "$defs": {**links, "d150": end}}

    assert fits(chain(INTEGER), chain(NUMBER)) == Yes()
    answer = fits(chain(NUMBER), chain(INTEGER))
    assert isinstance(answer, No)
    assert answer.path.count("next") == 150


def _compiled(document: Any) -> Schema:
    schema = compile_schema(document)
    assert isinstance(schema, Schema)
    return schema


def _tells_apart(narrow: Any, wide: Any, answer: No) -> None:
    assert _compiled(narrow).valid(answer.counterexample)
    assert not _compiled(wide).valid(answer.counterexample)
