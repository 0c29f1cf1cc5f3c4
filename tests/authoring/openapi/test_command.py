"""`toolview import openapi`: where the contract is put, what is said beside it, and how the command ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.contract.load import load
from gateway.contract.model import Contract
from tests.authoring.openapi.test_malformed import DESCRIPTIONS

PETS = str(DESCRIPTIONS / "petstore3.oas30.yaml")


def test_the_contract_is_printed_and_the_rest_is_said_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "openapi", PETS]) == 0
    printed, said = capsys.readouterr()
    (tmp_path / "gateway.yaml").write_text(printed)
    assert main(["check", str(tmp_path / "gateway.yaml")]) == 0
    lines = said.splitlines()
    assert lines[-1] == f"{PETS}: 19 of 19 operations imported, 8 of them as tools"
    assert (
        f"{PETS}: #/paths/~1pet~1{{petId}}~1uploadImage/post/requestBody: the body is application/octet-stream" in said
    )
    assert len(lines) == 7


def test_a_file_is_written_and_replaced_only_where_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pets.yaml"
    command = ["import", "openapi", PETS, "--only", "getPetById", "--output", str(file)]
    assert main(command) == 0
    assert capsys.readouterr().out == ""
    first = file.read_text()
    file.write_text("mine")
    assert main(command) == 2
    assert capsys.readouterr().err == f"toolview: --output: {file} is there already; --force replaces it\n"
    assert file.read_text() == "mine"
    assert main([*command, "--force"]) == 0
    assert file.read_text() == first
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_gets_its_schemas_in_a_file_of_their_own(there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "pets"
    if there:
        folder.mkdir()
    assert main(["import", "openapi", PETS, "--output", f"{folder}" if there else f"{folder}/"]) == 0
    assert {each.name for each in folder.iterdir()} == {"gateway.yaml", "schemas.yaml"}
    loaded = load(folder / "gateway.yaml", {})
    assert isinstance(loaded, Contract)
    assert len(loaded.endpoints) == 19
    assert loaded.warnings == ()
    assert "include: [schemas.yaml]\nbackends:\n" in (folder / "gateway.yaml").read_text()
    assert main(["import", "openapi", PETS, "--output", str(folder)]) == 2


def test_a_description_is_taken_from_a_pipe(tmp_path: Path) -> None:
    with open(PETS, "rb") as piped:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "import", "openapi", "-"], stdin=piped, capture_output=True, timeout=60
        )
    assert done.returncode == 0
    assert done.stdout.startswith(
        b"# Swagger Petstore - OpenAPI 3.0 1.0.27-SNAPSHOT, imported by `toolview import openapi`"
    )
    assert done.stderr.endswith(b"standard input: 19 of 19 operations imported, 8 of them as tools\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nothing.json"], 1, "toolview: nothing.json: there is no such file"),
        (["."], 1, "toolview: .: this is a folder; name a file in it"),
        ([str(DESCRIPTIONS / "MANIFEST.md")], 1, "this is no OpenAPI description: it is not a mapping"),
        ([PETS, "--only", "getPet"], 2, 'toolview: --only: there is no operation "getPet"; did you mean'),
        ([PETS, "--url", "ftp://x"], 2, "toolview: --url: write an http or https URL"),
        ([PETS, "--output", "/dev/null/x"], 1, "cannot be written: Not a directory"),
        ([PETS, "--output", "no/such/folder.yaml"], 1, "no/such/folder.yaml cannot be written: No such file"),
        ([PETS, "--output", "a\0b"], 1, "cannot be written: it is no path"),
    ],
)
def test_what_goes_wrong_is_one_line(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DESCRIPTIONS.parent)
    assert main(["import", "openapi", *words]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_nothing_of_it_is_imported_to_serve() -> None:
    code = "import sys, gateway.__main__, gateway.serve; print([each for each in sys.modules if 'authoring' in each])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.stdout == b"[]\n"


def test_it_is_completed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "words", "--", "import", ""]) == 0
    assert capsys.readouterr().out == "openapi\n"
    assert main(["completion", "words", "--", "import", "openapi", "--o"]) == 0
    assert capsys.readouterr().out == "--output\n--only\n--observe\n"
