"""Each rule of the tool surface on tools that break it and tools that keep it, at its line, and allowed in place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.authoring.lint import Fault, Loaded, as_annotations, lint
from gateway.authoring.rules import RULES
from tests.rig import contract_at

ROOT = Path(__file__).parent.parent.parent

HEAD = """version: 1
backends: {shop: {url: "http://127.0.0.1:9"}}
endpoints:
  orders.list:
"""
GOOD = {
    "request": "GET /orders",
    "description": "Orders of a customer. Call it to find an order's id; the customer comes from find_customer."
    " Not for invoices.",
    "consumers": "[till]",
    "input": "{type: object, required: [customer], properties: {"
    "customer: {type: string, maxLength: 40, description: Slug as find_customer shows it},"
    " states: {type: array, maxItems: 3, items: {enum: [open, paid]}, description: Only orders in these}}}",
    "output": "{type: object, properties: {total: {type: integer}}}",
    "tool": "{safety_tier: read}",
}


def linted(folder: Path, text: str, files: Mapping[str, str] | None = None) -> tuple[Fault, ...]:
    contract_at(folder, text, files)
    found = lint(folder / "gateway.yaml")
    assert isinstance(found, Loaded), "\n".join(map(str, found))
    return found.faults


def tool(**changed: str) -> str:
    return HEAD + "".join(f"    {key}: {value}\n" for key, value in {**GOOD, **changed}.items() if value)


def argument(schema: str, name: str = "q") -> str:
    return f"{{type: object, properties: {{{name}: {schema}}}}}"


def test_a_tool_that_says_what_a_model_needs_has_no_fault(tmp_path: Path) -> None:
    assert linted(tmp_path, tool()) == ()


BROKEN = [
    ("description-when", {"description": "Orders of a customer, not invoices."}),
    ("description-how", {"description": "All orders. Call it early. Not for invoices.", "input": (
        "{type: object, properties: {since: {type: string, format: date, description: First day},"
        " until: {type: string, format: date, description: Last day}}}")}),
    ("description-when-not", {"description": "Orders of a customer. Call it with a customer's slug."}),
    ("argument-described", {"input": argument("{type: string, maxLength: 9}")}),
    ("argument-described", {"input": argument("{type: string, maxLength: 9, description: ' '}")}),
    ("argument-described", {"input": argument("{enum: [a, b], description: The customer id}", "customerId")}),
    ("argument-described", {"request": "POST /orders", "input": argument(
        "{type: object, description: What to look for, properties: {deep: {type: integer}}}")}),
    ("required-first", {"input": "{type: object, required: [b], properties: {a: {type: integer, description: First},"
     " b: {type: integer, description: Second one}}}"}),
    ("closed-set", {"input": argument("{type: string, maxLength: 9, description: 'One of open, paid, sent'}")}),
    ("closed-set", {"input": argument("{type: string, maxLength: 9, description: 'State: open, paid or sent.'}")}),
    ("closed-set", {"input": argument("{type: string, maxLength: 9, description: 'State, \"open\" or \"paid\"'}")}),
    ("closed-set", {"input": argument("{type: string, maxLength: 9, description: asc|desc order of rows}")}),
    ("string-bounds", {"input": argument("{type: string, description: Text to look for}")}),
    ("string-bounds", {"input": argument("{type: [string, 'null'], minLength: 1, description: Text to look for}")}),
    ("list-bounds", {"input": argument("{type: array, items: {type: integer}, description: Numbers to look for}")}),
    ("list-bounds", {"input": argument("{type: array, items: {enum: [a, b]}, description: Parts to look for}")}),
    ("large-output", {"output": "{type: array, items: {type: integer}}"}),
    ("large-output", {"output": "{type: object}"}),
    ("large-output", {"output": "{type: array, maxItems: 1000, items: {type: string}}"}),
    ("large-output", {"output": '{"200": {type: object, properties: {}}, "201": {type: array}}'}),
    ("large-output", {"output": "{type: array, items: {type: integer}}",
                      "input": argument("{type: integer, description: How many}"),
                      "tool": "{safety_tier: read, view: {defaults: {q: 1}}}"}),
    ("int64-id", {"output": "{type: object, properties: {order_id: {type: integer}}}"}),
    ("int64-id", {"output": "{type: object, properties: {orderId: {type: [integer, 'null']}}}"}),
    ("int64-id", {"output": "{type: object, properties: {stamp: {type: integer, format: int64}}}"}),
    ("int64-id", {"input": argument("{type: integer, description: The order to show}", "id")}),
    ("named-consumer", {"consumers": ""}),
    ("safety-tier", {"request": "DELETE /orders", "tool": "{safety_tier: read}"}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "changed"), BROKEN, ids=lambda value: value if isinstance(value, str) else "")
def test_a_broken_rule_is_told_and_no_other(rule: str, changed: dict[str, str], tmp_path: Path) -> None:
    assert {fault.rule for fault in linted(tmp_path, tool(**changed))} == {rule}


KEPT = [
    {"input": argument("{enum: [open, paid], description: 'One of open, paid'}")},
    {"input": argument("{type: string, pattern: '^[a-z]{1,9}$', description: Slug of a shop}")},
    {"input": argument("{type: string, format: date, description: First day}")},
    {"input": argument("{type: array, uniqueItems: true, items: {enum: [a, b]}, description: Parts to load}")},
    {"input": argument("{type: integer, maximum: 9007199254740991, description: The order to show}", "id")},
    {"output": "{type: array, maxItems: 20, items: {type: integer}}"},
    {"output": "{type: array, items: {type: integer}}", "tool": "{safety_tier: read, view: {budget: 4KiB,"
     " defaults: {customer: me}}}"},
    {"output": "{type: object, properties: {rows: {type: array, items: {type: string}}, total: {type: integer}}}",
     "tool": "{safety_tier: read, view: {output: {type: object, properties: {total: {type: integer}}}}}"},
    {"output": "{type: object, properties: {order_id: {type: integer}, name: {type: string}}}",
     "tool": "{safety_tier: read, view: {output: {type: object, properties: {name: {type: string}}}}}"},
    {"output": "{type: object, properties: {width: {type: integer}, valid: {type: integer}, paid: {type: integer}}}"},
    {"output": "", "description": "Starts the night run. Call it once a day. Never twice.", "input": ""},
    {"expose": "[http]", "tool": "", "description": "Anything.", "consumers": ""},
]  # fmt: skip


@pytest.mark.parametrize("changed", KEPT)
def test_what_keeps_a_rule_is_not_told(changed: dict[str, str], tmp_path: Path) -> None:
    assert linted(tmp_path, tool(**changed)) == ()


def test_each_rule_has_a_tool_that_breaks_it() -> None:
    assert {rule for rule, _ in BROKEN} == {rule.id for rule in RULES}
    for rule in RULES:
        assert rule.asks
        assert rule.reason
        assert rule.repair


# places

REFERS = tool(input="{$ref: 'schemas/search.yaml'}")
SEARCH = """type: object
properties:
  text: {type: string, description: Words to look for}
  near: {$ref: "#/$defs/Near"}
$defs:
  Near:
    type: object
    description: Where to look first
    properties:
      city: {type: string}
"""


def test_a_fault_is_at_its_own_file_line_and_column(tmp_path: Path) -> None:
    found = linted(tmp_path, REFERS.replace("GET /orders", "POST /orders"), {"schemas/search.yaml": SEARCH})
    told = [(Path(fault.file).name, fault.line, fault.column, fault.path, fault.rule) for fault in found]
    assert told == [
        ("search.yaml", 3, 3, "properties.text", "string-bounds"),
        ("search.yaml", 10, 7, "$defs.Near.properties.city", "argument-described"),
        ("search.yaml", 10, 7, "$defs.Near.properties.city", "string-bounds"),
    ]


def test_a_fault_in_a_shared_schema_is_told_once(tmp_path: Path) -> None:
    text = REFERS.replace("GET /orders", "POST /orders")
    twice = text + text.partition("endpoints:\n")[2].replace("orders.list", "orders.find")
    files = {"schemas/search.yaml": SEARCH}
    assert len(linted(tmp_path, twice, files)) == len(linted(tmp_path, text, files)) == 3


def test_a_recursive_schema_ends(tmp_path: Path) -> None:
    tree = (
        "{type: object, properties: {kids: {type: array, maxItems: 2, description: Nodes below, items: {$ref: '#'}}}}"
    )
    assert linted(tmp_path, tool(request="POST /orders", input=tree)) == ()


# allowing

BAD = argument("{type: string, description: Text to look for}")


def rules(faults: tuple[Fault, ...]) -> list[tuple[int, str]]:
    return [(fault.line, fault.rule) for fault in faults]


@pytest.mark.parametrize(
    "text",
    [
        tool(input=f"{BAD} # lint: allow string-bounds the backend cuts it"),
        tool(input=BAD).replace("  orders.list:", "  orders.list: # lint: allow string-bounds the backend cuts it"),
        tool(input=BAD).replace("endpoints:", "endpoints: # lint: allow string-bounds the backend cuts it"),
        tool(input=BAD).replace(
            "    input", "    # lint: allow string-bounds the backend cuts it\n    # so\n    input"
        ),
        tool(input=BAD).replace("    input", "    #lint:allow string-bounds the backend cuts it\n    input"),
    ],
)
def test_a_comment_with_a_reason_allows_a_rule_for_its_key_and_all_below(text: str, tmp_path: Path) -> None:
    assert linted(tmp_path, text) == ()


def test_a_comment_at_a_reference_covers_what_it_leads_to(tmp_path: Path) -> None:
    allowing = "{$ref: 'schemas/search.yaml'} # lint: allow string-bounds the backend cuts them"
    text = tool(request="POST /orders", input=allowing)
    assert {fault.rule for fault in linted(tmp_path, text, {"schemas/search.yaml": SEARCH})} == {"argument-described"}
    inside = SEARCH.replace("  Near:", "  Near: # lint: allow argument-described any city")
    assert linted(tmp_path, text, {"schemas/search.yaml": inside}) == ()


def test_a_comment_elsewhere_allows_nothing_and_is_told_itself(tmp_path: Path) -> None:
    text = tool(input=BAD).replace("    output", "    # lint: allow string-bounds the backend cuts it\n    output")
    assert rules(linted(tmp_path, text)) == [(8, "string-bounds"), (9, "allow-unused")]


def test_a_reason_is_asked_for(tmp_path: Path) -> None:
    text = tool(input=f"{BAD} # lint: allow string-bounds")
    assert rules(linted(tmp_path, text)) == [(8, "string-bounds"), (8, "allow-reason")]


@pytest.mark.parametrize(
    ("comment", "says"),
    [
        ("# lint: allow strings-bounds because", "there is no rule `strings-bounds`; did you mean `string-bounds`?"),
        ("# lint: allow", "no rule is named; the rules are description-when"),
        ("# lint: allow allow-unused because", "there is no rule `allow-unused`"),
    ],
)
def test_an_unknown_rule_is_told_with_the_nearest(comment: str, says: str, tmp_path: Path) -> None:
    (fault,) = linted(tmp_path, tool(consumers=f"[till] {comment}"))
    assert fault.rule == "allow-unknown"
    assert says in str(fault)


@pytest.mark.parametrize("written", ['"Text # lint: allow string-bounds x"', "'It''s # lint: allow string-bounds x'"])
def test_text_that_looks_like_a_comment_is_none(written: str, tmp_path: Path) -> None:
    text = tool(input=argument(f"{{type: string, description: {written}}}"))
    assert rules(linted(tmp_path, text)) == [(8, "string-bounds")]


def test_an_apostrophe_in_plain_text_hides_no_comment(tmp_path: Path) -> None:
    text = tool(input=argument("{type: string, description: A customer's words}") + " # lint: allow string-bounds so")
    assert linted(tmp_path, text) == ()


@pytest.mark.parametrize("name", ["\N{BOM}", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_and_a_byte_order_mark_change_nothing(name: str, end: str, tmp_path: Path) -> None:
    text = name + tool(input=f"{BAD} # lint: allow string-bounds the backend cuts it").replace("\n", end)
    (tmp_path / "gateway.yaml").write_bytes(text.encode())
    found = lint(tmp_path / "gateway.yaml")
    assert isinstance(found, Loaded)
    assert found.faults == ()


def test_a_refused_contract_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text("version: 2\n")
    assert not isinstance(lint(tmp_path / "gateway.yaml"), Loaded)


def test_the_page_of_rules_names_each_with_its_reason_and_repair() -> None:
    page = (ROOT / "docs" / "lint.md").read_text()
    for rule in RULES:
        assert f"| `{rule.id}` | {rule.asks} | {rule.reason} | {rule.repair.replace('|', chr(92) + '|')} |" in page
    for name in ("allow-reason", "allow-unknown", "allow-unused"):
        assert f"`{name}`" in page


def test_faults_are_json_too(tmp_path: Path) -> None:
    (fault,) = linted(tmp_path, tool(consumers=""))
    assert json.loads(json.dumps(fault.as_json()))["rule"] == "named-consumer"


def test_a_fault_of_a_comment_is_annotated_without_a_path(tmp_path: Path) -> None:
    (fault,) = linted(tmp_path, tool(consumers="[till] # lint: allow named-consumer one is named"))
    assert (fault.rule, fault.path) == ("allow-unused", "")
    assert as_annotations((fault,)).endswith(f"title=allow-unused::{fault.message}; {fault.repair}")
