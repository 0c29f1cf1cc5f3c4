"""Strings that match some patterns and not others: the shortest, the proof that there is none, or why it is open."""

from __future__ import annotations

from random import Random

import pytest

from gateway.schema import compile_schema
from gateway.schema.relation_pattern import PatternDoubt, Strings, find_string
from gateway.schema.schema import Schema

ATOMS = (
    "a",
    "b",
    "[a-c]",
    "[^a]",
    r"\d",
    r"\w",
    ".",
    "(?:ab|c)",
    "(a|b*)",
    r"\s",
    r"[\w-]",
    r"\.",
    "^",
    "$",
    "é",
    r"\u0061",
)
COUNTS = ("", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?")
LETTERS = "abcx19 .é-\n_\r"  # fmt: skip


def wanted(
    *patterns: str, off: tuple[str, ...] = (), low: int = 0, high: int | None = None, barred: tuple[str, ...] = ()
) -> Strings:
    return Strings(frozenset(patterns), frozenset(off), low, high, frozenset(barred))


@pytest.mark.parametrize(
    ("strings", "found"),
    [
        (wanted(), "a"),
        (wanted(high=0), ""),
        (wanted(low=3), "xxa"),
        (wanted("^x-"), "x-"),
        (wanted("^a+$", barred=("a", "aa")), "aaa"),
        (wanted("^[ab]$", barred=("a",)), "b"),
        (wanted("^[ab]$", barred=("a", "b")), None),
        (wanted("^a$", off=("a",)), None),
        (wanted("^(ab)+$", low=3), "abab"),
        (wanted("^(ab)+$", low=3, high=3), None),
        (wanted(r"^\d{4}-\d\d$"), "0000-00"),
        (wanted("^[a-z]+$", off=("^[a-f]+$",)), "g"),
        (wanted("a|^$", off=("a",)), ""),
        (wanted("$^"), ""),
        (wanted("a^"), None),
        (wanted("^a+$", off=("^a+",)), None),
        (wanted("^a.", off=("^a[^\\n\\r\\u2028\\u2029]",)), None),
    ],
)
def test_the_shortest_string_or_none(strings: Strings, found: str | None) -> None:
    assert find_string(strings) == found


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"\bword", r"\p{L}", r"(a)\1", "(?<name>a)", "a{2", "(?i)a", "[a-\\d]"])
def test_a_pattern_outside_the_subset_is_left_open(pattern: str) -> None:
    doubt = find_string(wanted(pattern))
    assert isinstance(doubt, PatternDoubt)
    assert pattern in doubt.reason


def test_what_is_too_large_is_left_open() -> None:
    assert isinstance(find_string(wanted("^(a|b){500}(c|d){900}$")), PatternDoubt)
    assert isinstance(find_string(wanted("^.*a.{20}$", off=("^.*b.{20}$",))), str | PatternDoubt)


def test_random_patterns_agree_with_the_validator() -> None:
    random = Random(20)
    outcomes = {"found": 0, "none": 0}
    for _ in range(300):
        patterns, off = (tuple(_pattern(random) for _ in range(random.randint(0, 2))) for _ in range(2))
        schema = compile_schema(
            {"allOf": [{"pattern": p} for p in patterns] + [{"not": {"pattern": p}} for p in off], "maxLength": 4}
            if patterns or off
            else {"maxLength": 4}
        )
        assert isinstance(schema, Schema)
        found = find_string(wanted(*patterns, off=off, high=4))
        if isinstance(found, str):
            outcomes["found"] += 1
            assert schema.valid(found), (patterns, off, found)
        elif found is None:
            outcomes["none"] += 1
            for _ in range(60):
                text = "".join(random.choice(LETTERS) for _ in range(random.randint(0, 4)))
                assert not schema.valid(text), (patterns, off, text)
    assert min(outcomes.values()) > 30


def _pattern(random: Random) -> str:
    parts = [
        (atom := random.choice(ATOMS)) + ("" if atom in "^$" else random.choice(COUNTS))
        for _ in range(random.randint(1, 4))
    ]
    text = "".join(parts)
    return ("^" if random.random() < 0.5 else "") + text + ("$" if random.random() < 0.5 else "")
