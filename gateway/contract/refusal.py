"""A refusal: one fault of a contract at its file, line and column, with the sentence that repairs it. Knows no YAML."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: A place inside a document: keys and indexes from its root.
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """One fault; a contract with any is not loaded. A warning has the same shape and refuses nothing."""

    file: str
    line: int
    column: int
    #: Where it is, as `endpoints.people.list.tool.view`; "" is the whole file.
    path: str
    #: One sentence that says what to write instead; never a secret.
    message: str

    def __str__(self) -> str:
        where = f"{printable(self.file)}:{self.line}:{self.column}: "
        return where + (f"{self.path}: " if self.path else "") + self.message

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "message": self.message,
        }


def in_order(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """Each refusal once, by file, line and column."""
    return tuple(sorted(set(refusals)))


def dotted(path: Path) -> str:
    """A path as people read it: `gateway.auth.keys[0].sha256`."""
    text = ""
    for part in path:
        name = part if isinstance(part, int) or len(part) <= 80 else part[:77] + "..."
        text += f"[{name}]" if isinstance(part, int) else f".{name}" if text else str(name)
    return printable(text)


def quoted(value: Any) -> str:
    """A value of the contract as a refusal shows it: JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > 60:
        text = text[:56].rstrip("\\") + ('..."' if isinstance(value, str) else "...")
    return printable(text)


def either(words: Iterable[str]) -> str:
    """`a, b or c`."""
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def nearest(word: str, accepted: Sequence[str]) -> str | None:
    """The accepted word that was probably meant."""
    flat = {name.lower().replace("_", "").replace("-", ""): name for name in reversed(accepted)}
    found = difflib.get_close_matches(word.lower().replace("_", "").replace("-", ""), list(flat), n=1, cutoff=0.6)
    return flat[found[0]] if found else None


def printable(text: str) -> str:
    """Without characters that would break the line or a terminal."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
