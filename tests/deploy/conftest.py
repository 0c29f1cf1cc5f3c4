"""Where the programs are that look at deploy/ from outside: Helm, a compose reader, a Dockerfile linter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def checks() -> Path:
    """The folder of these programs, which `make test` and `make check` install into an environment of their own."""
    found = Path(os.environ.get("TOOLVIEW_CHECKS", ROOT / ".venv-checks")) / "bin"
    if not (found / "python").exists():
        missing = f"{found} is not there: `make .venv-checks/.installed` makes it"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found
