"""The image is locked, holds no package installer, runs as nobody in particular, and is built from what is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy.conftest import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
TEXT = DOCKERFILE.read_text()


def stages() -> list[list[str]]:
    """The instructions of each stage, one a line, comments gone."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^\s*#.*\n", "", TEXT))
    lines = [line for line in joined.splitlines() if line]
    starts = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    return [lines[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def test_the_linter_finds_nothing(checks: Path) -> None:
    done = subprocess.run([checks / "hadolint", DOCKERFILE], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_linter_would_find_something(checks: Path) -> None:
    done = subprocess.run(
        [checks / "hadolint", "-"], input="FROM x:latest\n", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "DL3007" in done.stdout


def test_the_base_is_named_by_digest() -> None:
    assert re.search(r"(?m)^ARG PYTHON=python:3\.\d+-slim@sha256:[0-9a-f]{64}$", TEXT)
    assert [stage[0] for stage in stages()] == ["FROM ${PYTHON} AS build", "FROM ${PYTHON}"]


def test_whatever_is_installed_is_held_to_a_hash() -> None:
    installs = [part for line in stages()[0] for part in line.split("&&") if "pip" in part and " install " in part]
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-index" in install, install


def test_the_last_stage_installs_nothing_and_is_nobodys_root() -> None:
    last = stages()[1]
    assert not any(re.search(r"\bpip3? |\bapt|\binstall\b", line) for line in last)
    assert any("rm -rf" in line and "/site-packages/pip*" in line for line in last)
    assert [line for line in last if line.startswith("USER ")] == ["USER 10001:10001"]


def test_it_is_probed_and_stopped_as_the_gateway_expects() -> None:
    last = stages()[1]
    (probe,) = (line for line in last if line.startswith("HEALTHCHECK "))
    assert "/-/ready" in probe
    assert "STOPSIGNAL SIGTERM" in last
    assert last[-2:] == ['ENTRYPOINT ["toolview"]', 'CMD ["serve"]']


COPIES = [line.split() for stage in stages() for line in stage if line.startswith("COPY ") and "--from" not in line]


@pytest.mark.parametrize("source", [word for words in COPIES for word in words[1:-1]])
def test_what_it_copies_is_there_and_reaches_the_builder(source: str) -> None:
    assert (ROOT / source).exists()
    assert f"!{source}" in (ROOT / ".dockerignore").read_text().splitlines()
