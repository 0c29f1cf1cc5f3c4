"""Patterns mean what they mean in JavaScript, in linear time, or are refused with a reason."""

from __future__ import annotations

import pytest

from gateway.schema import Schema, compile_schema
from gateway.schema.pattern import PatternFault, translate


def matches(pattern: str, text: str) -> bool:
    schema = compile_schema({"pattern": pattern})
    assert isinstance(schema, Schema), schema
    return schema.valid(text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param(r"^a+$", "aa\n", False, id="SCH-05: $ is the end and not before a newline"),
        pytest.param(r"^\d+$", "৪২", False, id="SCH-06: digits are ASCII"),
        pytest.param(r"^\p{L}+$", "é", True, id="SCH-06: letters by property"),
        pytest.param(r"^(a+)+$", "a" * 4000 + "!", False, id="SCH-07: no pattern takes for ever"),
        (r"\w", "é", False),
        (r"\bé\b", "é", False),
        (r"\Bé", "é", True),
        (r"^[\b]$", "\x08", True),
        (r"[]", "x", False),
        (r"^[^]$", "\n", True),
        (r"^\0$", "\0", True),
        (r"^[[a]]$", "[]", True),
        (r"^[a&&b]$", "&", True),
        (r"^[a~~b]$", "~", True),
        (r"^\<a$", "<a", True),
        (r"\<a", "a", False),
        (r"^\ud83d\udc32+$", "🐲🐲", True),
        (r"^\u{1F432}$", "🐲", True),
        (r"^[\cA-\cC]$", "\x02", True),
        (r"^a\/b\-c$", "a/b-c", True),
        (r"^\s$", "\ufeff", True),
        (r"^.$", "\u2028", False),
        (r"^(?<year>\d{4})-(?:\d\d)$", "2024-12", True),
        (r"^[\p{Lu}\d]+$", "É1", True),
        (r"^a{2}b{1,}c{0,1}d??$", "aabb", True),
    ],
)
def test_a_pattern_means_what_javascript_means(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        pytest.param(r"(?<n>a)\k<n>", "backreference", id="SCH-06: backreferences are refused at load"),
        (r"(a)\1", "backreference"),
        (r"(?=a)", "lookahead"),
        (r"(?!a)", "negative lookahead"),
        (r"(?<=a)b", "lookbehind"),
        (r"(?<!a)b", "negative lookbehind"),
        (r"(?i)a", "write the cases out"),
        (r"(?P<n>a)", "no group that JavaScript knows"),
        (r"a++", "repeats nothing"),
        (r"*a", "repeats nothing"),
        (r"\Z", "no escape that JavaScript knows"),
        (r"\A", "no escape that JavaScript knows"),
        (r"a{", r"must be written `\{`"),
        (r"\p{letter}", "no property that JavaScript knows"),
        (r"\ud800", "half of a surrogate pair"),
        (r"[a", "has no `]`"),
        ("\\", "escapes nothing"),
    ],
)
def test_a_pattern_that_cannot_be_honoured_is_refused_with_a_reason(pattern: str, reason: str) -> None:
    fault = translate(pattern)
    assert isinstance(fault, PatternFault)
    assert reason in fault.reason


@pytest.mark.parametrize("pattern", ["(a", "a)", "[z-a]", "x{2,1}", "(a{1000}){1000}"])
def test_a_pattern_that_does_not_compile_is_refused(pattern: str) -> None:
    for document, path in (
        ({"properties": {"a": {"pattern": pattern}}}, ("properties", "a", "pattern")),
        ({"patternProperties": {pattern: {}}}, ("patternProperties", pattern)),
    ):
        faults = compile_schema(document)
        assert isinstance(faults, tuple)
        assert [fault.path for fault in faults] == [path]


def test_keys_match_patterns_as_values_do() -> None:
    schema = compile_schema({"patternProperties": {r"^\bx\d$": {"type": "string"}}, "additionalProperties": False})
    assert isinstance(schema, Schema)
    assert schema.cut({"x1": "a", "x৪": "b"}) == {"x1": "a"}
    (violation,) = schema.check({"x1": 1})
    assert (violation.pointer, violation.schema_path) == ("/x1", r"/patternProperties/^\bx\d$/type")
