"""Shell completion: commands, tools and their flags from the contract, and nothing that a shell would run."""

from __future__ import annotations

import shutil
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
      odd:
        request: POST /odd
        description: It has arguments of the command's own names.
        expose: [cli]
        input: {type: object, properties: {output: {type: string}, dry_run: {type: boolean}}}
        output: {type: object}
      hidden: {request: GET /hidden, description: Not here., output: {type: object}}
"""
COMMANDS = {"call": ["-h", "--help", "--config"], "check": ["-h", "--help", "--format"], "serve": []}
OURS = ["--json", "--output", "--dry-run", "--config", "--help"]
OF_PREVIEW = ["--answer", "--status", "--json", "--config", "--help"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([""], ["call", "check", "serve"]),
        (["c"], ["call", "check"]),
        (["check", "--"], ["--help", "--format"]),
        (["call", ""], ["odd", "read", *OURS]),
        (["call", "--dry-run", "--output", "f", "r"], ["read"]),
        (["call", "--output", ""], []),
        (["call", "--dry-run", "read", "--d"], ["--deep"]),
        (["call", "odd", "--"], ["--output", "--dry_run", "--json", "--config", "--help"]),
        (["call", "odd", "--dry-run", ""], ["true", "false"]),
        (["call", "odd", "--output", ""], []),
        (["preview", ""], ["hidden", "odd", "read", *OF_PREVIEW]),
        (["preview", "hidden", "--"], OF_PREVIEW),
        (["preview", "read", "--mode", "s"], ["short"]),
        (["preview", "--answer", "f", "read", "--a"], []),
        (["preview", "read", "--answer", ""], []),
        (["call", "h"], []),
        (["call", "read", "--"], ["--id", "--mode", "--deep", "--tags", *OURS]),
        (["call", "read", "--tags", "a", "--t"], ["--tags"]),
        (["call", "read", "--id", "x", "--i"], []),
        (["call", "read", "--id", ""], []),
        (["call", "read", "--mode", ""], ["short", "long"]),
        (["call", "read", "--mode", "=", "l"], ["long"]),
        (["call", "read", "--mode=l"], ["--mode=long"]),
        (["call", "read", "--deep="], ["--deep=true", "--deep=false"]),
        (["call", "read", "--id="], []),
        (["call", "read", "--mode", "="], ["short", "long"]),
        (["call", "read", "--deep", ""], ["true", "false"]),
        (["call", "--config", "x", "read", "--output", ""], []),
        (["call", "nothing", "--"], []),
        (["nothing", ""], []),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["completion", "f"], ["fish"]),
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

    assert candidates(["call", "--config=a.yaml", "r"], COMMANDS, load) == []
    assert candidates(["call", "--config", "b.yaml", "r"], COMMANDS, load) == []
    assert candidates(["call", "read", "--config", "c.yaml", ""], COMMANDS, load) == []
    assert candidates(["preview", "--config", "d.yaml", "read", "--config", "e.yaml", ""], COMMANDS, load) == []
    assert candidates(["call", ""], COMMANDS, load) == OURS
    assert asked == ["a.yaml", "b.yaml", None, "c.yaml", "c.yaml", "d.yaml", None]


#: Each prints for every line what its end may be completed to. bash is given what it gives a completion function, zsh
#: is asked by the key on a terminal of its own, fish by its `complete -C`.
BASH = """
source ./script
for line in "$@"; do
    read -r -a COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=(); _toolview; echo "${COMPREPLY[@]}"
done
"""
ZSH = """
zmodload zsh/zpty
zpty -b inner zsh -f -i
zpty -w inner 'PROMPT= RPROMPT= ; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; source ./script'
zpty -w inner 'shown() {
    compadd() { while [[ $1 != -- ]]; do shift; done; shift; heard=("$@") }
    _files() { heard=(FILES) }
    local -a heard; _toolview; print -r -- "<""$heard"">"
}
zle -C shown complete-word shown; bindkey "^I" shown; print bou""nd'
zpty -r inner heard '*bound*'
for line in "$@"; do
    zpty -n -w inner "$line"$'\t'
    zpty -r inner heard '*<*>*'
    print -r -- "${${heard##*<}%%>*}"
    zpty -n -w inner $'\x15'
done
zpty -d inner
"""
FISH = """
source ./script
for line in $argv; string join -- " " (complete -C $line); end
true
"""
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

#: Each line starts the command once, so there are few; what it answers has its own tests above.
LINES = {
    "toolview call --dry-run --config other.yaml else": "elsewhere",
    "toolview call elsewhere --config other.yaml --w": "--why",
    "toolview preview read --mode ": "short long",
    "toolview completion ": "bash zsh fish",
}


@pytest.mark.parametrize("shell", list(SHELLS))
def test_a_shell_completes_commands_tools_and_flags(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here (`.ci/run` installs it)")
    other = CONTRACT.replace("      read:", "      elsewhere:").replace("id: {type", "why: {type")
    accepted(tmp_path / "other", other[: other.index("      odd:")])
    (tmp_path / "other" / "gateway.yaml").rename(tmp_path / "other.yaml")
    accepted(tmp_path, CONTRACT)
    (tmp_path / "script").write_text(SCRIPTS[shell])
    (tmp_path / "asked").write_text(SHELLS[shell])
    toolview = tmp_path / "bin" / "toolview"
    toolview.parent.mkdir()
    toolview.write_text(f'#!/bin/sh\nexec {sys.executable} -m gateway "$@"\n')
    toolview.chmod(0o755)
    root = str(Path(__file__).parent.parent.parent)
    environment = {
        "PATH": f"{toolview.parent}:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": root, "HOME": str(tmp_path),
        "TOOLVIEW_CONFIG": "gateway.yaml", "TERM": "dumb", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    done = subprocess.run(
        [program, "asked", *LINES],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert dict(zip(LINES, map(sorted_words, done.stdout.splitlines()), strict=True)) == {
        line: sorted_words(found) for line, found in LINES.items()
    }, done.stderr
    assert not (tmp_path / "run").exists()


def sorted_words(text: str) -> list[str]:
    return sorted(text.split())
