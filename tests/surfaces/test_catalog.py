"""The catalog on a running gateway: lists, views, tags, errors, and what each principal may see of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.contract.model import Contract
from gateway.contract.values import Address
from tests.catalog.openwop_schemas import COMPACT, DISCOVERED, REFUSED, STANDARD
from tests.rig import accepted, backend, http
from tests.schema.test_widen import assert_compact
from tests.test_serve import fetch, serving

Json = Any
Answer = tuple[int, dict[str, str], bytes]

HEAD = """
version: 1
gateway:
  tools: {listen: 127.0.0.1:0}
  admin: {listen: 127.0.0.1:0}
"""
KEYS = """
  auth:
    keys:
      - {name: red, sha256: RED, scopes: [red]}
      - {name: blue, sha256: BLUE, scopes: [blue, other]}
      - {name: both, sha256: BOTH, scopes: [red, blue]}
      - {name: none, sha256: NONE}
"""
for _name in ("red", "blue", "both", "none"):
    KEYS = KEYS.replace(_name.upper(), f'"{hashlib.sha256(f"key-{_name}".encode()).hexdigest()}"')
BACKENDS = """
backends: {api: {url: URL, passthrough: 127.0.0.1:0, headers: {Authorization: "Bearer backend-secret"}}}
endpoints:
"""
CHOICE = "{type: object, anyOf: [{properties: {id: {type: integer}}}, {properties: {name: {$ref: '#/$defs/N'}}}], $defs: {N: {type: string}}}"  # noqa: E501  # a schema in one line
TOOLS = {
    "a_open": "{request: GET /a, description: Anyone's., tool: {safety_tier: read}}",
    "b_red": "{request: GET /b, description: Red's., scopes: [red], input: CHOICE}".replace("CHOICE", CHOICE),
    "c_blue": "{request: POST /c, description: Blue's., scopes: [blue]}",
    "d_both": "{request: GET /d, description: For both., scopes: [red, blue]}",
    "e_exec": "{request: POST /e, description: Runs., scopes: [red], tool: {safety_tier: exec}}",
}
VISIBLE = {
    "red": {"a_open", "b_red", "e_exec"},
    "blue": {"a_open", "c_blue"},
    "both": set(TOOLS),
    "none": {"a_open"},
}


def text_of(names: set[str], *, settings: str = "", auth: bool = True) -> str:
    endpoints = "".join(f"  {name}: {TOOLS[name]}\n" for name in sorted(names))
    return HEAD + (KEYS if auth else "") + settings + BACKENDS + endpoints


@asynccontextmanager
async def gateway_of(folder: Path, text: str) -> AsyncIterator[Address]:
    async with backend(http({"ok": True})) as api, serving(loaded(folder, text.replace("URL", api.url))) as served:
        yield served.addresses["tools"]


def loaded(folder: Path, text: str) -> Contract:
    folder.mkdir(exist_ok=True)
    return accepted(folder, text)


def bearer(name: str) -> str:
    return f"Authorization: Bearer key-{name}\r\n"


async def get(address: Address, path: str, headers: str = "", method: str = "GET") -> Answer:
    return await fetch(address, method, path, headers=headers)


async def mcp(address: Address, method: str, params: Json, headers: str) -> Answer:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return await fetch(address, "POST", "/mcp", body, headers + "Content-Type: application/json\r\n")


async def agent(address: Address, tool: str, headers: str) -> Answer:
    return await fetch(address, "POST", f"/agent/tools/{tool}", b"{}", headers + "X-Tool-Call-Id: fixed\r\n")


def ids(body: bytes) -> list[str]:
    return [tool["toolId"] for tool in json.loads(body)["tools"]]


def id_of(name: str) -> str:
    return f"x-host-toolview-exec:{name}" if name == "e_exec" else f"mcp:{name}"


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Address]:
    """All tools, and nobody has to prove who they are."""
    async with gateway_of(tmp_path, text_of(set(TOOLS), auth=False)) as address:
        yield address


async def test_both_lists_hold_the_same_tools_each_valid_and_sorted(opened: Address) -> None:
    status, headers, standard = await get(opened, "/v1/tools")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert ids(standard) == sorted(map(id_of, TOOLS))
    _, _, compact = await get(opened, "/v1/tools?view=compact")
    assert set(json.loads(compact)) == {"tools"}, "always the envelope, and nothing else in it"
    assert ids(compact) == ids(standard)
    for tool in json.loads(standard)["tools"]:
        assert STANDARD.check(tool) == []
    for tool in json.loads(compact)["tools"]:
        assert COMPACT.check(tool) == []
        assert_compact(tool["inputSchema"])


async def test_every_listed_tool_is_served_by_id_in_both_views(opened: Address) -> None:
    for view in ("", "?view=compact", "?view=standard"):
        _, _, body = await get(opened, f"/v1/tools{view}")
        for tool in json.loads(body)["tools"]:
            for written in (quote(tool["toolId"], safe=""), tool["toolId"]):
                status, _, one = await get(opened, f"/v1/tools/{written}{view}")
                assert (status, json.loads(one)) == (200, tool)


async def test_an_answer_is_the_same_bytes_every_time_and_after_a_restart(tmp_path: Path) -> None:
    text = text_of(set(TOOLS), auth=False)
    paths = ("/v1/tools", "/v1/tools?view=compact", "/.well-known/openwop", "/v1/openapi.json")
    told = []
    for folder in ("one", "two"):
        async with gateway_of(tmp_path / folder, text) as address:
            told += [[(await get(address, path))[1:] for path in paths] for _ in range(2)]
    for page in told:
        for _, headers in enumerate(each[0] for each in page):
            headers.pop("date", None)
    assert told[0] == told[1] == told[2] == told[3]
    standard, compact = told[0][0][0]["etag"], told[0][1][0]["etag"]
    assert standard.startswith('"')
    assert standard != compact


async def test_a_client_that_has_the_bytes_gets_304_and_no_body(opened: Address) -> None:
    for path in (
        "/v1/tools",
        "/v1/tools?view=compact",
        "/v1/tools/mcp:a_open",
        "/.well-known/openwop",
        "/v1/openapi.json",
    ):
        _, headers, _ = await get(opened, path)
        tag = headers["etag"]
        for asked in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            for method in ("GET", "HEAD"):
                status, again, body = await get(opened, path, f"If-None-Match: {asked}\r\n", method)
                assert (status, again["etag"], body) == (304, tag, b"")
        assert (await get(opened, path, 'If-None-Match: "other"\r\n'))[0] == 200


async def test_head_says_what_get_says_without_the_body(opened: Address) -> None:
    for path in ("/v1/tools", "/v1/tools/mcp:a_open?view=compact", "/v1/tools/mcp:nope", "/.well-known/openwop"):
        status, headers, body = await get(opened, path)
        head_status, head_headers, nothing = await get(opened, path, method="HEAD")
        for each in (headers, head_headers):
            each.pop("date", None)
        assert (head_status, head_headers, nothing) == (status, headers, b"")
        assert headers["content-length"] == str(len(body))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_nothing_can_be_written(opened: Address, method: str) -> None:
    before = await get(opened, "/v1/tools")
    for path in ("/v1/tools", "/v1/tools/mcp:a_open", "/v1/tools/mcp:nope", "/.well-known/openwop", "/v1/openapi.json"):
        status, headers, body = await get(opened, path, method=method)
        assert (status, headers["allow"]) == (405, "GET, HEAD")
        assert REFUSED.check(json.loads(body)) == []
    assert (await get(opened, "/v1/tools"))[2] == before[2]


@pytest.mark.parametrize("view", ["foo", "", "COMPACT", "compact%20", "compact&view=standard"])
async def test_another_view_is_refused_on_both_paths(opened: Address, view: str) -> None:
    for path in ("/v1/tools", "/v1/tools/mcp:a_open", "/v1/tools/mcp:nope"):
        status, _, body = await get(opened, f"{path}?view={view}")
        assert status == 400
        assert REFUSED.check(json.loads(body)) == []
        assert json.loads(body)["details"] == {"view": ["standard", "compact"]}


async def test_source_filters_both_views(opened: Address) -> None:
    for view in ("", "&view=compact"):
        _, _, mcp_tools = await get(opened, f"/v1/tools?source=mcp{view}")
        _, _, own_tools = await get(opened, f"/v1/tools?source=host-extension{view}")
        assert ids(mcp_tools) == sorted(id_of(name) for name in TOOLS if name != "e_exec")
        assert ids(own_tools) == [id_of("e_exec")]
        for other in ("workflow", "no-such-source", "", "MCP"):
            status, _, body = await get(opened, f"/v1/tools?source={other}{view}")
            assert (status, body) == (200, b'{"tools":[]}')


async def test_an_unknown_parameter_changes_nothing(opened: Address) -> None:
    assert (await get(opened, "/v1/tools?cursor=x&limit=1"))[2] == (await get(opened, "/v1/tools"))[2]


async def test_every_error_of_the_listener_has_the_one_shape(opened: Address) -> None:
    for method, path, expected in (
        ("GET", "/v1/tools/mcp:nope", 404),
        ("GET", "/v1/tools/a_open", 404),
        ("GET", "/v1/tools/mcp:a_open%2Fb", 404),
        ("GET", "/v1/tools/", 404),
        ("GET", "/v1/runs", 404),
        ("GET", "/", 404),
        ("DELETE", "/mcp", 405),
    ):
        status, headers, body = await get(opened, path, method=method)
        assert (status, headers["content-type"]) == (expected, "application/json")
        assert REFUSED.check(json.loads(body)) == []
        assert "www-authenticate" not in headers


async def test_no_secret_is_anywhere_in_what_is_public(opened: Address) -> None:
    for path in ("/v1/tools", "/v1/tools?view=compact", "/.well-known/openwop", "/v1/openapi.json"):
        assert b"backend-secret" not in (await get(opened, path))[2]


async def test_discovery_says_what_is_served(opened: Address) -> None:
    status, headers, body = await get(opened, "/.well-known/openwop")
    assert (status, headers["cache-control"]) == (200, "public, max-age=300")
    shown = json.loads(body)
    assert DISCOVERED.check(shown) == []
    assert shown["toolCatalog"]["sources"] == ["host-extension", "mcp"]
    assert shown["toolCatalog"]["compactView"] is True


async def test_the_standard_list_can_be_a_bare_array(tmp_path: Path) -> None:
    text = text_of(set(TOOLS), settings="  catalog: {list: array}\n", auth=False)
    async with gateway_of(tmp_path, text) as address:
        assert len(json.loads((await get(address, "/v1/tools"))[2])) == len(TOOLS)
        assert json.loads((await get(address, "/v1/tools?source=none"))[2]) == []
        assert len(ids((await get(address, "/v1/tools?view=compact"))[2])) == len(TOOLS)


async def test_without_the_compact_view_every_view_is_the_standard_answer(tmp_path: Path) -> None:
    text = text_of(set(TOOLS), settings="  catalog: {compact: false}\n", auth=False)
    async with gateway_of(tmp_path, text) as address:
        for path in ("/v1/tools", "/v1/tools/mcp:b_red"):
            plain = (await get(address, path))[2]
            for view in ("compact", "standard", "foo", ""):
                status, _, body = await get(address, f"{path}?view={view}")
                assert (status, body) == (200, plain)
        shown = json.loads((await get(address, "/.well-known/openwop"))[2])
        assert "compactView" not in shown["toolCatalog"]


# Who may see what.


@pytest.mark.requirement("s12-81-scopes")
@pytest.mark.parametrize("who", list(VISIBLE))
async def test_lists_ids_and_calls_agree_for_each_principal(tmp_path: Path, who: str) -> None:
    async with gateway_of(tmp_path, text_of(set(TOOLS))) as address:
        key = bearer(who)
        wanted = sorted(map(id_of, VISIBLE[who]))
        for query in ("", "?view=compact"):
            assert ids((await get(address, f"/v1/tools{query}", key))[2]) == wanted
        _, _, listed = await mcp(address, "tools/list", {}, key)
        assert {tool["name"] for tool in json.loads(listed)["result"]["tools"]} == VISIBLE[who]
        _, _, agents = await get(address, "/agent/tools?format=mcp", key)
        assert {tool["name"] for tool in json.loads(agents)} == VISIBLE[who]
        for name in TOOLS:
            seen = name in VISIBLE[who]
            for query in ("", "?view=compact"):
                assert (await get(address, f"/v1/tools/{id_of(name)}{query}", key))[0] == (200 if seen else 404)
            assert (await agent(address, name, key))[0] == (200 if seen else 404)
            _, _, called = await mcp(address, "tools/call", {"name": name, "arguments": {}}, key)
            assert ("result" in json.loads(called)) is seen


@pytest.mark.requirement("s12-81-scopes")
@pytest.mark.parametrize("who", ["red", "blue", "none"])
async def test_what_one_may_not_see_is_as_what_does_not_exist(tmp_path: Path, who: str) -> None:
    """Byte for byte, against a gateway whose contract has nothing but what this principal may see."""

    async def told(address: Address) -> list[Json]:
        key = bearer(who)
        answers = [
            await get(address, path, headers)
            for path in ("/v1/tools", "/v1/tools?view=compact", "/v1/tools?source=host-extension", "/v1/openapi.json")
            for headers in (key, "")
        ]
        answers += [await get(address, "/.well-known/openwop", headers) for headers in (key, "")]
        answers += [await get(address, f"/agent/tools?format={form}", key) for form in ("openai", "mcp")]
        answers.append(await mcp(address, "tools/list", {}, key))
        for name in sorted(set(TOOLS) - VISIBLE[who]):
            answers.append(await get(address, f"/v1/tools/{id_of(name)}", key))
            answers.append(await get(address, f"/v1/tools/{id_of(name)}?view=compact", key))
            answers.append(await agent(address, name, key))
            call = {"name": name, "arguments": {"x": 1}, "_meta": {"toolview/toolCallId": "fixed"}}
            answers.append(await mcp(address, "tools/call", call, key))
        for _, headers, _ in answers:
            headers.pop("date", None)
        return answers

    async with gateway_of(tmp_path / "whole", text_of(set(TOOLS))) as address:
        whole = await told(address)
    async with gateway_of(tmp_path / "seen", text_of(VISIBLE[who])) as address:
        seen = await told(address)
    assert whole == seen


async def test_without_a_known_key_everything_but_the_public_is_401(tmp_path: Path) -> None:
    async with gateway_of(tmp_path, text_of(set(TOOLS))) as address:
        told = set()
        for headers in (
            "",
            "Authorization: Bearer wrong\r\n",
            "Authorization: Basic a2V5LXJlZDo=\r\n",
            bearer("red") * 2,
        ):
            for method, path in (
                ("GET", "/v1/tools"),
                ("HEAD", "/v1/tools"),
                ("POST", "/v1/tools"),
                ("GET", "/v1/tools/mcp:a_open"),
                ("GET", "/v1/tools/mcp:nope"),
                ("GET", "/agent/tools"),
                ("POST", "/agent/tools/a_open"),
                ("POST", "/mcp"),
                ("GET", "/nothing"),
            ):
                status, said, body = await get(address, path, headers, method)
                assert (status, said["content-type"]) == (401, "application/json")
                # whether something was sent is all that is told
                assert said["www-authenticate"] == ('Bearer error="invalid_token"' if headers else "Bearer")
                if method != "HEAD":
                    told.add(body)
        assert len(told) == 1
        assert REFUSED.check(json.loads(told.pop())) == []


async def test_discovery_and_openapi_are_public_and_show_the_public_nothing_scoped(tmp_path: Path) -> None:
    async with gateway_of(tmp_path, text_of(set(TOOLS))) as address:
        assert (await get(address, "/.well-known/openwop"))[0] == 200
        for headers, shown in (
            ("", "a"),
            ("Authorization: Bearer wrong\r\n", "a"),
            (bearer("both"), "abcde"),
        ):
            status, said, body = await get(address, "/v1/openapi.json", headers)
            assert (status, said["vary"]) == (200, "Authorization")
            assert set(json.loads(body)["paths"]) == {f"/{each}" for each in shown}


async def test_the_catalogs_digest_is_the_principals_own(tmp_path: Path) -> None:
    async with gateway_of(tmp_path, text_of(set(TOOLS))) as address:
        digests = {}
        for who in VISIBLE:
            stamps = {
                (await get(address, path, bearer(who)))[1]["toolview-catalog"]
                for path in ("/v1/tools", "/v1/tools?view=compact", "/v1/tools/mcp:a_open", "/v1/tools/mcp:nope")
            }
            _, headers, _ = await mcp(address, "tools/list", {}, bearer(who))
            (digests[who],) = stamps | {headers["toolview-catalog"]}
    assert len(set(digests.values())) == len(VISIBLE)


async def test_the_published_client_reads_list_id_and_compact(tmp_path: Path) -> None:
    from openwop_client import OpenwopClient  # type: ignore[import-untyped]  # it has no py.typed

    async with gateway_of(tmp_path, text_of(set(TOOLS))) as address:
        client = OpenwopClient(f"http://{address}", "key-both")
        tools = await asyncio.to_thread(client.tools_list)
        short = await asyncio.to_thread(client.tools_list_compact)
        one = await asyncio.to_thread(client.tools_get, "mcp:b_red")
        missing = await asyncio.to_thread(client.tools_get, "mcp:nope")
        capabilities = await asyncio.to_thread(client.discovery_capabilities)
        document = await asyncio.to_thread(client.discovery_openapi)
    assert tools is not None
    assert short is not None
    assert one is not None
    assert [tool.toolId for tool in tools] == sorted(map(id_of, TOOLS))
    assert [tool["toolId"] for tool in short] == [tool.toolId for tool in tools]
    assert (one.toolId, one.safetyTier) == ("mcp:b_red", "write")
    assert missing is None
    assert capabilities.protocolVersion == "1.0"
    assert document["openapi"] == "3.1.1"
