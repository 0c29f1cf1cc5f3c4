"""Schemas rewritten for values that are cut: a full schema after its cut, a view before its own; cuts nothing itself.

A cut takes away what no schema at a place declares. A full answer that is stripped by its own schema satisfies `left`:
the schema with undeclared keys shut out. It passes a view's cut where it satisfies `opened`: the view with its closed
objects opened. `left` may be laxer than the truth and `opened` stricter, never the other way: a yes stays a yes, and a
counterexample is held against the real cuts anyway. What cannot be said is marked with `DOUBT`.

The rewritings are `_left` (whatever is valid satisfies it once it is cut), `_enough` (what satisfies it is valid once
it is cut) and, inside `not`, `_needed` (what is valid once it is cut satisfies it uncut).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from gateway.record import record
from gateway.schema.keywords import ANNOTATIONS
from gateway.schema.place import Document, Part, spread
from gateway.schema.relation_graph import DOUBT, Unclear
from gateway.schema.relation_judge import matches

_AS_WRITTEN = frozenset((
    "type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "pattern", "format", "minItems", "maxItems",
))  # fmt: skip
_SHALLOW = _AS_WRITTEN | ANNOTATIONS | {"enum", "const"}
_KEYED = ("properties", "patternProperties")
_SCALAR = frozenset(("string", "number", "boolean", "null"))
_MOST = 20_000
_EQUAL = "`uniqueItems` cannot be weighed: items that differ may be equal once undeclared keys are cut"


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Which schemas may judge a value, and so may keep its keys."""

    parts: frozenset[Part]
    names: frozenset[str]
    patterns: frozenset[str]
    #: Some schema may leave the object whole.
    whole: bool

    def keeps(self, name: str) -> bool:
        return self.whole or name in self.names or any(matches(pattern, name) for pattern in self.patterns)


@record
class _Sure:
    """What is kept whichever branches the value chooses."""

    names: frozenset[str]
    whole: bool

    def keeps(self, name: str) -> bool:
        return self.whole or name in self.names


def opened(document: Any) -> Any:
    """What full answers have to satisfy so that the document's own cut of them is valid."""
    return document if isinstance(document, bool) else _Rewriting(document, "enough")


def left(document: Any) -> Any:
    """What the document's own cut leaves of valid answers satisfies this."""
    return document if isinstance(document, bool) else _Rewriting(document, "left")


_Mode = Literal["enough", "needed", "left"]


class _Rewriting:
    """A document that is written as far as it is asked for: each part of it stands behind a reference."""

    def __init__(self, document: Any, mode: _Mode) -> None:
        self._parts = Document(document)
        self._known: dict[tuple[_Mode, Part, _Place, _Sure], dict[str, Any]] = {}
        self._asked: list[tuple[_Mode, Part, _Place, _Sure]] = []
        self._written: dict[str, Any] = {}
        self._places: dict[frozenset[Part], _Place] = {}
        self._losing: dict[Part, bool] = {}
        top = self._parts.top()
        place = self._place([top])
        self.root = self._referred(mode, top, place, _sure(top, place))

    def target(self, reference: str) -> Any:
        """The schema behind one of this document's references."""
        found = self._written.get(reference)
        if found is None:
            mode, part, place, sure = self._asked[int(reference.removeprefix("#/"))]
            rewrite = {"enough": self._enough, "needed": self._needed, "left": self._left}[mode]
            found = self._written[reference] = rewrite(part, place, sure)
        return found

    def _referred(self, mode: _Mode, part: Part, place: _Place, sure: _Sure) -> dict[str, Any]:
        key = (mode, part, place, sure)
        found = self._known.get(key)
        if found is None:
            if len(self._asked) > _MOST:
                raise Unclear("too many schemas are combined with each other to follow the cut")
            found = self._known[key] = {"$ref": f"#/{len(self._asked)}"}
            self._asked.append(key)
        return found

    # -- enough -------------------------------------------------------------------------------------------------------

    def _enough(self, part: Part, place: _Place, sure: _Sure) -> dict[str, Any]:
        node = part.node
        if _refless(node) and not any(map(self._loses, place.parts)):
            return node
        found = {word: node[word] for word in _AS_WRITTEN if word in node}
        more: list[Any] = []
        if "$ref" in node:
            target = part.in_place[0]
            more.append(self._referred("enough", target, place, sure))
        more += [self._inner(member, raw, place, sure) for member, raw in _listed(part, "allOf")]
        if "anyOf" in node:
            branches = _listed(part, "anyOf")
            more.append({"anyOf": [self._inner(b, raw, place, _and(sure, b)) for b, raw in branches]})
        if "oneOf" in node:
            more.append(self._one_of(part, place, sure))
        if "not" in node:
            more.append(_or_doubt({"not": self._against(part, place, sure)}, "`not` cannot be weighed against a cut"))
        if "if" in node and ("then" in node or "else" in node):
            more.append(self._conditional(part, place, sure))
        if _members_hold_objects(node):
            more.append({DOUBT: "a list of allowed objects cannot be weighed against a cut"})
        else:
            found |= {word: node[word] for word in ("enum", "const") if word in node}
        more += self._enough_object(part, place, sure, found)
        more += self._enough_array(part, place, found)
        if more:
            found["allOf"] = more
        return found

    def _inner(self, part: Part, raw: Any, place: _Place, sure: _Sure) -> Any:
        return raw if isinstance(raw, bool) else self._enough(part, place, sure)

    def _one_of(self, part: Part, place: _Place, sure: _Sure) -> dict[str, Any]:
        branches = _listed(part, "oneOf")
        inner = [self._inner(branch, raw, place, _and(sure, branch)) for branch, raw in branches]
        if sum(not branch.types <= _SCALAR for branch, _ in branches) <= 1:
            return {"oneOf": inner}
        # Once cut, a value might fit a second branch: only what every cut keeps can tell that it does not.
        needed = [raw if isinstance(raw, bool) else self._needed(branch, place, sure) for branch, raw in branches]
        reason = "once it is cut, a value may fit several branches of `oneOf`"
        return {"allOf": [{"anyOf": inner}, _or_doubt({"oneOf": needed}, reason)]}

    def _against(self, part: Part, place: _Place, sure: _Sure) -> Any:
        raw = part.node["not"]
        return raw if isinstance(raw, bool) else self._needed(part.under("not"), place, sure)

    def _conditional(self, part: Part, place: _Place, sure: _Sure) -> dict[str, Any]:
        def side(word: str) -> Any:
            raw = part.node.get(word, True)
            return raw if isinstance(raw, bool) else self._enough(part.under(word), place, sure)

        then, otherwise, test = side("then"), side("else"), part.node["if"]
        if isinstance(test, bool):
            return {"allOf": [then if test else otherwise]}
        needed = self._needed(part.under("if"), place, sure)
        ways = [{"allOf": [{"not": needed}, otherwise]}, {"allOf": [then, otherwise]}]
        if _flat(test, sure):
            ways.append({"allOf": [test, then]})
        return _or_doubt({"anyOf": ways}, "`if` cannot be weighed against a cut")

    def _enough_object(self, part: Part, place: _Place, sure: _Sure, found: dict[str, Any]) -> list[Any]:
        node = part.node
        more: list[Any] = []
        named = {name: self._child(inner, raw, place, name) for name, inner, raw in _named(part, "properties")}
        patterns = {
            text: self._child(inner, raw, place, None) for text, inner, raw in _named(part, "patternProperties")
        }
        other = node.get("additionalProperties", True)
        if isinstance(other, dict):
            found["additionalProperties"] = self._child(part.under("additionalProperties"), other, place, None)
        elif other is False and place.whole:
            if sure.whole:
                found["additionalProperties"] = False
            else:
                alike = {word: dict.fromkeys(node[word], True) for word in _KEYED if word in node}
                closed = {**alike, "additionalProperties": False}
                more.append(_or_doubt(closed, "whether the cut leaves an object whole depends on the value"))
        elif other is False:
            own = list(patterns)
            foreign = [n for n in place.names if n not in named and not any(matches(text, n) for text in own)]
            named |= dict.fromkeys(sorted(foreign), False)
            if not place.patterns <= set(own):
                more.append({DOUBT: "another schema's `patternProperties` cannot be weighed against a closed object"})
        if "required" in node:
            found["required"] = node["required"]
            for name in node["required"]:
                if not place.keeps(name):
                    named[name] = False
                elif not sure.keeps(name):
                    more.append({DOUBT: f"whether the cut keeps `{name}` depends on the value"})
        if named:
            found["properties"] = named
        if patterns:
            found["patternProperties"] = patterns
        return more + self._enough_keys(part, place, sure, found)

    def _enough_keys(self, part: Part, place: _Place, sure: _Sure, found: dict[str, Any]) -> list[Any]:
        """Keywords about which keys there are and how many."""
        node = part.node
        more: list[Any] = []
        if "propertyNames" in node:
            names = {"propertyNames": node["propertyNames"]} if _refless(node["propertyNames"]) else False
            more.append(_or_doubt(names, "`propertyNames` cannot be weighed against a cut"))
        if "maxProperties" in node and (place.whole or place.patterns or len(place.names) > node["maxProperties"]):
            few = {"maxProperties": node["maxProperties"]}
            more.append(few if sure.whole else _or_doubt(few, "`maxProperties` cannot be weighed against a cut"))
        if node.get("minProperties", 0):
            certain = sum(sure.keeps(name) for name in set(node.get("required", ())))
            if sure.whole:
                found["minProperties"] = node["minProperties"]
            elif certain < node["minProperties"]:
                more.append({DOUBT: "`minProperties` cannot be weighed against a cut"})
        if "dependentRequired" in node:
            found["dependentRequired"] = node["dependentRequired"]
            if not all(sure.keeps(name) for names in node["dependentRequired"].values() for name in names):
                more.append({DOUBT: "`dependentRequired` cannot be weighed against a cut"})
        if "dependentSchemas" in node:
            inner = _named(part, "dependentSchemas")
            found["dependentSchemas"] = {name: self._inner(p, raw, place, sure) for name, p, raw in inner}
        if "unevaluatedProperties" in node and not place.whole:
            more.append({DOUBT: "`unevaluatedProperties` cannot be weighed against a cut"})
        elif "unevaluatedProperties" in node and node["unevaluatedProperties"] is not True:
            more.append({DOUBT: "`unevaluatedProperties` cannot be weighed"})
        return more

    def _enough_array(self, part: Part, place: _Place, found: dict[str, Any]) -> list[Any]:
        node = part.node
        more: list[Any] = []
        if "prefixItems" in node:
            found["prefixItems"] = [self._item(inner, raw, place) for inner, raw in _listed(part, "prefixItems")]
        if "items" in node:
            found["items"] = self._item(part.under("items"), node["items"], place)
        if "unevaluatedItems" in node:
            more.append({DOUBT: "`unevaluatedItems` cannot be weighed"})
        scalars = all(inner.types <= _SCALAR for inner in _items(place))
        if node.get("uniqueItems"):
            found["uniqueItems"] = True
            if not scalars or not any("items" in other.node for other in place.parts):
                more.append({DOUBT: _EQUAL})
        if "contains" in node:
            # An item that fits `contains` keeps what it declares, so both have to hold of the full item.
            rewritten = self._item(part.under("contains"), node["contains"], place)
            both = {"allOf": [node["contains"], rewritten]}
            if not _refless(node["contains"]):
                both = {"allOf": [rewritten, {DOUBT: "`contains` cannot be weighed against a cut"}]}
            found |= {"contains": both}
            found |= {word: node[word] for word in ("minContains", "maxContains") if word in node}
            if "maxContains" in node and not scalars:
                more.append({DOUBT: "`maxContains` cannot be weighed against a cut"})
        return more

    def _child(self, part: Part, raw: Any, place: _Place, name: str | None) -> Any:
        """The schema of a value under a key; `name` None stands for any key of a map."""
        if _shallow(raw):
            return raw
        inner = self._place([part, *_under(place, name)])
        return self._referred("enough", part, inner, _sure(part, inner))

    def _item(self, part: Part, raw: Any, place: _Place) -> Any:
        if _shallow(raw):
            return raw
        inner = self._place([part, *_items(place)])
        return self._referred("enough", part, inner, _sure(part, inner))

    # -- needed -------------------------------------------------------------------------------------------------------

    def _needed(self, part: Part, place: _Place, sure: _Sure) -> dict[str, Any]:
        node = part.node
        found = {word: node[word] for word in _AS_WRITTEN if word in node}
        kept = ("uniqueItems", "required", "minProperties", "minContains")
        found |= {word: node[word] for word in kept if word in node}
        if "contains" not in node:
            found.pop("minContains", None)
        if not _members_hold_objects(node):
            found |= {word: node[word] for word in ("enum", "const") if word in node}
        more = [self._needed_inner(member, raw, place, sure) for member, raw in _listed(part, "allOf")]
        if "$ref" in node:
            more.append(self._referred("needed", part.in_place[0], place, sure))
        for word in ("anyOf", "oneOf"):
            if word in node:
                branches = _listed(part, word)
                more.append({"anyOf": [self._needed_inner(branch, raw, place, sure) for branch, raw in branches]})
        properties: dict[str, Any] = {}
        for name, inner, raw in _named(part, "properties"):
            # Other keys may be cut away, and then this schema says nothing of them.
            if name in node.get("required", ()) or sure.keeps(name):
                properties[name] = self._needed_child(inner, raw, _under(place, name))
        if properties:
            found["properties"] = properties
        if "prefixItems" in node:
            found["prefixItems"] = [
                self._needed_child(inner, raw, _items(place)) for inner, raw in _listed(part, "prefixItems")
            ]
        for word in ("items", "contains"):
            if word in node:
                found[word] = self._needed_child(part.under(word), node[word], _items(place))
        if more:
            found["allOf"] = more
        return found

    def _needed_inner(self, part: Part, raw: Any, place: _Place, sure: _Sure) -> Any:
        return raw if isinstance(raw, bool) else self._needed(part, place, sure)

    def _needed_child(self, part: Part, raw: Any, others: list[Part]) -> Any:
        if _shallow(raw):
            return raw
        # What the other schemas there keep is not asked: only what these roots keep whatever the value is sure.
        return self._referred("needed", part, self._place([part, *others]), _Sure(frozenset(), False))

    # -- left ---------------------------------------------------------------------------------------------------------

    def _left(self, part: Part, place: _Place, sure: _Sure) -> dict[str, Any]:
        node = part.node
        if _refless(node) and not any(map(self._loses, place.parts)):
            return node
        found = {word: node[word] for word in _AS_WRITTEN if word in node}
        if not _members_hold_objects(node):
            found |= {word: node[word] for word in ("enum", "const") if word in node}
        more: list[Any] = [self._left_inner(inner, raw, place, sure) for inner, raw in _listed(part, "allOf")]
        if "$ref" in node:
            more.append(self._referred("left", part.in_place[0], place, sure))
        for word in ("anyOf", "oneOf"):
            if word in node:
                branches = _listed(part, word)
                more.append({"anyOf": [self._left_inner(b, raw, place, _and(sure, b)) for b, raw in branches]})
        if _shallow(node.get("not")):
            more.append({"not": node["not"]})
        more += self._left_object(part, place, sure, found)
        more += self._left_array(part, place, found)
        if more:
            found["allOf"] = more
        return found

    def _left_inner(self, part: Part, raw: Any, place: _Place, sure: _Sure) -> Any:
        return raw if isinstance(raw, bool) else self._left(part, place, sure)

    def _left_object(self, part: Part, place: _Place, sure: _Sure, found: dict[str, Any]) -> list[Any]:
        node = part.node
        for word in _KEYED:
            if word in node:
                found[word] = {
                    name: self._left_child(inner, raw, _under(place, name if word == "properties" else None))
                    for name, inner, raw in _named(part, word)
                }
        if "additionalProperties" in node:
            raw = node["additionalProperties"]
            found["additionalProperties"] = self._left_child(
                part.under("additionalProperties"), raw, _under(place, None)
            )
        found["required"] = [name for name in node.get("required", ()) if sure.keeps(name)]
        found |= {word: node[word] for word in ("maxProperties",) if word in node}
        if _refless(node.get("propertyNames", True)):
            found |= {word: node[word] for word in ("propertyNames",) if word in node}
        if sure.whole:
            found |= {word: node[word] for word in ("minProperties", "dependentRequired") if word in node}
        if place.whole or not _declares(node):
            return []
        names, patterns = dict.fromkeys(sorted(place.names), True), dict.fromkeys(sorted(place.patterns), True)
        return [{"properties": names, "patternProperties": patterns, "additionalProperties": False}]

    def _left_array(self, part: Part, place: _Place, found: dict[str, Any]) -> list[Any]:
        node = part.node
        others = _items(place)
        if "prefixItems" in node:
            found["prefixItems"] = [self._left_child(inner, raw, others) for inner, raw in _listed(part, "prefixItems")]
        for word in ("items", "contains"):
            if word in node:
                found[word] = self._left_child(part.under(word), node[word], others)
        if "contains" in node:
            found |= {word: node[word] for word in ("minContains",) if word in node}
        if node.get("uniqueItems") and any(map(self._loses, others)):
            return [{DOUBT: _EQUAL}]
        if node.get("uniqueItems"):
            found["uniqueItems"] = True
        return []

    def _left_child(self, part: Part, raw: Any, others: list[Part]) -> Any:
        if _shallow(raw):
            return raw
        inner = self._place([part, *others])
        return self._referred("left", part, inner, _sure(part, inner))

    def _loses(self, part: Part) -> bool:
        """Whether a value that this schema judges may lose a key at any depth."""
        known = self._losing.get(part)
        if known is None:
            reached, waiting, known = {part}, [part], False
            while waiting and not known:
                here = waiting.pop()
                known = _declares(here.node)
                fresh = set(here.below()) - reached
                reached |= fresh
                waiting += fresh
            self._losing[part] = known
        return known

    # -- places -------------------------------------------------------------------------------------------------------

    def _place(self, roots: Iterable[Part]) -> _Place:
        key = frozenset(roots)
        known = self._places.get(key)
        if known is None:
            parts = _closure(key)
            nodes = [part.node for part in parts]
            names = frozenset(name for node in nodes for name in node.get("properties", ()))
            patterns = frozenset(text for node in nodes for text in node.get("patternProperties", ()))
            whole = any(_open(node) for node in nodes) or not any(_declares(node) for node in nodes)
            known = self._places.setdefault(parts, _Place(parts, names, patterns, whole))
            self._places[key] = known
        return known


def _or_doubt(schema: Any, reason: str) -> dict[str, Any]:
    """Enough where it holds; where it does not, the value may pass all the same."""
    return {"anyOf": [schema, {DOUBT: reason}]}


def _closure(roots: Iterable[Part]) -> frozenset[Part]:
    """The roots and every schema that may judge the same value with them."""
    reached: set[Part] = set()
    waiting = list(roots)
    while waiting:
        part = waiting.pop()
        if part in reached:
            continue
        reached.add(part)
        waiting += part.in_place
        for word in ("anyOf", "oneOf"):
            waiting += part.listed(word)
        waiting += [inner for inner in (part.if_, part.then, part.else_) if inner]
        waiting += part.named("dependentSchemas").values()
    return frozenset(reached)


def _sure(part: Part, place: _Place) -> _Sure:
    """What is kept of an object at this place whichever branches the value chooses."""
    own = _kept(part)
    return _Sure(own.names, own.whole or not any(_declares(other.node) for other in place.parts))


def _and(sure: _Sure, branch: Part) -> _Sure:
    own = _kept(branch)
    return _Sure(sure.names | own.names, sure.whole or own.whole)


def _kept(part: Part) -> _Sure:
    """What one schema keeps of an object, whatever stands beside it."""
    nodes = [member.node for member in spread((part,), "object")[0]]
    names = frozenset(name for node in nodes for name in node.get("properties", ()))
    return _Sure(names, any(node.get("additionalProperties", False) is not False for node in nodes))


def _under(place: _Place, name: str | None) -> list[Part]:
    """The schemas that may judge the value under a key."""
    found: list[Part] = []
    for part in place.parts:
        if name is None:
            found += part.named("properties").values()
        elif name in part.node.get("properties", ()):
            found.append(part.under("properties", name))
        found += part.named("patternProperties").values()
        found += [inner for word in ("additionalProperties", "unevaluatedProperties") if (inner := part.one(word))]
    return found


def _items(place: _Place) -> list[Part]:
    found: list[Part] = []
    for part in place.parts:
        found += part.listed("prefixItems")
        found += [inner for word in ("items", "unevaluatedItems", "contains") if (inner := part.one(word))]
    return found


def _open(node: dict[str, Any]) -> bool:
    return any(node.get(word, False) is not False for word in ("additionalProperties", "unevaluatedProperties"))


def _declares(node: dict[str, Any]) -> bool:
    return any(node.get(word) for word in _KEYED) or "additionalProperties" in node or "unevaluatedProperties" in node


def _listed(part: Part, word: str) -> list[tuple[Part, Any]]:
    return list(zip(part.listed(word), part.node.get(word, ()), strict=True))


def _named(part: Part, word: str) -> list[tuple[str, Part, Any]]:
    return [(name, inner, part.node[word][name]) for name, inner in part.named(word).items()]


def _members_hold_objects(node: dict[str, Any]) -> bool:
    return any(_holds_object(member) for member in (*node.get("enum", ()), node.get("const")))


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_holds_object, value)))


def _shallow(schema: Any) -> bool:
    """Whether a schema says nothing of an object's parts, so that a cut does not change what it says."""
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    return _SHALLOW.issuperset(schema) and not _members_hold_objects(schema)


def _flat(test: dict[str, Any], sure: _Sure) -> bool:
    """Whether a condition looks at kept keys' scalars alone, so that a cut cannot change what it says."""
    if not set(test) <= {"type", "required", "properties"} or not _refless(test):
        return False
    names = {*test.get("required", ()), *test.get("properties", ())}
    inner = [schema for schema in test.get("properties", {}).values() if not isinstance(schema, bool)]
    plain = all(set(schema) <= {"type", "enum", "const"} and not _members_hold_objects(schema) for schema in inner)
    return plain and all(map(sure.keeps, names))


def _refless(schema: Any) -> bool:
    if isinstance(schema, dict):
        return "$ref" not in schema and all(map(_refless, schema.values()))
    return not isinstance(schema, list) or all(map(_refless, schema))
