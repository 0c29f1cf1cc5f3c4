"""What a validator found, told as violations: where, which rule, what was expected; never the value that was found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kind

from gateway.json_pointer import pointer_of
from gateway.json_text import type_name
from gateway.schema.nearest import did_you_mean
from gateway.schema.pattern import translate
from gateway.schema.resolve import resolve
from gateway.schema.violation import Violation

#: At most so many members of an enum, or names of properties, in one sentence.
_LISTED = 10
_MISSING = object()
#: Keys that the engine's paths give as numbers.
_DIGITS = re.compile(r"\+?[0-9]{1,20}")


def violations_of(
    errors: Iterable[jsonschema_rs.ValidationError], document: Any, value: Any, limit: int
) -> list[Violation]:
    """At most `limit` violations, each told once."""
    told: dict[tuple[str, str, str], Violation] = {}
    for error in errors:
        for violation in _told(error, document, value):
            told.setdefault((violation.pointer, violation.rule, violation.message), violation)
        if len(told) >= limit:
            break
    return list(islice(told.values(), limit))


def not_json(value: Any, path: tuple[str | int, ...] = ()) -> Violation | None:
    """The first place that is no JSON at all: a set, a date, a key that is no text, half a surrogate pair."""
    if isinstance(value, str):
        if value.isascii() or value.encode("utf-8", "replace").decode() == value:
            return None
        return _no_json(path, "text that UTF-8 can hold", "string")
    if value is None or isinstance(value, (bool, int, float)):
        return None
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or not_json(key):
                return _no_json(path, "an object whose keys are text", "object")
            fault = not_json(item, (*path, key))
            if fault:
                return fault
        return None
    if isinstance(value, (list, tuple)):
        return next((fault for i, item in enumerate(value) if (fault := not_json(item, (*path, i)))), None)
    return _no_json(path, "a JSON value", type(value).__name__)


def _no_json(path: tuple[str | int, ...], expected: str, found: str) -> Violation:
    return Violation(pointer_of(path), "json", f"expected {expected}, found {found}", "", found)


def _told(error: jsonschema_rs.ValidationError, document: Any, value: Any) -> Iterator[Violation]:
    kind = error.kind
    match kind:
        case Kind.AdditionalProperties(unexpected=names) | Kind.UnevaluatedProperties(unexpected=names):
            declared = _declared(document, _written_at(document, error)[:-1])
            for name in names:
                hint = did_you_mean(name, declared, "`") or _or_one_of(declared)
                message = f"{_quoted(name)} is not declared{hint}"
                yield _violation(error, document, value, message, name)
        case Kind.FalseSchema() if names := _of_an_empty_object(error, document, value):
            for name in names:
                message = f"{_quoted(name)} is not declared{_or_one_of([])}"
                yield _violation(error, document, value, message, name, "additionalProperties")
        case Kind.AnyOf(context=branches) | Kind.OneOfNotValid(context=branches):
            yield from _of_branches(error, branches, document, value)
        case Kind.PropertyNames(error=inner):
            message = f"the key {_quoted(inner.instance)} is not allowed: {sentence(inner, document)}"
            yield _violation(error, document, value, message, rule="propertyNames")
        case _:
            yield _violation(error, document, value, sentence(error, document, _at(value, _found_at(value, error))))


def _of_an_empty_object(error: jsonschema_rs.ValidationError, document: Any, value: Any) -> list[str]:
    """The keys of an object whose schema is closed and names none: the engine tells of the object as a whole."""
    path = _written_at(document, error)
    around = _node(document, path[:-1])
    if path[-1:] != ["additionalProperties"] or not isinstance(around, dict):
        return []
    found = _at(value, _found_at(value, error))
    closed = around.get("additionalProperties") is False and not {"properties", "patternProperties"} & around.keys()
    return list(found) if closed and isinstance(found, dict) else []


def _of_branches(
    error: jsonschema_rs.ValidationError, branches: list[list[jsonschema_rs.ValidationError]], document: Any, value: Any
) -> Iterator[Violation]:
    """The branch that got furthest; where none got past the type, all their types at once."""
    here = len(error.instance_path)
    wanted = [_type_at(branch, here) for branch in branches]
    types = [name for names in wanted if names for name in names]
    if types and all(wanted):
        found = type_name(_at(value, _found_at(value, error)))
        yield _violation(error, document, value, f"expected {_either(dict.fromkeys(types))}, found {found}")
        return
    told_apart = _told_apart(branches)
    if told_apart:
        inner, options = told_apart
        found = type_name(_at(value, _found_at(value, inner)))
        message = f"expected one of {_listed(options)}, found {found}"
        yield _violation(inner, document, value, message, rule="enum")
        return
    candidates = [branch for branch in branches if branch]
    if not candidates:
        yield _violation(error, document, value, f"fits no branch of `{_rule(error)}`")
        return
    for inner in max(candidates, key=lambda branch: _reach(branch, here)):
        yield from _told(inner, document, value)


def _told_apart(
    branches: list[list[jsonschema_rs.ValidationError]],
) -> tuple[jsonschema_rs.ValidationError, list[Any]] | None:
    """Where all branches want another constant at one place, as a discriminator does: an error there, the constants."""
    places: list[dict[tuple[str | int, ...], tuple[jsonschema_rs.ValidationError, list[Any]]]] = []
    for branch in branches:
        places.append({})
        for error in branch:
            if isinstance(error.kind, Kind.Constant):
                places[-1][tuple(error.instance_path)] = error, [error.kind.expected_value]
            elif isinstance(error.kind, Kind.Enum):
                places[-1][tuple(error.instance_path)] = error, error.kind.options
    common = [path for path in places[0] if all(path in place for place in places)] if len(places) > 1 else []
    if not common:
        return None
    return places[0][common[0]][0], [option for place in places for option in place[common[0]][1]]


def _type_at(branch: list[jsonschema_rs.ValidationError], here: int) -> list[str] | None:
    for error in branch:
        if isinstance(error.kind, Kind.Type) and len(error.instance_path) == here:
            return error.kind.types
    return None


def _reach(branch: list[jsonschema_rs.ValidationError], here: int) -> tuple[bool, bool, int, int]:
    """How far a branch got: past the type, past what tells branches apart, then deepest, then fewest faults."""
    chosen = any(isinstance(error.kind, (Kind.Constant, Kind.Enum)) for error in branch)
    depth = max(_depth(error) for error in branch)
    return _type_at(branch, here) is None, not chosen, depth, -len(branch)


def _depth(error: jsonschema_rs.ValidationError) -> int:
    nested = getattr(error.kind, "context", None) or []
    return max([len(error.instance_path), *(_depth(inner) for branch in nested for inner in branch)])


def _violation(
    error: jsonschema_rs.ValidationError,
    document: Any,
    value: Any,
    message: str,
    key: str | None = None,
    rule: str | None = None,
) -> Violation:
    where = _found_at(value, error) + ([] if key is None else [key])
    schema_path = pointer_of(_written_at(document, error))
    return Violation(pointer_of(where), rule or _rule(error), message, schema_path, type_name(_at(value, where)))


def _found_at(value: Any, error: jsonschema_rs.ValidationError) -> list[str | int]:
    """The place in the value. The engine's own path lacks empty keys and has numbers for keys of digits."""
    fitting = list(islice(_readings(value, error.instance_path), 8))
    if len(fitting) > 1:
        return next((path for path in fitting if _at(value, path) == error.instance), fitting[0])
    return fitting[0] if fitting else []


def _readings(value: Any, path: list[str | int]) -> Iterator[list[str | int]]:
    """Every path in the value that the engine may have meant."""
    if not path:
        yield []
    elif isinstance(value, (list, tuple)) and isinstance(path[0], int) and path[0] < len(value):
        yield from ([path[0], *rest] for rest in _readings(value[path[0]], path[1:]))
    elif isinstance(value, dict):
        for key in _keys_meant(value, path[0]):
            yield from ([key, *rest] for rest in _readings(value[key], path[1:]))
    if isinstance(value, dict) and "" in value:
        yield from (["", *rest] for rest in _readings(value[""], path))


def _keys_meant(holder: dict[str, Any], part: str | int) -> list[str]:
    if isinstance(part, str):
        return [part] if part in holder else []
    return [key for key in holder if _DIGITS.fullmatch(key) and int(key) == part]


def _written_at(document: Any, error: jsonschema_rs.ValidationError) -> list[str | int]:
    """The place in the document as it was written: the engine's path, with its keys and patterns put right."""
    written: list[str | int] = []
    for part in error.schema_path:
        if isinstance(document, dict):
            keys = _keys_meant(document, part) or [key for key in document if translate(key) == part]
            if not keys and "" in document:
                written.append("")
                document = document[""]
                keys = _keys_meant(document, part) if isinstance(document, dict) else []
            part = keys[0] if keys else part
        written.append(part)
        document = _node(document, [part])
    return written


def _rule(error: jsonschema_rs.ValidationError) -> str:
    if isinstance(error.kind, Kind.FalseSchema):
        return "false"
    last = error.schema_path[-1] if error.schema_path else error.kind.name
    return last if isinstance(last, str) else error.kind.name


def _at(value: Any, path: Iterable[str | int]) -> Any:
    for part in path:
        value = value[part]
    return value


def sentence(error: jsonschema_rs.ValidationError, document: Any, value: Any = _MISSING) -> str:
    """One sentence: what was expected, and the JSON type that was found."""
    value = error.instance if value is _MISSING else value
    found = type_name(value)
    rule = _rule(error)
    match error.kind:
        case Kind.Type(types=types):
            return f"expected {_either(types)}, found {found}"
        case Kind.Required(property=name):
            beside = _trigger(document, error, name, value) if rule == "dependentRequired" else ""
            return f"{_quoted(name)} is required{beside} and missing"
        case Kind.Enum(options=options):
            if not options:
                return f"nothing is allowed here, found {found}"
            hint = did_you_mean(value, [o for o in options if isinstance(o, str)]) if isinstance(value, str) else ""
            return f"expected one of {_listed(options)}, found {found}{hint}"
        case Kind.Constant(expected_value=constant):
            return f"expected {_shown(constant)}, found {found if type_name(constant) != found else 'another ' + found}"
        case Kind.Minimum(limit=limit):
            return f"expected at least {_shown(limit)}, found {found} below it"
        case Kind.Maximum(limit=limit):
            return f"expected at most {_shown(limit)}, found {found} above it"
        case Kind.ExclusiveMinimum(limit=limit):
            return f"expected more than {_shown(limit)}, found {found} that is not"
        case Kind.ExclusiveMaximum(limit=limit):
            return f"expected less than {_shown(limit)}, found {found} that is not"
        case Kind.MultipleOf(multiple_of=step):
            return f"expected a multiple of {_shown(step)}, found {found} that is none"
        case Kind.MinLength(limit=limit):
            return f"expected at least {_counted(limit, 'character')}, found string of {len(value)}"
        case Kind.MaxLength(limit=limit):
            return f"expected at most {_counted(limit, 'character')}, found string of {len(value)}"
        case Kind.MinItems(limit=limit):
            return f"expected at least {_counted(limit, 'item')}, found array of {len(value)}"
        case Kind.MaxItems(limit=limit):
            return f"expected at most {_counted(limit, 'item')}, found array of {len(value)}"
        case Kind.MinProperties(limit=limit):
            return f"expected at least {_counted(limit, 'key')}, found object of {len(value)}"
        case Kind.MaxProperties(limit=limit):
            return f"expected at most {_counted(limit, 'key')}, found object of {len(value)}"
        case Kind.Pattern(pattern=pattern):
            written = _node(document, _written_at(document, error))
            return f"expected a string that matches {written if isinstance(written, str) else pattern}, found {found}"
        case Kind.Format(format=name):
            return f"expected a string of format {name}, found {found}"
        case Kind.UniqueItems():
            return "expected items that all differ, found array with equal ones"
        case Kind.Contains():
            return _of_contains(rule, document, _written_at(document, error))
        case Kind.UnevaluatedItems():
            return "expected no further items, found array with more than are declared"
        case Kind.FalseSchema():
            return f"nothing is allowed here, found {found}"
        case Kind.Not():
            return f"expected what `not` does not describe, found {found} that fits it"
        case Kind.OneOfMultipleValid(context=branches):
            fitting = [f"branch {number + 1}" for number, branch in enumerate(branches) if not branch]
            return f"expected to fit exactly one branch of `oneOf`, found {found} that fits {_joined(fitting, 'and')}"
        case Kind.AdditionalProperties(unexpected=names) | Kind.UnevaluatedProperties(unexpected=names):
            return f"{', '.join(map(_quoted, names[:_LISTED]))} is not declared"
        case Kind.AnyOf() | Kind.OneOfNotValid():
            return f"expected to fit a branch of `{rule}`, found {found}"
        case _:
            return f"breaks `{rule}`, found {found}"


def _of_contains(rule: str, document: Any, schema_path: list[str | int]) -> str:
    limit = _node(document, schema_path)
    if rule == "minContains" and isinstance(limit, (int, float)):
        return f"expected at least {_counted(int(limit), 'item')} fitting `contains`, found array with fewer"
    if rule == "maxContains" and isinstance(limit, (int, float)):
        return f"expected at most {_counted(int(limit), 'item')} fitting `contains`, found array with more"
    return "expected an item fitting `contains`, found array without one"


def _trigger(document: Any, error: jsonschema_rs.ValidationError, name: str, value: Any) -> str:
    dependent = _node(document, _written_at(document, error))
    if isinstance(dependent, dict) and isinstance(value, dict):
        for key, names in dependent.items():
            if key in value and name in names:
                return f" beside {_quoted(key)}"
    return ""


def _node(document: Any, path: Iterable[str | int]) -> Any:
    for part in path:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _declared(document: Any, path: list[str | int]) -> list[str]:
    """Names that an object may have, as far as they are written at this place: for a suggestion only."""
    names: dict[str, None] = {}
    seen: set[int] = set()
    waiting = [_node(document, path)]
    while waiting:
        node = waiting.pop(0)
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        names.update(dict.fromkeys(node.get("properties", {})))
        for keyword in ("allOf", "anyOf", "oneOf"):
            waiting += node.get(keyword, [])
        waiting += [node[keyword] for keyword in ("then", "else") if keyword in node]
        target = resolve(document, node["$ref"]) if "$ref" in node else ""
        if not isinstance(target, str):
            waiting.append(target[1])
    return list(names)


def _or_one_of(names: list[str]) -> str:
    if not names:
        return "; leave it out"
    return f"; declared are {_joined([_quoted(name) for name in names], 'and')}"


def _listed(values: list[Any]) -> str:
    return _joined([_shown(value) for value in values], "or")


def _joined(words: list[str], last: str) -> str:
    if len(words) > _LISTED:
        words = [*words[: _LISTED - 1], f"{len(words) - _LISTED + 1} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _either(types: Iterable[str]) -> str:
    return _joined(list(types), "or")


def _shown(value: Any) -> str:
    """A value of the schema, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:56].rstrip("\\") + ('..."' if isinstance(value, str) else "...")


def _quoted(name: Any) -> str:
    """A name, cut where it is long, and without what would break the line."""
    return f"`{_shown(str(name))[1:-1]}`"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
