"""The whole gateway on real sockets: listeners, pass-through identity, byte counters, who may speak to it, draining."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.contract.model import Contract
from gateway.contract.values import Address
from gateway.serve import PortTaken, Serving
from tests.rig import Held, Received, accepted, backend, contract_at, http

LISTENERS = "gateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}}}"
CONTRACT = """
    version: 1
    LISTENERS
    backends: {{api: {{url: {url}, passthrough: 127.0.0.1:0}}}}
    endpoints:
      people.list:
        request: GET /people/{{team}}
        description: Lists people.
        expose: [http, mcp, agent, cli]
        input:
          type: object
          required: [team]
          properties: {{team: {{type: string}}, include: {{type: array, items: {{type: string}}}}}}
        send: {{include: {{explode: false, empty: blank}}}}
        output: {{type: object, required: [people], properties: {{people: {{type: array, items: {{type: object, required: [id], properties: {{id: {{type: integer}}, ssn: {{type: string}}}}}}}}}}}}
        VIEW
""".replace("LISTENERS", LISTENERS)
VIEW = "tool: {{name: list_people, view: {{defaults: {{include: []}}, output: {{type: object, required: [people], properties: {{people: {{type: array, items: {{type: object, required: [id], properties: {{id: {{type: integer}}}}}}}}}}}}}}}}"
FULL = {"people": [{"id": 12345678901234567890123, "ssn": "1-2-3"}, {"id": 2, "ssn": "4-5-6"}]}


@asynccontextmanager
async def serving(contract: Contract) -> AsyncIterator[Serving]:
    served = Serving(contract)
    assert await served.start() is None
    try:
        yield served
    finally:
        await served.stop(1)


async def exchange(address: Address, request: bytes) -> bytes:
    """Send raw bytes and read to the end of the connection."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()


async def fetch(
    address: Address, method: str, path: str, body: bytes = b"", headers: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """One request; answers status, headers by lower-case name, and body."""
    host = "" if "Host:" in headers else f"Host: {address}\r\n"
    request = f"{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    answer = await exchange(address, request.encode() + body)
    head, _, content = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:]}
    return int(lines[0].split()[1]), fields, content


async def agent(address: Address, tool: str, arguments: object) -> tuple[int, dict[str, str], bytes]:
    return await fetch(address, "POST", f"/agent/tools/{tool}", json.dumps(arguments).encode())


async def samples(address: Address) -> dict[tuple[str, ...], float]:
    """Every sample of /metrics, by name and sorted label values, read by the official parser."""
    _, _, text = await fetch(address, "GET", "/metrics")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.requirement("196-c-http-unchanged")
async def test_plain_http_is_the_same_with_and_without_a_view(tmp_path: Path) -> None:
    def answer(request: Received) -> bytes:
        return http(FULL, headers={"X-Seen": request.target, "set-cookie": "a=1", "Set-Cookie": "b=2"})

    requests = [
        b"GET /people/a%2Fb//c?  HTTP/1.1\r\nhOst: legacy\r\nX-Odd:  two\r\nConnection: close\r\n\r\n".replace(
            b"?  H", b"? H"
        ),
        b"GET /people/core?include=stats HTTP/1.1\r\nHost: legacy\r\nConnection: close\r\n\r\n",
        b"POST /people/core HTTP/1.1\r\nHost: legacy\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    ]

    async def answers(text: str, folder: str) -> tuple[list[bytes], list[bytes]]:
        (tmp_path / folder).mkdir()
        async with backend(answer) as api:
            async with serving(accepted(tmp_path / folder, text.format(url=api.url))) as served:
                port = served.addresses["passthrough.api"]
                told = [await one_exchange(port, request) for request in requests]
            direct = [
                await one_exchange(Address("127.0.0.1", int(api.url.rsplit(":", 1)[1])), each) for each in requests
            ]
            assert told == direct
            return told, [received.raw for received in api.received[: len(requests)]]

    with_view = await answers(CONTRACT.replace("VIEW", VIEW), "with")
    without = await answers(CONTRACT.replace("VIEW", ""), "without")
    assert with_view == without
    assert with_view[1] == requests


async def one_exchange(address: Address, request: bytes) -> bytes:
    """One answer with a known length, without waiting for the connection's end."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    answer = head + await reader.readexactly(length)
    writer.close()
    return answer


@pytest.mark.requirement("196-5-tool-surfaces-apply-it")
async def test_the_tool_path_sends_the_view_default_and_shows_the_card(tmp_path: Path) -> None:
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", VIEW).format(url=api.url))
        async with serving(contract) as served:
            status, headers, body = await agent(served.addresses["tools"], "list_people", {"team": "core"})
            catalog = served.gateway.generation.catalog("agent", None)
    assert api.received[0].target == "/people/core?include="
    assert status == 200
    assert body == b'{"ok":true,"data":{"people":[{"id":12345678901234567890123},{"id":2}]}}'
    assert headers["toolview-catalog"] == catalog.digest


@pytest.mark.requirement("s12-80-bytes")
async def test_after_ten_calls_the_bytes_are_right_to_the_byte_and_failures_add_none(tmp_path: Path) -> None:
    def answer(request: Received) -> bytes:
        return http(FULL) if "/core" in request.target else http({"people": [{"id": "no"}]})

    async with backend(answer) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", VIEW).format(url=api.url))
        async with serving(contract) as served:
            tools, admin = served.addresses["tools"], served.addresses["admin"]
            for _ in range(10):
                assert (await agent(tools, "list_people", {"team": "core"}))[0] == 200
            assert (await agent(tools, "list_people", {"team": "broken"}))[0] == 502
            assert (await agent(tools, "list_people", {}))[0] == 400
            assert (await agent(tools, 'no"such\\tool', {}))[0] == 404
            found = await samples(admin)
    card = len(b'{"people":[{"id":12345678901234567890123},{"id":2}]}')
    assert found["toolview_tool_full_bytes_total", "agent", "list_people"] == 10 * len(json.dumps(FULL))
    assert found["toolview_tool_view_bytes_total", "agent", "list_people"] == 10 * card
    assert found["toolview_tool_calls_total", "ok", "agent", "list_people"] == 10
    assert found["toolview_tool_calls_total", "BACKEND_ANSWER_INVALID", "agent", "list_people"] == 1
    assert found["toolview_tool_calls_total", "VALIDATION_ERROR", "agent", "list_people"] == 1
    assert found["toolview_tool_calls_total", "UNKNOWN_TOOL", "agent", "unknown"] == 1
    assert found["toolview_tool_duration_seconds_count", "list_people"] == 12
    assert found["toolview_backend_duration_seconds_count", "list_people"] == 11
    assert found["toolview_contract_info", contract.digest] == 1
    assert found["toolview_tool_catalog_bytes", "list_people", "standard"] > 0
    assert found["toolview_tool_catalog_bytes", "list_people", "compact"] > 0
    assert found["toolview_config_last_reload_successful",] == 1
    assert found["toolview_calls_in_flight", "api"] == 0
    assert found["toolview_breaker_state", "api"] == 0


async def test_full_bytes_are_those_after_the_content_coding(tmp_path: Path) -> None:
    """MET-03."""
    import gzip

    full = {"people": [{"id": number, "ssn": "0" * 50} for number in range(50)]}
    packed = gzip.compress(json.dumps(full).encode())
    async with backend(http(packed, headers={"Content-Encoding": "gzip"})) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", VIEW).format(url=api.url))
        async with serving(contract) as served:
            await agent(served.addresses["tools"], "list_people", {"team": "core"})
            found = await samples(served.addresses["admin"])
    assert found["toolview_tool_full_bytes_total", "agent", "list_people"] == len(json.dumps(full)) > len(packed)


async def test_a_view_larger_than_the_full_answer_is_counted_as_it_is(tmp_path: Path) -> None:
    """MET-02."""
    grown = VIEW.replace("view: {{", "view: {{project: {{jmespath: '{{people: full.people[].[@, @, @][]}}'}}, ")
    async with backend(http({"people": [{"id": 1}]})) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", grown).format(url=api.url))
        async with serving(contract) as served:
            await agent(served.addresses["tools"], "list_people", {"team": "core"})
            found = await samples(served.addresses["admin"])
    full = found["toolview_tool_full_bytes_total", "agent", "list_people"]
    assert found["toolview_tool_view_bytes_total", "agent", "list_people"] > full > 0


async def test_the_pass_through_is_counted_by_method_and_status_class(tmp_path: Path) -> None:
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", "").format(url=api.url))
        async with serving(contract) as served:
            request = b"BREW /people/core HTTP/1.1\r\nHost: x\r\n\r\n"
            answer = await one_exchange(served.addresses["passthrough.api"], request)
            found = await samples(served.addresses["admin"])
    assert found["toolview_passthrough_requests_total", "api", "other", "2xx"] == 1
    assert found["toolview_passthrough_bytes_total", "api", "in"] == len(request)
    assert found["toolview_passthrough_bytes_total", "api", "out"] == len(answer)


async def test_admin_off_loopback_asks_for_a_key_but_not_its_probes(tmp_path: Path) -> None:
    key = hashlib.sha256(b"k1").hexdigest()
    auth = f"gateway: {{{{auth: {{{{keys: [{{{{name: ops, sha256: {key}}}}}]}}}}, "
    text = CONTRACT.replace("gateway: {{", auth).replace("admin: {{listen: 127.0.0.1:0", "admin: {{listen: 0.0.0.0:0")
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, text.replace("VIEW", "").format(url=api.url))
        async with serving(contract) as served:
            admin = Address("127.0.0.1", served.addresses["admin"].port)
            statuses = [
                (await fetch(admin, "GET", path, headers=headers))[0]
                for path, headers in [
                    ("/metrics", ""),
                    ("/metrics", "Authorization: Bearer k1\r\n"),
                    ("/-/ready", ""),
                    ("/-/healthy", ""),
                ]
            ]
    assert statuses == [401, 200, 200, 200]


def test_two_keys_that_are_the_same_are_refused(tmp_path: Path) -> None:
    key = hashlib.sha256(b"k1").hexdigest()
    keys = f"[{{name: a, sha256: {key}, scopes: [x]}}, {{name: a, sha256: {key.upper()}, scopes: [y]}}]"
    text = (
        CONTRACT.replace("VIEW", "")
        .format(url="http://127.0.0.1:1")
        .replace("gateway: {", f"gateway: {{auth: {{keys: {keys}}}, ")
    )
    refusals = contract_at(tmp_path, text)
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == ["gateway.auth.keys[1].name", "gateway.auth.keys[1].sha256"]


async def test_only_declared_lets_declared_requests_through_and_no_other(tmp_path: Path) -> None:
    text = CONTRACT.replace("passthrough: 127.0.0.1:0", "passthrough: {{listen: 127.0.0.1:0, only: declared}}")
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, text.replace("VIEW", "").format(url=f"{api.url}/base/"))
        async with serving(contract) as served:
            port = served.addresses["passthrough.api"]
            statuses = [
                (await one_exchange(port, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()))[9:12].decode()
                for method, path in [
                    ("GET", "/base/people/a%2Fb?x=1"),
                    ("GET", "/base/people/a/b"),
                    ("GET", "/people/a"),
                    ("POST", "/base/people/a"),
                ]
            ]
    assert statuses == ["200", "404", "404", "405"]
    assert [request.target for request in api.received] == ["/base/people/a%2Fb?x=1"]


async def test_health_and_readiness_are_told(tmp_path: Path) -> None:
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", "").format(url=api.url))
        async with serving(contract) as served:
            admin = served.addresses["admin"]
            assert (await fetch(admin, "GET", "/-/healthy"))[0] == 200
            status, _, body = await fetch(admin, "GET", "/-/ready")
    assert status == 200
    assert json.loads(body) == {"ready": True, "contract": contract.digest, "backends": {"api": None}}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", "", 404),
        ("GET", "/agent/tools/x", "", 405),
        ("DELETE", "/mcp", "", 405),
        ("GET", "/agent/tools", "Host: evil.example\r\n", 421),
        ("GET", "/agent/tools", "Host: 127.0.0.1.evil.example\r\n", 421),
        ("GET", "/agent/tools", "Host: [::1].evil.example\r\n", 421),
        ("GET", "/agent/tools", "Host: [::1\r\n", 421),
        ("GET", "/agent/tools", "Host: 127.0.0.1:80@evil.example\r\n", 421),
        ("GET", "/agent/tools", "Host: localhost:1\r\n", 200),
        ("GET", "/agent/tools", "Host: localhost.\r\n", 200),
        ("GET", "/agent/tools", "Host: [::1]:1\r\n", 200),
        ("GET", "/agent/tools", "Origin: http://[evil\r\n", 403),
        ("GET", "/agent/tools", "Host: [::1]:1\r\nOrigin: http://[::1]:1\r\n", 200),
        ("GET", "/agent/tools", "Host: [::1]:1\r\nOrigin: evil://[::1]:1\r\n", 403),
        ("GET", "/agent/tools", "Host: [::1]:1\r\nOrigin: http://[::1]:1\r\nOrigin: http://evil.example\r\n", 403),
        ("POST", "/agent/tools/people_list", "Content-Encoding: gzip\r\n", 400),
        ("GET", "/agent/tools", "Origin: http://evil.example\r\n", 403),
        ("GET", "/agent/tools", "Origin: null\r\n", 403),
        ("GET", "/agent/tools?format=xml", "", 400),
    ],
)
async def test_the_listener_refuses_in_json(tmp_path: Path, method: str, path: str, headers: str, status: int) -> None:
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", "").format(url=api.url))
        async with serving(contract) as served:
            content = b"broken" if "gzip" in headers else b""
            told, fields, body = await fetch(served.addresses["tools"], method, path, content, headers)
    assert told == status
    assert fields["content-type"] == "application/json"
    if status >= 400:
        assert set(json.loads(body)) == {"error", "message"}
    if status == 405:
        assert fields["allow"] in ("POST", "GET")


async def test_a_body_over_the_limit_is_413(tmp_path: Path) -> None:
    text = CONTRACT.replace("VIEW", "").replace("gateway: {{", "gateway: {{limits: {{body: 100}}, ")
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, text.format(url=api.url))
        async with serving(contract) as served:
            tools = served.addresses["tools"]
            assert (await fetch(tools, "POST", "/agent/tools/people_list", b" " * 101))[0] == 413
            chunked = b"POST /agent/tools/people_list HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            answer = await exchange(tools, chunked + b"65\r\n" + b" " * 101 + b"\r\n0\r\n\r\n")
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert api.received == []


async def test_a_taken_port_is_said_and_nothing_is_left_open(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = Address(*probe.getsockname())
    async with backend(http(FULL)) as api:
        taken = api.url.removeprefix("http://")
        text = CONTRACT.replace("admin: {{listen: 127.0.0.1:0}}", f"admin: {{{{listen: {taken}}}}}")
        text = text.replace("tools: {{listen: 127.0.0.1:0}}", f"tools: {{{{listen: {free}}}}}")
        contract = accepted(tmp_path, text.replace("VIEW", "").format(url=api.url))
        served = Serving(contract)
        told = await served.start()
    assert isinstance(told, PortTaken)
    (message,) = told.messages
    assert taken in message
    assert "admin" in message
    with pytest.raises(OSError):
        await exchange(free, b"x")


async def test_stopping_finishes_the_call_in_flight(tmp_path: Path) -> None:
    held = Held(http(FULL))
    async with backend(held) as api:
        served = Serving(accepted(tmp_path, CONTRACT.replace("VIEW", VIEW).format(url=api.url)))
        assert await served.start() is None
        call = asyncio.create_task(agent(served.addresses["tools"], "list_people", {"team": "core"}))
        await held.was_asked()
        stopping = asyncio.create_task(served.stop(10))
        held.release.set()
        status, _, body = await call
        await stopping
    assert status == 200
    assert body.startswith(b'{"ok":true,"data":{"people"')


async def test_an_idle_kept_connection_is_not_waited_for(tmp_path: Path) -> None:
    async with backend(http(FULL)) as api:
        served = Serving(accepted(tmp_path, CONTRACT.replace("VIEW", "").format(url=api.url)))
        assert await served.start() is None
        tools = served.addresses["tools"]
        reader, writer = await asyncio.open_connection(tools.host, tools.port)
        writer.write(f"GET /agent/tools HTTP/1.1\r\nHost: {tools}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(10):
            await served.stop(3600)
        writer.close()


@pytest.mark.parametrize("stays", [True, False])
async def test_stopping_ends_within_the_grace_also_for_a_write_whose_caller_has_left(
    tmp_path: Path, stays: bool
) -> None:
    arrived = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    text = CONTRACT.replace("VIEW", "").replace("{{explode: false, empty: blank}}", "{{in: body}}")
    text = text.replace("request: GET", "request: POST")
    served = Serving(accepted(tmp_path, text.format(url=url)))
    assert await served.start() is None
    params = {"name": "people_list", "arguments": {"team": "core"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = "Content-Type: application/json\r\n"
    call = asyncio.create_task(fetch(served.addresses["tools"], "POST", "/mcp", message, headers))
    await arrived.wait()
    if not stays:
        call.cancel()
    began = asyncio.get_running_loop().time()
    await served.stop(1)
    server.close()
    await asyncio.gather(call, return_exceptions=True)
    assert asyncio.get_running_loop().time() - began < 1.7


@pytest.mark.parametrize("given", ["é", "\xff", "x y", "a" * 129])
async def test_a_callers_id_that_cannot_travel_is_replaced(tmp_path: Path, given: str) -> None:
    body = b'{"team": "core"}'
    head = f"Host: localhost\r\nConnection: close\r\nX-Tool-Call-Id: {given}\r\nContent-Length: {len(body)}"
    request = f"POST /agent/tools/list_people HTTP/1.1\r\n{head}\r\n\r\n".encode("latin-1")
    async with backend(http(FULL)) as api:
        contract = accepted(tmp_path, CONTRACT.replace("VIEW", VIEW).format(url=api.url))
        async with serving(contract) as served:
            answer = await exchange(served.addresses["tools"], request + body)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert f"X-Tool-Call-Id: {given}\r\n".encode("latin-1") not in answer
    assert len(api.received) == 1


async def test_a_caller_that_leaves_the_agent_surface_cancels_the_backend_call(tmp_path: Path) -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        left.set()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with serving(accepted(tmp_path, CONTRACT.replace("VIEW", VIEW).format(url=url))) as served:
        call = asyncio.create_task(agent(served.addresses["tools"], "list_people", {"team": "core"}))
        await arrived.wait()
        call.cancel()
        await asyncio.wait_for(left.wait(), 1)
        found = await samples(served.addresses["admin"])
    server.close()
    assert found["toolview_tool_calls_total", "REQUEST_ABORTED", "agent", "list_people"] == 1
