"""Whatever is done to a contract's text, it is accepted or refused with a place; nothing is ever raised."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config"

_WORDS = (
    *("null", "true", "no", "0", "-1", "1e400", ".nan", "~", "[]", "{}", '""', "'", '"', "{", "}", "[", "]", ":", "#"),
    *("- ", "\t", "\n", "  ", "&a ", "*a", "!!str ", "!x ", "<<: ", "? ", "| ", "> ", "---\n", "%YAML 1.1\n", "\x00"),
    *("\ufeff", "é", "𝒳", "${", "${HOME}", "${file:/dev/null}", "$ref", "#/schemas/Person", "../../x.yaml", "a" * 70),
    *("object", "array", "string", "required: [zz]", "additionalProperties: true", "anyOf: []", "type: [object]"),
    *("GET /{a}", "POST /", "mcp", "cli", "http", "raw", "media", "[http]", "127.0.0.1:8081", "10s", "1KiB"),
)


def mutated(text: str, chance: random.Random) -> str:
    """The text with one to four lines or spans dropped, doubled, moved, or replaced."""
    for _ in range(chance.randint(1, 4)):
        lines = text.split("\n")
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = " " * chance.randint(0, 9) + lines[at].lstrip()
            case 4:
                words = re.findall(r"[\w.$-]+", lines[at]) or [" "]
                lines[at] = lines[at].replace(chance.choice(words), chance.choice(_WORDS), 1)
            case 5:
                words, theirs = (re.findall(r"[\w.$-]+", lines[line]) or [" "] for line in (at, other))
                lines[at] = lines[at].replace(chance.choice(words), chance.choice(theirs), 1)
            case 6:
                cut = chance.randint(0, len(lines[at]))
                lines[at] = lines[at][:cut] + chance.choice(_WORDS) + lines[at][cut:]
            case _:
                lines[at] = lines[at].partition(":")[0] + ": " + chance.choice(_WORDS)
        text = "\n".join(lines) or "x"
    return text


def check(folder: Path, times: int, seed: int) -> int:
    chance = random.Random(seed)
    shutil.copytree(EXAMPLE, folder / "config")
    shutil.copytree(ROOT / "projections", folder / "projections")
    names = sorted((folder / "config").rglob("*.yaml"))
    originals = {path: path.read_text() for path in names}
    main = folder / "config" / "gateway.yaml"
    accepted = 0
    for _ in range(times):
        victim = main if chance.random() < 0.8 else chance.choice(names)
        victim.write_text(mutated(originals[victim], chance))
        loaded = load(main, {})
        victim.write_text(originals[victim])
        if isinstance(loaded, Contract):
            accepted += 1
            continue
        assert loaded
        for refusal in loaded:
            assert refusal.line >= 1
            assert refusal.column >= 1
            assert refusal.message
            assert "\n" not in str(refusal)
    return accepted


def test_a_mutated_contract_is_accepted_or_refused_with_a_place(tmp_path: Path) -> None:
    assert 0 < check(tmp_path, 40, seed=1) < 40


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_mutated_contracts_are_accepted_or_refused_with_a_place(tmp_path: Path, seed: int) -> None:
    check(tmp_path, 1000, seed=100 + seed)
