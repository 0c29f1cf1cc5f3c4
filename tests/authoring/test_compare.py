"""`toolview snapshot`, `diff` and `lint` as they are typed: files, formats, exit codes, no traceback for any input."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.authoring.annotate import Level, annotation
from tests.catalog.diffs import PAIRS

PAIR = next(pair for pair in PAIRS if pair.name.startswith("01-"))
WORDS = next(pair for pair in PAIRS if pair.name.startswith("12-"))
WIDER = next(pair for pair in PAIRS if pair.name.startswith("03-"))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    try:
        code = main([str(word) for word in words])
    except SystemExit as exits:  # argparse's way to say usage
        code = int(exits.code or 0)
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    return code, said.out, said.err


@pytest.fixture
def kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The older contract's snapshot in a file."""
    code, out, _ = run(capsys, "snapshot", PAIR / "old.yaml")
    assert code == 0
    file = tmp_path / "surface.json"
    file.write_text(out)
    return file


def test_contracts_and_snapshots_are_compared_alike(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_contract = run(capsys, "diff", PAIR / "old.yaml", PAIR / "new.yaml")
    by_snapshot = run(capsys, "diff", kept, PAIR / "new.yaml")
    assert by_contract == by_snapshot
    assert by_contract[1].endswith("3 breaking, 0 compatible, 0 docs\n")


def test_a_change_is_told_with_its_line_value_surfaces_and_consumers(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "diff", PAIR / "old.yaml", PAIR / "new.yaml")
    new = (PAIR / "new.yaml").read_text().splitlines()
    line = next(number for number, text in enumerate(new, 1) if "limit:" in text and "maximum" in text)
    assert out.splitlines()[:5] == [
        "breaking: orders.list input.limit: an old call may be 101 here, which breaks the new input's `maximum`",
        f"    {PAIR / 'new.yaml'}:{line}",
        "    as in 101",
        "    on agent, http, mcp",
        "    consumers: till, warehouse",
    ]


def test_json_has_every_fact(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "diff", PAIR / "old.yaml", PAIR / "new.yaml", "--format", "json")
    said = json.loads(out)
    assert (said["breaking"], said["compatible"], said["docs"]) == (3, 0, 0)
    change = said["changes"][0]
    assert change.pop("file").endswith("new.yaml")
    assert change.pop("line") > 1
    assert change == {
        "verdict": "breaking",
        "aspect": "input",
        "operation": "orders.list",
        "path": "input.limit",
        "message": "an old call may be 101 here, which breaks the new input's `maximum`",
        "surfaces": ["agent", "http", "mcp"],
        "consumers": ["till", "warehouse"],
        "counterexample": 101,
    }


def test_github_shows_each_change_at_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "diff", PAIR / "old.yaml", PAIR / "new.yaml", "--format", "github")
    lines = out.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert re.fullmatch(r"::error file=\S+new\.yaml,line=\d+,title=breaking%3A orders\.list input\.\w+::.*", line)
    assert lines[0].endswith("%0AAs in 101%0AConsumers: till, warehouse")
    _, out, _ = run(capsys, "diff", WORDS / "old.yaml", WORDS / "new.yaml", "--format", "github")
    assert all(line.startswith("::notice ") for line in out.splitlines())


def test_nothing_in_a_remark_starts_another_command() -> None:
    said = annotation(Level.ERROR, "a,b:c\n.yaml", 3, "t::x\n", "one\n::error::two 100%\r")
    assert said == "::error file=a%2Cb%3Ac%0A.yaml,line=3,title=t%3A%3Ax%0A::one%0A::error::two 100%25%0D"


@pytest.mark.parametrize(
    ("pair", "fail_on", "code"),
    [
        (PAIR, None, 0),
        (PAIR, "breaking", 1),
        (PAIR, "compatible", 1),
        (WIDER, "breaking", 0),
        (WIDER, "compatible", 1),
        (WORDS, "breaking", 0),
        (WORDS, "compatible", 0),
        (WORDS, "docs", 1),
    ],
)
def test_exit_codes(pair: Path, fail_on: str | None, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    more = [] if fail_on is None else ["--fail-on", fail_on]
    assert run(capsys, "diff", pair / "old.yaml", pair / "new.yaml", *more)[0] == code
    assert run(capsys, "diff", pair / "old.yaml", pair / "old.yaml", *more)[0] == 0


def test_a_snapshot_is_read_from_stdin(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stdin:
        buffer = io.BytesIO(kept.read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    code, out, _ = run(capsys, "diff", "-", PAIR / "old.yaml", "--fail-on", "docs")
    assert (code, out) == (0, "0 breaking, 0 compatible, 0 docs\n")


def test_a_contract_written_as_json_is_a_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract = {
        "version": 1,
        "backends": {"shop": {"url": "http://127.0.0.1:9"}},
        "endpoints": {"a.b": {"request": "GET /", "description": "Something.", "tool": {"safety_tier": "read"}}},
    }
    file = tmp_path / "contract.json"
    file.write_text(json.dumps(contract))
    assert run(capsys, "diff", file, file)[0] == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "the file cannot be read"),
        (b"", "this is not JSON"),
        (b"{}", "it has no `snapshotVersion`; write one with `toolview snapshot`"),
        (b'{"snapshotVersion": 99}', "is of a newer Toolview, and this one reads 1; write it anew"),
        (b'{"snapshotVersion": 0}', "is of an older Toolview, and this one reads 1; write it anew"),
        (b'{"snapshotVersion": 1, "formats": "annotate", "operations": [null]}', "this is no whole snapshot"),
        (b"\xff\xfe\x00", "this is not JSON"),
        (b"[" * 5000, "this is not JSON"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_cannot_be_compared_exits_2_with_a_sentence(
    content: bytes | None, says: str, first: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "surface.json"
    if content is not None:
        file.write_bytes(content)
    sides = [file, PAIR / "old.yaml"] if first else [PAIR / "old.yaml", file]
    code, out, err = run(capsys, "diff", *sides)
    assert (code, out) == (2, "")
    assert says in err


def test_a_refused_contract_exits_2_with_every_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("version: 2\nendpoint: {}\n")
    code, _, err = run(capsys, "diff", file, PAIR / "old.yaml")
    assert code == 2
    assert f"{file}:1:1: version: only version 1 is known" in err
    assert len(err.splitlines()) > 1
    assert run(capsys, "snapshot", file)[0] == 1
    assert run(capsys, "lint", file)[0] == 2


@pytest.mark.parametrize("name", [os.devnull, "/", "no\0such", ""])
def test_odd_names_are_told_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "diff", name, PAIR / "old.yaml")[0] == 2


def test_usage_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "diff")[0] == 2
    assert run(capsys, "diff", "a", "b", "--fail-on", "nothing")[0] == 2
    assert run(capsys, "tools", "--cost", "--compact")[0] == 2


def test_lint_as_it_is_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "lint", PAIR / "old.yaml")
    assert code == 1
    assert out.splitlines()[-1].endswith(" faults")
    code, out, _ = run(capsys, "lint", PAIR / "old.yaml", "--format", "json")
    assert {"file", "line", "column", "path", "rule", "message", "repair"} == json.loads(out)["faults"][0].keys()
    code, out, _ = run(capsys, "lint", PAIR / "old.yaml", "--format", "github")
    assert out.startswith("::warning file=")
    code, out, _ = run(capsys, "lint", tmp_path / "none.yaml", "--rules")
    assert code == 0
    assert "named-consumer: " in out
