"""What a schema, or its opposite, demands of a value of one JSON type, as choices of single moves; searches nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gateway.record import record
from gateway.schema.relation_graph import Graph, Items, Node, Properties, Values


class Fact:
    """The value satisfies a schema, or (not `holds`) does not. There is one of each per node: identity is equality."""

    __slots__ = ("holds", "node")
    node: Node
    holds: bool

    def __new__(cls, node: Node, holds: bool) -> Fact:
        fact = node.facts.get(holds)
        if fact is None:
            fact = super().__new__(cls)
            fact.node, fact.holds = node, holds
            node.facts[holds] = fact
        return fact

    def opposite(self) -> Fact:
        return Fact(self.node, not self.holds)


Goal = frozenset[Fact]


@record
class Among:
    """The value is one of these, or (not `holds`) none."""

    values: Values
    holds: bool


@record
class Doubt:
    """Something is demanded that this engine does not model; leaving it out only admits more values."""

    reason: str


@record
class Bound:
    """A number's lower (`side` -1) or upper (1) bound."""

    side: int
    limit: Fraction
    strict: bool


@record
class Multiple:
    """A number is, or is not, a multiple of `step`."""

    step: Fraction
    holds: bool


@record
class Size:
    """Characters of a string, items of an array or keys of an object number from `low` to `high`."""

    low: int
    high: int | None


@record
class Match:
    """A string matches a pattern (`format` false) or satisfies a format, or does not."""

    text: str
    holds: bool
    format: bool = False


@record
class Has:
    """An object has a key, and each fact holds of its value."""

    name: str
    fact: Fact | None = None


@record
class Lacks:
    """An object has no such key."""

    name: str


@record
class Obeys:
    """Every key of an object, or item of an array, obeys what one schema says of it."""

    rule: Properties | Items


@record
class Some:
    """An object has a key whose name satisfies `name` and whose value satisfies `fact`."""

    name: Goal
    fact: Fact | None


@record
class Names:
    """Every key's name satisfies a fact."""

    fact: Fact


@record
class At:
    """An array has an item at `index`, and the fact holds of it."""

    index: int
    fact: Fact


@record
class Beyond:
    """An array has an item at `start` or later of which the fact holds."""

    start: int
    fact: Fact


@record
class Holding:
    """At least `count` items of an array satisfy the fact."""

    fact: Fact
    count: int


@record
class Every:
    """Every item of an array satisfies the fact."""

    fact: Fact


@record
class Distinct:
    """All items of an array differ, or (not `holds`) two are equal."""

    holds: bool


Move = (
    Fact | Among | Doubt | Bound | Multiple | Size | Match | Has | Lacks | Obeys | Some | Names | At | Beyond | Holding
    | Every | Distinct
)  # fmt: skip
Alternative = tuple[Move, ...]
#: One of these has to be done; without alternatives it cannot be.
Choice = tuple[Alternative, ...]

_ALWAYS: Choice = ((),)
_NEVER: Choice = ()


class Demands:
    """Reads nodes; remembers what it read."""

    def __init__(self, graph: Graph, *, bold: bool) -> None:
        self._graph = graph
        #: Whether to look only for breaches that are not doubtful.
        self._bold = bold
        self._known: dict[tuple[Fact, str], tuple[Choice, ...]] = {}

    def of(self, fact: Fact, kind: str) -> tuple[Choice, ...]:
        """Choices that all have to be met by a value of this kind; for the opposite of a schema it is a single one."""
        key = (fact, kind)
        found = self._known.get(key)
        if found is None:
            words = fact.node.words.items()
            if fact.holds:
                wanted = (choice for word, content in words for choice in self._kept(word, content, kind))
                found = tuple(choice for choice in wanted if choice != _ALWAYS)
            else:
                broken = (alternative for word, content in words for alternative in self._broken(word, content, kind))
                found = (tuple(one for one in broken if not (self._bold and any(isinstance(m, Doubt) for m in one))),)
            self._known[key] = found
        return found

    def _kept(self, word: str, content: Any, kind: str) -> tuple[Choice, ...]:
        match word:
            case "false":
                return (_NEVER,)
            case "allOf":
                return tuple(((Fact(branch, True),),) for branch in content)
            case "anyOf":
                return (tuple((Fact(branch, True),) for branch in content),)
            case "oneOf":
                # A branch written twice yields a fact and its opposite, so it is never the one that holds.
                places = range(len(content))
                return (tuple(tuple(Fact(content[j], i == j) for j in places) for i in places),)
            case "if":
                test, then, otherwise = content
                return (((Fact(test, True), Fact(then, True)), (Fact(test, False), Fact(otherwise, True))),)
            case "dependentRequired" if kind == "object":
                return tuple(((Lacks(name),), tuple(Has(other) for other in others)) for name, others in content)
            case "dependentSchemas" if kind == "object":
                return tuple(((Lacks(name),), (Has(name), Fact(node, True))) for name, node in content)
            case "required" if kind == "object":
                return tuple(((Has(name),),) for name in content)
        return tuple(((move,),) for move in self._plain(word, content, kind, True)) or self._special(
            word, content, kind
        )

    def _special(self, word: str, content: Any, kind: str) -> tuple[Choice, ...]:
        if word == "type":
            if kind in content:
                return ()
            return (((Multiple(Fraction(1), True),),),) if kind == "number" and "integer" in content else (_NEVER,)
        if word == "properties" and kind == "object":
            return (((Obeys(content),),),)
        if word == "items" and kind == "array":
            return (((Obeys(content),),),)
        if word == "contains" and kind == "array":
            choices: list[Choice] = [((Holding(Fact(content.node, True), content.low),),)] if content.low else []
            if content.high == 0:
                choices.append(((Every(Fact(content.node, False)),),))
            elif content.high is not None:
                choices.append(((Doubt("`maxContains` cannot be weighed"),),))
            return tuple(choices)
        return ()

    def _broken(self, word: str, content: Any, kind: str) -> tuple[Alternative, ...]:
        match word:
            case "false":
                return ((),)
            case "allOf":
                return tuple((Fact(branch, False),) for branch in content)
            case "anyOf":
                return (tuple(Fact(branch, False) for branch in content),)
            case "oneOf":
                none: Alternative = tuple(Fact(branch, False) for branch in content)
                # Two that hold: the first of them, and any that follows it.
                later = ((a, self._graph.any_of(content[index:])) for index, a in enumerate(content[:-1], 1))
                return (none, *((Fact(a, True), Fact(rest, True)) for a, rest in later))
            case "if":
                test, then, otherwise = content
                return ((Fact(test, True), Fact(then, False)), (Fact(test, False), Fact(otherwise, False)))
            case "type":
                if kind in content:
                    return ()
                return ((Multiple(Fraction(1), False),),) if kind == "number" and "integer" in content else ((),)
        if kind == "object":
            return self._broken_object(word, content) or self._broken_plain(word, content, kind)
        if kind == "array":
            return self._broken_array(word, content) or self._broken_plain(word, content, kind)
        return self._broken_plain(word, content, kind)

    def _broken_plain(self, word: str, content: Any, kind: str) -> tuple[Alternative, ...]:
        return tuple((move,) for move in self._plain(word, content, kind, False))

    def _broken_object(self, word: str, content: Any) -> tuple[Alternative, ...]:
        match word:
            case "required":
                return tuple((Lacks(name),) for name in content)
            case "dependentRequired":
                return tuple((Has(name), Lacks(other)) for name, others in content for other in others)
            case "dependentSchemas":
                return tuple((Has(name), Fact(node, False)) for name, node in content)
            case "propertyNames":
                return ((Some(frozenset([Fact(content, False)]), None),),)
            case "properties":
                return self._broken_properties(content)
        return ()

    def _broken_properties(self, rule: Properties) -> tuple[Alternative, ...]:
        anything = self._graph.anything
        found: list[Alternative] = [
            (Has(name, Fact(node, False)),) for name, node in rule.named if node is not anything
        ]
        for text, node in rule.patterns:
            if node is not anything:
                found.append((Some(frozenset([self.matching(text, True)]), Fact(node, False)),))
        if rule.other is not anything:
            outside = [self.matching(text, False) for text, _ in rule.patterns]
            if rule.named:
                outside.append(Fact(self._graph.values(sorted(rule.names())), False))
            found.append((Some(frozenset(outside), Fact(rule.other, False)),))
        return tuple(found)

    def _broken_array(self, word: str, content: Any) -> tuple[Alternative, ...]:
        match word:
            case "items":
                at = [(At(index, Fact(node, False)),) for index, node in enumerate(content.prefix)]
                beyond = (Beyond(len(content.prefix), Fact(content.rest, False)),)
                return tuple(at) if content.rest is self._graph.anything else (*at, beyond)
            case "contains":
                found: list[Alternative] = []
                if content.low == 1:
                    found.append((Every(Fact(content.node, False)),))
                elif content.low > 1:
                    found.append((Doubt("`minContains` cannot be weighed"),))
                if content.high is not None:
                    found.append((Holding(Fact(content.node, True), content.high + 1),))
                return tuple(found)
        return ()

    def _plain(self, word: str, content: Any, kind: str, holds: bool) -> tuple[Move, ...]:
        """Keywords that come down to one move, and to one move when broken."""
        match word, kind:
            case "toolview:doubt", _:
                return (Doubt(content),)
            case "$ref", _:
                return (Fact(self._graph.target(content), holds),)
            case "not", _:
                return (Fact(content, not holds),)
            case (("enum" | "const"), _):
                return (Among(content, holds),)
            case (("minimum" | "exclusiveMinimum"), "number"):
                return (Bound(-1 if holds else 1, content, (word == "exclusiveMinimum") == holds),)
            case (("maximum" | "exclusiveMaximum"), "number"):
                return (Bound(1 if holds else -1, content, (word == "exclusiveMaximum") == holds),)
            case "multipleOf", "number":
                return (Multiple(content, holds),)
            case ("minLength", "string") | ("minItems", "array") | ("minProperties", "object"):
                if holds:
                    return (Size(content, None),)
                return (Size(0, content - 1),)
            case ("maxLength", "string") | ("maxItems", "array") | ("maxProperties", "object"):
                return (Size(0, content) if holds else Size(content + 1, None),)
            case (("pattern" | "format"), "string"):
                return (Match(content, holds, word == "format"),)
            case "uniqueItems", "array":
                return (Distinct(holds),)
            case "propertyNames", "object" if holds:
                return (Names(Fact(content, True)),)
            case (
                (("unevaluatedProperties", "object") | ("unevaluatedItems", "array"))
                | (
                    ("$dynamicRef" | "$recursiveRef"),
                    _,
                )
                | ("dependencies", "object")
            ):
                return (Doubt(f"`{word}` cannot be weighed"),)
        return ()

    def matching(self, text: str, holds: bool) -> Fact:
        """A name matches a pattern, or does not."""
        return Fact(self._graph.make({"pattern": text}), holds)
