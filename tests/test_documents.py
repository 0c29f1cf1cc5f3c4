"""The documents are true: links lead somewhere, contracts load, command lines can be read, defaults are the model's."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from gateway.__main__ import _parser
from gateway.call.hooks import AfterCall, BeforeCall, Refusal
from gateway.contract import model
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.surfaces.command_line import Misused, read_line
from gateway.surfaces.switches import CALL, PREVIEW
from tests.contract.configuration import GROUPS, table

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("config/*.md"), *ROOT.glob("bench/*.md")}
)


def links(document: Path) -> Iterator[tuple[str, str]]:
    """File and heading of each link that is no address."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, heading = target.partition("#")
            yield path, heading


def headings(document: Path) -> set[str]:
    """As code hosts make them: lower case, spaces to hyphens, what is no word gone."""
    found = re.findall(r"(?m)^#+ (.*)$", document.read_text())
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    for path, heading in links(document):
        target = (document.parent / path) if path else document
        assert target.exists(), f"{document.name}: {path}"
        assert not heading or heading in headings(target), f"{document.name}: {path}#{heading}"


#: What a reader copies from: contracts, commands and code.
PAGES = [path for path in DOCUMENTS if path.parent.name != "decisions" and path.name != "ARCHITECTURE.md"]


def blocks(kind: str) -> list[Any]:
    """Each fenced block of a kind, as a test's argument."""
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, text in enumerate(re.findall(rf"(?m)^```{kind}\n(.*?)^```", page.read_text(), re.DOTALL))
    ]


#: What a fragment leaves to its reader, of an endpoint and of the file.
REQUEST = {"request": "POST /notes", "description": "Adds a note."}
API = {"api": {"url": "http://127.0.0.1:9000"}}


def starts_at_the_top(text: str) -> bool:
    """Else it is a part of an endpoint; tests/demo/test_first_contract.py puts those into their page's contract."""
    return bool(set(yaml.safe_load(text)) & {"version", "gateway", "endpoints"})


@pytest.mark.parametrize("text", [block for block in blocks("yaml") if starts_at_the_top(block.values[0])])
def test_every_contract_loads_wherever_it_is_copied_to(tmp_path: Path, text: str) -> None:
    written = yaml.safe_load(text)
    if "version" not in written:
        endpoints = {name: {**REQUEST, **endpoint} for name, endpoint in written.get("endpoints", {"one": {}}).items()}
        text = yaml.safe_dump({"version": 1, "backends": API, **written, "endpoints": endpoints})
    (tmp_path / "mine.yaml").write_text(text)
    loaded = load(tmp_path / "mine.yaml")
    assert isinstance(loaded, Contract), "\n".join(map(str, loaded))
    assert "version" not in written or not loaded.warnings, "\n".join(map(str, loaded.warnings))


@pytest.mark.parametrize("text", blocks("python"))
def test_every_python_block_runs(text: str) -> None:
    exec(compile(text, "block", "exec"), {})


def test_the_hooks_of_the_page_do_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = [block.values[0] for block in blocks("python") if "def before" in block.values[0]]
    rules: dict[str, Any] = {}
    exec(text, rules)
    assert rules["before"](BeforeCall("create_person", "mcp", "1", {"team": "platform"})) is None
    with pytest.raises(Refusal, match="support"):
        rules["before"](BeforeCall("create_person", "mcp", "1", {"team": "support"}))
    rules["after"](AfterCall("create_person", "mcp", "1", {}, None, True, "ok", False, {}, 9, 4, 0.1, None))
    assert capsys.readouterr().out == "create_person ok 4\n"


def commands() -> list[Any]:
    """Each `toolview …` of a page, and whether it is a whole line that somebody copies."""
    found = []
    for page in PAGES:
        text = page.read_text()
        fenced = re.findall(
            r"(?m)^```(\w*)\n(.*?)^```", text, re.DOTALL
        )  # also the others, whose ends look like starts
        shell = [block for kind, block in fenced if kind in ("", "sh")]
        lines = [part for block in shell for part in re.split(r"\n|\||&&", block.replace("\\\n", " "))]
        whole = [line.partition(" #")[0].partition(" >")[0].strip() for line in lines]
        spans = re.findall(r"`(toolview [^`\n]+)`", re.sub(r"(?m)^```.*?^```", "", text, flags=re.DOTALL))
        told = [(line, True) for line in whole if line.startswith("toolview ")] + [(span, False) for span in spans]
        found += [pytest.param(line, copied, id=f"{page.name}-{line}") for line, copied in dict(told).items()]
    return found


class Unparsed(Exception):
    """What argparse would have said."""


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> argparse.ArgumentParser:
    def error(_: argparse.ArgumentParser, message: str) -> NoReturn:
        raise Unparsed(message)

    monkeypatch.setattr(argparse.ArgumentParser, "error", error)
    return _parser()


@pytest.mark.parametrize(("line", "copied"), commands())
def test_every_command_line_can_be_read(parser: argparse.ArgumentParser, line: str, copied: bool) -> None:
    words = shlex.split(re.sub(r"…|\|\w+|[\[\]]", "", line))[1:]
    try:
        arguments = parser.parse_args(words)
    except Unparsed as fault:
        if copied or "arguments are required" not in str(fault):  # in a sentence a command may be called by its name
            raise
        return
    switches = {"call": CALL, "preview": PREVIEW}.get(words[0])
    if switches is not None:
        properties = {"key": {"type": "string"}, "state": {"type": "string"}}
        read = read_line(arguments.words, properties, io.StringIO("{}"), switches)
        assert not isinstance(read, Misused), read.message


def test_the_readme_has_every_command_with_switches_that_it_has(parser: argparse.ArgumentParser) -> None:
    (known,) = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    rows = re.findall(r"(?m)^\| `toolview (\w+)[^`]*` \| (.*) \|$", (ROOT / "README.md").read_text())
    assert {command for command, _ in rows} == set(known)
    for command, told in rows:
        switches = re.findall(r"`(--[a-z-]+)", told)
        assert set(switches) <= set(known[command]._option_string_actions), command


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_a_page_tells_to_install_make_or_read_is_there(page: Path) -> None:
    text = page.read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"pip install '\.\[(\w+)\]'", text)) <= set(extras)
    assert "toolview[" not in text or page.name == "CHANGELOG.md"  # no package index has it
    targets = re.findall(r"(?m)^([a-z]+):.*##", (ROOT / "Makefile").read_text())
    assert set(re.findall(r"(?m)(?:^|`)make ([a-z]+)", text)) <= set(targets)
    named = re.findall(r"(?<![\w./-])((?:config|deploy|docs|projections|tests|bench)/(?!\.)[\w./-]*[\w/])", text)
    missing = {path for path in named if not (ROOT / path).exists()}
    assert missing <= {"deploy/kubernetes/toolview.env", "bench/results/"}, "the reader or a run makes these two alone"


@pytest.mark.parametrize("page", ["first-contract.md", "running.md"])
def test_what_you_see_when_it_stops_is_what_is_said(page: str) -> None:
    """The words of each row of the last table stand in the code, or in what a test expects of it."""
    places = [*(ROOT / "gateway").rglob("*.py"), *(ROOT / "tests" / "contract" / "invalid").glob("*.yaml")]
    code = "\n".join(path.read_text() for path in places)
    table = (ROOT / "docs" / page).read_text().rpartition("| you see |")[2]
    rows = re.findall(r"(?m)^\| (.*?) \| ", table)[1:]
    assert len(rows) > 4
    for row in rows:
        for said in re.findall(r"`([^`/]+)`", row):
            assert all(part.strip() in code for part in said.split("…")), said


def test_every_default_of_the_model_is_the_pages() -> None:
    """Also one that the page spells by hand, since JSON has another form for it."""
    for group, name in GROUPS.items():
        if not name:
            continue
        rows = re.findall(r"(?m)^\| `(\w+)` \|.*\| (.*?) \|$", table(group))
        told = {key: text.strip("`").replace("both", "[model, app]") for key, text in rows}
        for key, field in getattr(model, name).model_fields.items():
            held = field.default
            if field.is_required() or field.default_factory is not None or held in (None, (), {}):
                continue
            spelled = f"[{', '.join(held)}]" if isinstance(held, tuple) else str(held)
            assert told[field.alias or key] == (spelled.lower() if isinstance(held, bool) else spelled), (group, key)
