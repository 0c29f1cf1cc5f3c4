"""The worked example and the README keep their word: both contracts load, and each figure is what a call gives."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.authoring.lint import Loaded as Linted
from gateway.authoring.lint import lint
from gateway.call.outcome import Outcome
from gateway.contract.load import json_schema, load
from gateway.contract.model import Contract
from gateway.demo import backend
from gateway.once import Streams, call_once
from gateway.preview import preview

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
FIRST_CONTRACT = README.partition("```yaml\n")[2].partition("```")[0]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    runner, port = await backend.start("127.0.0.1", 0)
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
def contract(url: str, tmp_path: Path) -> Contract:
    """The worked example as it stands, but for the demo's port."""
    shutil.copytree(ROOT / "projections", tmp_path / "projections")
    text = (ROOT / "config" / "gateway.yaml").read_text()
    return _load(tmp_path, text.replace("http://127.0.0.1:9000", url))


def _load(folder: Path, text: str) -> Contract:
    for name in ("schemas", "ui"):
        shutil.copytree(ROOT / "config" / name, folder / "config" / name)
    (folder / "config" / "gateway.yaml").write_text(text)
    loaded = load(folder / "config" / "gateway.yaml")
    assert isinstance(loaded, Contract), "\n".join(str(refusal) for refusal in loaded)
    return loaded


async def _call(contract: Contract, tool: str, **arguments: Any) -> Outcome:
    called = await call_once(
        contract, tool, ["--json", json.dumps(arguments)], Streams(io.StringIO(), io.StringIO(), io.StringIO())
    )
    assert isinstance(called, tuple)
    outcome, _ = called
    return outcome


def test_the_readme_shows_a_contract_of_twelve_lines_that_loads(tmp_path: Path) -> None:
    assert FIRST_CONTRACT.count("\n") == 12
    (tmp_path / "mine.yaml").write_text(FIRST_CONTRACT)  # wherever a reader puts it
    loaded = load(tmp_path / "mine.yaml")
    assert isinstance(loaded, Contract), "\n".join(str(refusal) for refusal in loaded)
    assert list(loaded.endpoints) == ["people.list"]
    assert loaded.warnings == ()


def test_the_worked_example_loads_without_a_warning(contract: Contract) -> None:
    assert [str(warning) for warning in contract.warnings] == []


async def test_the_worked_example_can_be_previewed_without_its_backend(contract: Contract) -> None:
    shown = await preview(contract, "create_person", [], io.StringIO())
    assert isinstance(shown, Outcome)
    assert shown.value["view"] == {
        "id": "1958243588086276999",
        "name": "Ada Park",
        "team": "support",
        "welcome_mail": False,
    }


def test_the_worked_example_is_clean_under_our_own_lint() -> None:
    assert lint(ROOT / "config" / "gateway.yaml") == Linted(())


async def test_the_readme_says_how_many_bytes_each_way_takes(contract: Contract, url: str) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/people/platform") as answer:
        plain = len(await answer.read())
    outcome = await _call(contract, "list_people", team="platform")
    agent_answer = b'{"ok":true,"data":%b}' % (outcome.body or b"")
    assert re.findall(r"# ([\d,]+)\n", README) == [f"{plain:,}", f"{len(agent_answer):,}"]
    assert f"answered {outcome.full_bytes:,} bytes" in README.replace("\n", " ")


async def test_the_list_is_a_card_for_everyone_and_loads_no_blocks(contract: Contract, url: str) -> None:
    outcome = await _call(contract, "list_people", team="platform")
    assert outcome.ok
    assert len(outcome.value["people"]) == outcome.value["total"] == 63
    assert list(outcome.value["people"][0]) == ["id", "name", "title", "office", "email", "manager_id", "tags"]
    async with aiohttp.ClientSession() as client, client.get(f"{url}/debug/loads") as answer:
        loads = await answer.json()
    assert (loads["stats"], loads["history"]) == (0, 0)
    assert loads["last"] == "GET /people/platform?include=&limit=100"


async def test_a_person_found_by_search_can_be_asked_for(contract: Contract) -> None:
    found = (await _call(contract, "search_people", query="mentor", team="support")).value["people"][0]
    assert found["found_in"] == ["tags"]
    person = (await _call(contract, "get_person", team="support", id=found["id"])).value
    assert person["name"] == found["name"]
    assert list(person["stats"]) == ["tickets"]
    assert "ssn" not in person


async def test_a_created_person_gets_no_mail_unless_it_is_asked_for(contract: Contract) -> None:
    new = {"team": "support", "name": "Zoë Ångström", "email": "zoe@directory.example"}
    outcome = await _call(contract, "create_person", **new)
    assert outcome.ok
    assert outcome.value["welcome_mail"] is False
    again = await _call(contract, "create_person", **new)
    assert again.failure is not None
    assert (again.failure.code, again.failure.status) == ("EMAIL_TAKEN", 409)
    assert "search_people" in str(again.failure.hint)


async def test_a_broken_backend_is_told_as_one(contract: Contract) -> None:
    outcome = await _call(contract, "broken_report")
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.retryable) == ("BACKEND_ERROR", False)
    assert outcome.failure.details["backend_status"] == 500


async def test_a_slow_backend_outruns_the_deadline(contract: Contract) -> None:
    outcome = await _call(contract, "slow_report", seconds=30)
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.retryable) == ("BACKEND_TIMEOUT", True)


def test_the_schema_that_editors_are_given_is_the_grammar_of_now() -> None:
    """After a change of the grammar: `toolview schema > config/gateway.schema.json`."""
    written = json.loads((ROOT / "config/gateway.schema.json").read_text())
    assert written == json.loads(json.dumps(json_schema()))
    first, _, _ = (ROOT / "config/gateway.yaml").read_text().partition("\n")
    assert first == "# yaml-language-server: $schema=gateway.schema.json"
