"""Slices that plainly fit: both sides are plain objects, lists and scalars, read side by side. Says yes or nothing.

Most views of most contracts are of this kind, and the search of `relation_search` costs a hundred times as much.
"""

from __future__ import annotations

from typing import Any

from gateway.json_text import canonical
from gateway.schema.keywords import ANNOTATIONS
from gateway.schema.resolve import resolve

Node = dict[str, Any]

#: What a view may say of a scalar where the full schema says the very same.
_SAME = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"}
    | {"pattern", "format", "minItems", "maxItems"}
)
_READ = _SAME | {"type", "enum", "properties", "required", "items", "additionalProperties", "$ref"}
_SILENT = ANNOTATIONS | {"$defs"}
#: Keywords by which another place than `properties` may declare keys: beside them an absent key proves nothing.
_DECLARES = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "patternProperties", "propertyNames"}
    | {"additionalProperties", "unevaluatedProperties", "contains", "prefixItems", "unevaluatedItems"}
)
_WIDER = {"number": {"number", "integer"}}


def plainly_fits(full: Any, view: Any) -> bool:
    """Whether every valid full answer, stripped and then cut by the view, surely satisfies the view."""
    return _Pair(full, view).fits(full, view, alone=True)


class _Pair:
    """Two documents read side by side. A pair of nodes met again is taken to fit: values are finite."""

    def __init__(self, full: Any, view: Any) -> None:
        self._full = full
        self._view = view
        self._met: set[tuple[int, int, bool]] = set()

    def fits(self, full: Any, view: Any, *, alone: bool) -> bool:
        """`alone`: nothing else than this full node declares what its value holds."""
        wide, told = _followed(self._view, view), _followed(self._full, full)
        if wide is None or told is None:
            return False
        if (met := (id(told), id(wide), alone)) in self._met:
            return True
        self._met.add(met)
        if not all(key in _READ or key in _SILENT or key.startswith("x-") for key in wide):
            return False
        alone = alone and not _DECLARES.intersection(told)
        return (
            _types_fit(told, wide)
            and _enum_fits(told, wide)
            and all(key in told and told[key] == wide[key] for key in _SAME.intersection(wide))
            and self._items_fit(told, wide, alone=alone)
            and self._properties_fit(told, wide, alone=alone)
        )

    def _items_fit(self, full: Node, view: Node, *, alone: bool) -> bool:
        if "items" not in view:
            return True
        return "items" in full and "prefixItems" not in full and self.fits(full["items"], view["items"], alone=alone)

    def _properties_fit(self, full: Node, view: Node, *, alone: bool) -> bool:
        shown, held = view.get("properties"), full.get("properties", {})
        if view.get("additionalProperties", False) is not False:
            return False
        required = frozenset(view.get("required", ()))
        if shown is None:  # the view leaves the object whole
            return "additionalProperties" not in view and required <= held.keys() & set(full.get("required", ()))
        # an empty `properties` declares nothing, here as in a cut
        if not shown or not held or not required <= shown.keys() & held.keys() & set(full.get("required", ())):
            return False
        # a key that the full schema does not declare is stripped before the view is asked
        return all(
            self.fits(held[name], inner, alone=alone) if name in held else alone for name, inner in shown.items()
        )


def _followed(document: Any, node: Any) -> Node | None:
    """The node behind its references; None where that is not a plain object, or something stands beside a reference."""
    for _ in range(20):
        if node is True:
            return {}
        if not isinstance(node, dict):
            return None
        if "$ref" not in node:
            return node
        if not all(key in _SILENT or key == "$ref" for key in node):
            return None
        target = resolve(document, node["$ref"])
        if isinstance(target, str):
            return None
        node = target[1]
    return None


def _types_fit(full: Node, view: Node) -> bool:
    if "type" not in view:
        return True
    if "type" not in full:
        return False
    wide: set[str] = set()
    for name in _listed(view["type"]):
        wide |= _WIDER.get(name, {name})
    return wide.issuperset(_listed(full["type"]))


def _enum_fits(full: Node, view: Node) -> bool:
    if "enum" not in view:
        return True
    if "enum" not in full or any(isinstance(member, (dict, list)) for member in full["enum"]):
        return False
    return {canonical(member) for member in full["enum"]} <= {canonical(member) for member in view["enum"]}


def _listed(named: Any) -> list[str]:
    return [named] if isinstance(named, str) else list(named)
