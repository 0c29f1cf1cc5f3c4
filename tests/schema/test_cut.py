"""Cutting keeps what a schema declares at every depth, whole rows and order, and drops all else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.schema import Schema, compile_schema

ANSWERS = Path(__file__).parent.parent / "data" / "answers"
#: Small ones, each with a shape of its own: alternating lists, keys that are patterns, "" for an absent object.
REAL = (
    "elasticsearch-msearch",
    "rabbitmq-queues",
    "shopify-products",
    "slurm-jobs",
    "solr-mbeans",
    "wordpress-rest-index-routes",
)
TEXT = {"type": "string"}


def compiled(document: Any) -> Schema:
    schema = compile_schema(document)
    assert isinstance(schema, Schema), schema
    return schema


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


PERSON = closed(id={"type": "integer"}, boss={"anyOf": [{"$ref": "#/$defs/Person"}, {"type": "null"}]})
CAT, DOG = (
    {"required": ["kind"], **closed(kind={"const": kind}, **{name: TEXT})}
    for kind, name in (("cat", "lives"), ("dog", "barks"))
)
PET = {"kind": "cat", "lives": "9", "barks": "no", "x": 1}

# what stands there, the schema, a value, what is left of it
CUTS: list[tuple[str, Any, Any, Any]] = [
    ("undeclared keys go", closed(a=TEXT), {"x": 1, "a": "1", "y": 2}, {"a": "1"}),
    ("the value's order stays", closed(a=TEXT, b=TEXT), {"b": "1", "x": 1, "a": "2"}, {"b": "1", "a": "2"}),
    ("rows stay rows", {"items": closed(a=TEXT)}, [{"a": "1", "x": 1}, {"x": 1}, 5], [{"a": "1"}, {}, 5]),
    (
        "a schema may lead back to itself",
        {"$ref": "#/$defs/Person", "$defs": {"Person": PERSON}},
        {"id": 1, "ssn": 1, "boss": {"id": 2, "ssn": 2, "boss": None}},
        {"id": 1, "boss": {"id": 2, "boss": None}},
    ),
    (
        "`true` keeps all",
        closed(a=True, b={}),
        {"a": {"x": 1}, "b": [{"x": 1}], "c": 1},
        {"a": {"x": 1}, "b": [{"x": 1}]},
    ),
    ("an object without properties is open", {"type": "object"}, {"x": 1}, {"x": 1}),
    ("empty properties declare nothing", {"type": "object", "properties": {}}, {"x": 1}, {"x": 1}),
    ("a closed object without properties is empty", {"additionalProperties": False}, {"x": 1}, {}),
    (
        "additionalProperties: true keeps the object open, not what is inside",
        {**closed(a=closed(b=TEXT)), "additionalProperties": True},
        {"a": {"b": "1", "x": 1}, "y": {"z": 1}},
        {"a": {"b": "1"}, "y": {"z": 1}},
    ),
    (
        "a map cuts its values",
        {"additionalProperties": closed(a=TEXT)},
        {"k": {"a": "1", "x": 1}, "l": {"x": 1}},
        {"k": {"a": "1"}, "l": {}},
    ),
    (
        "patterns declare keys",
        {"patternProperties": {"^n_": closed(a=TEXT), "_s$": closed(b=TEXT)}},
        {"n_s": {"a": "1", "b": "2", "x": 3}, "n_t": {"a": "1", "b": "2"}, "other": 1},
        {"n_s": {"a": "1", "b": "2"}, "n_t": {"a": "1"}},
    ),
    (
        "a declared key may match a pattern too",
        {**closed(n_a=closed(b=TEXT)), "patternProperties": {"^n_": closed(a=TEXT)}},
        {"n_a": {"a": "1", "b": "2", "x": 3}},
        {"n_a": {"a": "1", "b": "2"}},
    ),
    (
        "allOf is a union",
        {"allOf": [closed(a=TEXT), closed(b=TEXT)]},
        {"a": "1", "b": "2", "x": 3},
        {"a": "1", "b": "2"},
    ),
    (
        "allOf is a union inside, too",
        {"allOf": [closed(o=closed(a=TEXT)), closed(o=closed(b=TEXT))]},
        {"o": {"a": "1", "b": "2", "x": 3}},
        {"o": {"a": "1", "b": "2"}},
    ),
    (
        "siblings of $ref declare",
        {"$ref": "#/$defs/A", **closed(b=TEXT), "$defs": {"A": closed(a=TEXT)}},
        {"a": "1", "b": "2", "x": 3},
        {"a": "1", "b": "2"},
    ),
    ("the branch a value fits declares", {"oneOf": [CAT, DOG]}, PET, {"kind": "cat", "lives": "9"}),
    (
        "both branches where it fits both",
        {"anyOf": [closed(a=TEXT), closed(b=TEXT)]},
        {"a": "1", "b": "2", "x": 3},
        {"a": "1", "b": "2"},
    ),
    (
        "rows take different branches",
        {"items": {"oneOf": [CAT, DOG]}},
        [PET, {**PET, "kind": "dog"}],
        [{"kind": "cat", "lives": "9"}, {"kind": "dog", "barks": "no"}],
    ),
    (
        "what fits no branch still loses what none declares",
        {"oneOf": [CAT, DOG]},
        {**PET, "kind": "cow"},
        {"kind": "cow", "lives": "9", "barks": "no"},
    ),
    (
        "branches that only require declare nothing",
        {**closed(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": "1", "x": 2},
        {"a": "1"},
    ),
    (
        "a branch that is open keeps its object whole",
        {"anyOf": [{"required": ["free"]}, {"required": ["a"], **closed(a=TEXT)}]},
        {"free": 1, "x": 2},
        {"free": 1, "x": 2},
    ),
    (
        "if and then",
        {
            **closed(kind=TEXT),
            "if": {"properties": {"kind": {"const": "a"}}},
            "then": closed(a=TEXT),
            "else": closed(b=TEXT),
        },
        [{"kind": "a", "a": "1", "b": "2"}, {"kind": "b", "a": "1", "b": "2"}],
        [{"kind": "a", "a": "1"}, {"kind": "b", "b": "2"}],
    ),
    (
        "dependentSchemas",
        {**closed(card=TEXT), "dependentSchemas": {"card": closed(billing=TEXT)}},
        [{"card": "1", "billing": "2", "x": 3}, {"billing": "2"}],
        [{"card": "1", "billing": "2"}, {}],
    ),
    (
        "tuples",
        {"prefixItems": [closed(a=TEXT), True], "items": closed(b=TEXT)},
        [{"a": "1", "x": 1}, {"x": 1}, {"b": "1", "x": 1}, {"x": 1}],
        [{"a": "1"}, {"x": 1}, {"b": "1"}, {}],
    ),
    (
        "contains adds to what items declare",
        {"items": closed(a=TEXT), "contains": {"required": ["b"], **closed(b=TEXT)}},
        [{"a": "1", "b": "2", "x": 3}, {"a": "1", "x": 3}],
        [{"a": "1", "b": "2"}, {"a": "1"}],
    ),
    (
        "unevaluatedProperties: false closes",
        {"allOf": [closed(a=TEXT)], "unevaluatedProperties": False},
        {"a": "1", "x": 2},
        {"a": "1"},
    ),
    (
        "unevaluatedProperties with a schema opens",
        {"allOf": [closed(a=TEXT)], "unevaluatedProperties": closed(b=TEXT)},
        {"a": "1", "x": {"b": "1", "y": 2}},
        {"a": "1", "x": {"b": "1"}},
    ),
    (
        "unevaluatedItems",
        {"prefixItems": [True], "unevaluatedItems": closed(a=TEXT)},
        [{"x": 1}, {"a": "1", "x": 1}],
        [{"x": 1}, {"a": "1"}],
    ),
    ("another kind than expected is kept", closed(a=closed(b=TEXT)), {"a": [{"x": 1}]}, {"a": [{"x": 1}]}),
    ("not and propertyNames declare nothing", {"not": closed(a=TEXT), "propertyNames": TEXT}, {"x": 1}, {"x": 1}),
    (
        "JSN-16: text or object",
        closed(replies={"oneOf": [{"const": ""}, closed(a=TEXT)]}),
        {"replies": {"a": "1", "x": 1}},
        {"replies": {"a": "1"}},
    ),
    (
        "JSN-16: keys with dots and slashes",
        closed(**{"a.b": TEXT, "a/b": TEXT, "": TEXT}),
        {"a.b": "1", "a/b": "2", "": "3", "a": 1},
        {"a.b": "1", "a/b": "2", "": "3"},
    ),
]


@pytest.mark.parametrize(("document", "value", "left"), [case[1:] for case in CUTS], ids=[case[0] for case in CUTS])
def test_a_cut_keeps_what_is_declared(document: Any, value: Any, left: Any) -> None:
    before = json.dumps(value)
    # A table may show several values of one schema as rows.
    rows = isinstance(value, list) and not {"items", "prefixItems"} & document.keys()
    schema = compiled({"items": document} if rows else document)
    shown = schema.cut(value)
    assert json.dumps(shown) == json.dumps(left)
    assert json.dumps(value) == before, "the value was changed"
    assert schema.cut(shown) == shown
    assert (schema.undeclared(value) == []) is (value == left)


def test_what_loses_nothing_is_the_same_object() -> None:
    schema = compiled(closed(rows={"items": closed(a=TEXT, b=closed(c=TEXT))}, more=closed(a=TEXT)))
    value = {"rows": [{"a": "1", "b": {"c": "2"}}, {"a": "2"}], "more": {"a": "1"}}
    assert schema.cut(value) is value
    dirty = {**value, "more": {"a": "1", "x": 2}}
    assert schema.cut(dirty)["rows"] is value["rows"]


def test_removed_paths_read_as_code() -> None:
    schema = compiled(closed(rows={"items": closed(a=TEXT)}, o=closed(a=TEXT)))
    value = {"rows": [{"a": "1"}, {"ssn": 1, "a.b": 2}], "leaked": 1, "o": {"x": {"deep": 1}}}
    assert schema.undeclared(value) == ["rows[1].ssn", 'rows[1]["a.b"]', "leaked", "o.x"]


@pytest.mark.parametrize("key", ["é", "a b", "a/b~c%25", "", '"', "\\", "0", "?#", "anyOf"])
def test_branches_are_told_apart_below_any_key(key: str) -> None:
    schema = compiled(closed(**{key: closed(**{key: {"oneOf": [CAT, DOG]}})}))
    assert schema.cut({key: {key: PET, "x": 1}}) == {key: {key: {"kind": "cat", "lives": "9"}}}
    by_pattern = compiled({"patternProperties": {r"^\bx": {"items": {"oneOf": [CAT, DOG]}}}})
    assert by_pattern.cut({"x": [PET], "y": 1}) == {"x": [{"kind": "cat", "lives": "9"}]}


def test_depth_is_no_obstacle() -> None:
    node = {"required": ["kids"], **closed(kids={"items": {"$ref": "#"}}, kind={"const": "node"})}
    schema = compiled({"anyOf": [node, {"required": ["leaf"], **closed(leaf=TEXT)}]})
    value: Any = {"leaf": "1", "x": 1}
    for _ in range(99):
        value = {"kind": "node", "kids": [value], "x": 1}
    assert len(schema.undeclared(value)) == 100


def declared_by(value: Any) -> Any:
    """The schema that declares exactly the keys of a value."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {key: declared_by(held) for key, held in value.items()}}
    if isinstance(value, list):
        kinds = {json.dumps(kind): kind for kind in map(declared_by, value)}
        return {"items": {"anyOf": list(kinds.values())}} if kinds else {"type": "array"}
    return {"type": "null" if value is None else {str: "string", bool: "boolean"}.get(type(value), "number")}


def without(document: Any, every: int, counter: list[int]) -> Any:
    """The same schema with every n-th property gone."""
    if isinstance(document, list):
        return [without(item, every, counter) for item in document]
    if not isinstance(document, dict):
        return document
    changed = {}
    for keyword, held in document.items():
        if keyword == "properties":
            kept = {}
            for name, inner in held.items():
                counter[0] += 1
                if counter[0] % every:
                    kept[name] = without(inner, every, counter)
            changed[keyword] = kept
        else:
            changed[keyword] = without(held, every, counter)
    return changed


def is_left_of(after: Any, before: Any) -> bool:
    """Whether only keys went: rows, order and values stayed."""
    if isinstance(before, dict) and isinstance(after, dict):
        kept = [key for key in before if key in after]
        return kept == list(after) and all(is_left_of(after[key], before[key]) for key in kept)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(is_left_of, after, before))
    return type(after) is type(before) and bool(after == before)


@pytest.mark.parametrize("name", REAL)
def test_a_real_answer_loses_what_is_not_declared_and_nothing_else(name: str) -> None:
    value = json.loads((ANSWERS / f"{name}.json").read_text())
    everything = declared_by(value)
    whole = compiled(everything)
    assert whole.valid(value)
    assert whole.cut(value) is value
    less = compiled(without(everything, 3, [0]))
    shown = less.cut(value)
    assert less.valid(shown)
    assert less.cut(shown) == shown
    assert is_left_of(shown, value)
