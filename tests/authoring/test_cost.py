"""What listing each tool costs, and what a call costs by its examples: the bytes that the surfaces answer with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gateway import json_text
from gateway.__main__ import main
from gateway.authoring.cost import CallCost, Costs, compact_listing, costs
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.generation import index
from tests.rig import accepted

ROOT = Path(__file__).parent.parent.parent

CONTRACT = """
version: 1
gateway: {hooks: {before: "hooks:refuse"}}
backends: {shop: {url: "http://127.0.0.1:9"}}
endpoints:
  orders.list:
    request: GET /orders
    description: Orders.
    input: {type: object, properties: {limit: {type: integer}}}
    output: {type: object, required: [orders], properties: {orders: {type: array, items: {type: object,
      properties: {id: {type: integer}, note: {type: string}}}}}}
    examples:
      - {title: two orders, arguments: {limit: 2}, answer: {orders: [{id: 1, note: a long note}, {id: 2, note: ""}]}}
      - {title: no answer}
      - {title: over its budget, answer: {orders: [{id: 123456789012345}, {id: 123456789012345}, {id: 1234567890123}]}}
      - {title: refused, status: 404, answer: {error: none}}
    tool:
      safety_tier: read
      view:
        output: {type: object, properties: {ids: {type: array, items: {type: integer}}}}
        project: PROJECT
        budget: 40
  orders.raw:
    request: GET /raw
    description: Bytes.
    kind: raw
  orders.cli:
    request: GET /cli
    description: For people at a terminal.
    expose: [cli]
    output: {type: object}
    examples: [{answer: {a: 1}}]
    tool: {safety_tier: read}
"""
HOOKS = "def refuse(call):\n    raise RuntimeError('a hook may act, so none is run')\n"
PYTHON = "def ids(full, ctx):\n    return {'ids': [order['id'] for order in full['orders']]}\n"


def contract(folder: Path, project: str) -> Contract:
    files = {"hooks.py": HOOKS, "cards.py": PYTHON}
    return accepted(folder, CONTRACT.replace("PROJECT", project), files)


@pytest.mark.parametrize("project", ['{jmespath: "{ids: full.orders[].id}"}', '{python: "cards:ids"}'])
def test_examples_run_through_the_path_of_a_call(project: str, tmp_path: Path) -> None:
    found = asyncio.run(costs(contract(tmp_path, project)))
    full = len(b'{"orders":[{"id":1,"note":"a long note"},{"id":2,"note":""}]}')
    assert found.called[0] == CallCost(
        "orders_list", "two orders", len(b'{"limit":2}'), full, len(b'{"ids":[1,2]}'), "ok"
    )
    assert [(call.title, call.code) for call in found.called[1:]] == [
        ("over its budget", "ANSWER_OVER_BUDGET"),
        ("refused", "NOT_FOUND"),
        ("", "ok"),
    ]


def test_listing_costs_what_the_surfaces_answer(tmp_path: Path) -> None:
    made = contract(tmp_path, '{jmespath: "{ids: full.orders[].id}"}')
    found = asyncio.run(costs(made))
    assert [row.tool for row in found.listed] == ["orders_list"]
    (tool,) = index(made).catalog("mcp", None).tools
    assert found.listed[0].mcp == len(json_text.encode(tool.mcp()))
    assert found.total.compact == len(compact_listing(made))
    for list_ in ("standard", "compact", "mcp"):
        assert getattr(found.total, list_) == getattr(found.listed[0], list_) + len(b'{"tools":[]}')


def test_the_worked_example_is_listed_for_less_in_short() -> None:
    loaded = load(ROOT / "config" / "gateway.yaml")
    assert isinstance(loaded, Contract)
    found = asyncio.run(costs(loaded))
    assert isinstance(found, Costs)
    assert len(found.listed) == len(index(loaded).catalog("mcp", None).tools)
    assert all(row.compact < row.standard for row in found.listed)


def test_as_it_is_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract(tmp_path, '{jmespath: "{ids: full.orders[].id}"}')
    file = str(tmp_path / "gateway.yaml")
    assert main(["tools", file, "--cost"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["tool", "standard", "compact", "mcp"]
    assert lines[3].startswith("the whole list  ")
    assert lines[-4].split()[:5] == ["orders_list", "11", "61", "13", "21"]
    assert main(["tools", file, "--cost", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"listed", "total", "called"}
    assert main(["tools", file, "--compact"]) == 0
    assert [tool["toolId"] for tool in json.loads(capsys.readouterr().out)["tools"]] == ["mcp:orders_list"]


def test_a_contract_without_examples_or_tools_has_costs_too(tmp_path: Path) -> None:
    endpoint = "{request: GET /, description: A, expose: [http]}"
    bare = f"version: 1\nbackends: {{a: {{url: 'http://127.0.0.1:9'}}}}\nendpoints: {{a: {endpoint}}}"
    found = asyncio.run(costs(accepted(tmp_path, bare)))
    assert (found.listed, found.called, found.total.compact) == ((), (), len(b'{"tools":[]}'))
