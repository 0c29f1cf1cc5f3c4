"""Reads what the bad files of `invalid/` expect of themselves; `python -m tests.contract.refusals` rewrites it.

A bad file ends in comments, `# expect: 11:9: path: sentence`, one for each refusal, in order. A refusal of another file
starts with that file's name.
"""

from __future__ import annotations

import re
from pathlib import Path

from gateway.contract.load import load
from gateway.contract.model import Contract

INVALID = Path(__file__).parent / "invalid"
FILES = sorted(INVALID.glob("*.yaml"))

_EXPECT = re.compile(r"^# expect: (.*)\n", re.MULTILINE)


def expected(file: Path) -> list[str]:
    return _EXPECT.findall(file.read_text())


def refused(file: Path) -> list[str]:
    """The refusals of a file as its expectations spell them."""
    loaded = load(file, {})
    if isinstance(loaded, Contract):
        return []
    folder = f"{INVALID.as_posix()}/"
    return [str(refusal).replace(folder, "").replace(f"{file.name}:", "", 1) for refusal in loaded]


def main() -> None:
    """Review the difference before it is kept: these sentences are what operators read."""
    for file in FILES:
        lines = "".join(f"# expect: {line}\n" for line in refused(file))
        file.write_text(_EXPECT.sub("", file.read_text()) + lines)


if __name__ == "__main__":
    main()
