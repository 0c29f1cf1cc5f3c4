"""One change of a surface as a reviewer is told it: its verdict, place, reason, and a value that shows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from gateway import json_text
from gateway.record import record

Json = Any
Path = tuple[str | int, ...]


class Verdict(Enum):
    """What a change means to those who rely on the surface today; the gravest first."""

    BREAKING = "breaking"
    COMPATIBLE = "compatible"
    DOCS = "docs"


@record
class Shown:
    """A value that shows the change; wrapped, since null is such a value too."""

    value: Json


@record
class SchemaChange:
    """One change below a schema's root."""

    verdict: Verdict
    #: As `limit` or `people[].name`; "" is the root.
    path: str
    message: str
    counterexample: Shown | None
    #: The keys that lead there in the document.
    at: Path


@record
class Change:
    """One change. `counterexample` stands at `path`: an old call or a new answer that the other side refuses."""

    verdict: Verdict
    #: What changed: `input`, `default`, `output`, `error`, `name`, `scope`, `exposure`, `request`, `behaviour`,
    #: `description`, `consumers`, `operation`.
    aspect: str
    #: The endpoint's id; "" is the whole contract.
    operation: str
    #: Inside the operation, as `input.limit` or `output.people[].name`.
    path: str
    message: str
    counterexample: Shown | None = None
    #: The surfaces whose callers meet it.
    surfaces: tuple[str, ...] = ()
    #: Who relies on the operation, by either contract.
    consumers: tuple[str, ...] = ()
    #: Where it is written in a contract; the deepest part that is there counts.
    at: Path = ()

    def as_json(self) -> dict[str, Json]:
        said: dict[str, Json] = {
            "verdict": self.verdict.value,
            "aspect": self.aspect,
            "operation": self.operation,
            "path": self.path,
            "message": self.message,
            "surfaces": list(self.surfaces),
            "consumers": list(self.consumers),
        }
        if self.counterexample is not None:
            said["counterexample"] = self.counterexample.value
        return said


def count(changes: tuple[Change, ...]) -> Mapping[Verdict, int]:
    """How many changes there are of each verdict."""
    return {verdict: sum(change.verdict is verdict for change in changes) for verdict in Verdict}


def below(path: str, name: str) -> str:
    """The readable path of a key; `*` stands for any."""
    plain = name == "*" or all(char.isalnum() or char in "_$@-" for char in name)
    if not plain or not name:
        return f"{path}[{short(name)}]"
    return f"{path}.{name}" if path else name


def short(value: Json, length: int = 80) -> str:
    """A value as JSON, cut where it is long."""
    text = json_text.encode(value).decode()
    return text if len(text) <= length else text[: length - 3] + "..."
