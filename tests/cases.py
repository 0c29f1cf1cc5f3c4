"""Cases from public bug reports, by id: what each is about, which tests show it, which decisions settle it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
_DECISIONS = _HERE.parent / "docs" / "decisions"


@dataclass(frozen=True, slots=True)
class Case:
    """One small input from a bug report and the behaviour that is right for it."""

    id: str
    area: str
    fault: str
    expected: str


def _read() -> dict[str, Case]:
    rows = [json.loads(line) for line in (_HERE / "data" / "cases.jsonl").read_text().splitlines()]
    return {row["id"]: Case(**row) for row in rows}


CASES = _read()

#: Cases of work that is still to come, each with the reason. A case that a test shows may not stand here.
LATER: dict[str, str] = {}

# `REQ-03` in a comment or a table, `req_03` or `req03` in the name of a test.
_ID = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted({case[:3] for case in CASES}))})[-_]?([0-9]{{2}})(?![0-9])", re.I)


def shown() -> dict[str, set[str]]:
    """The files of tests that name a case."""
    own = (Path(__file__), _HERE / "test_cases.py")
    return _naming(
        path
        for path in _HERE.rglob("*.py")
        if path not in own and not {"node_modules", ".site-packages"} & set(path.parts)
    )


def decided() -> dict[str, set[str]]:
    """The decisions that name a case."""
    return _naming(_DECISIONS.glob("*.md"))


def summary() -> list[str]:
    """One line for each area: which cases are shown by tests, decided otherwise, still to come."""
    tested, written = shown(), decided()
    lines = []
    for area in dict.fromkeys(case.area for case in CASES.values()):
        ids = sorted(case.id for case in CASES.values() if case.area == area)
        parts = {
            "tested": [id for id in ids if id in tested],
            "decided": [id for id in ids if id in written and id not in tested],
            "later": [id for id in ids if id in LATER],
        }
        told = "; ".join(f"{word} {' '.join(found)}" for word, found in parts.items() if found)
        lines.append(f"cases of {area}: {told}")
    return lines


def _naming(files: Iterable[Path]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in files:
        for prefix, number in _ID.findall(file.read_text()):
            name = f"{prefix.upper()}-{number}"
            if name in CASES:
                found.setdefault(name, set()).add(file.name)
    return found
