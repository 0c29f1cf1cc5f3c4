"""The console's routes: files, data, one real call beside its full answer; who may try, and what never shows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.values import Address
from tests.rig import Received, accepted, backend, contract_at, http
from tests.test_serve import fetch, samples, serving

CONTRACT = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}GATEWAY}
    backends: {api: {url: URL, auth: {bearer: planted-bearer}, headers: {X-Key: planted-header}}}
    endpoints:
      people.list:
        request: GET /people
        description: Lists people.
        input: {type: object, properties: {limit: {type: integer, minimum: 1}}}
        scopes: SCOPES
        output:
          type: object
          required: [people]
          properties:
            people: {type: array, items: {type: object, properties: {id: {type: integer}, name: {type: string}}}}
            note: {type: string}
        examples: [{title: Five, arguments: {limit: 5}, answer: {people: []}}]
        tool:
          name: list_people
          safety_tier: read
          view:
            defaults: {limit: 10}
            output:
              type: object
              properties: {people: {type: array, items: {type: object, properties: {id: {type: integer}}}}}
      people.only.cli: {request: GET /people, description: For the terminal., expose: [cli], output: {type: object}}
      wipe:
        request: POST /wipe
        description: Wipes.
        output: {type: object}
        tool: {safety_tier: read, mcp: {confirm: "Wipe?"}}
"""
FULL = {"people": [{"id": 12345678901234567890123, "name": "Ada", "ssn": "1-2-3"}], "note": "hello"}
JSON = "Content-Type: application/json\r\n"
KEYS = ", auth: {keys: [{name: ops, sha256: DIGEST, scopes: [read]}, {name: other, sha256: OTHER}]}"


def contract(folder: Path, url: str, gateway: str = "", scopes: str = "[]") -> Any:
    text = CONTRACT.replace("GATEWAY", gateway).replace("URL", url).replace("SCOPES", scopes)
    text = text.replace("DIGEST", hashlib.sha256(b"k1").hexdigest()).replace("OTHER", hashlib.sha256(b"k2").hexdigest())
    return accepted(folder, text)


async def tried(admin: Address, arguments: object = None, tool: str = "list_people", headers: str = JSON) -> Any:
    body = json.dumps({"tool": tool, "arguments": {} if arguments is None else arguments}).encode()
    status, _, answer = await fetch(admin, "POST", "/console/try", body, headers)
    return status, json.loads(answer)


def text_of(pane: dict[str, Any]) -> str:
    return "".join(text for text, _ in pane["lines"])


async def test_the_page_and_its_files_come_with_a_policy_that_lets_nothing_else_in(tmp_path: Path) -> None:
    kinds = {
        "": "text/html",
        "/console.css": "text/css",
        "/console.js": "text/javascript",
        "/icon.svg": "image/svg+xml",
    }
    async with serving(contract(tmp_path, "http://127.0.0.1:1")) as served:
        for path, kind in kinds.items():
            status, headers, body = await fetch(served.addresses["admin"], "GET", f"/console{path}")
            assert (status, headers["content-type"].partition(";")[0]) == (200, kind)
            assert headers["content-security-policy"].startswith("default-src 'self'; ")
            assert len(body) > 100


async def test_the_page_names_no_other_host_and_holds_no_script_or_style_of_its_own(tmp_path: Path) -> None:
    async with serving(contract(tmp_path, "http://127.0.0.1:1")) as served:
        admin = served.addresses["admin"]
        pages = [
            (await fetch(admin, "GET", f"/console{path}"))[2].decode() for path in ("", "/console.css", "/console.js")
        ]
    for page in pages:
        outside = page.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in outside
        assert "https://" not in outside
    assert "<style" not in pages[0]
    assert " style=" not in pages[0]
    assert pages[0].count("<script") == pages[0].count('<script src="/console/') == 1


async def test_a_console_that_is_off_is_not_there_and_the_rest_of_the_listener_is(tmp_path: Path) -> None:
    async with serving(contract(tmp_path, "http://127.0.0.1:1", ", console: false")) as served:
        admin = served.addresses["admin"]
        for path in ("/console", "/console/console.js", "/console/state", "/console/tools"):
            assert (await fetch(admin, "GET", path))[0] == 404
        assert (await tried(admin))[0] == 404
        assert (await fetch(admin, "GET", "/-/contract"))[0] == 200


async def test_the_data_say_what_is_served_and_how_the_last_load_ended(tmp_path: Path) -> None:
    loaded = contract(tmp_path, "http://127.0.0.1:1")
    refused = contract_at(tmp_path, "version: 2")
    assert isinstance(refused, tuple)
    async with serving(loaded) as served:
        admin = served.addresses["admin"]
        tools = json.loads((await fetch(admin, "GET", "/console/tools"))[2])
        before = json.loads((await fetch(admin, "GET", "/console/state"))[2])
        served.gateway.refuse_reload(refused)
        after = json.loads((await fetch(admin, "GET", "/console/state"))[2])
    assert [tool["name"] for tool in tools["tools"]] == ["list_people", "people_only_cli", "wipe"]
    assert [tool["asks_first"] for tool in tools["tools"]] == [False, False, True]
    listed = tools["tools"][0]
    assert listed["request"] == "GET /people"
    assert listed["view"] == "slice"
    assert listed["surfaces"] == ["mcp", "agent"]
    assert listed["input"]["properties"]["limit"]["default"] == 10
    assert listed["examples"] == [{"title": "Five", "arguments": {"limit": 5}}]
    assert tools["contract"] == before["contract"] == after["contract"] == loaded.digest
    assert before["reload"]["ok"] is True
    assert after["reload"]["ok"] is False
    assert after["reload"]["accepted_at"] == before["reload"]["accepted_at"]
    assert after["reload"]["refusals"] == [refusal.as_json() for refusal in refused]


async def test_a_tried_call_shows_the_full_answer_beside_the_card_and_is_counted_once(tmp_path: Path) -> None:
    async with backend(http(FULL)) as api, serving(contract(tmp_path, api.url)) as served:
        status, told = await tried(served.addresses["admin"])
        found = await samples(served.addresses["admin"])
    assert status == 200
    assert len(api.received) == 1, "one call, and not one for each side"
    assert told["ok"] is True
    assert told["code"] == "ok"
    assert told["full_bytes"] == len(json.dumps(FULL))
    assert told["card_bytes"] == len(b'{"people":[{"id":12345678901234567890123}]}')
    assert json.loads(told["accepted"]) == {"limit": 10}
    assert [text.strip() for text, _ in told["card"]["lines"]] == [
        "{", '"people": [', "{", '"id": 12345678901234567890123', "}", "]", "}",
    ]  # fmt: skip
    assert [text.strip() for text, dropped in told["full"]["lines"] if dropped] == ['"name": "Ada"', '"note": "hello"']
    assert (told["full"]["values"], told["full"]["kept"]) == (3, 1)
    assert told["undeclared"] == [["people[].ssn", 1]], "its path, for whoever writes the contract"
    assert "1-2-3" not in json.dumps(told), "an undeclared value shows nowhere"
    assert found["toolview_tool_calls_total", "ok", "console", "list_people"] == 1


async def test_a_failed_call_shows_its_envelope_and_what_came_before(tmp_path: Path) -> None:
    async with backend(http({"error": "no"}, status=503)) as api, serving(contract(tmp_path, api.url)) as served:
        admin = served.addresses["admin"]
        _, refused = await tried(admin, {"limit": 0})
        _, unknown = await tried(admin, tool="nothing_such")
        _, failed = await tried(admin)
    assert refused["code"] == "VALIDATION_ERROR"
    assert "limit" in text_of(refused["failure"])
    assert unknown["code"] == "UNKNOWN_TOOL"
    assert failed["code"] == "BACKEND_ERROR"
    assert refused["full"] is unknown["full"] is failed["full"] is failed["card"] is None
    assert len(api.received) == 1


async def test_a_full_answer_that_makes_no_card_is_shown_all_the_same(tmp_path: Path) -> None:
    text = CONTRACT.replace("defaults: {limit: 10}", "budget: 8").replace("GATEWAY", "").replace("SCOPES", "[]")
    async with backend(http(FULL)) as api, serving(accepted(tmp_path, text.replace("URL", api.url))) as served:
        _, told = await tried(served.addresses["admin"])
    assert told["code"] == "ANSWER_OVER_BUDGET"
    assert '"Ada"' in text_of(told["full"])
    assert told["card"] is None


async def test_a_backend_that_says_its_credentials_back_does_not_bring_them_onto_the_page(tmp_path: Path) -> None:
    def echo(request: Received) -> bytes:
        return http({"people": [], "note": " ".join(value for _, value in request.headers)})

    async with backend(echo) as api, serving(contract(tmp_path, api.url)) as served:
        _, told = await tried(served.addresses["admin"])
    assert api.received[0].header("X-Key") == "planted-header"
    assert "(left out)" in text_of(told["full"])
    assert "planted" not in json.dumps(told)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (JSON, 200),
        (JSON + "Sec-Fetch-Site: same-origin\r\nOrigin: http://HOST\r\n", 200),
        (JSON + "Sec-Fetch-Site: same-site\r\n", 403),
        (JSON + "Sec-Fetch-Site: cross-site\r\n", 403),
        (JSON + "Sec-Fetch-Site: none\r\n", 403),
        (JSON + "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n", 403),
        (JSON + "Origin: http://evil.example\r\n", 403),
        (JSON + "Origin: http://localhost:1\r\n", 403),
        (JSON + "Origin: null\r\n", 403),
        (JSON + "Host: evil.example\r\n", 421),
        ("Content-Type: application/json; charset=utf-8\r\n", 200),
        ("Content-Type: text/plain\r\n", 415),
        ("Content-Type: application/x-www-form-urlencoded\r\n", 415),
        ("Content-Type: text/plain; application/json\r\n", 415),
        ("", 415),
    ],
)
async def test_no_page_of_another_origin_can_try_a_tool(tmp_path: Path, headers: str, status: int) -> None:
    async with backend(http(FULL)) as api, serving(contract(tmp_path, api.url)) as served:
        admin = served.addresses["admin"]
        assert (await tried(admin, headers=headers.replace("HOST", str(admin))))[0] == status
    assert len(api.received) == (status == 200)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"tool": "list_people"}', b'{"tool": 1, "arguments": {}}', b"\xff",
             b'{"tool": "list_people", "arguments": []}', b'{"tool": "list_people", "arguments": {}, "more": 1}'],
)  # fmt: skip
async def test_a_body_that_is_no_question_is_refused_in_words(tmp_path: Path, body: bytes) -> None:
    async with serving(contract(tmp_path, "http://127.0.0.1:1")) as served:
        status, _, answer = await fetch(served.addresses["admin"], "POST", "/console/try", body, JSON)
    assert status == 400
    assert json.loads(answer)["error"] == "bad_request"


async def test_where_keys_are_known_trying_takes_one_also_on_loopback_and_its_scopes_hold(tmp_path: Path) -> None:
    async with backend(http(FULL)) as api, serving(contract(tmp_path, api.url, KEYS, "[read]")) as served:
        admin = served.addresses["admin"]
        nobody = await tried(admin)
        holder = await tried(admin, headers=JSON + "Authorization: Bearer k1\r\n")
        other = await tried(admin, headers=JSON + "Authorization: Bearer k2\r\n")
        looks = (await fetch(admin, "GET", "/console/state"))[0]
    assert nobody[0] == 401
    assert holder[1]["code"] == "ok"
    assert other[1]["code"] == "UNKNOWN_TOOL", "a tool that it may not use is one that is not there"
    assert looks == 200, "on loopback whoever runs the host may look"
    assert len(api.received) == 1


async def test_off_loopback_the_page_comes_without_a_key_and_nothing_of_the_contract_does(tmp_path: Path) -> None:
    loaded = contract(tmp_path, "http://127.0.0.1:1", KEYS)
    moved = loaded.gateway.admin.model_copy(update={"listen": Address("0.0.0.0", 0)})
    from dataclasses import replace

    async with serving(replace(loaded, gateway=replace(loaded.gateway, admin=moved))) as served:
        admin = Address("127.0.0.1", served.addresses["admin"].port)
        for path in ("/console", "/console/console.js", "/console/console.css", "/console/icon.svg"):
            assert (await fetch(admin, "GET", path))[0] == 200
        for path in ("/console/state", "/console/tools", "/-/contract", "/metrics"):
            assert (await fetch(admin, "GET", path))[0] == 401
            assert (await fetch(admin, "GET", path, headers="Authorization: Bearer k1\r\n"))[0] == 200
        assert (await tried(admin))[0] == 401


async def test_a_page_under_a_name_that_hosts_holds_may_ask_and_one_under_another_may_not(tmp_path: Path) -> None:
    loaded = contract(tmp_path, "http://127.0.0.1:1")
    named = loaded.gateway.admin.model_copy(update={"hosts": ("ops.example",)})
    from dataclasses import replace

    async with serving(replace(loaded, gateway=replace(loaded.gateway, admin=named))) as served:
        admin = served.addresses["admin"]
        origins = [
            (await fetch(admin, "GET", "/console/state", headers=f"Host: {host}\r\nOrigin: https://{origin}\r\n"))[0]
            for host, origin in [
                ("ops.example", "ops.example"),
                ("ops.example:8443", "ops.example:8443"),
                ("ops.example", "ops.example:8443"),
                ("ops.example", "evil.example"),
            ]
        ]
    assert origins == [200, 200, 403, 403]


async def test_the_contract_is_shown_as_it_was_loaded_and_without_its_secrets(tmp_path: Path) -> None:
    async with serving(contract(tmp_path, "http://127.0.0.1:1", KEYS)) as served:
        status, headers, body = await fetch(served.addresses["admin"], "GET", "/-/contract")
        digest = served.gateway.generation.contract.digest
    shown = json.loads(body)
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert shown["digest"] == digest
    assert shown["contract"]["endpoints"]["people.list"]["request"] == "GET /people"
    assert shown["contract"]["backends"]["api"]["headers"] == {"X-Key": "***"}
    assert "planted" not in body.decode()
    assert hashlib.sha256(b"k1").hexdigest() not in body.decode()
