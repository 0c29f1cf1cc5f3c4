"""From a contract as it is written to what clients hold in their hands: real gateway, real backend, real clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import aiohttp
import pytest
from mcp import Client

from tests.rig import Backend, Received, accepted, backend, http, running
from tests.surfaces.mcp import javascript
from tests.surfaces.mcp.fakes import BIG, served

Json = Any
TREE = {"name": "a", "kids": [{"name": "b", "kids": [{"name": "c", "kids": []}]}]}
ANSWERS: dict[str, bytes] = {
    "/rows": http([{"id": BIG, "secret": 1}, {"id": BIG + 1}]),
    "/word": http(b'"seven"'),
    "/tree": http(TREE),
    "/state": http({"state": None, "at": "yesterday"}),
    "/made": http({"id": 12345678901234567890123}, status=201),
    "/gone": http({"error": "x"}, status=410),
    "/icon": http(b"\x89PNG", content_type="image/png"),
    "/ping": http(b"", status=204),
    "/broken": http({"n": "text"}),
    "/people?include=&limit=25&unit=m": http({"people": [{"id": "1", "name": "Ann", "mail": "a@x"}], "total": 1}),
}
CONTRACT = """
    version: 1
    backends: {b: {url: URL}}
    schemas:
      Node: {type: object, properties: {name: {type: string}, kids: {type: array, items: {$ref: "#/schemas/Node"}}}}
      Unit: {enum: [m, ft]}
    endpoints:
      rows: {request: GET /rows, description: Rows., output: {type: array, items: {type: object, properties: {id: {type: integer}}}}}
      word: {request: GET /word, description: A word., output: {type: string}}
      tree: {request: GET /tree, description: A tree., output: {$ref: "#/schemas/Node"}}
      state:
        request: GET /state
        description: A state.
        output: {type: object, properties: {state: {enum: ["on", null]}, at: {type: string, format: date-time}}}
      made:
        request: POST /made
        description: Makes one.
        output: {"200": {type: object, properties: {old: {type: boolean}}}, "201": {type: object, properties: {id: {type: integer}}}}
      gone: {request: GET /gone, description: Gone., output: {type: object}}
      icon: {request: GET /icon, description: An icon., kind: media}
      ping: {request: GET /ping, description: Says nothing.}
      broken: {request: GET /broken, description: Breaks., output: {type: object, properties: {n: {type: integer}}}}
      people:
        request: GET /people
        description: People.
        input:
          type: object
          required: [limit]
          properties: {include: {type: array, items: {type: string}}, limit: {type: integer}, unit: {$ref: "#/schemas/Unit"}}
        send: {include: {style: form, explode: false, empty: blank}}
        output:
          type: object
          required: [people]
          properties:
            total: {type: integer}
            people: {type: array, items: {type: object, required: [id], properties: {id: {type: string}, name: {type: string}, mail: {type: string}}}}
        tool:
          name: list_people
          view:
            defaults: {include: [], limit: 25, unit: m}
            output: {type: object, required: [people], properties: {people: {type: array, items: {type: object, required: [id], properties: {id: {type: string}, name: {type: string}}}}}}
"""  # noqa: E501 - a schema a line
#: What each tool's caller gets.
SHOWN: dict[str, Json] = {
    "rows": {"result": [{"id": BIG}, {"id": BIG + 1}]},
    "word": {"result": "seven"},
    "tree": TREE,
    "state": {"state": None, "at": "yesterday"},
    "made": {"id": 12345678901234567890123},
    "list_people": {"people": [{"id": "1", "name": "Ann"}]},
}
Mode = Literal["auto", "legacy"]


@pytest.fixture
async def served_contract(tmp_path: Path) -> AsyncIterator[tuple[str, Backend]]:
    def answer(request: Received) -> bytes:
        return ANSWERS.get(request.target, http({}, status=404))

    async with backend(answer) as behind:
        contract = accepted(tmp_path, CONTRACT.replace("URL", behind.url))
        async with running(contract) as gateway, served(gateway.gateway) as url:
            yield url, behind


@pytest.mark.requirement("196-4-view-schema-is-advertised", "s12-55-roots-kept", "s12-56-no-output")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_python_client_gets_what_the_contract_declares(
    served_contract: tuple[str, Backend], mode: Mode
) -> None:
    async with Client(served_contract[0], mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == sorted([*SHOWN, "broken", "gone", "icon", "ping"])
        assert tools["list_people"].input_schema.get("required", []) == []
        for name, value in SHOWN.items():
            result = await client.call_tool(name, {})  # raises where the answer breaks what was listed
            assert result.structured_content == value
        assert (await client.call_tool("ping", {})).content == []
        assert (await client.call_tool("icon", {})).content[0].type == "image"
        for name, code in (("gone", "GONE"), ("broken", "BACKEND_ANSWER_INVALID")):
            failure = await client.call_tool(name, {})
            assert (failure.is_error, failure.structured_content) == (True, None)
            assert json.loads(failure.content[0].text)["code"] == code  # type: ignore[union-attr]  # a text block
        refused = await client.call_tool("list_people", {"limt": 3})
        assert "limit" in refused.content[0].text  # type: ignore[union-attr]  # a text block


@pytest.mark.requirement("196-2-backend-gets-ordinary-input")
async def test_the_typescript_client_gets_it_too_and_the_backend_sees_the_defaults(
    served_contract: tuple[str, Backend],
) -> None:
    url, behind = served_contract
    results = (await javascript.run("client.mjs", url, *SHOWN, "ping", "gone"))["results"]
    for name, value in SHOWN.items():
        assert "thrown" not in results[name], (name, results[name])
        assert json.loads(results[name]["content"][0]["text"]) == value
    assert results["gone"]["isError"] is True
    assert results["ping"]["content"] == []
    assert "/people?include=&limit=25&unit=m" in [request.target for request in behind.received]


async def test_an_unknown_tool_is_counted_once_as_unknown(served_contract: tuple[str, Backend]) -> None:
    url, _ = served_contract
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_peple"}}
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        answer = await response.json()
    assert answer["error"]["message"] == "Unknown tool: list_peple"
    assert "list_people" in json.dumps(answer["error"]["data"])
