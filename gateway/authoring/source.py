"""A contract as it was typed: which file and line says what, also behind a `$ref`. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from gateway.contract.disk import Disk
from gateway.contract.document import Place
from gateway.contract.references import Files, Home, open_contract
from gateway.contract.refusal import Path
from gateway.record import record

Json = Any

#: Deeper than any reference chain that a person follows.
_MOST_STEPS = 100


@record
class Spot:
    """A node where it is written."""

    #: "" is the merged contract.
    file: str
    path: Path
    node: Json
    #: What `#` means here.
    home: Home
    #: The spots whose `$ref` led here, the first one first.
    via: tuple[tuple[str, Path], ...] = ()


@dataclass
class Source:
    """The files of one contract."""

    files: Files
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def spot(self, path: Path) -> Spot | None:
        """What is written at a path of the merged contract, if anything is."""
        node: Json = self.files.merged
        for part in path:
            if not _has(node, part):
                return None
            node = node[part]
        return Spot("", path, node, Home("", path))

    def below(self, spot: Spot, *keys: str | int) -> Spot | None:
        """What is written below a spot."""
        node = spot.node
        for key in keys:
            if not _has(node, key):
                return None
            node = node[key]
        return Spot(spot.file, (*spot.path, *keys), node, spot.home, spot.via)

    def behind(self, spot: Spot) -> Spot | None:
        """Where the `$ref` of a spot leads."""
        reference = spot.node.get("$ref") if isinstance(spot.node, dict) else None
        if not isinstance(reference, str):
            return None
        target = self.files.target(reference, spot.home)
        if isinstance(target, str):
            return None
        node = self.files.root(target.file)
        for part in target.path:
            node = node[part]
        via = (*spot.via, (spot.file, spot.path))
        return Spot(target.file, target.path, node, _home(spot.home, target.file, target.path), via)

    def meant(self, spot: Spot) -> Iterator[Spot]:
        """The spot itself, and all that must hold with it: behind its `$ref`, and in its `allOf`."""
        waiting = [spot]
        for _ in range(_MOST_STEPS):
            if not waiting:
                return
            found = waiting.pop(0)
            yield found
            behind = self.behind(found)
            waiting += [] if behind is None else [behind]
            members = found.node.get("allOf") if isinstance(found.node, dict) else None
            for index in range(len(members) if isinstance(members, list) else 0):
                member = self.below(found, "allOf", index)
                waiting += [] if member is None else [member]

    def place(self, path: Path) -> Place:
        """Where a path of a contract is written, following `$ref`s; the deepest part that is there counts."""
        root = next((end for end in range(len(path), 0, -1) if _is_schema_root(path[:end])), len(path))
        spot = Spot("", (), self.files.merged, Home("", path[:root]))
        for part in path:
            for _ in range(_MOST_STEPS):
                behind = None if _has(spot.node, part) else self.behind(spot)
                if behind is None:
                    break
                spot = behind
            inner = self.below(spot, part)
            if inner is None:
                break
            spot = inner
        return self.where(spot)

    def where(self, spot: Spot) -> Place:
        return self.files.place(spot.file, spot.path)

    def lines_above(self, spot: Spot) -> Iterator[tuple[str, int]]:
        """The file and line of every key that a spot stands under, its own first; by each way that leads to it."""
        for file, path in reversed([*spot.via, (spot.file, spot.path)]):
            for end in range(len(path), 0, -1):
                place = self.files.place(file, path[:end])
                yield place.file, place.line

    def line(self, file: str, number: int) -> str:
        """One line of a file by its shown name; "" where there is none."""
        lines = self.lines(file)
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def lines(self, file: str) -> list[str]:
        if file not in self._lines:
            try:
                text = FilePath(file).read_bytes().decode("utf-8-sig", "replace")
            except OSError:
                text = ""
            self._lines[file] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return self._lines[file]


def open_source(path: FilePath) -> Source | None:
    """The source of a contract that loads; None where it changed or went meanwhile."""
    files = open_contract(path, Disk())
    return None if isinstance(files, tuple) else Source(files)


def _has(node: Json, part: str | int) -> bool:
    if isinstance(node, dict):
        return part in node
    return isinstance(node, list) and isinstance(part, int) and part < len(node)


def _home(before: Home, file: str, path: Path) -> Home:
    """What `#` means behind a reference; inside the same schema it goes on meaning that."""
    if file == before.file and path[: len(before.root)] == before.root:
        return before
    return Home("", path[:2]) if file == "" else Home(file)


def _is_schema_root(path: Path) -> bool:
    """Whether a path of the contract is where an endpoint's schema begins."""
    match path:
        case ("endpoints", _, "input") | ("endpoints", _, "output") | ("endpoints", _, "tool", "view", "output"):
            return True
        case ("endpoints", _, "output", str(status)):
            return len(status) == 3 and status[0].isdigit()
    return False
