"""Arguments to request: defaults, decoding, one check, and that a refusal sends nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.rig import Received, accepted, backend, http, running

CONTRACT = """
    version: 1
    backends: {{api: {{url: {url}}}}}
    endpoints:
      items.list:
        request: GET /items/{{team}}
        description: Lists items.
        expose: [http, mcp, agent, cli]
        input:
          type: object
          required: [team, sort]
          properties:
            team: {{type: string}}
            sort: {{type: string}}
            include: {{type: array, items: {{type: string}}, default: [stats]}}
            limit: {{type: integer, minimum: 0, default: 7}}
            flag: {{type: boolean}}
            note: {{type: [string, "null"]}}
        send: {{include: {{explode: false, empty: blank}}}}
        output: {{type: object}}
        tool:
          name: list_items
          view: {{defaults: {{include: [], sort: name, limit: 25, flag: true, note: "n"}}}}
      items.search:
        request: POST /search
        description: Searches items.
        input:
          type: object
          properties:
            filter: {{type: object, additionalProperties: true}}
            tags: {{type: array, items: {{type: object, additionalProperties: true}}}}
            text: {{type: string}}
            note: {{type: [string, "null"]}}
        output: {{type: object}}
        tool:
          name: search_items
          view: {{defaults: {{filter: {{state: open, owner: {{name: me}}}}}}}}
"""

OK = http({})


def query(request: Received) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(request.target).query, keep_blank_values=True))


@pytest.mark.requirement(
    "196-2-defaults-before-the-one-parse",
    "196-2-backend-gets-ordinary-input",
    "196-2-view-default-beats-schema-default",
    "196-c-query-empty-list",
    "s12-25-split-by-name",
)
async def test_view_defaults_travel_to_the_backend(tmp_path: Path) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        outcome = await gateway.call("list_items", {"team": "core"})
    assert outcome.ok
    assert urlsplit(api.received[0].target).path == "/items/core"
    assert query(api.received[0]) == {"include": "", "sort": "name", "limit": "25", "flag": "true", "note": "n"}


@pytest.mark.requirement("196-2-callers-value-wins", "196-2-null-is-a-value")
@pytest.mark.parametrize(
    ("name", "value", "wire"),
    [
        pytest.param("limit", 5, "5", id="REQ-19"),
        pytest.param("limit", 0, "0", id="REQ-19-zero"),
        pytest.param("flag", False, "false", id="REQ-19-false"),
        pytest.param("sort", "", "", id="REQ-19-empty-text"),
        pytest.param("include", ["stats"], "stats", id="list"),
        pytest.param("note", None, None, id="null"),
    ],
)
async def test_the_callers_value_wins_whatever_it_is(tmp_path: Path, name: str, value: Any, wire: str | None) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        outcome = await gateway.call("list_items", {"team": "core", name: value})
    assert outcome.accepted is not None
    assert outcome.accepted[name] == value
    assert query(api.received[0]).get(name) == wire


@pytest.mark.requirement("196-2-no-deep-merge")
async def test_a_callers_object_replaces_a_nested_default_whole(tmp_path: Path) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        await gateway.call("search_items", {"filter": {"owner": {}}})
        await gateway.call("search_items")
    assert [json.loads(request.body) for request in api.received] == [
        {"filter": {"owner": {}}},
        {"filter": {"state": "open", "owner": {"name": "me"}}},
    ]


@pytest.mark.requirement("196-2-fresh-copy")
async def test_a_default_changed_in_one_call_is_fresh_in_the_next(tmp_path: Path) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        first = await gateway.call("search_items")
        assert first.accepted is not None
        first.accepted["filter"]["owner"]["name"] = "changed"
        second = await gateway.call("search_items")
    assert second.accepted == {"filter": {"state": "open", "owner": {"name": "me"}}}


@pytest.mark.requirement("s12-26-stringified")
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"filter": '{"a": [1]}'}, {"filter": {"a": [1]}}),
        ({"tags": '[{"id": 1}]'}, {"tags": [{"id": 1}]}),
        ({"tags": ['{"id": 1}']}, {"tags": [{"id": 1}]}),
        ({"text": '{"a": 1}'}, {"text": '{"a": 1}'}),
        ({"note": "null"}, {"note": "null"}),
        ({"filter": '{"id": 12345678901234567890123}'}, {"filter": {"id": 12345678901234567890123}}),
    ],
)
async def test_stringified_structure_is_decoded_where_it_is_wanted(
    tmp_path: Path, given: dict[str, Any], taken: dict[str, Any]
) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        outcome = await gateway.call("search_items", given)
    assert outcome.accepted is not None
    assert {name: outcome.accepted[name] for name in given} == taken
    assert outcome.call.arguments == given, "what the caller sent is kept as it was"


@pytest.mark.requirement("s12-28-invalid-sends-nothing", "s12-27-unknown-keys")
@pytest.mark.parametrize(
    ("tool", "given", "pointer", "rule", "repair"),
    [
        ("list_items", {"team": "a", "limt": 3}, "/limt", "additionalProperties", "did you mean `limit`?"),
        ("list_items", {}, "", "required", "team"),
        ("list_items", {"team": "a", "limit": -1}, "/limit", "minimum", "0"),
        ("list_items", {"team": "a", "limit": 30.5}, "/limit", "type", "integer"),
        ("list_items", {"team": "a", "flag": "yes"}, "/flag", "type", "boolean"),
        ("search_items", {"filter": "not json"}, "/filter", "type", "object"),
    ],
)
async def test_a_refusal_names_field_rule_and_repair_and_sends_nothing(
    tmp_path: Path, tool: str, given: dict[str, Any], pointer: str, rule: str, repair: str
) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        outcome = await gateway.call(tool, given)
    assert api.received == []
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.status, outcome.failure.retryable) == ("VALIDATION_ERROR", 400, False)
    (violation,) = outcome.failure.details["violations"]
    assert (violation["pointer"], violation["rule"]) == (pointer, rule)
    assert repair in violation["message"]
    assert "nothing was sent" in outcome.failure.error


async def test_every_fault_is_listed_twenty_at_most(tmp_path: Path) -> None:
    many = {f"unknown_{number}": 1 for number in range(3)} | {"team": 1, "limit": "x", "flag": 2}
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        several = await gateway.call("list_items", many)
        endless = await gateway.call("search_items", {"tags": list(range(100))})
    assert several.failure is not None
    assert endless.failure is not None
    pointers = {violation["pointer"] for violation in several.failure.details["violations"]}
    assert {"/team", "/limit", "/flag", "/unknown_0", "/unknown_1", "/unknown_2", ""} == pointers | {""}
    assert len(endless.failure.details["violations"]) == 20


@pytest.mark.requirement("s12-35-no-form")
async def test_what_has_no_form_in_its_place_is_refused_naming_the_argument(tmp_path: Path) -> None:
    contract = """
        version: 1
        backends: {{api: {{url: {url}}}}}
        endpoints:
          find:
            request: GET /find
            description: Finds.
            input: {{type: object, properties: {{filter: {{}}, rows: {{type: array}}}}}}
            output: {{type: object}}
    """
    async with backend(OK) as api, running(accepted(tmp_path, contract.format(url=api.url))) as gateway:
        nested = await gateway.call("find", {"filter": {"a": {"b": 1}}})
        rows = await gateway.call("find", {"rows": [{"a": 1}]})
    assert api.received == []
    for outcome, name in ((nested, "filter"), (rows, "rows")):
        assert outcome.failure is not None
        assert outcome.failure.code == "VALIDATION_ERROR"
        assert f"`{name}`" in outcome.failure.error


@pytest.mark.requirement("s12-34-scalars", "s12-37-no-body")
async def test_null_stays_in_a_body_and_no_arguments_make_no_body(tmp_path: Path) -> None:
    contract = """
        version: 1
        backends: {{api: {{url: {url}}}}}
        endpoints:
          note:
            request: POST /note
            description: Notes.
            input: {{type: object, properties: {{text: {{type: [string, "null"]}}, loud: {{type: boolean}}}}}}
            output: {{type: object}}
          ping:
            request: POST /ping
            description: Pings.
            output: {{type: object}}
    """
    async with backend(OK) as api, running(accepted(tmp_path, contract.format(url=api.url))) as gateway:
        await gateway.call("note", {"text": None, "loud": True})
        await gateway.call("ping")
    assert json.loads(api.received[0].body) == {"text": None, "loud": True}
    assert api.received[1].body == b""
    assert api.received[1].header("Content-Type") is None


@pytest.mark.requirement("187-3-call-id-correlates")
async def test_forwarding_adds_what_the_contract_says_and_nothing_of_the_caller(tmp_path: Path) -> None:
    caller = {"authorization": "Bearer callers", "cookie": "a=b", "x-request-id": "r1", "if-none-match": '"x"'}
    contract = CONTRACT.replace("{{api: {{url: {url}}}}}", "{{api: {{url: {url}, forward_headers: [X-Request-Id]}}}}")
    async with backend(OK) as api, running(accepted(tmp_path, contract.format(url=api.url))) as gateway:
        await gateway.call("list_items", {"team": "a"}, headers=caller, call_id="id-7")
    names = [name.lower() for name, _ in api.received[0].headers]
    assert sorted(names) == sorted(
        ["host", "accept", "accept-encoding", "user-agent", "x-request-id", "x-tool-call-id"]
    )
    assert api.received[0].header("X-Tool-Call-Id") == "id-7"
    assert api.received[0].header("X-Request-Id") == "r1"


async def test_an_unknown_tool_is_counted_as_unknown_and_names_the_nearest(tmp_path: Path) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        near = await gateway.call("list_item")
        far = await gateway.call('x"\n{}' * 100)
    assert (near.tool, far.tool) == ("unknown", "unknown")
    assert near.failure is not None
    assert near.failure.details["nearest"] == ["list_items"]
    assert far.failure is not None
    assert (far.failure.code, far.failure.status) == ("UNKNOWN_TOOL", 404)


async def test_a_tool_is_known_only_on_the_surfaces_that_it_is_exposed_on(tmp_path: Path) -> None:
    async with backend(OK) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url))) as gateway:
        shown = await gateway.call("search_items", surface="agent")
        hidden = await gateway.call("search_items", surface="cli")
    assert shown.ok
    assert hidden.code == "UNKNOWN_TOOL"
