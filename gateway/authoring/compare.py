"""`toolview diff`: two contracts or snapshots to their changes, and the changes as text, JSON or GitHub annotations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from gateway import json_text
from gateway.authoring.annotate import Level, annotation
from gateway.authoring.source import open_source
from gateway.catalog.diff import diff
from gateway.catalog.diff_change import Change, Verdict, count, short
from gateway.catalog.snapshot import Snapshot, Unreadable, read_snapshot, snapshot
from gateway.contract.document import LARGEST_FILE
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.record import record

Json = Any

#: Where a change is written: file, and line where that is known.
Where = tuple[str, int | None]


@record
class Side:
    """One of the two that are compared."""

    name: str
    surface: Snapshot
    #: Where a path of it is written.
    where: Callable[[Sequence[str | int]], Where]


@record
class Compared:
    """Two surfaces and what changed from one to the other."""

    old: Side
    new: Side
    changes: tuple[Change, ...]

    def fails(self, at: str | None) -> bool:
        """Whether there is a change of that verdict, or a graver one."""
        if at is None:
            return False
        verdicts = list(Verdict)
        return any(verdicts.index(change.verdict) <= verdicts.index(Verdict(at)) for change in self.changes)


def read_side(name: str, stdin: BinaryIO) -> Side | tuple[str, ...]:
    """What a file holds, contract or snapshot (`-` reads a snapshot from stdin); or every sentence that refuses it."""
    try:
        data = stdin.read(LARGEST_FILE + 1) if name == "-" else _read(name)
    except (OSError, ValueError):
        return (f"{name}: the file cannot be read; mend its rights, or the path",)
    shown = "standard input" if name == "-" else name
    if len(data) > LARGEST_FILE:
        return (f"{shown}: the file is larger than {LARGEST_FILE} bytes",)
    if _is_snapshot(data, name):
        surface = read_snapshot(data)
        if isinstance(surface, Unreadable):
            return (f"{shown}: {surface.message}",)
        return Side(shown, surface, lambda _: (shown, None))
    loaded = load(Path(name))
    if not isinstance(loaded, Contract):
        return tuple(str(refusal) for refusal in loaded)
    source = open_source(Path(name))

    def where(path: Sequence[str | int]) -> Where:
        if source is None:
            return name, None
        place = source.place(tuple(path))
        return place.file, place.line

    return Side(name, snapshot(loaded), where)


def compared(old: Side, new: Side) -> Compared:
    return Compared(old, new, diff(old.surface, new.surface))


def as_text(result: Compared) -> str:
    """For people: a change in a few lines, and how many there are of each verdict."""
    lines = []
    for change in result.changes:
        file, line = result.new.where(change.at)
        place = change.path if not change.operation else f"{change.operation} {change.path}".rstrip()
        lines.append(f"{change.verdict.value}: {place}: {change.message}")
        lines.append(f"    {file}{'' if line is None else f':{line}'}")
        if change.counterexample is not None:
            lines.append(f"    as in {short(change.counterexample.value, 300)}")
        if change.surfaces:
            lines.append(f"    on {', '.join(change.surfaces)}")
        if change.consumers and change.verdict is not Verdict.DOCS:
            lines.append(f"    consumers: {', '.join(change.consumers)}")
    counts = count(result.changes)
    lines.append(", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict))
    return "\n".join(lines)


def as_json(result: Compared) -> str:
    """For programs."""
    counts = count(result.changes)
    document = {
        "old": result.old.name,
        "new": result.new.name,
        **{verdict.value: counts[verdict] for verdict in Verdict},
        "changes": [_placed(change, result.new.where(change.at)) for change in result.changes],
    }
    return json.dumps(document, ensure_ascii=False)


def as_annotations(result: Compared) -> str:
    """For GitHub: one workflow command for each change."""
    levels = {Verdict.BREAKING: Level.ERROR, Verdict.COMPATIBLE: Level.NOTICE, Verdict.DOCS: Level.NOTICE}
    lines = []
    for change in result.changes:
        file, line = result.new.where(change.at)
        message = change.message
        if change.counterexample is not None:
            message += f"\nAs in {short(change.counterexample.value, 300)}"
        if change.consumers:
            message += f"\nConsumers: {', '.join(change.consumers)}"
        title = f"{change.verdict.value}: {change.operation} {change.path}".strip()
        lines.append(annotation(levels[change.verdict], file, line, title, message))
    return "\n".join(lines)


FORMATS: dict[str, Callable[[Compared], str]] = {"text": as_text, "json": as_json, "github": as_annotations}


def _read(name: str) -> bytes:
    with Path(name).open("rb") as opened:
        return opened.read(LARGEST_FILE + 1)


def _is_snapshot(data: bytes, name: str) -> bool:
    """Contracts may be written as JSON too; a file that is neither is told what a snapshot lacks."""
    if name == "-":
        return True
    document = json_text.parse(data) if data.lstrip()[:1] == b"{" else None
    if isinstance(document, dict):
        return "snapshotVersion" in document or "endpoints" not in document
    return name.endswith(".json")


def _placed(change: Change, where: Where) -> dict[str, Json]:
    return {**change.as_json(), "file": where[0], "line": where[1]}
