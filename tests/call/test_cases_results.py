"""Results of tools as public bug reports want them: told apart, held against their own schema, nothing invented."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.call.outcome import Outcome
from gateway.contract.values import Address
from tests.rig import HANG, Received, accepted, backend, http, running
from tests.test_serve import agent, fetch, one_exchange, samples, serving

LISTENERS = "gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}"


def contract(url: str, endpoints: dict[str, Any], gateway: str = "", **said: Any) -> str:
    """A contract over one backend; flow YAML is JSON."""
    api = {"url": url, "passthrough": "127.0.0.1:0", **said}
    return f"version: 1\n{gateway}\nbackends: {json.dumps({'api': api})}\nendpoints: {json.dumps(endpoints)}\n"


def endpoint(request: str, output: Any = None, **said: Any) -> dict[str, Any]:
    return {"request": request, "description": "Told.", **({"output": output} if output is not None else {}), **said}


FOO = {"type": "object", "properties": {"foo": {"type": "string"}}}


@pytest.mark.parametrize("found", [None, 1, ["a"], {"secret": "s3cret"}], ids=str)
async def test_res_01_another_type_than_declared_is_told_by_pointer_and_types_and_plain_clients_get_it_whole(
    tmp_path: Path, found: Any
) -> None:
    answer = {"foo": found}
    async with backend(http(answer)) as api:
        text = contract(api.url, {"strict": endpoint("GET /x", FOO)}, LISTENERS)
        async with serving(accepted(tmp_path, text)) as served:
            status, _, body = await agent(served.addresses["tools"], "strict", {})
            request = b"GET /x HTTP/1.1\r\nHost: legacy\r\n\r\n"
            plain = await one_exchange(served.addresses["passthrough.api"], request)
    told = json.loads(body)
    assert (status, told["code"], told["retryable"]) == (502, "BACKEND_ANSWER_INVALID", False)
    (violation,) = told["details"]["violations"]
    kinds = {type(None): "null", int: "integer", list: "array", dict: "object"}
    assert violation == {
        "pointer": "/foo",
        "rule": "type",
        "message": f"expected string, found {kinds[type(found)]}",
        "found": kinds[type(found)],
    }
    assert "s3cret" not in body.decode()
    assert plain == http(answer)


async def test_res_01_observe_counts_it_and_answers_what_is_right(tmp_path: Path) -> None:
    output = {"type": "object", "properties": {"foo": {"type": "string"}, "id": {"type": "integer"}}}
    view = {"output": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    said = endpoint("GET /x", output, validate="observe", tool={"view": view})
    answer = http({"id": 1, "foo": None})
    async with backend(answer) as api, running(accepted(tmp_path, contract(api.url, {"one": said}))) as gateway:
        outcome = await gateway.call("one")
    assert outcome.body == b'{"id":1}'
    assert outcome.violations == ("/properties/foo/type",)


async def test_res_03_each_answer_is_held_against_its_own_endpoint_and_status(tmp_path: Path) -> None:
    user = {"type": "object", "required": ["user"], "properties": {"user": {"type": "object"}}}
    rows = {"type": "object", "required": ["data"], "properties": {"data": {"type": "array"}}}
    made = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    held = {"me": endpoint("GET /me", user), "all": endpoint("GET /all", rows)}
    held["make"] = endpoint("POST /make", {"200": rows, "201": made})

    def answer(request: Received) -> bytes:
        body = {"/me": {"user": {}}, "/all": {"data": []}, "/make": {"id": 7}}[request.target]
        return http(body, status=201 if request.method == "POST" else 200)

    async with backend(answer) as api, running(accepted(tmp_path, contract(api.url, held))) as gateway:
        outcomes = [await gateway.call(name) for name in ("me", "all", "make")]
    assert [outcome.body for outcome in outcomes] == [b'{"user":{}}', b'{"data":[]}', b'{"id":7}']


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_res_05_a_failed_backend_is_no_success_and_saves_no_bytes(tmp_path: Path, status: int) -> None:
    async with backend(http({"foo": "a", "error": "invalid_token"}, status=status)) as api:
        text = contract(api.url, {"one": endpoint("GET /x", FOO)}, LISTENERS)
        async with serving(accepted(tmp_path, text)) as served:
            _, _, body = await agent(served.addresses["tools"], "one", {})
            result = (await mcp_call(served.addresses["tools"], "one"))["result"]
            found = await samples(served.addresses["admin"])
    told = json.loads(body)
    assert told["ok"] is False
    assert told["code"] == {401: "UNAUTHORIZED", 404: "NOT_FOUND", 500: "BACKEND_ERROR"}[status]
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert json.loads(result["content"][0]["text"])["code"] == told["code"]
    for surface in ("agent", "mcp"):
        assert found["toolview_tool_calls_total", told["code"], surface, "one"] == 1
        assert ("toolview_tool_calls_total", "ok", surface, "one") not in found
        assert found.get(("toolview_tool_full_bytes_total", surface, "one"), 0) == 0
        assert found.get(("toolview_tool_view_bytes_total", surface, "one"), 0) == 0


async def mcp_call(address: Address, tool: str) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
    _, _, answer = await fetch(address, "POST", "/mcp", body.encode(), "Content-Type: application/json\r\n")
    return json.loads(answer)


async def test_res_06_six_ways_to_fail_are_six_answers(tmp_path: Path) -> None:
    """What 500 says of repeating is decided in docs/decisions/0072."""

    async def ended(answer: bytes, method: str = "GET", deadline: str = "10s") -> Outcome:
        async with backend(answer) as api:
            said = endpoint(f"{method} /x", FOO, timeout=deadline)
            async with running(accepted(tmp_path, contract(api.url, {"one": said}))) as gateway:
                return await gateway.call("one")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with running(accepted(tmp_path, contract(nobody, {"one": endpoint("GET /x", FOO)}))) as gateway:
        refused = await gateway.call("one")
    outcomes = [
        await ended(http({}, 400)),
        await ended(http({}, 404)),
        limited := await ended(http({}, 429, {"Retry-After": "7"})),
        await ended(http({}, 500)),
        await ended(HANG, deadline="50ms"),
        await ended(HANG, "POST", deadline="50ms"),
        refused,
    ]
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    assert [(failed.code, failed.retryable) for failed in failures] == [
        ("BAD_REQUEST", False),
        ("NOT_FOUND", False),
        ("RATE_LIMITED", True),
        ("BACKEND_ERROR", False),
        ("BACKEND_TIMEOUT", True),
        ("BACKEND_TIMEOUT", False),
        ("BACKEND_UNREACHABLE", True),
    ]
    assert limited.failure is not None
    assert limited.failure.details["retry_after"] == 7


async def test_res_12_a_view_may_show_a_wide_id_as_text_for_clients_that_have_no_such_numbers(tmp_path: Path) -> None:
    wide = b'{"id":1915883588174806058}'
    output = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    shown = {"type": "object", "properties": {"id": {"type": "integer"}, "id_str": {"type": "string"}}}
    view = {"output": shown, "project": {"jmespath": "{id: full.id, id_str: to_string(full.id)}"}}
    async with backend(http(wide)) as api:
        text = contract(api.url, {"one": endpoint("GET /x", output, tool={"view": view})}, LISTENERS)
        async with serving(accepted(tmp_path, text)) as served:
            result = (await mcp_call(served.addresses["tools"], "one"))["result"]
    both = {"id": 1915883588174806058, "id_str": "1915883588174806058"}
    assert result["structuredContent"] == both
    assert json.loads(result["content"][0]["text"]) == both


ITEMS = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"id": {"type": "integer"}, "x": {"type": "integer"}}},
        }
    },
}
IDS = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}},
}


@pytest.mark.parametrize(
    ("output", "view", "answer", "shown"),
    [
        ({"type": "array", "items": ITEMS}, {"output": {"type": "array", "items": IDS}}, [], b"[]"),
        (ITEMS, {"output": IDS}, {"items": []}, b'{"items":[]}'),
        (ITEMS, {"output": IDS}, {}, b"{}"),
        (ITEMS, {"output": IDS}, {"items": [{"x": 1}, {"id": 2}]}, b'{"items":[{},{"id":2}]}'),
        (ITEMS, {"output": IDS}, None, None),
        ({"type": ["object", "null"]}, {"output": {"type": ["object", "null"]}}, None, b"null"),
    ],
    ids=["an empty root", "empty rows", "no rows", "rows without the key", "null", "null where it may be"],
)
async def test_res_13_what_is_missing_stays_missing(
    tmp_path: Path, output: Any, view: Any, answer: Any, shown: bytes | None
) -> None:
    async with backend(http(answer)) as api:
        text = contract(api.url, {"one": endpoint("GET /x", output, tool={"view": view})})
        async with running(accepted(tmp_path, text)) as gateway:
            outcome = await gateway.call("one")
    assert outcome.body == shown
    assert outcome.code == ("ok" if shown is not None else "BACKEND_ANSWER_INVALID")


async def test_met_03_a_call_that_was_sent_twice_is_counted_once(tmp_path: Path) -> None:
    seen: list[Received] = []

    def answer(request: Received) -> bytes | None:
        seen.append(request)
        return None if len(seen) == 2 else http({"foo": "a"})

    async with backend(answer) as api:
        text = contract(api.url, {"one": endpoint("GET /x", FOO)}, LISTENERS)
        async with serving(accepted(tmp_path, text)) as served:
            for _ in range(
                2
            ):  # the second goes out on a connection that the backend closes, and once more on a new one
                assert (await agent(served.addresses["tools"], "one", {}))[0] == 200
            found = await samples(served.addresses["admin"])
    assert len(seen) == 3
    assert found["toolview_tool_calls_total", "ok", "agent", "one"] == 2
    assert found["toolview_tool_full_bytes_total", "agent", "one"] == 2 * len(json.dumps({"foo": "a"}))


@pytest.mark.parametrize("name", ['a"b', "a\\c", "a\nd", "é", "a b", "x" * 1000])
async def test_met_04_no_name_of_a_caller_becomes_a_label(tmp_path: Path, name: str) -> None:
    """No contract can have such a name (tests/contract/test_cases_contract.py); a caller can ask for it."""
    async with backend(http({"foo": "a"})) as api:
        text = contract(api.url, {"one": endpoint("GET /x", FOO)}, LISTENERS)
        async with serving(accepted(tmp_path, text)) as served:
            status, _, _ = await agent(served.addresses["tools"], quote(name, safe=""), {})
            found = await samples(served.addresses["admin"])
    assert status == 404
    assert [key for key in found if key[0] == "toolview_tool_calls_total"] == [
        ("toolview_tool_calls_total", "UNKNOWN_TOOL", "agent", "unknown")
    ]


async def test_prs_03_an_answer_that_expands_without_end_stops_at_the_limit(tmp_path: Path) -> None:
    bomb = gzip.compress(b'{"foo":"' + b"0" * 5_000_000 + b'"}')
    async with backend(http(bomb, headers={"Content-Encoding": "gzip"})) as api:
        text = contract(api.url, {"one": endpoint("GET /x", FOO)}, limits={"answer": 100_000})
        async with running(accepted(tmp_path, text)) as gateway:
            outcome = await gateway.call("one")
    assert outcome.code == "BACKEND_ANSWER_TOO_LARGE"
    assert (outcome.body, outcome.full_bytes) == (None, 0)
