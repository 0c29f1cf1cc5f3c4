"""docs/first-contract.md keeps its word: each contract that it shows loads, and makes the card it speaks of."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import yaml

from gateway.authoring.lint import lint
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.once import Streams, call_once
from tests.rig import backend, http

PAGE = (Path(__file__).parents[2] / "docs" / "first-contract.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
ANSWER = next(text for kind, text in BLOCKS if kind == "json").encode()
FIRST, SLICE, PROJECTED, PYTHON = (text for kind, text in BLOCKS if kind == "yaml")
MODULE = next(text for kind, text in BLOCKS if kind == "python")


async def card(folder: Path, change: str, *words: str) -> Any:
    """The page's contract with a later block's keys in the places of its own, called once."""
    async with backend(lambda _: http(ANSWER)) as api:
        contract = yaml.safe_load(FIRST.replace("http://127.0.0.1:9100", api.url))
        endpoint = contract["endpoints"]["queues.list"]
        endpoint.update(yaml.safe_load(change) or {})
        (folder / "gateway.yaml").write_text(yaml.safe_dump(contract))
        loaded = load(folder / "gateway.yaml")
        assert isinstance(loaded, Contract), [str(fault) for fault in loaded]
        assert [str(warning) for warning in loaded.warnings] == []
        called = await call_once(loaded, "list_queues", words, Streams(io.StringIO(), io.StringIO(), io.StringIO()))
    assert isinstance(called, tuple)
    outcome, _ = called
    assert outcome.ok, outcome.envelope()
    return outcome.value


async def test_the_first_contract_answers_what_output_declares(tmp_path: Path) -> None:
    first, second = await card(tmp_path, "")
    assert first == {
        "name": "orders", "state": "running", "messages": 4, "consumers": 1,
        "message_stats": {"publish_details": {"rate": 0.4}},
    }  # fmt: skip
    assert second["name"] == "invoices"


async def test_the_slice_has_fewer_keys(tmp_path: Path) -> None:
    assert await card(tmp_path, SLICE) == [{"name": "orders", "messages": 4}, {"name": "invoices", "messages": 0}]


async def test_the_projection_is_null_where_a_key_is_missing(tmp_path: Path) -> None:
    assert await card(tmp_path, PROJECTED) == {
        "queues": [
            {"name": "orders", "depth": 4, "per_second": 0.4},
            {"name": "invoices", "depth": 0, "per_second": None},
        ]
    }


async def test_the_function_filters_by_an_argument(tmp_path: Path) -> None:
    (tmp_path / "broker.py").write_text(MODULE)
    change = re.sub(r"        project:.*\n", PYTHON, PROJECTED)
    assert await card(tmp_path, change, "--state", "idle") == {"queues": [{"name": "invoices", "depth": 0}]}


def rules_broken(path: Path) -> set[str]:
    found = lint(path)
    assert not isinstance(found, tuple)
    return {fault.rule for fault in found.faults}


async def test_lint_says_what_the_page_says_it_does(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(FIRST)
    assert rules_broken(path) == {"large-output"}
    await card(tmp_path, PROJECTED)
    assert rules_broken(path) == set()
