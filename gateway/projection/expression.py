"""JMESPath: an expression compiled or refused at load, and evaluated on values at hand; knows no processes."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterator
from typing import Any

import jmespath
from jmespath import exceptions
from jmespath.functions import Functions
from jmespath.lexer import Lexer

from gateway.projection.model import Projected, Projection, ProjectionFault, Reason
from gateway.projection.worker import JMESPATH

ROOT = ("full", "input", "source")
MAX_LENGTH = 64 * 1024

#: Nodes whose later children are evaluated on what the first one found.
_CHAINS = {"subexpression", "index_expression", "pipe", "projection", "value_projection", "filter_projection"}


def compile_jmespath(expression: str, root: Collection[str] | None = ROOT) -> Projection | str:
    """The compiled expression, or the sentence that refuses it and names the column.

    `root` are the names that exist at the top of what it is evaluated on; None where that is not known.
    """
    if len(expression) > MAX_LENGTH:
        return f"the JMESPath expression is longer than {MAX_LENGTH >> 10} KiB"
    try:
        with warnings.catch_warnings():
            # `text` without quotes: jmespath still reads it as a string, the grammar (JEP-12) does not
            warnings.simplefilter("error", PendingDeprecationWarning)
            parsed = jmespath.compile(expression)
        fault = _fault_in(parsed.parsed, expression, root)
        breadth = _breadth(parsed.parsed)
    except exceptions.EmptyExpressionError:
        return "the JMESPath expression is empty"
    except exceptions.ParseError as error:
        return _parse_fault(error, expression)
    except PendingDeprecationWarning:
        return f"a literal between backticks in the JMESPath expression is not JSON, {_backtick(expression)}"
    except RecursionError:
        return "the JMESPath expression is nested too deeply"
    if fault is not None:
        return fault
    return Projection("jmespath", expression, parsed=parsed, breadth=breadth)


def lost_arguments(projection: Projection, arguments: Collection[str]) -> tuple[str, ...]:
    """Each `input.NAME` that stands where an element is looked at and not the root: it is null there, and silently so.

    JMESPath has no way back to the root. An element may have a key `input` of its own, so this is not a fault.
    """
    found = [
        f"input.{second['value']}"
        for node, at_root in _walk(projection.parsed.parsed, True)
        if node["type"] == "subexpression" and not at_root
        for first, second, *_ in [node["children"]]
        if (first["type"], first.get("value")) == ("field", "input")
        if second["type"] == "field" and second["value"] in arguments
    ]
    return tuple(dict.fromkeys(found))


def search(projection: Projection, root: dict[str, Any], max_nodes: int) -> Projected | ProjectionFault | None:
    """Evaluate here and now; the result shares no list or object with `root` or with the expression.

    None where the result has more nodes than `max_nodes`: somebody with a clock must do it.
    """
    try:
        found = projection.parsed.search(root, JMESPATH)
        copy = _Copy(max_nodes).of(found)
    except _TooMany:
        return None
    except _NotJson as fault:
        return ProjectionFault(Reason.NOT_JSON, str(fault))
    # jmespath lets what Python raises through: OverflowError, RecursionError, its own errors
    except Exception as error:  # noqa: BLE001 - an operator's expression may end in any of them, and none is ours
        return ProjectionFault(Reason.RAISED, f"{type(error).__name__}: {error}"[:2000])
    return Projected(copy)


class _TooMany(Exception):
    pass


class _NotJson(Exception):
    pass


class _Copy:
    """A copy of a JSON value, counted: a short expression can build a huge value out of shared parts."""

    def __init__(self, max_nodes: int) -> None:
        self._left = max_nodes

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind is str or kind is int or value is None or kind is bool:
            return value
        if kind is float:
            if value - value != 0:
                raise _NotJson("the result holds NaN or Infinity")
            return value
        if kind is dict:
            self._left -= len(value)
            if self._left < 0:
                raise _TooMany
            return {key: self.of(item) for key, item in value.items()}
        if kind is list:
            self._left -= len(value)
            if self._left < 0:
                raise _TooMany
            return [self.of(item) for item in value]
        raise _NotJson("the result holds an expression reference (&...), which is not JSON")


def _fault_in(tree: Any, expression: str, root: Collection[str] | None) -> str | None:
    """jmespath tells an unknown function or a wrong number of arguments only when it gets there; we tell at load."""
    for node, at_root in _walk(tree, True):
        name = node.get("value")
        if node["type"] == "function_expression":
            known = Functions.FUNCTION_TABLE.get(name)
            if known is None:
                return f"the JMESPath function {name}() {_of_word(expression, name)} does not exist"
            fault = _arity_fault(name, known["signature"], len(node["children"]))
            if fault is not None:
                return f"the JMESPath function {name}() {_of_word(expression, name)} {fault}"
        if node["type"] == "field" and at_root and root is not None and name not in root:
            place = _of_word(expression, name)
            return f"{name!r} {place} of the JMESPath expression is always null: the root has {_list(root)}"
    return None


def _arity_fault(name: str, signature: Any, given: int) -> str | None:
    least = len(signature)
    variadic = bool(signature) and signature[-1].get("variadic", False)
    if given == least or (variadic and given > least):
        return None
    return f"takes {'at least ' if variadic else ''}{least} argument{'s' * (least != 1)}, not {given}"


def _walk(node: Any, at_root: bool) -> Iterator[tuple[Any, bool]]:
    yield node, at_root
    kind, children = node["type"], node["children"]
    for index, child in enumerate(children):
        if not isinstance(child, dict):  # a slice's bounds
            continue
        inherits = at_root and kind != "expref" and (kind not in _CHAINS or index == 0 or _is_current(children[:index]))
        yield from _walk(child, inherits)


def _is_current(nodes: Any) -> bool:
    return all(node["type"] in ("current", "identity") for node in nodes)


def _breadth(node: Any) -> int:
    """How many times the size of its input an expression can produce or visit, at most.

    JMESPath has no way back to the root and no recursion, so work is linear in the input but for this factor:
    parts side by side add up, parts in a chain multiply.
    """
    parts = [_breadth(child) for child in node["children"] if isinstance(child, dict)]
    if node["type"] in _CHAINS:
        product = 1
        for part in parts:
            product *= part
        return product
    return max(1, sum(parts))


def _of_word(expression: str, name: str) -> str:
    """Where the word first stands; the tree does not keep it, so the tokens are read again."""
    for token in Lexer().tokenize(expression):
        if token["value"] == name and token["type"] in ("unquoted_identifier", "quoted_identifier"):
            return _place(expression, token["start"])
    return _place(expression, 0)


def _place(expression: str, offset: int) -> str:
    """`at column 8`, counted from 1, with the line where there are several."""
    before = expression[:offset]
    column = f"column {offset - before.rfind(chr(10))}"
    return f"at line {before.count(chr(10)) + 1}, {column}" if "\n" in expression.strip() else f"at {column}"


def _backtick(expression: str) -> str:
    for found in re.finditer(r"`((?:[^`\\]|\\.)*)`", expression):
        try:
            json.loads(found[1].replace("\\`", "`"))
        except ValueError:
            return _place(expression, found.start())
    return _place(expression, 0)


def _parse_fault(error: exceptions.ParseError, expression: str) -> str:
    kind = error.token_type
    if isinstance(error, exceptions.IncompleteExpressionError) or kind == "EOF":
        return f"the JMESPath expression ends too early, {_place(expression, len(expression))}"
    place = f"the JMESPath expression does not parse {_place(expression, int(error.lex_position))}"
    if isinstance(error, exceptions.LexerError):
        return f"{place}: {_one_line(error.message)}"
    return f"{place}: unexpected {str(error.token_value)!r}"


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:120]


def _list(names: Collection[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
