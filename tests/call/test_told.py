"""A violation reads as one sentence that names its place, wherever it is and whatever rule is broken."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.call.failure import answer_invalid, refused_arguments, told
from gateway.schema import Schema, compile_schema

CLOSED: Any = {
    "type": "object",
    "required": ["p"],
    "properties": {"p": {"type": "integer", "minimum": 3}, "limit": {"type": "array", "minItems": 2}},
    "additionalProperties": False,
}

SENTENCES: list[tuple[Any, Any, str]] = [
    (CLOSED, {}, "`p` is required and missing"),
    ({"properties": {"a": {"items": CLOSED}}}, {"a": [{}]}, "`a/0/p` is required and missing"),
    (CLOSED, {"p": 3, "limt": 1}, "`limt` is not declared; did you mean `limit`?"),
    ({"properties": {"a": CLOSED}}, {"a": {"p": 3, "limt": 1}}, "`a/limt` is not declared; did you mean `limit`?"),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "`b` is required beside `a` and missing"),
    (CLOSED, None, "the whole answer is expected to be an object, found null"),
    ({"type": "string"}, 1, "the whole answer is expected to be a string, found integer"),
    ({"type": ["null", "integer"]}, "", "the whole answer is expected to be null or integer, found string"),
    ({"anyOf": [{"type": "array"}, {"type": "null"}]}, 1, "the whole answer is expected to be an array or null, found integer"),
    (CLOSED, {"p": "x"}, "`p` is expected to be an integer, found string"),
    (CLOSED, {"p": 1}, "`p` is expected to be at least 3, found integer below it"),
    (CLOSED, {"p": 3, "limit": [1]}, "`limit` is expected to have at least 2 items, found array of 1"),
    ({"enum": ["a", "b"]}, "c", 'the whole answer is expected to be one of "a" or "b", found string'),
    ({"oneOf": [True, {}]}, 1, "the whole answer is expected to fit exactly one branch of `oneOf`, found integer that fits branch 1 and branch 2"),
    ({"contains": {"type": "null"}}, [1], "the whole answer is expected to have an item fitting `contains`, found array without one"),
    ({"properties": {"a": False}}, {"a": 1}, "`a`: nothing is allowed here, found integer"),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "the whole answer: the key `ab` is not allowed: expected at most 1 character, found string of 2"),
    ({"required": ["a`b is\nc"]}, {}, "`a`b is\\nc` is required and missing"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "value", "sentence"), SENTENCES, ids=[case[2] for case in SENTENCES])
def test_a_violation_is_one_sentence(document: Any, value: Any, sentence: str) -> None:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    assert told(schema.check(value)[0], "answer") == sentence


def test_the_sentence_stands_in_what_a_caller_reads() -> None:
    schema = compile_schema(CLOSED)
    assert isinstance(schema, Schema), schema
    refused = refused_arguments(schema.check({"limt": 1}))
    assert refused.error.startswith("The arguments were refused and nothing was sent: `limt` is not declared; did you")
    assert answer_invalid(schema.check({})).error == (
        "The backend's answer breaks its declared output: `p` is required and missing"
    )
