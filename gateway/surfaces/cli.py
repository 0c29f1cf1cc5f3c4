"""The command-line surface: decodes flags to arguments, prints an `Outcome`.

Knows no HTTP. Card on stdout, failure envelope on stderr, exit code by the failure's code.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from gateway import json_text
from gateway.call.outcome import Outcome
from gateway.contract.refusal import printable
from gateway.generation import Generation

SURFACE = "cli"

#: Exit codes by failure code; any other failure is 1. 2 is also what a usage error exits with.
EXIT_CODES: Mapping[str, int] = {
    "VALIDATION_ERROR": 1,
    "BAD_REQUEST": 1,
    "UNAUTHORIZED": 2,
    "FORBIDDEN": 3,
    "NOT_FOUND": 4,
    "CONFLICT": 5,
    "RATE_LIMITED": 6,
    "BACKEND_TIMEOUT": 7,
    "REQUEST_ABORTED": 130,
}

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


@dataclass(frozen=True, slots=True)
class Misused:
    """The flags are no arguments; one sentence for the person at the terminal."""

    message: str


def read_arguments(words: Sequence[str], properties: Mapping[str, Any], stdin: TextIO) -> dict[str, Any] | Misused:
    """The arguments that `--key value …`, `--json '{…}'` or `-` (JSON on stdin) stand for.

    `properties`: the tool's input properties as JSON Schema; a flag's text is read by its property's type, and what
    that does not decide stays text for the one check of the whole input.
    """
    if list(words) == ["-"]:
        return _read_json(stdin.read())
    arguments: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            return Misused(f"`{word}` is no flag; write --name value, --json '{{…}}', or - to read JSON from stdin")
        name, equals, text = word[2:].partition("=")
        value = text if equals else _next_value(name, rest, properties)
        if value is None:
            return Misused(f"--{name} needs a value")
        if name == "json" and "json" not in properties:
            whole = _read_json(value)
            if isinstance(whole, Misused):
                return whole
            arguments.update(whole)
            continue
        known = name if name in properties else name.replace("-", "_")
        if (misused := _take(arguments, known if known in properties else name, value, properties)) is not None:
            return misused
    return arguments


def take_output(
    words: Sequence[str], properties: Mapping[str, Any], stdout: TextIO, *, file: bool
) -> tuple[list[str], Path | None] | Misused:
    """The words without `--output FILE`, and that file; None is stdout, which is also what `-` means.

    Looked at before anything is sent: whoever asks for a file (`file`: the tool answers with one) on a terminal, or
    into a place that cannot be written, hears of it while asking again does no harm.
    """
    rest, name = [], None
    left = list(words)
    while left:
        flag, equals, text = left[0].partition("=")
        if flag != "--output" or "output" in properties:
            rest.append(left.pop(0))
            continue
        del left[0]
        if not equals and not left:
            return Misused("--output needs the name of a file, or - for stdout")
        name = text if equals else left.pop(0)
    if name is None and file and stdout.isatty():
        return Misused("this tool answers with a file, which no terminal can show; write --output FILE, or - for here")
    if name is None or name == "-":
        return rest, None
    if not _is_writable(path := Path(name)):
        return Misused(f"{printable(name)} cannot be written, so nothing was sent")
    return rest, path


def take_switch(words: Sequence[str], name: str, properties: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The words without `--name`, and whether it was there; an argument of the tool of this name keeps it."""
    if name in properties or name.replace("-", "_") in properties:
        return list(words), False
    rest = [word for word in words if word != f"--{name}"]
    return rest, len(rest) < len(words)


def take_value(
    words: Sequence[str], name: str, properties: Mapping[str, Any]
) -> tuple[list[str], str | Misused | None]:
    """The words without `--name VALUE`, and the value where it was there; an argument of the tool's keeps its name."""
    rest, value, left = [], None, list(words)
    while left:
        flag, equals, text = left[0].partition("=")
        if flag != f"--{name}" or name in properties:
            rest.append(left.pop(0))
            continue
        del left[0]
        if not equals and not left:
            return rest, Misused(f"--{name} needs a value")
        value = text if equals else left.pop(0)
    return rest, value


def flags_text(tool: str, description: str, properties: Mapping[str, Any], required: Collection[str]) -> str:
    """What `call TOOL --help` prints: every flag with what it takes, and those that must be there first."""
    lines = [f"usage: toolview call {tool} --key value … | --json '{{…}}' | -", "", " ".join(description.split()), ""]
    rows = [
        (f"--{name} {_taken(properties[name])}", name in required, _described(properties[name]))
        for name in sorted(properties, key=lambda name: (name not in required, name))
    ]
    ours = {
        "--json '{…}'": "the arguments, or some of them, as JSON",
        "--output FILE": "write the answer there; - is stdout",
        "--dry-run": "show the request, secrets out, and send nothing",
    }
    rows += [(flag, False, about) for flag, about in ours.items() if flag[2:].split()[0] not in properties]
    width = min(36, max(len(flag) for flag, _, _ in rows))
    lines += [f"  {flag:{width}}  {'required. ' if needed else ''}{about}".rstrip() for flag, needed, about in rows]
    return printable_lines("\n".join(lines))


def write_request(head: bytes, body: bytes | None, stdout: TextIO) -> int:
    """Print a request that was not sent, as it would have left; what a terminal would obey is shown in its place."""
    content = head + (body or b"")
    if stdout.isatty():
        print(printable_lines(content.decode(errors="replace").replace("\r\n", "\n")), file=stdout)
        return 0
    stdout.flush()
    stdout.buffer.write(content)
    return 0


def printable_lines(text: str) -> str:
    """The text with its line ends, and without what turns a terminal over."""
    return "\n".join(printable(line) for line in text.split("\n"))


async def tell_waiting(tool: str, stderr: TextIO, *, first: float = 1.0, every: float = 1.0) -> None:
    """Say on a terminal, from the first second on, that a call is under way and since when; ends by cancellation."""
    if not stderr.isatty():
        return
    loop = asyncio.get_running_loop()
    began = loop.time()
    told = False
    try:
        await asyncio.sleep(first)
        while True:
            told = True
            stderr.write(f"\r\x1b[2Kwaiting for {printable(tool)}: {loop.time() - began:.0f} s")
            stderr.flush()
            await asyncio.sleep(every)
    finally:
        if told:
            stderr.write("\r\x1b[2K")
            stderr.flush()


def write_outcome(outcome: Outcome, stdout: TextIO, stderr: TextIO, output: Path | None = None) -> int:
    """Print the answer or the envelope, indented on a terminal and as one line elsewhere; answers the exit code."""
    if outcome.failure is not None:
        print(_shown(outcome.envelope(), stderr), file=stderr)
        return EXIT_CODES.get(outcome.failure.code, 1)
    if output is not None:
        try:
            output.write_bytes(outcome.body or b"")
        except OSError as fault:
            print(f"toolview: {printable(str(output))} cannot be written: {fault.strerror}", file=stderr)
            return 1
    elif outcome.media_type is not None and outcome.body is not None:
        stdout.flush()
        stdout.buffer.write(outcome.body)
    elif outcome.body is not None:
        print(_shown(outcome.value, stdout), file=stdout)
    return 0


def write_tools(generation: Generation, stdout: TextIO, *, form: str) -> None:
    """List every tool on any surface: as text for people, or `json` as MCP lists them."""
    listed = {tool.name: (tool, on) for on in ("cli", "agent", "mcp") for tool in generation.catalog(on, None).tools}
    tools = [listed[name][0] for name in sorted(listed)]
    if form == "json":
        print(_shown([tool.mcp() for tool in tools], stdout), file=stdout)
        return
    width = max((len(tool.name) for tool in tools), default=0)
    for tool in tools:
        surfaces = ",".join(on for on in ("mcp", "agent", "cli") if tool.name in generation.catalog(on, None).by_name)
        print(f"{tool.name:{width}}  {surfaces:13}  {' '.join(tool.description.split())}", file=stdout)


def _is_writable(path: Path) -> bool:
    try:
        return not path.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)
    except OSError:  # a name that is too long, or goes round in links
        return False


def _shown(value: Any, stream: TextIO) -> str:
    return json_text.pretty(value) if stream.isatty() else json_text.encode(value).decode()


def _read_json(text: str) -> dict[str, Any] | Misused:
    value = json_text.parse(text.encode("utf-8", "surrogateescape"))
    if isinstance(value, json_text.NotJson):
        hint = "; a bare `-` alone reads them from stdin" if text == "-" else ""
        return Misused(f"the arguments are not JSON: {value.reason}{hint}")
    return value if isinstance(value, dict) else Misused("the arguments are one JSON object")


def _next_value(name: str, rest: list[str], properties: Mapping[str, Any]) -> str | None:
    types = _types(properties.get(name) or properties.get(name.replace("-", "_")))
    if types == {"boolean"} and (not rest or rest[0].startswith("--")):
        return "true"
    return rest.pop(0) if rest else None


def _take(arguments: dict[str, Any], name: str, text: str, properties: Mapping[str, Any]) -> Misused | None:
    schema = properties.get(name)
    types = _types(schema)
    if "array" in types and "string" not in types and not text.lstrip().startswith("["):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        arguments.setdefault(name, []).append(_read_text(text, _types(items)))
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


def _taken(schema: Any) -> str:
    """What a flag takes, in a word or two."""
    if isinstance(schema, Mapping) and isinstance(schema.get("enum"), list):
        return "|".join(
            value if isinstance(value, str) else json_text.encode(value).decode() for value in schema["enum"]
        )
    types = sorted(_types(schema))
    if types == ["array"]:
        return f"{_taken(schema.get('items'))} (again for each)"
    return "|".join(types) or "value"


def _described(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    about = " ".join(str(schema.get("description", "")).split())
    if "default" not in schema:
        return about
    return f"{about} Default {json_text.encode(schema['default']).decode()}.".strip()


def _types(schema: Any) -> set[str]:
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


def usage_error(message: str) -> int:
    """Say what is wrong with a command line; answers the exit code."""
    print(f"toolview: {message}", file=sys.stderr)
    return 2
