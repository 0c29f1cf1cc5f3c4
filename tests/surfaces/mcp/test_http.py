"""`POST /mcp` on a real socket: statuses, headers, who may speak, who may leave."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from gateway.backend.decode import _Zlib
from gateway.call.outcome import Call, Code, Outcome
from gateway.surfaces.mcp import answers
from gateway.surfaces.mcp.wire import MODERN_VERSION
from tests.surfaces.mcp.fakes import FakeGateway, always, answered, failed, served
from tests.surfaces.mcp.test_wire import META

Json = Any
PING = b'{"jsonrpc":"2.0","id":0,"method":"ping"}'
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Speaker:
    """Posts to one served gateway."""

    def __init__(self, gateway: FakeGateway, url: str, session: aiohttp.ClientSession) -> None:
        self.gateway = gateway
        self.url = url
        self.session = session

    async def post(self, body: bytes = PING, **headers: str) -> tuple[int, Json, aiohttp.ClientResponse]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(self.url, data=body, headers={**HEADERS, **named}) as response:
            text = await response.read()
            return response.status, json.loads(text) if text else None, response

    async def legacy(self, method: str, **params: Json) -> tuple[int, Json, aiohttp.ClientResponse]:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return await self.post(json.dumps(message).encode(), MCP_Protocol_Version="2025-11-25")

    async def modern(self, method: str, **params: Json) -> tuple[int, Json, aiohttp.ClientResponse]:
        params["_meta"] = {**META, **params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        named = {"Mcp_Name": params["name"]} if "name" in params else {}
        return await self.post(
            json.dumps(message).encode(), MCP_Protocol_Version=MODERN_VERSION, Mcp_Method=method, **named
        )


@pytest.fixture
async def mcp() -> AsyncIterator[Speaker]:
    gateway = FakeGateway()
    async with served(gateway.as_gateway()) as url, aiohttp.ClientSession() as session:
        yield Speaker(gateway, url, session)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"])
async def test_t1_other_methods_are_405(mcp: Speaker, method: str) -> None:
    async with mcp.session.request(method, mcp.url, headers={"Accept": "text/event-stream"}) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"


async def test_t1_there_are_no_sessions(mcp: Speaker) -> None:
    status, _, response = await mcp.post(Mcp_Session_Id="made-up", Last_Event_ID="9")
    assert status == 200
    assert "Mcp-Session-Id" not in response.headers


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
async def test_t2_a_foreign_origin_is_403_on_every_method(mcp: Speaker, method: str, origin: str) -> None:
    async with mcp.session.request(method, mcp.url, data=PING, headers={**HEADERS, "Origin": origin}) as response:
        assert response.status == 403


async def test_t2_a_foreign_host_is_421_and_the_listeners_own_page_may_speak(mcp: Speaker) -> None:
    assert (await mcp.post(Host="evil.example"))[0] == 421
    assert (await mcp.post(Origin=mcp.url.removesuffix("/mcp")))[0] == 200


async def test_t3_t9_a_refusal_is_json_rpc(mcp: Speaker) -> None:
    status, answer, response = await mcp.post(b"{")
    assert (status, answer["id"], answer["error"]["code"]) == (400, None, -32700)
    assert response.headers["Content-Type"] == "application/json"
    status, answer, _ = await mcp.legacy("made/up")
    assert (status, answer["id"], answer["error"]["code"]) == (200, 7, -32601)
    status, answer, _ = await mcp.modern("made/up")
    assert (status, answer["id"], answer["error"]["code"]) == (404, 7, -32601)


async def test_t5_a_notification_is_202_with_nothing_and_runs_nothing(mcp: Speaker) -> None:
    status, answer, _ = await mcp.post(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"cycle"}}')
    assert (status, answer, mcp.gateway.calls) == (202, None, [])


@pytest.mark.parametrize(
    "accept", ["application/json", "*/*", "application/*", "text/html, application/json;q=0.5", ""]
)
async def test_t6_a_client_that_takes_json_is_answered_in_json(mcp: Speaker, accept: str) -> None:
    status, answer, response = await mcp.post(Accept=accept)
    assert (status, answer) == (200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("accept", ["text/event-stream", "text/html", "application/json;q=0, */*", "application/jsonx"])
async def test_t6_a_client_that_does_not_is_406(mcp: Speaker, accept: str) -> None:
    assert (await mcp.post(Accept=accept))[0] == 406


@pytest.mark.parametrize("content_type", ["text/plain", "application/jsonx", "", "application/json; charset=latin-1"])
async def test_t7_another_content_type_is_415(mcp: Speaker, content_type: str) -> None:
    assert (await mcp.post(Content_Type=content_type))[0] == 415


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"']
)
async def test_t7_json_by_other_spellings_is_taken(mcp: Speaker, content_type: str) -> None:
    assert (await mcp.post(Content_Type=content_type))[0] == 200


async def test_t7_a_body_over_the_limit_is_413_however_it_travels(mcp: Speaker) -> None:
    large = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "a" * 100_000}}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(large), 10_000):
            yield large[at : at + 10_000]

    assert (await mcp.post(large))[0] == 413
    assert (await mcp.post(gzip.compress(large), Content_Encoding="gzip"))[0] == 413
    async with mcp.session.post(mcp.url, data=pieces(), headers=HEADERS) as response:
        assert response.status == 413


async def test_a_body_in_a_coding_is_undone_and_a_bomb_is_never_whole(mcp: Speaker) -> None:
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    assert (await mcp.post(gzip.compress(ping), Content_Encoding="gzip"))[0] == 200
    assert (await mcp.post(gzip.compress(gzip.compress(ping)), Content_Encoding="gzip, gzip"))[0] == 200
    assert (await mcp.post(ping, Content_Encoding="unheard-of"))[0] == 400
    inflated = 0

    def counted(layer: _Zlib, piece: bytes, most: int) -> bytes | None:
        nonlocal inflated
        written = undo(layer, piece, most)
        inflated += len(written or b"")
        return written

    undo, bomb = _Zlib.feed, gzip.compress(b" " * 50_000_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Zlib, "feed", counted)
        assert (await mcp.post(bomb, Content_Encoding="gzip"))[0] == 413
    assert inflated < 200_000  # the limit of these listeners is half of that


async def test_a_body_in_a_broken_coding_is_a_parse_error(mcp: Speaker) -> None:
    status, answer, _ = await mcp.post(b"not gzip at all", Content_Encoding="gzip")
    assert status == 400
    assert answer is not None


async def test_t11_blanks_around_a_header_do_not_count(mcp: Speaker) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}).encode()
    host, _, port = mcp.url.removeprefix("http://").removesuffix("/mcp").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(
        f"{head}mcp-PROTOCOL-version: \t{MODERN_VERSION}  \r\nMCP-METHOD:  tools/list \r\n\r\n".encode() + body
    )
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()


async def test_r5_both_eras_are_served_by_one_process_and_nothing_is_kept(mcp: Speaker) -> None:
    for _ in range(2):
        assert (await mcp.modern("tools/list"))[0] == 200
        assert (await mcp.legacy("tools/list"))[0] == 200  # L2: without a handshake before it
        assert (await mcp.modern("server/discover"))[0] == 200
        assert (await mcp.legacy("ping"))[1]["result"] == {}


async def test_the_generation_is_read_once_per_request(mcp: Speaker) -> None:
    await mcp.modern("tools/call", name="cycle")
    assert mcp.gateway.generations_read == 1


async def test_v3_the_list_is_the_same_bytes_every_time_and_stamped(mcp: Speaker) -> None:
    bodies = set()
    for _ in range(3):
        async with mcp.session.post(mcp.url, data=PING.replace(b"ping", b"tools/list"), headers=HEADERS) as response:
            bodies.add(await response.read())
            assert response.headers["Toolview-Catalog"] == mcp.gateway.digest
    assert len(bodies) == 1


async def test_v5_the_surface_passes_names_on_and_an_unknown_one_is_counted_there(mcp: Speaker) -> None:
    status, answer, response = await mcp.legacy("tools/call", name="nope")
    assert (status, answer["error"]["code"], answer["error"]["message"]) == (200, -32602, "Unknown tool: nope")
    assert response.headers["Toolview-Catalog"] == mcp.gateway.digest
    assert (await mcp.modern("tools/call", name="nope"))[0] == 400
    assert [call.tool for call in mcp.gateway.calls] == ["nope", "nope"]


async def test_a_declared_error_that_happens_to_be_called_unknown_tool_is_a_tool_error(mcp: Speaker) -> None:
    mcp.gateway.answers["cycle"] = always(lambda call: Outcome(call, "cycle", failed(Code.UNKNOWN_TOOL, "No drill.")))
    assert (await mcp.legacy("tools/call", name="cycle"))[1]["result"]["isError"] is True


async def test_v6_v7_a_failure_of_a_call_is_a_result(mcp: Speaker) -> None:
    wrong = failed(Code.VALIDATION_ERROR, 'limit is too large; did you mean "10"?')
    mcp.gateway.answers["cycle"] = always(lambda call: Outcome(call, "cycle", wrong))
    for speak in (mcp.legacy, mcp.modern):
        status, answer, _ = await speak("tools/call", name="cycle", arguments={"limit": 1000})
        assert (status, answer["result"]["isError"]) == (200, True)
        assert "did you mean" in answer["result"]["content"][0]["text"]


async def test_what_the_call_is_handed(mcp: Speaker) -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    meta = {"toolview/toolCallId": "mine-1", "traceparent": parent}
    await mcp.modern("tools/call", name="cycle", arguments={"x": 2**60}, _meta=meta)
    (call,) = mcp.gateway.calls
    assert (call.tool, call.arguments, call.surface, call.call_id) == ("cycle", {"x": 2**60}, "mcp", "mine-1")
    assert call.headers["traceparent"] == parent
    assert call.headers["content-type"] == "application/json"
    assert call.scopes is None
    assert call.view is True


async def test_a_call_without_an_id_gets_one_of_its_own(mcp: Speaker) -> None:
    await mcp.legacy("tools/call", name="cycle")
    await mcp.legacy("tools/call", name="cycle")
    first, second = (call.call_id for call in mcp.gateway.calls)
    assert first != second


class Slow:
    """An answer that waits to be told, and says whether it was cancelled."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __call__(self, call: Call) -> Outcome:
        self.started.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.ended.set_result("cancelled")
            raise
        self.ended.set_result("finished")
        return answered(call, {})


async def leave(mcp: Speaker, era: str, tool: str) -> str:
    """Call a tool, go away while it works, and hear how it ended."""
    slow = mcp.gateway.answers[tool] = Slow()
    speak = mcp.modern if era == "modern" else mcp.legacy
    calling = asyncio.create_task(speak("tools/call", name=tool))
    await slow.started.wait()
    calling.cancel()
    await asyncio.wait([calling])
    await mcp.session.close()
    if era == "legacy" and tool == "write":
        slow.go_on.set()
    async with asyncio.timeout(5):
        return await slow.ended


@pytest.mark.requirement("s12-64-caller-leaves")
@pytest.mark.parametrize("tool", ["cycle", "write"])
async def test_t10_leaving_cancels_the_call_in_the_modern_era(mcp: Speaker, tool: str) -> None:
    assert await leave(mcp, "modern", tool) == "cancelled"


async def test_t10_leaving_cancels_a_read_in_the_handshake_era(mcp: Speaker) -> None:
    assert await leave(mcp, "legacy", "cycle") == "cancelled"


async def test_t10_leaving_lets_an_effect_come_to_its_end_in_the_handshake_era(mcp: Speaker) -> None:
    assert await leave(mcp, "legacy", "write") == "finished"


def events(text: bytes) -> list[Json]:
    """The messages of a stream; each event is one message and nothing else."""
    frames = text.decode().split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("event: message\ndata: ") for frame in frames)
    return [json.loads(frame.split("data: ", 1)[1]) for frame in frames]


class Noted:
    """An answer that comes once three notes were written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.enough = asyncio.Event()
        self.sent = 0
        progress = answers.progress

        def note(*told: Any) -> bytes:
            self.sent += 1
            if self.sent == 3:
                self.enough.set()
            return progress(*told)

        monkeypatch.setattr(answers, "progress", note)

    async def __call__(self, call: Call) -> Outcome:
        await self.enough.wait()
        return answered(call, {"done": True})


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("token", ["t", 0, ""])
async def test_v9_t8_whoever_asks_is_told_of_progress_in_a_stream_that_ends_with_the_answer(
    mcp: Speaker, monkeypatch: pytest.MonkeyPatch, era: str, token: Json
) -> None:
    mcp.gateway.answers["cycle"] = Noted(monkeypatch)
    body, headers = spoken(era, "cycle", {"progressToken": token})
    async with mcp.session.post(mcp.url, data=body, headers=headers) as response:
        *notes, answer = events(await response.read())
    assert (response.status, response.headers["Content-Type"]) == (200, "text/event-stream")
    assert response.headers["Cache-Control"] == "no-cache, no-transform"
    assert response.headers["Toolview-Catalog"] == mcp.gateway.digest
    assert (answer["id"], answer["result"]["structuredContent"]) == (7, {"done": True})
    told = [note["params"]["progress"] for note in notes]
    assert len(told) >= 3
    assert told == sorted(set(told))
    for note in notes:
        assert (note["method"], note["params"]["progressToken"]) == ("notifications/progress", token)
        assert note["params"]["message"] == "Waiting for the backend: 0 s of at most 2.5 s."


@pytest.mark.parametrize(
    ("meta", "accept"),
    [
        ({}, HEADERS["Accept"]),
        ({"progressToken": True}, HEADERS["Accept"]),
        ({"progressToken": None}, HEADERS["Accept"]),
        ({"progressToken": 1.5}, HEADERS["Accept"]),
        ({"progressToken": "t"}, "application/json"),
        ({"progressToken": "t"}, "*/*"),
        ({"progressToken": "t"}, "application/json, text/event-stream;q=0"),
    ],
)
async def test_t6_whoever_does_not_ask_or_cannot_take_it_is_answered_in_json(
    mcp: Speaker, monkeypatch: pytest.MonkeyPatch, meta: Json, accept: str
) -> None:
    told = Noted(monkeypatch)
    told.enough.set()
    mcp.gateway.answers["cycle"] = told
    body, headers = spoken("legacy", "cycle", meta)
    async with mcp.session.post(mcp.url, data=body, headers={**headers, "Accept": accept}) as response:
        assert response.headers["Content-Type"] == "application/json"
        assert (await response.json())["result"]["structuredContent"] == {"done": True}
    assert told.sent == 0


@pytest.mark.parametrize(
    ("era", "tool", "ending"),
    [("modern", "write", "cancelled"), ("legacy", "cycle", "cancelled"), ("legacy", "write", "finished")],
)
async def test_t10_leaving_a_stream_is_leaving_a_call(mcp: Speaker, era: str, tool: str, ending: str) -> None:
    slow = mcp.gateway.answers[tool] = Slow()
    body, headers = spoken(era, tool, {"progressToken": "t"})
    response = await mcp.session.post(mcp.url, data=body, headers=headers)
    assert await response.content.readline() == b"event: message\n"
    response.close()
    await mcp.session.close()
    if ending == "finished":
        slow.go_on.set()
    assert await asyncio.wait_for(slow.ended, 10) == ending


async def test_an_unknown_tool_that_wants_notes_is_refused_in_json(mcp: Speaker) -> None:
    body, headers = spoken("modern", "nope", {"progressToken": "t"})
    async with mcp.session.post(mcp.url, data=body, headers=headers) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, -32602)


def spoken(era: str, tool: str, meta: Json) -> tuple[bytes, dict[str, str]]:
    """A call as a client of an era posts it."""
    modern = era == "modern"
    params = {"name": tool, "_meta": {**META, **meta} if modern else meta}
    named = {"Mcp-Name": tool, "Mcp-Method": "tools/call"} if modern else {}
    version = MODERN_VERSION if modern else "2025-11-25"
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
    return body, {**HEADERS, "MCP-Protocol-Version": version, **named}
