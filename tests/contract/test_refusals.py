"""Every bad file of `invalid/` is refused with exactly the sentences, lines and columns that it expects of itself."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.refusal import Refusal, quoted
from tests.contract.refusals import FILES, expected, refused

#: Class 8 is a permission: a view or an output of another root loads (see test_load).
CLASSES = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11}


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_bad_file_is_refused_as_it_says(file: Path) -> None:
    assert expected(file), "a bad file says what it expects"
    assert refused(file) == expected(file)


def test_each_class_of_refusal_has_a_bad_file() -> None:
    covered = {int(found[1]) for file in FILES if (found := re.match(r"class-(\d\d)-", file.name))}
    assert covered == CLASSES


def test_every_sentence_is_one_line_and_says_what_to_do() -> None:
    for file in FILES:
        for line in expected(file):
            assert re.match(r"(\S+\.yaml:)?\d+:\d+: ", line), line
            assert not line.endswith((".", " ")), line


@pytest.mark.parametrize("name", ["", "nowhere.yaml", "a\0b", "x" * 5000, "."])
def test_a_path_that_is_no_contract_is_a_refusal(tmp_path: Path, name: str) -> None:
    loaded = load(tmp_path / name)
    assert not isinstance(loaded, Contract)
    assert len(loaded) == 1
    assert loaded[0].line == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02",
        b"\xff\xfe\x00a",
        b"\x89PNG\r\n\x1a\n",
        b"version: \xe9",
        b"[" * 100_000,
        b"{a: " * 100_000,
        b"- " * 100_000,
        b"&a [" * 50 + b"*a",
        b"a: " + b"9" * 100_000,
        b"? " * 5000,
        b"'" * 9999,
        b"# only a comment",
        b"--- 1\n--- 2",
        b"%YAML 9.9\n---\na: 1",
        "\u2028: \u2029".encode(),
    ],
    ids=range(16),
)
def test_no_bytes_make_more_than_refusals(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_bytes(content)
    loaded = load(file)
    assert not isinstance(loaded, Contract)
    assert loaded


def test_a_contract_that_is_too_large_is_a_refusal(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    with file.open("wb") as opened:
        opened.truncate(40 * 1024 * 1024)
    loaded = load(file)
    assert not isinstance(loaded, Contract)
    assert "include" in loaded[0].message


def test_a_refusal_reads_as_text_and_as_json(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("version: 1\nbackends: {api: {url: http://a, timout: 1s}}\nendpoints: {}\n")
    loaded = load(file)
    assert not isinstance(loaded, Contract)
    first = loaded[0]
    assert str(first).startswith(
        f"{file}:2:33: backends.api.timout: the key `timout` is unknown; did you mean `timeout`?"
    )
    assert first.as_json() == {
        "file": str(file),
        "line": 2,
        "column": 33,
        "path": "backends.api.timout",
        "message": first.message,
    }


def test_a_chain_of_references_without_end_is_no_traceback(tmp_path: Path) -> None:
    schemas = "".join(
        f"  S{n}: {{type: object, properties: {{a: {{$ref: '#/schemas/S{n + 1}'}}}}}}\n" for n in range(1500)
    )
    text = "version: 1\nbackends: {api: {url: 'http://a'}}\nschemas:\n" + schemas + "  S1500: {type: string}\n"
    view = "tool: {view: {output: {type: object, properties: {a: {type: object}}}}}"
    text += f"endpoints: {{a: {{request: GET /a, description: A., output: {{$ref: '#/schemas/S0'}}, {view}}}}}\n"
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    loaded = load(file)
    # Served where the chain did not have to be followed to its end.
    assert isinstance(loaded, Contract) or any("too many levels" in refusal.message for refusal in loaded)


def test_an_included_file_that_cannot_be_read_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "gone.inc").symlink_to(tmp_path / "nowhere")
    contract = tmp_path / "gateway.yaml"
    contract.write_text("version: 1\ninclude: [gone.*]\nbackends: {}\nendpoints: {}\n")
    loaded = load(contract)
    assert not isinstance(loaded, Contract)
    found = [refusal for refusal in loaded if refusal.line == 2]
    assert len(found) == 1
    assert (found[0].column, found[0].path) == (11, "include[0]")
    assert found[0].message.startswith('"nowhere": there is no such file')


def test_a_file_of_thousands_of_faults_takes_time_in_proportion(tmp_path: Path) -> None:
    def seconds(endpoints: int) -> float:
        contract = tmp_path / "gateway.yaml"
        faulty = "".join(f"  e{i}: {{request: 'GET /x/{{id}}', descripton: x}}\n" for i in range(endpoints))
        contract.write_text(f"version: 1\nbackends: {{b: {{url: http://127.0.0.1:1}}}}\nendpoints:\n{faulty}")
        began = time.process_time()
        assert len(load(contract)) == 3 * endpoints  # type: ignore[arg-type]
        return time.process_time() - began

    seconds(10)
    assert seconds(2000) < 20 * seconds(200)


def test_what_is_cut_keeps_its_quotation_mark_and_a_name_of_two_lines_stays_on_one() -> None:
    assert re.fullmatch(r'"a+\.\.\."', quoted("a" * 100))
    assert quoted("a" * 100).count('"') == 2
    assert len(quoted("a" * 100)) <= 60
    assert str(Refusal("a\nb.yaml", 1, 1, "", "x")) == "a\\u000ab.yaml:1:1: x"
