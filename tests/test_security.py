"""SECURITY.md promises nothing without a test, and the tests that it names are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_test_that_is_named_is_there(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    found = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assert test in found


def test_every_promise_names_a_test() -> None:
    rows = [
        line for line in PAGE.splitlines() if line.startswith("| ") and not re.match(r"\| (what it tries|---)", line)
    ]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`tests/[\w/]+\.py::test_\w+` \|$", row)] == []


def test_every_attacker_has_its_promises_and_what_is_not_defended_is_said() -> None:
    for heading in ("A caller that", "A hostile backend", "A hostile author", "A neighbour", "What is not defended"):
        assert f"\n## {heading}" in PAGE
