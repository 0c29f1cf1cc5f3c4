"""What is wrong with a schema that values are cut by, though it judges them well: what a cut would leak or break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.schema.keywords import MANY, NAMED, ONE, Path, subschemas
from gateway.schema.place import Document, Part
from gateway.schema.violation import SchemaFault

#: Keywords whose schemas judge the value of the schema that holds them.
_IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"))
_COMPOSING = _IN_PLACE | {"$ref"}
#: Keywords without which a schema has no fault of these, nor has anything below it.
_LEADING = ONE | MANY | NAMED | {"$ref"}
_NEVER_CUT_BY = frozenset(("$defs", "definitions", "not", "propertyNames", "contentSchema"))
#: Keywords that say what items there are beyond `prefixItems`.
_OF_FURTHER_ITEMS = ("items", "unevaluatedItems")


def faults_of_cutting(root: Any) -> tuple[SchemaFault, ...]:
    """The faults of a sound document: lists of open length, and names that are required and stripped."""
    if not _names_any(root):
        return ()
    faults: dict[SchemaFault, None] = {}
    document = Document(root)
    # Whether nothing else judges the values there, and whether a schema around it says what further items are.
    waiting: list[tuple[Part, bool, bool]] = [(document.top(), True, False)]
    seen: set[tuple[Path, bool, bool]] = set()
    while waiting:
        part, alone, listed = waiting.pop()
        if (part.path, alone, listed) in seen:
            continue
        seen.add((part.path, alone, listed))
        listed = listed or _lists(part)
        if _leaks(part) and not listed:
            message = "say what items beyond `prefixItems` are: write `items: false`, or a schema"
            faults[SchemaFault((*part.path, "prefixItems"), message)] = None
        if alone:
            for name in _stripped(part.node):
                message = (
                    f"`{name}` is required and not declared, so it would be stripped; declare it under `properties`"
                )
                faults[SchemaFault((*part.path, "required"), message)] = None
        waiting += _below(document, part, alone, listed)
    return tuple(faults)


def _names_any(node: Any) -> bool:
    """Whether there is anything to look at: most schemas have no list of open length."""
    if not isinstance(node, dict):
        return False
    if node.get("prefixItems") or node.get("required"):
        return True
    return any(_names_any(inner) for _, inner in subschemas(node))


def _leaks(part: Part) -> bool:
    """Whether a list may be longer than what is said of its items."""
    length = len(part.node.get("prefixItems", ()))
    return length > 0 and bool(part.node.get("maxItems", length + 1) > length)


def _stripped(node: dict[str, Any]) -> Iterator[str]:
    """Names that a closed object requires and cannot keep."""
    if not node.get("properties") or not node.keys().isdisjoint(_COMPOSING | {"patternProperties"}):
        return
    if any(node.get(keyword, False) is not False for keyword in ("additionalProperties", "unevaluatedProperties")):
        return
    yield from (name for name in node.get("required", ()) if name not in node["properties"])


def _below(document: Document, part: Part, alone: bool, listed: bool) -> Iterator[tuple[Part, bool, bool]]:
    """The schemas that a cut reads further, with what is known of their places."""
    node = part.node
    in_place = _only_one(part)
    inside = alone and node.keys().isdisjoint(_COMPOSING) and "patternProperties" not in node
    for inner in part.in_place:
        yield inner, alone and inner is in_place, listed
    for path, held in subschemas(node, part.path):
        keyword = path[len(part.path)]
        if not isinstance(held, dict) or held.keys().isdisjoint(_LEADING) or keyword in _NEVER_CUT_BY:
            continue
        inner = document.part(path, held)
        if keyword in _IN_PLACE:
            yield inner, alone and inner is in_place, listed
        else:
            yield inner, inside and keyword != "contains", False


def _only_one(part: Part) -> Part | None:
    """The one schema by which this one judges objects and lists, where it says nothing of them itself."""
    composing = part.node.keys() & _COMPOSING
    holding = {at[0] for at, _ in subschemas(part.node)} - {"$defs", "definitions"}
    if len(composing) != 1 or not holding <= composing:
        return None
    branches = (*part.listed("anyOf"), *part.listed("oneOf"))
    members = [branch for branch in branches if branch.types & {"object", "array"}] or part.in_place
    return members[0] if len(members) == 1 else None


def _lists(part: Part) -> bool:
    """Whether this schema, or one that always judges beside what it holds, says what further items are."""
    waiting, seen = [part], set()
    while waiting:
        here = waiting.pop()
        if here.path in seen:
            continue
        seen.add(here.path)
        if any(keyword in here.node for keyword in _OF_FURTHER_ITEMS):
            return True
        waiting += here.in_place
    return False
