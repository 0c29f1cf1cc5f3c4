"""The rules of the tool surface: what a tool must say so that a model calls it well. Each reads one tool as typed.

They are rules of thumb over English texts and over schemas; what is right all the same is allowed where it stands, by
`# lint: allow RULE reason`. Knows no file format and prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from gateway.authoring.source import Source, Spot
from gateway.authoring.weight import LARGE, weight
from gateway.contract.model import Endpoint, View
from gateway.record import record

Json = Any

#: Where a rule is broken, and what it says of that place.
Finding = tuple[Spot, str]


@record
class Typed:
    """One tool: what the contract became, and where it is written."""

    source: Source
    endpoint: Endpoint
    spot: Spot

    def at(self, *keys: str | int) -> Spot:
        """The deepest spot along these keys that is written."""
        found = self.spot
        for key in keys:
            inner = self.source.below(found, key)
            if inner is None:
                break
            found = inner
        return found

    @property
    def view(self) -> View | None:
        return None if self.endpoint.tool is None else self.endpoint.tool.view

    def input(self) -> Spot | None:
        return self.source.below(self.spot, "input")

    def shown(self) -> Iterator[Spot]:
        """The schemas of what the tool shows: the view's, else the full ones."""
        if self.view is not None and self.view.output is not None:
            spots = [self.source.below(self.spot, "tool", "view", "output")]
        elif self.endpoint.outputs.keys() == {"2XX"}:
            spots = [self.source.below(self.spot, "output", "2XX") or self.source.below(self.spot, "output")]
        else:
            spots = [self.source.below(self.spot, "output", status) for status in self.endpoint.outputs]
        yield from (spot for spot in spots if spot is not None)


@record
class Rule:
    """One rule; `repair` is what to write, and `reason` why it is worth it."""

    id: str
    asks: str
    reason: str
    repair: str
    check: Callable[[Typed], Iterator[Finding]]


# what the description says

_WHEN = re.compile(
    r"\b(call|use|ask|invoke|run|try|when|whenever|before|after|once|if|first|to (find|get|see|list|check|learn|look"
    r"|read|search|create|add|change|delete|send|start|stop|answer|show|know|load|resolve|count|compare))\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(not|never|don't|doesn't|cannot|instead|rather than|unless|except|no need|avoid)\b", re.IGNORECASE
)
_HOW = re.compile(
    r"\b(pass|give|with|without|by|as|from|e\.g\.|for example|such as|like|in the form|format|takes|needs|per"
    r"|at most)\b|`|\"|[0-9]",
    re.IGNORECASE,
)


def _says_when(tool: Typed) -> Iterator[Finding]:
    if not _WHEN.search(tool.endpoint.description):
        yield tool.at("description"), "the description does not say when to call the tool"


def _says_how(tool: Typed) -> Iterator[Finding]:
    names = tool.endpoint.input.property_names
    said = tool.endpoint.description
    named = any(re.search(rf"\b{re.escape(_spaced(name))}\b", _spaced(said), re.IGNORECASE) for name in names)
    if len(names) > 1 and not named and not _HOW.search(said):
        yield tool.at("description"), "the description does not say how to call the tool"


def _says_when_not(tool: Typed) -> Iterator[Finding]:
    if not _NOT.search(tool.endpoint.description):
        yield tool.at("description"), "the description does not say when not to call the tool"


# arguments

_FILLER = frozenset({"a", "an", "the", "of", "for", "to", "this", "that", "is", "its", "and", "or", "in", "on"})


def _argument_described(tool: Typed) -> Iterator[Finding]:
    for name, spot in _arguments(tool):
        said = _keyword(tool.source, spot, "description")
        if not isinstance(said, str) or not said.strip():
            yield spot, f"the argument `{name}` has no description"
        elif not _words(said) - _words(name):
            yield spot, f"the description of `{name}` says no more than its name"


def _required_first(tool: Typed) -> Iterator[Finding]:
    optional = None
    defaults = tool.view.defaults if tool.view else {}
    for name, spot in _own_arguments(tool):
        if name not in tool.endpoint.input.required or name in defaults:
            optional = optional or name
        elif optional is not None:
            yield spot, f"the required argument `{name}` stands behind `{optional}`, which is optional"


_ALTERNATIVES = (
    re.compile(r"\b(one of|either|allowed values?|possible values?|valid values?|must be one)\b", re.IGNORECASE),
    re.compile(r"([\"'`])[\w-]+\1(\s*,\s*|\s*/\s*|\s*\|\s*|,?\s+or\s+)([\"'`])[\w-]+\3"),
    re.compile(r"\b[\w-]+\|[\w-]+"),
    re.compile(r":\s*[\w-]+(\s*,\s*[\w-]+)*,?\s+or\s+[\w-]+\s*\.?\s*$"),
)


def _closed_set(tool: Typed) -> Iterator[Finding]:
    for name, spot in _arguments(tool):
        said = _keyword(tool.source, spot, "description")
        free = _types(tool.source, spot) == {"string"} and not _has(
            tool.source, spot, "enum", "const", "pattern", "format"
        )
        if free and isinstance(said, str) and any(form.search(said) for form in _ALTERNATIVES):
            yield spot, f"the description of `{name}` lists its values, and the schema takes any text"


def _string_bounds(tool: Typed) -> Iterator[Finding]:
    for name, spot in _arguments(tool):
        free = not _has(tool.source, spot, "maxLength", "enum", "const", "pattern", "format")
        if "string" in _types(tool.source, spot) and free:
            yield spot, f"the text `{name}` may be of any length"


def _list_bounds(tool: Typed) -> Iterator[Finding]:
    for name, spot in _arguments(tool):
        if "array" not in _types(tool.source, spot) or _has(tool.source, spot, "maxItems", "enum", "const"):
            continue
        items = next((found for each in tool.source.meant(spot) if (found := tool.source.below(each, "items"))), None)
        counted = (
            items is not None and _has(tool.source, items, "enum", "const") and _has(tool.source, spot, "uniqueItems")
        )
        if not counted:
            yield spot, f"the list `{name}` may be of any length"


# answers


def _large_output(tool: Typed) -> Iterator[Finding]:
    view = tool.view
    if view is not None and (view.output is not None or view.project is not None or view.budget is not None):
        return
    for status, schema in tool.endpoint.outputs.items():
        most = weight(schema.document)
        if most > LARGE:
            size = "of any size" if most == float("inf") else f"about {int(most / 1024)} KiB"
            yield tool.at("output", status), f"the answer may be {size}, and the tool shows it whole"


_ID = re.compile(r"(?:^|_|-)id$|[a-z0-9]I[dD]$|^ID$")


def _int64_id(tool: Typed) -> Iterator[Finding]:
    inputs = [spot for spot in [tool.input()] if spot is not None]
    for root in [*inputs, *tool.shown()]:
        for name, spot in _named(tool.source, root):
            wide = _keyword(tool.source, spot, "format") in ("int64", "uint64")
            bounded = _keyword(tool.source, spot, "maximum")
            safe = isinstance(bounded, int | float) and bounded <= 2**53 - 1
            if "integer" in _types(tool.source, spot) and (wide or _ID.search(name)) and not safe:
                yield spot, f"`{name}` is an integer that may be beyond 2^53"


# the endpoint


def _named_consumer(tool: Typed) -> Iterator[Finding]:
    if not tool.endpoint.consumers:
        yield tool.spot, "no consumer is named"


def _safety_tier(tool: Typed) -> Iterator[Finding]:
    tier = tool.endpoint.tool.safety_tier if tool.endpoint.tool else None
    if tier in ("pure", "read") and tool.endpoint.method in ("PUT", "PATCH", "DELETE"):
        yield tool.at("tool", "safety_tier"), f"the tier is `{tier}`, and {tool.endpoint.method} changes something"


RULES = (
    Rule(
        "description-when",
        "the description says when to call the tool",
        "a model that does not know when calls it at the wrong time, or never",
        "add a sentence such as `Call it to find a person's id before get_person.`",
        _says_when,
    ),
    Rule(
        "description-how",
        "the description of a tool with several arguments says how to call it",
        "a model guesses how arguments go together, and where their values come from",
        "name an argument and where it comes from, such as `The id comes from list_people.`",
        _says_how,
    ),
    Rule(
        "description-when-not",
        "the description says when not to call the tool",
        "without it a model calls the tool for every question that comes near",
        "add a sentence such as `Not for finding people by skill: use search_people.`",
        _says_when_not,
    ),
    Rule(
        "argument-described",
        "every argument has a description that says more than its name",
        "it is all that a model knows of the value it must write",
        "write `description: …` with what it means, its form, and an example where that helps",
        _argument_described,
    ),
    Rule(
        "required-first",
        "required arguments stand before optional ones",
        "a model reads a schema from the top",
        "move it up in `properties`",
        _required_first,
    ),
    Rule(
        "closed-set",
        "a closed set of values is an `enum`",
        "a model keeps to an `enum`, and to a list in a sentence less well",
        "write `enum: […]`",
        _closed_set,
    ),
    Rule(
        "string-bounds",
        "a text argument has a bound: `maxLength`, `enum`, `pattern` or `format`",
        "what a model writes without bounds goes to the backend as it is",
        "write `maxLength: …` (and `minLength: 1` where it may not be empty)",
        _string_bounds,
    ),
    Rule(
        "list-bounds",
        "a list argument has `maxItems`, or unique items out of an `enum`",
        "a model that may pass a thousand items will",
        "write `maxItems: …`",
        _list_bounds,
    ),
    Rule(
        "large-output",
        "an answer that can be large has a view or a budget",
        "every byte of it is read by a model, and paid for, at each turn",
        "write `tool.view.output` with what a caller needs, or `tool.view.budget`",
        _large_output,
    ),
    Rule(
        "int64-id",
        "an id is text, or an integer below 2^53",
        "clients in JavaScript round larger integers, and the id is another one then",
        "show it as text (`to_string(id)` in a projection), take it as text with `pattern: '^[0-9]{1,19}$'`,"
        " or write `maximum: 9007199254740991`",
        _int64_id,
    ),
    Rule(
        "named-consumer",
        "somebody is named who relies on the tool",
        "`toolview diff` tells whom a change breaks, and a shape without a reader is a guess",
        "write `consumers: [who calls it]`",
        _named_consumer,
    ),
    Rule(
        "safety-tier",
        "a tool that is called safe does not use a method that changes something",
        "clients run tools that only read without asking",
        "write `safety_tier: write`",
        _safety_tier,
    ),
)


# schemas as they are typed

_DEEPEST = 12


def _arguments(tool: Typed) -> Iterator[tuple[str, Spot]]:
    """Every argument and every key inside one, by its name."""
    root = tool.input()
    if root is not None:
        yield from _named(tool.source, root)


def _own_arguments(tool: Typed) -> Iterator[tuple[str, Spot]]:
    """The arguments themselves, in order."""
    root = tool.input()
    if root is None:
        return
    for part in tool.source.meant(root):
        yield from _properties(tool.source, part)


def _named(source: Source, root: Spot) -> Iterator[tuple[str, Spot]]:
    """Every property at any depth, each place once."""
    waiting: list[tuple[Spot, int]] = [(root, 0)]
    met: set[tuple[str, tuple[str | int, ...]]] = set()
    while waiting:
        spot, depth = waiting.pop(0)
        for part in source.meant(spot):
            if (part.file, part.path) in met or depth > _DEEPEST or not isinstance(part.node, dict):
                continue
            met.add((part.file, part.path))
            for name, inner in _properties(source, part):
                yield name, inner
                waiting.append((inner, depth + 1))
            waiting += [(inner, depth + 1) for inner in _parts(source, part)]


def _properties(source: Source, spot: Spot) -> Iterator[tuple[str, Spot]]:
    held = spot.node.get("properties") if isinstance(spot.node, dict) else None
    for name in held if isinstance(held, dict) else ():
        inner = source.below(spot, "properties", name)
        assert inner is not None
        yield name, inner


def _parts(source: Source, spot: Spot) -> Iterator[Spot]:
    """Schemas inside one that is no property: items, entries, branches."""
    for keyword in ("items", "additionalProperties"):
        inner = source.below(spot, keyword)
        if inner is not None and isinstance(inner.node, dict):
            yield inner
    for keyword in ("anyOf", "oneOf", "prefixItems"):
        branches = spot.node.get(keyword)
        for index in range(len(branches) if isinstance(branches, list) else 0):
            inner = source.below(spot, keyword, index)
            if inner is not None:
                yield inner


def _keyword(source: Source, spot: Spot, keyword: str) -> Json:
    """What a schema says under a keyword, itself or behind its references; None where it does not."""
    for part in source.meant(spot):
        if isinstance(part.node, dict) and part.node.get(keyword) is not None:
            return part.node[keyword]
    return None


def _has(source: Source, spot: Spot, *keywords: str) -> bool:
    return any(_keyword(source, spot, keyword) is not None for keyword in keywords)


def _types(source: Source, spot: Spot) -> set[str]:
    """The types that a schema names, without null; empty where it names none."""
    named = _keyword(source, spot, "type")
    return ({named} if isinstance(named, str) else set(named or ())) - {"null"}


def _words(text: str) -> set[str]:
    return {word for word in _spaced(text).lower().split() if word not in _FILLER}


def _spaced(name: str) -> str:
    """`customerId` and `customer_id` as words."""
    return re.sub(r"[^\w]+|_", " ", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)).strip()
