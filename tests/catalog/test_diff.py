"""Each kind of change as a pair of contracts under `diff/`: its verdict, place, reason and a value that shows it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog.diff import diff
from gateway.catalog.diff_change import Verdict
from gateway.catalog.diff_schema import Side, compare, compiled
from gateway.catalog.diff_words import compare_inner_defaults
from gateway.catalog.snapshot import Snapshot, read_snapshot, write_snapshot
from tests.catalog.diffs import PAIRS, expected, found, surface

ROOT = Path(__file__).parent.parent.parent
REAL = sorted((ROOT / "tests" / "real" / "contracts").glob("*.yaml"))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_each_change_has_its_verdict_place_reason_and_value(pair: Path) -> None:
    assert expected(pair) != []
    assert found(pair) == expected(pair)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_snapshots_tell_what_their_contracts_tell(pair: Path) -> None:
    old, new = surface(pair / "old.yaml"), surface(pair / "new.yaml")
    assert diff(kept(old), kept(new)) == diff(old, new)


@pytest.mark.parametrize("file", [ROOT / "config" / "gateway.yaml", *REAL], ids=lambda file: file.name)
def test_a_contract_and_itself_differ_in_nothing(file: Path) -> None:
    one, other = surface(file), surface(file)
    assert diff(one, other) == ()


def kept(of: Snapshot) -> Snapshot:
    read = read_snapshot(write_snapshot(of))
    assert isinstance(read, Snapshot), read
    return read


STRING: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize(
    ("case", "side", "old", "new", "told"),
    [
        (
            "a key nobody declared is nobody's promise",
            Side.CALLERS,
            {"type": "object", "properties": {"f": {"type": "object", "properties": {"a": STRING}}}},
            {"type": "object", "properties": {"f": {"type": "object", "properties": {"a": STRING, "b": STRING}}}},
            [("compatible", "f.b")],
        ),
        (
            "an open bag promised every key",
            Side.CALLERS,
            {"type": "object"},
            {"type": "object", "properties": {"b": STRING}},
            [("breaking", "b")],
        ),
        (
            "undeclared keys that were asked for are refused",
            Side.CALLERS,
            {"type": "object", "properties": {}, "additionalProperties": True},
            {"type": "object", "properties": {}, "additionalProperties": False},
            [("breaking", "")],
        ),
        (
            "an argument that is declared no longer is still taken by an open input",
            Side.CALLERS,
            {"type": "object", "properties": {"a": STRING}, "additionalProperties": True},
            {"type": "object", "properties": {}, "additionalProperties": True},
            [("compatible", "a")],
        ),
        (
            "a map whose entries may be more",
            Side.READERS,
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
            [("breaking", "*")],
        ),
        (
            "a map that became a record",
            Side.READERS,
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"type": "object", "properties": {"total": {"type": "integer"}}},
            [("compatible", "total"), ("breaking", "*")],
        ),
        (
            "a field that moved behind a definition is the same",
            Side.READERS,
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}},
            {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
                "$defs": {"A": {"type": "object", "properties": {}}},
            },
            [],
        ),
        (
            "a change inside a recursive definition is told where it is met first",
            Side.READERS,
            {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}},
            {
                "$ref": "#/$defs/N",
                "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}, "v": STRING}}},
            },
            [("compatible", "v")],
        ),
        (
            "parts of an allOf are one object",
            Side.READERS,
            {"allOf": [{"type": "object", "properties": {"a": STRING}, "required": ["a"]}, {"required": ["b"]}]},
            {"allOf": [{"type": "object", "properties": {"a": STRING}}, {"required": ["b"]}]},
            [("breaking", "a")],
        ),
        (
            "a branch more is an answer that readers do not know",
            Side.READERS,
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]},
            [("breaking", "")],
        ),
        (
            "a branch more is taken from callers",
            Side.CALLERS,
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]},
            [("compatible", "")],
        ),
        (
            "words of no dialect judge nothing",
            Side.READERS,
            {"type": "object", "x-kind": "A", "properties": {"a": STRING}},
            {"type": "object", "x-kind": "B", "properties": {"a": STRING, "b": STRING}},
            [("compatible", "b")],
        ),
        (
            "the rest of one part's keys is not the rest of the whole's",
            Side.CALLERS,
            {"type": "object", "properties": {"a": STRING}, "additionalProperties": False},
            {"type": "object", "properties": {"a": STRING}, "allOf": [{"additionalProperties": False}]},
            [("breaking", "")],
        ),
        (
            "a definition that is closed at the root only",
            Side.CALLERS,
            {"$ref": "#/$defs/F", "unevaluatedProperties": False, "$defs": {"F": {"type": "object", "properties": {}}}},
            {
                "$ref": "#/$defs/F",
                "unevaluatedProperties": False,
                "$defs": {"F": {"type": "object", "properties": {"a": STRING}}},
            },
            [("compatible", "a")],
        ),
        ("everything and nothing", Side.CALLERS, True, {"not": {}}, [("breaking", "")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_places_of_a_schema(case: str, side: Side, old: object, new: object, told: list[tuple[str, str]]) -> None:
    assert [(change.verdict.value, change.path) for change in compare(old, new, side)] == told


INSIDE: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": STRING}}}}


@pytest.mark.parametrize(
    ("case", "b", "told"),
    [
        ("a default that is new", {"a.b": {**STRING, "default": "x"}}, ['what is left out is now "x"']),
        ("a key that is new with a default", {"a.c": {**STRING, "default": "x"}}, ['what is left out is now "x"']),
        ("a key that is new without one", {"a.c": STRING}, []),
        ("an argument that is new as a whole", {"z": {"properties": {"c": {**STRING, "default": "x"}}}}, []),
    ],
)
def test_defaults_below_the_top_level(case: str, b: dict[str, Any], told: list[str]) -> None:
    new = copy.deepcopy(INSIDE)
    for path, schema in b.items():
        *outer, name = path.split(".")
        (new["properties"][outer[0]] if outer else new)["properties"][name] = schema
    changes = compare_inner_defaults(INSIDE, new)
    assert [change.message.partition(",")[0] for change in changes] == told


def test_a_default_for_what_every_call_had_to_pass_is_none() -> None:
    old, new = copy.deepcopy(INSIDE), copy.deepcopy(INSIDE)
    old["properties"]["a"]["required"] = ["b"]
    new["properties"]["a"]["properties"]["b"] = {**STRING, "default": "x"}
    assert compare_inner_defaults(old, new) == []


def test_a_format_judges_only_where_the_contract_says_so() -> None:
    old, new = {"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}
    assert compare(old, new, Side.CALLERS) == []
    assert [change.verdict for change in compare(old, new, Side.CALLERS, formats="assert")] == [Verdict.BREAKING]


def test_what_is_compiled_is_known_to_compile() -> None:
    with pytest.raises(AssertionError):
        compiled({"type": "no such type"}, "annotate")
