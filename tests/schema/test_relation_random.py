"""Random pairs of schemas: a yes holds for every sampled value, and a no shows a value that tells them apart."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.schema.fit import Fits, No, Yes
from gateway.schema.relation import fits, fits_slice
from gateway.schema.schema import Schema, compile_schema

NAMES = ("a", "b", "c", "x-1")
SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, 3, -1, 1.5, 0.1, "", "a", "b", "ab", "abc", "x-1")
PATTERNS = ("^a", "b$", "^[a-c]+$", "^x-", "^.{2}$")


def scalar(random: Random) -> dict[str, Any]:
    kind = random.choice(("string", "integer", "number", "boolean", "null", "enum", "const", "pair"))
    if kind == "enum":
        return {"enum": random.sample(SCALARS, random.randint(1, 4))}
    if kind == "const":
        return {"const": random.choice(SCALARS)}
    if kind == "pair":
        return {"type": [random.choice(("string", "integer")), "null"]}
    node: dict[str, Any] = {"type": kind}
    if kind == "string":
        for word in ("minLength", "maxLength"):
            if random.random() < 0.25:
                node[word] = random.randint(0, 3)
        if random.random() < 0.2:
            node["pattern"] = random.choice(PATTERNS)
    if kind in ("integer", "number"):
        for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if random.random() < 0.2:
                node[word] = random.choice((-1, 0, 1, 2, 2.5, 3, 6))
        if random.random() < 0.2:
            node["multipleOf"] = random.choice((1, 2, 3, 0.5, 0.1, 6))
    return node


def objects(random: Random, depth: int) -> dict[str, Any]:
    names = random.sample(NAMES, random.randint(0, 3))
    node: dict[str, Any] = {"properties": {name: schema(random, depth - 1) for name in names}}
    if random.random() < 0.85:
        node["type"] = "object" if random.random() < 0.85 else ["object", "null"]
    if random.random() < 0.6:
        node["required"] = random.sample(NAMES, random.randint(0, 2))
    if random.random() < 0.3:
        node["additionalProperties"] = False if random.random() < 0.6 else schema(random, depth - 1)
    if random.random() < 0.1:
        node["patternProperties"] = {random.choice(PATTERNS): schema(random, depth - 1)}
    if random.random() < 0.07:
        node["propertyNames"] = random.choice(({"maxLength": 1}, {"pattern": "^[a-b]"}, {"enum": ["a", "b"]}))
    for word in ("minProperties", "maxProperties"):
        if random.random() < 0.07:
            node[word] = random.randint(0, 3)
    if random.random() < 0.05:
        node["dependentRequired"] = {random.choice(NAMES): [random.choice(NAMES)]}
    if random.random() < 0.04:
        node["dependentSchemas"] = {random.choice(NAMES): schema(random, depth - 1)}
    if random.random() < 0.03:
        node["unevaluatedProperties"] = False
    return node


def arrays(random: Random, depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "array"} if random.random() < 0.9 else {}
    if random.random() < 0.8:
        node["items"] = schema(random, depth - 1)
    if random.random() < 0.25:
        node["prefixItems"] = [schema(random, depth - 1) for _ in range(random.randint(1, 2))]
    for word in ("minItems", "maxItems"):
        if random.random() < 0.2:
            node[word] = random.randint(0, 3)
    if random.random() < 0.2:
        node["uniqueItems"] = True
    if random.random() < 0.12:
        node["contains"] = schema(random, depth - 1)
        for word in ("minContains", "maxContains"):
            if random.random() < 0.25:
                node[word] = random.randint(0, 2)
    return node


def schema(random: Random, depth: int) -> Any:
    roll = random.random()
    if roll < 0.03:
        return random.random() < 0.7
    if depth <= 0 or roll < 0.35:
        return scalar(random)
    if roll < 0.6:
        return objects(random, depth)
    if roll < 0.74:
        return arrays(random, depth)
    if roll < 0.82:
        return {"$ref": f"#/$defs/{random.choice('NM')}"}
    if roll < 0.86:
        return {"not": schema(random, depth - 1)}
    if roll < 0.9:
        return {
            word: schema(random, depth - 1) for word in ("if", "then", "else") if word == "if" or random.random() < 0.8
        }
    branches = [schema(random, depth - 1) for _ in range(random.randint(1, 3))]
    return {random.choice(("anyOf", "oneOf", "allOf")): branches}


def document(random: Random) -> dict[str, Any]:
    made = schema(random, 3)
    root: dict[str, Any] = made if isinstance(made, dict) else objects(random, 2)
    root["$defs"] = {name: objects(random, 1) if random.random() < 0.7 else arrays(random, 1) for name in "NM"}
    return root


def mutated(random: Random, node: Any) -> Any:
    """The document with one to three small changes, so that the two are often in one relation or the other."""
    changed = copy.deepcopy(node)
    for _ in range(random.randint(1, 3)):
        places = [place for place in subschemas(changed) if isinstance(place, dict)]
        change(random, random.choice(places))
    return changed


def change(random: Random, place: dict[str, Any]) -> None:
    roll = random.random()
    words = [word for word in place if word not in ("$defs", "$ref")]
    if roll < 0.3 and words:
        del place[random.choice(words)]
    elif roll < 0.45 and "required" in place:
        place["required"] = random.sample(NAMES, random.randint(0, 2))
    elif roll < 0.6 and "enum" in place:
        place["enum"] = list({*place["enum"], random.choice(SCALARS)}) if random.random() < 0.5 else place["enum"][:1]
    elif roll < 0.75 and isinstance(place.get("type"), str):
        place["type"] = [place["type"], "null"]
    elif roll < 0.85 and "properties" in place:
        place["properties"][random.choice(NAMES)] = schema(random, 1)
    elif "$ref" not in place and "$defs" not in place:
        fresh = schema(random, 1)
        place.update(fresh if isinstance(fresh, dict) else {})


def subschemas(node: Any) -> list[Any]:
    """Every subschema, so that a change may strike anywhere."""
    found = [node]
    if isinstance(node, dict):
        for word, part in node.items():
            if word in ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"):
                found += subschemas(part)
            elif word in ("properties", "patternProperties", "dependentSchemas", "$defs"):
                found += [inner for member in part.values() for inner in subschemas(member)]
            elif word in ("anyOf", "oneOf", "allOf", "prefixItems"):
                found += [inner for member in part for inner in subschemas(member)]
    return found


def sample(random: Random, node: Any, root: Any, depth: int) -> Any:
    """A value that leans towards a schema; whether it is valid is for the validator to say."""
    if depth <= 0 or not isinstance(node, dict) or random.random() < 0.04:
        return random.choice(SCALARS)
    if "$ref" in node:
        return sample(random, root["$defs"][node["$ref"].rsplit("/", 1)[1]], root, depth - 1)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return random.choice(node["enum"])
    for word in ("anyOf", "oneOf", "allOf"):
        if node.get(word) and random.random() < 0.9:
            return sample(random, random.choice(node[word]), root, depth - 1)
    if "then" in node and random.random() < 0.5:
        return sample(random, node["then"], root, depth - 1)
    kinds = node.get("type") or random.choice(("object", "array", "string", "integer", "null"))
    kind = kinds if isinstance(kinds, str) else random.choice(kinds)
    if kind == "object":
        return sample_object(random, node, root, depth)
    if kind == "array":
        prefix = node.get("prefixItems", [])
        size = max(random.randint(0, 3), node.get("minItems", 0))
        nodes = [prefix[i] if i < len(prefix) else node.get("items", True) for i in range(size)]
        if "contains" in node and nodes:
            nodes[random.randrange(len(nodes))] = node["contains"]
        return [sample(random, part, root, depth - 1) for part in nodes]
    if kind == "string":
        return "".join(random.choice("abcx-1") for _ in range(random.randint(0, 4)))
    if kind == "boolean":
        return random.random() < 0.5
    return None if kind == "null" else random.choice((-1, 0, 1, 2, 3, 4, 6, 12, 1.5, 2.5, 0.1, 0.3, 3.0))


def sample_object(random: Random, node: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    value = {}
    for name, part in node.get("properties", {}).items():
        if name in node.get("required", ()) or random.random() < 0.5:
            value[name] = sample(random, part, root, depth - 1)
    for name in node.get("required", ()):
        value.setdefault(name, sample(random, node.get("additionalProperties", True), root, depth - 1))
    for name in NAMES:
        if name not in value and random.random() < 0.15:
            value[name] = sample(random, node.get("additionalProperties", True), root, depth - 1)
    return value


def pair(random: Random) -> tuple[Any, Any]:
    first = document(random)
    second = mutated(random, first) if random.random() < 0.85 else document(random)
    return (first, second) if random.random() < 0.5 else (second, first)


def judged(seed: int, samples: int = 12) -> Fits | None:
    """The engine's answer for one pair, after it was held against the validators; None where a schema is refused."""
    random = Random(seed)
    narrow, wide = pair(random)
    try:
        inside, outside = (jsonschema_rs.Draft202012Validator(side, validate_formats=False) for side in (narrow, wide))
        answer = fits(narrow, wide)
    except (jsonschema_rs.ValidationError, ValueError):
        return None
    shown = (seed, narrow, wide, answer)
    if isinstance(answer, No):
        assert inside.is_valid(answer.counterexample), shown
        assert not outside.is_valid(answer.counterexample), shown
    values = [sample(random, side, side, 5) for side in (narrow, wide) for _ in range(samples)]
    apart = [value for value in values if inside.is_valid(value) and not outside.is_valid(value)]
    if isinstance(answer, Yes):
        assert not apart, (*shown, apart[0])
    return answer


def judged_slice(seed: int, samples: int = 25) -> Fits | None:
    """The same for a full answer and a view: what is sampled is stripped and cut before it is judged."""
    random = Random(seed)
    full, view = pair(random)
    inside, outside = compile_schema(full), compile_schema(view)
    if not isinstance(inside, Schema) or not isinstance(outside, Schema):
        return None
    answer = fits_slice(inside, outside)
    shown = (seed, full, view, answer)
    if isinstance(answer, No):
        assert inside.valid(answer.counterexample), shown
        assert not outside.valid(outside.cut(inside.cut(answer.counterexample))), shown
    values = [sample(random, side, side, 5) for side in (full, view) for _ in range(samples)]
    apart = [value for value in values if inside.valid(value) and not outside.valid(outside.cut(inside.cut(value)))]
    if isinstance(answer, Yes):
        assert not apart, (*shown, apart[0])
    return answer


FORMS = [pytest.param(1_000, id="short"), pytest.param(200_000, id="long", marks=pytest.mark.long)]


@pytest.mark.parametrize("judge", [judged, judged_slice])
@pytest.mark.parametrize("form", FORMS)
def test_no_answer_is_ever_wrong(form: int, judge: Callable[[int], Fits | None]) -> None:
    answers: Counter[str] = Counter()

    @settings(max_examples=form, deadline=None, database=None)
    @given(st.integers(min_value=0, max_value=2**60))
    def run(seed: int) -> None:
        answers[type(judge(seed)).__name__] += 1

    run()
    assert answers["Yes"] > form / 5
    assert answers["No"] > form / 10
    assert answers["Unknown"] < form / 10
