"""A command line that names a tool, read to the tool's arguments and the command's own switches; does no I/O but stdin.

A switch stands before the tool's name. Behind it one is understood too, unless the tool declares an argument of that
name: then it is the tool's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from gateway import json_text
from gateway.contract.model import Contract
from gateway.generation import index
from gateway.record import record
from gateway.surfaces.switches import Switch

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


@record
class Misused:
    """The words are no arguments; one sentence for the person at the terminal."""

    message: str


@dataclass
class Line:
    """A command line as it was understood."""

    arguments: dict[str, Any] = field(default_factory=dict)
    #: The switches that were written, with their values; "" where one has none.
    switches: dict[str, str] = field(default_factory=dict)
    #: Whether any argument was written, be it an empty `--json '{}'`.
    any_given: bool = False
    #: Whether stdin was read for them.
    from_stdin: bool = False


def read_line(
    words: Sequence[str],
    properties: Mapping[str, Any],
    stdin: TextIO,
    switches: Mapping[str, Switch],
    before: Mapping[str, str] | None = None,
) -> Line | Misused:
    """What the words behind a tool's name say, and the switches that stood `before` it.

    `properties`: the tool's input properties as JSON Schema; a flag's text is read by its property's type, and what
    that does not decide stays text for the one check of the whole input. `-` alone is the arguments as JSON on stdin.
    """
    reading = _Reading(properties, switches, dict(before or {}))
    if (misused := reading.read(list(words))) is not None:
        return misused
    line = reading.line
    if not reading.dash or "help" in line.switches:
        return line
    if line.any_given:
        return Misused("`-` reads all arguments from stdin; leave the others out, or put them there")
    whole = _read_json(stdin.read())
    return whole if isinstance(whole, Misused) else Line(whole, line.switches, True, True)


def properties_of(contract: Contract, tool: str, surface: str) -> Mapping[str, Any] | None:
    """The schemas of a tool's arguments by name; None where the surface has no such tool."""
    endpoint = index(contract).find(tool, surface, None)
    if endpoint is None:
        return None
    return {name: endpoint.input.property_document(name) for name in endpoint.input.property_names}


#: The contract at a path, the default one for None; or None where there is none.
Load = Callable[[str | None], Contract | None]


def contract_of(
    tool: str, words: Sequence[str], switches: Mapping[str, Switch], load: Load, surface: str
) -> str | Misused | None:
    """Which contract a line names behind the tool's name (`--config`); None where that is left to the default.

    Where the default contract has the tool, and that has an argument `config`, the word is the tool's.
    """
    path = next(_named(words), None)
    if path is None:
        return None
    contract = load(None)
    properties = None if contract is None else properties_of(contract, tool, surface)
    if properties is not None and not _asks_for_another(words, properties, switches):
        return None
    contract = load(path)
    properties = None if contract is None else properties_of(contract, tool, surface)
    if properties is not None and not _asks_for_another(words, properties, switches):
        return Misused("there --config is the tool's own, or some flag's value; write it before the tool's name")
    return path


def is_tools(name: str, properties: Mapping[str, Any]) -> bool:
    """Whether `--name` behind the tool's name is an argument of the tool's own."""
    return name in properties or name.replace("-", "_") in properties


def _asks_for_another(words: Sequence[str], properties: Mapping[str, Any], switches: Mapping[str, Switch]) -> bool:
    reading = _Reading(properties, switches, {})
    reading.read(list(words))  # what is wrong with it is said once the contract is known
    return "config" in reading.line.switches


def _named(words: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        if word.startswith("--config="):
            yield word.partition("=")[2]
        elif word == "--config" and at + 1 < len(words):
            yield words[at + 1]


class _Reading:
    """Goes along the words once, so that the value of a flag is never taken for a switch."""

    def __init__(self, properties: Mapping[str, Any], switches: Mapping[str, Switch], before: dict[str, str]) -> None:
        self._properties = properties
        self._switches = switches
        self._before = before
        self.line = Line(switches=dict(before))
        self.dash = False

    def read(self, left: list[str]) -> Misused | None:
        if "json" in self._before and (misused := self._take_json(self._before["json"])) is not None:
            return misused
        while left:
            word = left.pop(0)
            if word == "-h":  # no tool has a flag of one dash
                self.line.switches["help"] = ""
                return None
            if word == "-":
                self.dash = True
                continue
            if not word.startswith("--") or word == "--":
                return Misused(f"`{word}` is no flag; write --name value, --json '{{…}}', or - to read JSON from stdin")
            name, equals, text = word[2:].partition("=")
            switch = None if is_tools(name, self._properties) else self._switches.get(name)
            given = text if equals else None
            misused = self._argument(name, given, left) if switch is None else self._switch(name, switch, given, left)
            if misused is not None or "help" in self.line.switches:
                return misused
        return None

    def _switch(self, name: str, switch: Switch, given: str | None, left: list[str]) -> Misused | None:
        if switch.value is None:
            if given is not None:
                return Misused(f"--{name} takes no value")
            self.line.switches[name] = ""
            return None
        if given is None and not left:
            return Misused(f"--{name} needs {switch.value}")
        value = left.pop(0) if given is None else given
        if name == "json":
            return self._take_json(value)
        if name in self.line.switches:
            return Misused(f"--{name} is given twice")
        self.line.switches[name] = value
        return None

    def _argument(self, name: str, given: str | None, left: list[str]) -> Misused | None:
        known = name if name in self._properties else name.replace("-", "_")
        known = known if known in self._properties else name
        schema = self._properties.get(known)
        if given is None:
            if types_of(schema) == {"boolean"} and (not left or left[0].startswith("-")):
                given = "true"
            elif not left:
                return Misused(f"--{name} needs a value")
            else:
                given = left.pop(0)
        self.line.any_given = True
        return _take(self.line.arguments, known, given, schema)

    def _take_json(self, text: str) -> Misused | None:
        whole = _read_json(text)
        if isinstance(whole, Misused):
            return whole
        self.line.any_given = True
        self.line.arguments.update(whole)
        return None


def _read_json(text: str) -> dict[str, Any] | Misused:
    value = json_text.parse(text.encode("utf-8", "surrogateescape"))
    if isinstance(value, json_text.NotJson):
        hint = "; a bare `-` alone reads them from stdin" if text == "-" else ""
        return Misused(f"the arguments are not JSON: {value.reason}{hint}")
    return value if isinstance(value, dict) else Misused("the arguments are one JSON object")


def _take(arguments: dict[str, Any], name: str, text: str, schema: Any) -> Misused | None:
    types = types_of(schema)
    if "array" in types and "string" not in types and not text.lstrip().startswith("["):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        so_far = arguments.setdefault(name, [])
        if not isinstance(so_far, list):  # by --json
            return Misused(f"--{name} is given twice and takes one value")
        so_far.append(_read_text(text, types_of(items)))
        return None
    if name in arguments:
        return Misused(f"--{name} is given twice and takes one value")
    arguments[name] = _read_text(text, types)
    return None


def _read_text(text: str, types: set[str]) -> Any:
    if "string" in types or not types:
        return text
    if "boolean" in types and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    value = json_text.parse(text.encode("utf-8", "surrogateescape"))
    return text if isinstance(value, json_text.NotJson) else value


def types_of(schema: Any) -> set[str]:
    """The JSON types that a property's schema names; empty where it does not say in so many words."""
    if not isinstance(schema, Mapping):
        return set()
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return {name for name in named if name != "null"}
    members = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return {json_text.type_name(member) for member in members} - {"null"}
