"""Reads what the pairs of `diff/` expect of themselves; `python -m tests.catalog.diffs` rewrites it.

The newer contract of a pair ends in comments, one for each change in order:
`# expect: verdict | surfaces | path | message | counterexample`.
"""

from __future__ import annotations

import re
from pathlib import Path

from gateway import json_text
from gateway.catalog.diff import diff
from gateway.catalog.diff_change import Change
from gateway.catalog.snapshot import Snapshot, snapshot
from gateway.contract.load import load
from gateway.contract.model import Contract

PAIRS = sorted(path for path in (Path(__file__).parent / "diff").iterdir() if path.is_dir())

_EXPECT = re.compile(r"^# expect: (.*)\n", re.MULTILINE)


def expected(pair: Path) -> list[str]:
    return _EXPECT.findall((pair / "new.yaml").read_text())


def found(pair: Path) -> list[str]:
    return [told(change) for change in diff(surface(pair / "old.yaml"), surface(pair / "new.yaml"))]


def surface(path: Path) -> Snapshot:
    contract = load(path, {"REAL_BACKEND": "http://127.0.0.1:9"})
    assert isinstance(contract, Contract), "\n".join(map(str, contract))
    return snapshot(contract)


def told(change: Change) -> str:
    place = f"{change.operation} {change.path}".strip()
    parts = [change.verdict.value, ",".join(change.surfaces), place, change.message]
    if change.counterexample is not None:
        parts.append(json_text.canonical(change.counterexample.value).decode())
    return " | ".join(parts)


def main() -> None:
    """Review the difference before it is kept: these verdicts are what operators act on."""
    for pair in PAIRS:
        file = pair / "new.yaml"
        file.write_text(_EXPECT.sub("", file.read_text()) + "".join(f"# expect: {line}\n" for line in found(pair)))


if __name__ == "__main__":
    main()
