"""Whether one value satisfies one node; the search's own quick check, never the last word on a counterexample."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gateway.schema.relation_graph import Contains, Graph, Items, Node, Properties, Unclear, exact, kind_of, mark
from gateway.schema.schema import Schema, compile_schema

#: None: this engine cannot tell.
Judgement = bool | None

_SIZED = {"minLength": "string", "maxLength": "string", "minItems": "array", "maxItems": "array"} | {
    "minProperties": "object",
    "maxProperties": "object",
}


def matches(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern, by the validator's own engine."""
    return _matcher(pattern).valid(text)


class Judge:
    """Evaluates nodes of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def holds(self, node: Node, value: Any, depth: int = 0) -> Judgement:
        if depth > 100:
            return None
        kind = kind_of(value)
        return _all(lambda: (self._word(word, content, value, kind, depth) for word, content in node.words.items()))

    def _word(self, word: str, content: Any, value: Any, kind: str, depth: int) -> Judgement:
        def holds(node: Node, part: Any = value) -> Judgement:
            return self.holds(node, part, depth + 1)

        match word:
            case "false":
                return False
            case "toolview:doubt":
                return None
            case "$ref":
                return holds(self._graph.target(content))
            case "type":
                return kind in content or (kind == "number" and "integer" in content and exact(value).denominator == 1)
            case "enum" | "const":
                return mark(value) in content.marks
            case "allOf":
                return _all(lambda: (holds(branch) for branch in content))
            case "anyOf":
                return _not(_all(lambda: (_not(holds(branch)) for branch in content)))
            case "oneOf":
                found = [holds(branch) for branch in content]
                return False if found.count(True) > 1 else None if None in found else True in found
            case "not":
                return _not(holds(content))
            case "if":
                test = holds(content[0])
                return None if test is None else holds(content[1 if test else 2])
        if word in _SIZED:
            return kind != _SIZED[word] or (len(value) >= content if word.startswith("min") else len(value) <= content)
        match kind:
            case "number":
                return _number(word, content, value)
            case "string" if word == "pattern":
                return matches(content, value)
            case "string" if word == "format":
                return None
            case "object":
                return self._object(word, content, value, holds)
            case "array":
                return self._array(word, content, value, holds)
        return True if not word.startswith("$") else None

    def _object(self, word: str, content: Any, value: dict[str, Any], holds: Callable[..., Judgement]) -> Judgement:
        match word:
            case "required":
                return all(name in value for name in content)
            case "properties":
                return _all(lambda: (holds(node, value[key]) for key in value for node in rules_for(content, key)))
            case "propertyNames":
                return _all(lambda: (holds(content, key) for key in value))
            case "dependentRequired":
                return all(other in value for name, others in content if name in value for other in others)
            case "dependentSchemas":
                return _all(lambda: (holds(node) for name, node in content if name in value))
            case "unevaluatedProperties" | "dependencies" | "$dynamicRef" | "$recursiveRef":
                return None
        return True

    def _array(self, word: str, content: Any, value: list[Any], holds: Callable[..., Judgement]) -> Judgement:
        match word:
            case "items":
                return _all(lambda: (holds(rule_at(content, index), item) for index, item in enumerate(value)))
            case "uniqueItems":
                return len({mark(item) for item in value}) == len(value)
            case "contains":
                return _contains(content, [holds(content.node, item) for item in value])
            case "unevaluatedItems" | "$dynamicRef" | "$recursiveRef":
                return None
        return True


def rules_for(rule: Properties, name: str) -> list[Node]:
    """What one schema says of the value under a key."""
    found = [node for known, node in rule.named if known == name]
    found += [node for pattern, node in rule.patterns if matches(pattern, name)]
    return found or [rule.other]


def rule_at(rule: Items, index: int) -> Node:
    """What one schema says of the item at an index."""
    return rule.prefix[index] if index < len(rule.prefix) else rule.rest


def _contains(content: Contains, found: list[Judgement]) -> Judgement:
    sure, possible = found.count(True), len(found) - found.count(False)
    if possible < content.low or (content.high is not None and sure > content.high):
        return False
    return True if sure >= content.low and (content.high is None or possible <= content.high) else None


def _number(word: str, content: Any, value: Any) -> Judgement:
    number = exact(value)
    match word:
        case "minimum":
            return bool(number >= content)
        case "maximum":
            return bool(number <= content)
        case "exclusiveMinimum":
            return bool(number > content)
        case "exclusiveMaximum":
            return bool(number < content)
        case "multipleOf":
            return bool((number / content).denominator == 1)
    return True if not word.startswith("$") else None


def _not(judgement: Judgement) -> Judgement:
    return None if judgement is None else not judgement


def _all(judgements: Callable[[], Any]) -> Judgement:
    unsure = False
    for judgement in judgements():
        if judgement is False:
            return False
        unsure = unsure or judgement is None
    return None if unsure else True


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Schema:
    compiled = compile_schema({"pattern": pattern})
    if not isinstance(compiled, Schema):
        raise Unclear(f"the pattern `{pattern}` cannot be honoured")
    return compiled
