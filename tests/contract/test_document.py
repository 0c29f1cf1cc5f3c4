"""YAML 1.2 core scalars, the place of every key, and what is refused of YAML itself."""

from __future__ import annotations

from typing import Any

import pytest

from gateway import json_text
from gateway.contract.document import DEEPEST, Marks, Place, read_yaml


def value(text: str) -> Any:
    document = read_yaml(text.encode(), "a.yaml", Marks())
    assert document.refusals == ()
    return document.value


def refusals(text: str | bytes) -> list[str]:
    document = read_yaml(text if isinstance(text, bytes) else text.encode(), "a.yaml", Marks())
    return [str(refusal).removeprefix("a.yaml:") for refusal in document.refusals]


@pytest.mark.parametrize(
    ("case", "text", "expected"),
    [
        (
            "YML-01",
            "country: no\non: x\nenabled: yes\ny: off",
            {"country": "no", "on": "x", "enabled": "yes", "y": "off"},
        ),
        ("YML-02", "zip: 012\nday: 08\nneg: -07\no: 0o17", {"zip": "012", "day": "08", "neg": "-07", "o": "0o17"}),
        (
            "YML-03",
            "a: 1e3\nversion: 1.10\nt: 12:30:45\nd: 2024-01-01\nn: 1_000\ns: 190:20:30",
            {"a": 1000.0, "version": 1.1, "t": "12:30:45", "d": "2024-01-01", "n": "1_000", "s": "190:20:30"},
        ),
        ("YML-06", "a: =", {"a": "="}),
        (
            "words",
            "[true, True, FALSE, null, ~, Null, '', nil, None]",
            [True, True, False, None, None, None, "", "nil", "None"],
        ),
        (
            "numbers",
            "[0, -1, +3, 0x1F, 1.5, .5, 5., -1E-2, 1e, 0x, 1.2.3]",
            [0, -1, 3, 31, 1.5, 0.5, 5.0, -0.01, "1e", "0x", "1.2.3"],
        ),
        ("digits", "a: 12345678901234567890123", {"a": 12345678901234567890123}),
        ("quoted", "a: '12'\nb: \"true\"\nc: |\n  1\n", {"a": "12", "b": "true", "c": "1\n"}),
        ("keys are text", "200: a\ntrue: b\nnull: c\n1.0: d", {"200": "a", "true": "b", "null": "c", "1.0": "d"}),
        ("byte order mark", "\ufeffa: 1", {"a": 1}),
        (
            "aliases",
            "a: &x {b: [1]}\nc: *x\nd: [*x, *x]",
            {"a": {"b": [1]}, "c": {"b": [1]}, "d": [{"b": [1]}, {"b": [1]}]},
        ),
        ("wide characters", "ключ: значение 𝒳", {"ключ": "значение 𝒳"}),
    ],
    ids=lambda case: case if isinstance(case, str) and len(case) < 20 else "",
)
def test_yaml_means_what_was_written(case: str, text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert [type(item) for item in _leaves(found)] == [type(item) for item in _leaves(expected)]
    json_text.encode(found)


def _leaves(node: Any) -> list[Any]:
    if isinstance(node, (dict, list)):
        return [leaf for item in (node.values() if isinstance(node, dict) else node) for leaf in _leaves(item)]
    return [node]


@pytest.mark.parametrize(
    ("case", "text", "expected"),
    [
        ("YML-06 tag", "a: !!python/object/apply:os.system [id]", "1:4: a: the tag"),
        ("YML-06 alias in itself", "&a [*a]", "1:5: [0]: the anchor of the alias `*a` stands inside"),
        ("YML-06 documents", "---\n---", "2:1: a second document starts here"),
        ("YML-06 tab", "a:\n\tb: 1", "2:1: a tab cannot indent YAML; use spaces"),
        ("tag of text", "a: !!str 1", "1:4: a: the tag"),
        ("unknown alias", "a: *b", "1:4: a: the anchor of the alias `*b` is not written above"),
        ("duplicate", "a: 1\nb: 2\na: 3", "3:1: a: this key is already written on line 1; write it once"),
        ("duplicate inside", "- {a: 1}\n- {b: 1, b: 2}", "2:10: [1].b: this key"),
        ("duplicate by number", "1: a\n'1': b", "2:1: 1: this key"),
        ("not a number", "a: .nan", "1:4: a: JSON has no such number"),
        ("infinite", "a: -.inf", "1:4: a: JSON has no such number"),
        ("too large", "a: 1e999", "1:4: a: no double holds this number"),
        ("endless digits", "a: " + "9" * 5000, "1:4: a: a number of over 1000 digits"),
        ("merge key", "a: {<<: {b: 1}}", "1:5: a.<<: `<<` is no key of YAML 1.2"),
        ("key of a list", "? [a]\n: 1", "1:3: a key must be text"),
        ("not closed", "a: [1, 2", "1:4: a `[` is not closed"),
        ("quote not closed", "a: 'b", "1:4: a quoted text is not closed"),
        ("control character", "a: \x07", "1:4: the character U+0007 is not allowed"),
        ("two colons", "a: b: c", "1:5: a key and `:` cannot stand here"),
        ("empty", "", "1:1: the file is empty"),
    ],
    ids=lambda case: case if isinstance(case, str) and len(case) < 24 else "",
)
def test_what_is_refused_of_yaml(case: str, text: str, expected: str) -> None:
    found = refusals(text)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_every_fault_of_a_file_is_said_at_once() -> None:
    found = refusals("a: 1\na: 2\nb: !x y\nc: .inf\nc: 3")
    assert [line.split(":")[0] for line in found] == ["2", "3", "4", "5"]


def test_aliases_that_multiply_are_bounded() -> None:  # YML-06
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefghi", "bcdefghij", strict=True)]
    found = refusals("\n".join(lines))
    assert len(found) == 1
    assert "aliases repeat more than" in found[0]


def test_aliases_that_nest_are_bounded_by_depth() -> None:
    lines = ["a0: &a0 " + "[" * 60 + "]" * 60]
    lines += [f"a{n}: &a{n} " + "[" * 30 + f"*a{n - 1}" + "]" * 30 for n in range(1, 4)]
    assert "aliases" in refusals("\n".join(lines))[0]


def test_depth_is_bounded() -> None:
    assert value("[" * DEEPEST + "]" * DEEPEST)
    assert "levels deep" in refusals("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))[0]


def test_every_key_and_item_has_its_place() -> None:
    marks = Marks()
    root = read_yaml(b"a: 1\nb:\n  - c: {d: x,\n        e: y}\n", "dir/f.yaml", marks).value
    nowhere = Place("", 0, 0)
    places = {
        ("a",): (1, 1),
        ("b",): (2, 1),
        ("b", 0): (3, 5),
        ("b", 0, "c"): (3, 5),
        ("b", 0, "c", "d"): (3, 9),
        ("b", 0, "c", "e"): (4, 9),
        # of what is not written, the nearest that is
        ("b", 0, "c", "f", 7): (3, 5),
    }
    assert {path: marks.place(root, path, nowhere)[1:] for path in places} == places
    assert marks.place(root, (), nowhere) == nowhere
