"""Shell completion: commands, tools and their flags from the contract, and nothing that a shell would run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.contract.model import Contract
from gateway.surfaces.completion import SCRIPTS, candidates
from tests.rig import accepted

CONTRACT = """
    version: 1
    backends: {api: {url: http://127.0.0.1:9}}
    endpoints:
      read:
        request: GET /read
        description: Reads.
        expose: [cli]
        input:
          type: object
          properties:
            id: {type: string}
            mode: {enum: [short, long, "$(touch run)", "a b"]}
            deep: {type: boolean}
            tags: {type: array, items: {enum: [a, b]}}
        output: {type: object}
      hidden: {request: GET /hidden, description: Not here., output: {type: object}}
"""
COMMANDS = {"call": ["-h", "--help", "--config"], "check": ["-h", "--help", "--format"], "serve": []}
OURS = ["--json", "--dry-run", "--output", "--config", "--help"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([""], ["call", "check", "serve"]),
        (["c"], ["call", "check"]),
        (["check", "--"], ["--help", "--format"]),
        (["call", ""], ["read", "--config", "--help"]),
        (["call", "h"], []),
        (["call", "read", "--"], ["--id", "--mode", "--deep", "--tags", *OURS]),
        (["call", "read", "--tags", "a", "--t"], ["--tags"]),
        (["call", "read", "--id", "x", "--i"], []),
        (["call", "read", "--id", ""], []),
        (["call", "read", "--mode", ""], ["short", "long"]),
        (["call", "read", "--mode", "=", "l"], ["long"]),
        (["call", "read", "--mode", "="], ["short", "long"]),
        (["call", "read", "--deep", ""], ["true", "false"]),
        (["call", "--config", "x", "read", "--output", ""], []),
        (["call", "nothing", "--"], []),
        (["nothing", ""], []),
        ([], ["call", "check", "serve"]),
    ],
)
def test_what_may_stand_last(words: list[str], found: list[str], tmp_path: Path) -> None:
    contract = accepted(tmp_path, CONTRACT)
    assert candidates(words, COMMANDS, lambda _: contract) == found


def test_the_contract_is_the_one_that_the_line_names() -> None:
    asked: list[str | None] = []

    def load(path: str | None) -> Contract | None:
        asked.append(path)
        return None

    assert candidates(["call", "--config=a.yaml", ""], COMMANDS, load) == []
    assert candidates(["call", "--config", "b.yaml", ""], COMMANDS, load) == []
    assert candidates(["call", ""], COMMANDS, load) == []
    assert asked == ["a.yaml", "b.yaml", None]


def test_bash_completes_a_tool_and_its_flags(tmp_path: Path) -> None:
    accepted(tmp_path, CONTRACT)
    (tmp_path / "script").write_text(SCRIPTS["bash"])
    asked = f"""
        source ./script
        toolview() {{ {sys.executable} -m gateway "$@"; }}
        export TOOLVIEW_CONFIG=gateway.yaml
        COMP_WORDS=(toolview call re); COMP_CWORD=2; _toolview; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(toolview call read --mode ""); COMP_CWORD=4; _toolview; echo "${{COMPREPLY[@]}}"
    """
    root = str(Path(__file__).parent.parent.parent)
    done = subprocess.run(
        ["bash", "-c", asked], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": root},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["read", "short long"]
    assert not (tmp_path / "run").exists()
