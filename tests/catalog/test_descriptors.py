"""OpenWOP descriptors: what RFC 0112 shows as right and wrong, the fields, the short form and its description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog.descriptors import Described, described, discovery, listing, shortened
from gateway.contract.model import Contract
from gateway.generation import index
from tests.catalog.openwop_schemas import COMPACT, DISCOVERED, STANDARD
from tests.rig import accepted
from tests.schema.test_widen import assert_compact, banned

Json = Any

#: Both from RFC 0112, "Examples".
POSITIVE: Json = {
    "tools": [
        {
            "toolId": "mcp:search.web",
            "source": "mcp",
            "safetyTier": "read",
            "title": "Web search",
            "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        }
    ]
}


def test_the_positive_example_is_compact() -> None:
    (tool,) = POSITIVE["tools"]
    assert COMPACT.check(tool) == []
    assert_compact(tool["inputSchema"])


@pytest.mark.parametrize("keyword", ["$ref", "oneOf", "allOf", "anyOf", "not", "patternProperties", "dependentSchemas"])
def test_the_negative_examples_are_refused_at_the_top_and_found_below(keyword: str) -> None:
    (tool,) = POSITIVE["tools"]
    top = {**tool["inputSchema"], keyword: {}}
    assert COMPACT.check({**tool, "inputSchema": top})
    below = {"type": "object", "properties": {"q": {"items": {"additionalProperties": {keyword: {}}}}}}
    assert not COMPACT.check({**tool, "inputSchema": below}), "the schema alone is a floor"
    assert banned(below) == {keyword}


@pytest.mark.parametrize("field", ["outputSchema", "auth", "egress", "approval", "replayPolicy", "costHint", "note"])
def test_a_heavy_field_is_not_compact(field: str) -> None:
    assert COMPACT.check({**POSITIVE["tools"][0], field: {}})


@pytest.mark.parametrize("schema", [STANDARD, COMPACT])
def test_only_a_host_extension_may_be_exec(schema: Any) -> None:
    tool = {"toolId": "mcp:sh", "source": "mcp", "safetyTier": "exec"}
    assert schema.check(tool)
    assert schema.check({**tool, "source": "host-extension"}) == []


CONTRACT = """
    version: 1
    gateway: {catalog: {description: 40}, auth: {keys: [{name: k, sha256: "%s"}]}}
    backends:
      api: {url: http://127.0.0.1:1, auth: {bearer: "s3cr3t-of-the-backend"}}
      plain: {url: http://127.0.0.1:2, headers: {X-Team: red}}
    endpoints:
      find:
        backend: api
        request: GET /find
        scopes: [b, a]
        description: |
          Finds people by name.  Call it first,
          then ask for one of them by id.
        input:
          type: object
          oneOf:
            - {properties: {id: {type: integer}}, required: [id]}
            - {properties: {name: {$ref: "#/schemas/Name"}}, required: [name]}
        output: {type: object, properties: {hits: {type: integer}}}
        tool: {title: Find people, safety_tier: read, cost: low, latency: high}
      make:
        backend: plain
        request: POST /make
        description: Makes one.
        tool: {mcp: {confirm: "Really?"}}
      run:
        backend: plain
        request: POST /run
        description: Runs one.
        tool: {safety_tier: exec}
    schemas: {Name: {type: string, minLength: 1, description: "A name, as long as it takes, of whoever is meant."}}
""" % ("0" * 64)


def tools_of(contract: Contract) -> dict[str, Described]:
    generation = index(contract)
    found = {}
    for endpoint in generation.visible("mcp", None):
        assert endpoint.tool is not None
        advertised = generation.catalog("mcp", None).by_name[endpoint.tool.name]
        backend = contract.backends[endpoint.backend]
        limit = contract.gateway.catalog.description
        found[endpoint.id] = described(endpoint, advertised, backend, characters=limit)
    return found


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Described]:
    return tools_of(accepted(tmp_path, CONTRACT))


def test_every_descriptor_satisfies_its_schema(tools: dict[str, Described]) -> None:
    for tool in tools.values():
        assert STANDARD.check(json.loads(tool.standard)) == []
        compact = json.loads(tool.compact)
        assert COMPACT.check(compact) == []
        assert_compact(compact["inputSchema"])


def test_a_standard_descriptor_says_what_the_contract_declares(tools: dict[str, Described]) -> None:
    shown = json.loads(tools["find"].standard)
    assert shown["toolId"] == "mcp:find"
    assert shown["source"] == "mcp"
    assert shown["title"] == "Find people"
    assert shown["auth"] == {"scopes": ["a", "b"], "credentialRef": True}
    assert shown["egress"] == "host-mediated"
    assert shown["approval"] == "never"
    assert shown["replayPolicy"] == "idempotent"
    assert (shown["safetyTier"], shown["costHint"], shown["latencyHint"]) == ("read", "low", "high")
    assert shown["outputSchema"]["properties"] == {"hits": {"type": "integer"}}


def test_a_safety_tier_that_is_not_written_is_write(tools: dict[str, Described]) -> None:
    shown = json.loads(tools["make"].standard)
    assert shown["safetyTier"] == "write"
    assert shown["auth"] == {"scopes": [], "credentialRef": False}
    assert {"replayPolicy", "costHint", "latencyHint", "outputSchema", "title", "approval"} & shown.keys() == set()


def test_an_exec_tool_is_a_host_extension_by_name_too(tools: dict[str, Described]) -> None:
    shown = json.loads(tools["run"].compact)
    assert (shown["toolId"], shown["source"]) == ("x-host-toolview-exec:run", "host-extension")


def test_a_compact_descriptor_is_the_short_form(tools: dict[str, Described]) -> None:
    assert json.loads(tools["find"].compact) == {
        "toolId": "mcp:find",
        "source": "mcp",
        "safetyTier": "read",
        "title": "Find people",
        "description": "Finds people by name. Call it first…",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "name": {"type": "string", "description": "A name, as long as it takes, of whoever…", "minLength": 1},
            },
            "description": "Exactly one of: id | name.",
            "additionalProperties": False,
        },
    }


def test_no_secret_is_in_any_descriptor(tools: dict[str, Described]) -> None:
    for tool in tools.values():
        assert b"s3cr3t" not in tool.standard + tool.compact
        assert not {"secret", "credential", "token", "apiKey", "password"} & json.loads(tool.standard).keys()


def test_lists_are_the_descriptors_side_by_side(tools: dict[str, Described]) -> None:
    shown = list(tools.values())
    assert json.loads(listing(shown, compact=False)) == {"tools": [json.loads(tool.standard) for tool in shown]}
    assert json.loads(listing(shown, compact=False, bare=True)) == [json.loads(tool.standard) for tool in shown]
    assert json.loads(listing(shown, compact=True, bare=True)) == {
        "tools": [json.loads(tool.compact) for tool in shown]
    }
    assert json.loads(listing([], compact=True)) == {"tools": []}


def test_discovery_advertises_the_catalog_at_its_root_and_nothing_of_runs(tmp_path: Path) -> None:
    shown = json.loads(discovery(accepted(tmp_path, CONTRACT), {"mcp"}))
    assert DISCOVERED.check(shown) == []
    catalog = {"supported": True, "sources": ["mcp"], "sessionLifecycle": False, "compactView": True}
    assert shown["toolCatalog"] == catalog
    assert shown["supportedTransports"] == ["mcp"]
    assert {
        "restTransport",
        "aiProviders",
        "toolHooks",
        "memory",
        "a2uiSurface",
        "capabilities",
    } & shown.keys() == set()


@pytest.mark.parametrize(
    ("text", "characters", "short"),
    [
        ("Short.", 40, "Short."),
        ("exactly ten", 11, "exactly ten"),
        ("one two three", 9, "one two…"),
        ("one two three", 8, "one two…"),
        ("one two three", 7, "one…"),
        ("one, two", 6, "one…"),
        ("indivisible", 5, "indi…"),
        ("two\n  lines", 40, "two lines"),
        ("", 5, ""),
    ],
)
def test_a_description_is_cut_on_a_word(text: str, characters: int, short: str) -> None:
    assert shortened(text, characters) == short
    assert len(short) <= characters


ORDERS = """
      orders.{number}:
        request: GET /shops/{{shop}}/orders{number}
        description: >
          Orders of one shop, newest first. Call it to find an order's id before orders.get; for totals use orders.sum.
        input:
          type: object
          required: [shop]
          properties:
            shop: {{type: string, description: Slug of the shop, minLength: 1}}
            state: {{enum: [open, paid, sent, returned], description: Only orders in this state}}
            since: {{type: string, format: date, description: First day that counts}}
            buyer: {{$ref: "#/schemas/Buyer"}}
            limit: {{type: integer, minimum: 1, maximum: 200, description: How many at most}}
        output: {{type: object, required: [orders], properties: {{orders: {{type: array, items: {{$ref: "#/schemas/Order"}}}}}}}}
        tool: {{safety_tier: read, cost: low, view: {{defaults: {{limit: 25}}}}}}
"""  # noqa: E501  # a schema in one line
SHARED = """
    schemas:
      Buyer:
        description: Who bought
        anyOf:
          - {type: integer, description: The buyer's number}
          - {type: object, required: [mail], properties: {mail: {type: string}, company: {type: string}}}
      Address:
        type: object
        required: [street, city, country]
        properties:
          street: {type: string, description: Street and number}
          city: {type: string, description: Town or city}
          zip: {type: [string, "null"], description: Postal code}
          country: {type: string, description: "ISO 3166 code, two letters"}
      Order:
        type: object
        required: [id, state, lines]
        properties:
          id: {type: integer, description: Number of the order}
          state: {enum: [open, paid, sent, returned], description: Where it stands}
          buyer: {$ref: "#/schemas/Buyer"}
          ship_to: {$ref: "#/schemas/Address"}
          bill_to: {$ref: "#/schemas/Address"}
          lines:
            type: array
            description: What was ordered
            items:
              type: object
              required: [sku, count]
              properties:
                sku: {type: string, description: Article number}
                count: {type: integer, minimum: 1, description: How many}
                price: {type: number, description: What one costs in the currency of the order}
"""


def test_two_hundred_tools_take_at_most_half_the_bytes_in_short(tmp_path: Path) -> None:
    """CAT-15."""
    endpoints = "".join(ORDERS.format(number=number) for number in range(200))
    head = "    version: 1\n    backends: {api: {url: http://127.0.0.1:1}}\n    endpoints:"
    tools = list(tools_of(accepted(tmp_path, head + endpoints + SHARED)).values())
    standard, compact = (len(listing(tools, compact=view)) for view in (False, True))
    assert len(tools) == 200
    assert compact <= standard / 2
