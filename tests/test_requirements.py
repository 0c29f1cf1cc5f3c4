"""The requirements map holds both ways: every id has a test or a reason why not yet, every test names known ids."""

from __future__ import annotations

import re
from pathlib import Path

from tests.requirements import REQUIREMENTS

HERE = Path(__file__).parent
_MARK = re.compile(r"mark\.requirement\(([^)]*)\)")


def shown() -> dict[str, set[str]]:
    """Ids by the test files that show them."""
    found: dict[str, set[str]] = {}
    for path in HERE.rglob("test_*.py"):
        if path == Path(__file__):
            continue
        for names in _MARK.findall(path.read_text()):
            for name in re.findall(r'"([^"]+)"', names):
                found.setdefault(name, set()).add(path.relative_to(HERE).as_posix())
    return found


def test_every_requirement_has_a_test_or_a_reason_to_wait() -> None:
    tested = shown()
    missing = [name for name, wanted in REQUIREMENTS.items() if wanted.later is None and name not in tested]
    assert missing == []


def test_what_is_shown_is_no_longer_called_later() -> None:
    tested = shown()
    assert [name for name, wanted in REQUIREMENTS.items() if wanted.later is not None and name in tested] == []


def test_tests_name_known_requirements_only() -> None:
    assert sorted(set(shown()) - set(REQUIREMENTS)) == []
