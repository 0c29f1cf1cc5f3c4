"""`toolview lint`: the rules of the tool surface over one contract, each fault at its line, and what was allowed there.

`# lint: allow RULE reason`, at the end of a key's line or on lines of its own above it, allows a rule for that key and
all below it; at a `$ref` it also covers what the reference leads to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.authoring.annotate import Level, annotation
from gateway.authoring.rules import RULES, Rule, Typed
from gateway.authoring.source import Source, Spot, open_source
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.refusal import Refusal, dotted, nearest
from gateway.record import record

Json = Any


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One rule that is broken at one place."""

    file: str
    line: int
    column: int
    #: Where it is in the contract or the file.
    path: str
    rule: str
    message: str
    repair: str

    @property
    def said(self) -> str:
        """Where, what and what to write; what is said of a comment stands at no path."""
        return f"{f'{self.path}: ' if self.path else ''}{self.message}; {self.repair}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.said} [{self.rule}]"

    def as_json(self) -> dict[str, Json]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "rule": self.rule,
            "message": self.message,
            "repair": self.repair,
        }


#: What is said of the comments themselves; these cannot be allowed.
ALLOW_REASON = "allow-reason"
ALLOW_UNKNOWN = "allow-unknown"
ALLOW_UNUSED = "allow-unused"


@record
class Loaded:
    """A contract that loads, and what is wrong with it all the same, in order."""

    faults: tuple[Fault, ...]


def lint(path: Path) -> Loaded | tuple[Refusal, ...]:
    """Every fault of a contract; or why it does not load."""
    loaded = load(path)
    if not isinstance(loaded, Contract):
        return loaded
    source = open_source(path)
    if source is None:
        return (Refusal(str(path), 1, 1, "", "the file changed while it was read; try again"),)
    return Loaded(faults_of(loaded, source))


def faults_of(contract: Contract, source: Source) -> tuple[Fault, ...]:
    allowed = _Allowed(source)
    found = list(_broken(contract, source, allowed))  # before the comments are judged by their use
    return tuple(sorted({*found, *allowed.faults()}))


def _broken(contract: Contract, source: Source, allowed: _Allowed) -> Iterator[Fault]:
    for endpoint in contract.endpoints.values():
        spot = source.spot(("endpoints", endpoint.id))
        if endpoint.tool is None or spot is None:
            continue
        tool = Typed(source, endpoint, spot)
        for rule in RULES:
            for at, message in rule.check(tool):
                if not allowed.allows(rule, at):
                    place = source.where(at)
                    yield Fault(place.file, place.line, place.column, dotted(at.path), rule.id, message, rule.repair)


_COMMENT = re.compile(r"#\s*lint:\s*allow\b\s*(?P<rule>[^\s#]*)\s*(?P<reason>.*?)\s*$")
_OWN_LINE = re.compile(r"\s*#")


@dataclass
class _Allowed:
    """The comments of the files that were read, and which of them were of use."""

    source: Source
    _comments: dict[str, dict[int, list[tuple[int, str, str]]]] = field(default_factory=dict)
    _used: set[tuple[str, int]] = field(default_factory=set)

    def allows(self, rule: Rule, spot: Spot) -> bool:
        for file, line in self.source.lines_above(spot):
            for written, name, reason in self._of(file).get(line, ()):
                if name == rule.id:
                    self._used.add((file, written))
                    if reason:
                        return True
        return False

    def faults(self) -> Iterator[Fault]:
        """What is wrong with the comments themselves."""
        ids = [rule.id for rule in RULES]
        files = self.source.files
        for name in files.documents:
            file = files.name(name)
            for line, name_, reason, column in sorted(self._all(file)):
                if name_ not in ids:
                    meant = nearest(name_, ids)
                    repair = f"did you mean `{meant}`?" if meant else f"the rules are {', '.join(ids)}"
                    said = f"there is no rule `{name_}`" if name_ else "no rule is named"
                    yield Fault(file, line, column, "", ALLOW_UNKNOWN, said, repair)
                elif not reason:
                    repair = "write it behind the rule's name"
                    yield Fault(file, line, column, "", ALLOW_REASON, f"no reason allows `{name_}` here", repair)
                elif (file, line) not in self._used:
                    said = f"`{name_}` is not broken here"
                    yield Fault(file, line, column, "", ALLOW_UNUSED, said, "take the comment out")

    def _of(self, file: str) -> dict[int, list[tuple[int, str, str]]]:
        """By the line of the key that they are for: where the comments are, their rule and their reason."""
        if file not in self._comments:
            lines = self.source.lines(file)
            found: dict[int, list[tuple[int, str, str]]] = {}
            for number, rule, reason, _ in self._all(file):
                line = number
                while line < len(lines) and _OWN_LINE.match(lines[line - 1]):
                    line += 1
                found.setdefault(line, []).append((number, rule, reason))
            self._comments[file] = found
        return self._comments[file]

    def _all(self, file: str) -> Iterator[tuple[int, str, str, int]]:
        for number, line in enumerate(self.source.lines(file), 1):
            if "lint:" not in line:
                continue
            at = _comment_at(line)
            if match := _COMMENT.match(line, at):
                yield number, match["rule"], match["reason"], at + 1


def _comment_at(line: str) -> int:
    """Where the comment of a YAML line begins: at a `#` behind a space, outside quotes; else at its end."""
    quote, before = "", " "
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote and (quote == "'" or before != "\\") else quote
        elif char == "#" and before.isspace():
            return at
        elif char in "\"'" and before in " \t[{,:" + char:  # a doubled quote goes on
            quote = char
        before = char
    return len(line)


def as_text(faults: tuple[Fault, ...]) -> str:
    """For people: a fault a line."""
    lines = [str(fault) for fault in faults]
    return "\n".join([*lines, f"{len(faults)} fault{'' if len(faults) == 1 else 's'}"])


def as_json(faults: tuple[Fault, ...]) -> str:
    """For programs."""
    return json.dumps({"faults": [fault.as_json() for fault in faults]}, ensure_ascii=False)


def as_annotations(faults: tuple[Fault, ...]) -> str:
    """For GitHub: one workflow command for each fault."""
    said = [annotation(Level.WARNING, each.file, each.line, each.rule, each.said) for each in faults]
    return "\n".join(said)


FORMATS: dict[str, Callable[[tuple[Fault, ...]], str]] = {
    "text": as_text,
    "json": as_json,
    "github": as_annotations,
}


def rules_text() -> str:
    """Every rule with its reason and repair."""
    return "\n".join(f"{each.id}: {each.asks}\n    why: {each.reason}\n    repair: {each.repair}" for each in RULES)
