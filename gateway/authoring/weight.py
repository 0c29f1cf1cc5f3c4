"""How many bytes an answer of a schema may have: a rough upper bound that tells a record from a dump. Pure."""

from __future__ import annotations

from typing import Any

from gateway.json_text import encode
from gateway.schema.resolve import resolve

Json = Any

#: More than this is large to a model: some four thousand tokens.
LARGE = 16 * 1024
#: What a text counts that says nothing of its length; most are a name, an address, a sentence.
TEXT = 256
_NUMBER = 20
_ANY = float("inf")
_DEEPEST = 40


def weight(document: Json) -> float:
    """Bytes of the largest answer; infinite where nothing bounds a list, a map, or what stands for anything."""
    return _weight(document, document, 0)


def _weight(document: Json, node: Json, depth: int) -> float:
    if node is False:
        return 0
    if not isinstance(node, dict) or depth > _DEEPEST:
        return _ANY
    if "const" in node:
        return len(encode(node["const"]))
    if "enum" in node:
        return max((len(encode(member)) for member in node["enum"]), default=0)
    # Each that must hold bounds the value; the narrowest does it best.
    bounds = [_own(document, node, depth)]
    if isinstance(node.get("$ref"), str) and not isinstance(target := resolve(document, node["$ref"]), str):
        bounds.append(_weight(document, target[1], depth + 1))
    bounds += [_weight(document, member, depth + 1) for member in node.get("allOf", ())]
    for keyword in ("anyOf", "oneOf"):
        if node.get(keyword):
            bounds.append(max(_weight(document, branch, depth + 1) for branch in node[keyword]))
    objects = [bound for bound in bounds if bound < _ANY]
    # Parts of an `allOf` that each declare some keys add to each other.
    return sum(objects) if "allOf" in node and objects else min(bounds)


def _own(document: Json, node: dict[str, Json], depth: int) -> float:
    named = node.get("type")
    types = [named] if isinstance(named, str) else named
    if types is None:
        types = ["object"] if "properties" in node else ["array"] if "items" in node else []
    return max((_of_type(kind, document, node, depth) for kind in types), default=_ANY)


def _of_type(kind: str, document: Json, node: dict[str, Json], depth: int) -> float:
    match kind:
        case "string":
            return float(node.get("maxLength", TEXT)) + 2
        case "array":
            return _of_array(document, node, depth)
        case "object":
            return _of_object(document, node, depth)
    return _NUMBER


def _of_array(document: Json, node: dict[str, Json], depth: int) -> float:
    prefix = node.get("prefixItems", [])
    most = node.get("maxItems", len(prefix) if node.get("items") is False else None)
    if most is None:
        return _ANY
    fixed = sum(_weight(document, item, depth + 1) + 1 for item in prefix[:most])
    rest = most - len(prefix[:most])
    return fixed + 2 + (rest * (_weight(document, node.get("items", True), depth + 1) + 1) if rest else 0)


def _of_object(document: Json, node: dict[str, Json], depth: int) -> float:
    declared = node.get("properties", {})
    # An object that declares keys is cut to them.
    if node.get("additionalProperties", not declared) is not False or "patternProperties" in node:
        return _ANY
    return 2 + sum(len(encode(name)) + 2 + _weight(document, held, depth + 1) for name, held in declared.items())
