"""What is written as YAML reads back as it was, by our reader and by one of YAML 1.1, and is made for people."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml

from gateway.authoring.openapi.yaml_text import Commented, write_yaml
from gateway.contract.document import Marks, read_yaml

Json = Any

ODD = [
    *(
        "",
        " ",
        "a",
        "no",
        "Yes",
        "on",
        "y",
        "~",
        "null",
        "true",
        "1",
        "1_000",
        "012",
        "0x1f",
        "1e3",
        ".5",
        ".inf",
        ".nan",
    ),
    *(
        "2024-01-01",
        "12:30:45",
        "=",
        "<<",
        "-",
        "- a",
        "-a",
        "? a",
        "a: b",
        "a:",
        ":a",
        "a #b",
        "#a",
        "a#b",
        "*a",
        "&a",
    ),
    *("!a", "|", ">", "%a", "@a", "`a`", "{a", "[a", "a]", "a, b", "'a'", '"a"', 'a"b', "a\\b", "${A}", "$ref", "a\tb"),
    *("a\nb", "a\nb\n", " a", "a ", "\na", "a\n\n\nb", "a\n  b\nc", "  a\nb", "a\r\nb", "a\x00b", "a\x85b", "a\u2028b"),
    *(
        "\ufeffa",
        "é",
        "日本語",
        "😀",
        "\U000e0001",
        "a" * 300,
        "word " * 60,
        ("word " * 60).strip(),
        "double  space " * 12,
    ),
    *(
        "---",
        "...",
        "--- a",
        "x\n---\ny",
        "x\n...\ny",
        "%YAML 1.1",
        "key: [a]",
        "a:b",
        "a,b",
        "https://a.example/b?c=d#e",
    ),
    *(
        "# a\n# b",
        "- a\n- b",
        "a\u00a0b",
        "0",
        "-1",
        "+1",
        "0.0",
        "1.",
        "NaN",
        "NULL",
        "Off",
        "N",
        "0o17",
        "0b1",
        "1:2",
    ),
]


def back(document: Json) -> Json:
    text = write_yaml(document)
    read = read_yaml(text.encode(), "written.yaml", Marks())
    assert read.refusals == (), text
    assert yaml.safe_load(text) == read.value, text
    assert all(line == line.rstrip() or '"' in line for line in text.split("\n")), text
    return read.value


@pytest.mark.parametrize("text", ODD)
def test_any_text_is_read_as_it_was(text: str) -> None:
    for document in (
        {"a": text},
        {"a": [text, text]},
        {"a": {"b": {"c": text, "d": [text]}}},
        {"a": [{"b": text, "c": {"d": {"e": text}}}, [[text]]]},
    ):
        assert back(document) == document


@pytest.mark.parametrize("key", [text for text in ODD if len(text) < 100])
def test_any_text_can_be_a_key(key: str) -> None:
    document = {"a": {key: {"b": {"c": 1}}, "z": {key: 1}}}
    assert back(document) == document


def test_any_value_is_read_as_it_was() -> None:
    draw = random.Random(7)

    def value(depth: int) -> Json:
        kind = draw.randrange(8 if depth else 5)
        if kind < 2:
            return draw.choice(ODD)
        if kind < 5:
            return draw.choice([None, True, False, 0, -3, 1.5, 1e300, 12345678901234567890, {}, [], -0.0])
        if kind == 5:
            return [value(depth - 1) for _ in range(draw.randrange(4))]
        return {draw.choice(ODD[:60]): value(depth - 1) for _ in range(draw.randrange(5))}

    for _ in range(300):
        document = {"root": value(4), "more": value(3)}
        assert back(document) == document


def test_half_a_surrogate_pair_is_written_as_what_it_is_not() -> None:
    assert back({"a": "x\ud800y"}) == {"a": "x\ufffdy"}


def test_it_is_made_for_people() -> None:
    document = Commented(version=1)
    document["endpoints"] = inner = Commented(
        get={
            "description": "One line.\n\nAnd another.",
            "long": "word " * 30 + "end",
            "of": {"type": "array", "items": {"type": "string"}},
        },
        put={"in": {"a": {"b": 1}, "c": {"d": [1, 2]}}, "none": None, "list": [{"a": {"b": {"c": 1}}}, {}]},
    )
    document.above["endpoints"] = ["", "What can be called\nhere."]
    inner.behind["put"] = "later"
    inner.below = ["the end"]
    assert write_yaml(document) == (
        "version: 1\n"
        "\n"
        "# What can be called\\u000ahere.\n"
        "endpoints:\n"
        "  get:\n"
        "    description: |-\n"
        "      One line.\n"
        "\n"
        "      And another.\n"
        "    long: >-\n"
        f"      {'word ' * 22}word\n"
        f"      {'word ' * 7}end\n"
        "    of: {type: array, items: {type: string}}\n"
        "  put: # later\n"
        "    in:\n"
        "      a: {b: 1}\n"
        "      c: {d: [1, 2]}\n"
        "    none:\n"
        "    list:\n"
        "      - a:\n"
        "          b: {c: 1}\n"
        "      - {}\n"
        "  # the end\n"
    )
