"""The command-line surface: prints an `Outcome`, what a tool's flags are, and which tools there are.

Knows no HTTP. Card on stdout, failure envelope on stderr, exit code by the failure's code.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from gateway import json_text
from gateway.call.outcome import Outcome
from gateway.contract.refusal import printable
from gateway.generation import Generation
from gateway.surfaces.command_line import Misused, is_tools, types_of
from gateway.surfaces.switches import Switch

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


def output_of(name: str | None, stdout: TextIO, *, file: bool) -> Path | Misused | None:
    """The file that `--output` names; None is stdout, which is also what `-` means.

    Looked at before anything is sent: whoever asks for a file (`file`: the tool answers with one) on a terminal, or
    into a place that cannot be written, hears of it while asking again does no harm.
    """
    if name is None and file and stdout.isatty():
        return Misused("this tool answers with a file, which no terminal can show; write --output FILE, or - for here")
    if name is None or name == "-":
        return None
    if not _is_writable(path := Path(name)):
        return Misused(f"{printable(name)} cannot be written, so nothing was sent")
    return path


def flags_text(
    command: str,
    tool: str,
    description: str,
    properties: Mapping[str, Any],
    required: Collection[str],
    switches: Mapping[str, Switch],
) -> str:
    """What `call TOOL --help` prints: every flag with what it takes, those that must be there first; then switches."""
    json = "" if is_tools("json", properties) else " | --json '{…}'"
    lines = [
        f"usage: toolview {command} [switches] {tool} --key value …{json} | -",
        "",
        " ".join(description.split()),
        "",
    ]
    rows = [
        (
            f"--{name} {_taken(properties[name])}",
            ("required. " if name in required else "") + _described(properties[name]),
        )
        for name in sorted(properties, key=lambda name: (name not in required, name))
    ]
    behind: list[tuple[str, str]] = []
    before: list[tuple[str, str]] = []
    for name, switch in switches.items():
        taken = is_tools(name, properties)
        if name == "help":
            behind.append(("-h" if taken else "-h, --help", switch.about))
            continue
        (before if taken else behind).append((f"--{name} {switch.value or ''}".rstrip(), switch.about))
    width = min(36, max(len(flag) for flag, _ in (*rows, *behind, *before)))
    lines += _rows(rows, width)
    lines += ["", f"switches of the command, before `{tool}` or behind it:", *_rows(behind, width)]
    if before:
        lines += ["", f"and before `{tool}` alone, since it has arguments of these names:", *_rows(before, width)]
    return printable_lines("\n".join(lines))


def _rows(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    return [f"  {flag:{width}}  {about}".rstrip() for flag, about in rows]


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


def _taken(schema: Any) -> str:
    """What a flag takes, in a word or two."""
    if isinstance(schema, Mapping) and isinstance(schema.get("enum"), list):
        return "|".join(
            value if isinstance(value, str) else json_text.encode(value).decode() for value in schema["enum"]
        )
    types = sorted(types_of(schema))
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


def usage_error(message: str) -> int:
    """Say what is wrong with a command line; answers the exit code."""
    print(f"toolview: {message}", file=sys.stderr)
    return 2
