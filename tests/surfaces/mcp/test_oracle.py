"""`mcp-types` judges every message we emit, in every revision that it knows: nothing lacks, nothing is unknown."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import mcp_types
import pytest
import pytest_asyncio
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from gateway.surfaces.mcp import wire
from tests.surfaces.mcp import javascript
from tests.surfaces.mcp.odd import CALLS, CARD, CARD_URI, served_odd

Json = Any
REVISIONS = KNOWN_PROTOCOL_VERSIONS
_ACCEPT = "application/json, text/event-stream"
INFO = {"name": "t", "version": "1"}
_CODES = {
    wire.PARSE_ERROR, wire.INVALID_REQUEST, wire.METHOD_NOT_FOUND, wire.INVALID_PARAMS,
    wire.HEADER_MISMATCH, wire.MISSING_CAPABILITY, wire.UNSUPPORTED_VERSION, wire.RESOURCE_NOT_FOUND,
}  # fmt: skip

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_no_revision_is_known_to_the_world_and_not_here() -> None:
    """Red when `mcp-types` learns a revision: then it is to be served, or to be refused here with its reason."""
    assert set(HANDSHAKE_PROTOCOL_VERSIONS) == wire.HANDSHAKE_VERSIONS
    assert MODERN_PROTOCOL_VERSIONS == (wire.MODERN_VERSION,)
    assert {*wire.HANDSHAKE_VERSIONS, wire.MODERN_VERSION} == set(REVISIONS)


async def test_no_revision_is_known_to_the_clients_and_the_suite_and_not_here() -> None:
    known = await javascript.run("revisions.mjs")
    suite = javascript.package("@modelcontextprotocol/conformance") / "dist" / "index.js"
    tags = re.findall(r"\d{4}-\d\d-\d\d", (await javascript.node(suite, "list", "--server")).out)
    # Half a year before the first release; a client that offers it is answered with the latest handshake.
    drafts = {"2024-10-07"}
    assert wire.MODERN_VERSION in tags
    assert {*known["sdk"], *known["client"], *tags} - drafts == set(REVISIONS)


@dataclass(frozen=True)
class Spoken:
    """One exchange: what was posted, and every message that came back."""

    status: int
    posted: Json
    messages: tuple[Json, ...]


@dataclass(frozen=True)
class Speaker:
    """Posts as a client of one revision does."""

    session: aiohttp.ClientSession
    url: str
    revision: str

    @property
    def modern(self) -> bool:
        return self.revision in MODERN_PROTOCOL_VERSIONS

    async def ask(self, method: str, params: Json = None, id: Json = 7, **headers: str) -> Spoken:
        body, given = self.request(method, params, id)
        return await self.post(body, {**given, **{name.replace("_", "-"): value for name, value in headers.items()}})

    def request(self, method: str, params: Json = None, id: Json = 7) -> tuple[Json, dict[str, str]]:
        given = {"Accept": _ACCEPT, "MCP-Protocol-Version": self.revision}
        if self.modern:
            meta = {wire.VERSION_KEY: self.revision, wire.CAPABILITIES_KEY: {}}
            params = {**(params or {}), "_meta": {**meta, **(params or {}).get("_meta", {})}}
            given |= {"Mcp-Method": method}
            named = next((params[key] for key in ("name", "uri") if isinstance(params.get(key), str)), None)
            given |= {"Mcp-Name": named} if named is not None else {}
            given |= mirrored(method, params)
        body = {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}
        return body, given

    async def post(self, body: Json, headers: Mapping[str, str]) -> Spoken:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json", "Accept": _ACCEPT, **headers}
        async with self.session.post(self.url, data=raw, headers=given) as response:
            text = await response.text()
            if response.content_type == "text/event-stream":
                return Spoken(response.status, body, tuple(events(text)))
            return Spoken(response.status, body, (json.loads(text),) if text else ())


def mirrored(method: str, params: Json) -> dict[str, str]:
    if method != "tools/call" or params.get("name") != "in_headers":
        return {}
    return {"Mcp-Param-Region": "=?base64?WsO8cmljaA==?=", "Mcp-Param-Zone": "7"}


def events(text: str) -> Iterator[Json]:
    """The messages of a stream of events."""
    for event in text.split("\n\n"):
        data = [line.removeprefix("data:").strip() for line in event.split("\n") if line.startswith("data:")]
        if data:
            yield json.loads("\n".join(data))


def judged(spoken: Spoken, revision: str, *, status: bool = True) -> Json:
    """The last message, once every message was held against the revision's models, and its HTTP status."""
    *notes, last = spoken.messages
    for note in notes:
        assert "id" not in note
        assert note["jsonrpc"] == "2.0"
        methods.parse_server_notification(note["method"], revision, note.get("params"))
    asked = spoken.posted if isinstance(spoken.posted, dict) else {}
    request = asked.get("jsonrpc") == "2.0" and isinstance(asked.get("method"), str)
    identified = request and type(asked.get("id")) in (str, int)
    if "error" in last:
        assert last.keys() == {"jsonrpc", "id", "error"}
        assert last["id"] == (asked["id"] if identified else None)
        error = mcp_types.JSONRPCError.model_validate(last).error
        assert error.code in _CODES
        assert error.message
        assert "\n" not in error.message
        if error.code == wire.UNSUPPORTED_VERSION:
            known = mcp_types.UnsupportedProtocolVersionErrorData.model_validate(error.data)
            assert set(known.supported) == set(MODERN_PROTOCOL_VERSIONS)
        if error.code == wire.MISSING_CAPABILITY:
            lacking = mcp_types.MissingRequiredClientCapabilityErrorData.model_validate(error.data)
            assert lacking.required_capabilities.elicitation is not None
        modern = revision in MODERN_PROTOCOL_VERSIONS
        assert not (modern and error.code == wire.RESOURCE_NOT_FOUND)  # 2026-07-28: MUST no longer be sent
        readable = error.code not in (wire.PARSE_ERROR, wire.INVALID_REQUEST)
        assert not status or spoken.status == (wire.status_of(error.code, modern=modern) if readable else 400)
        return last
    assert last.keys() == {"jsonrpc", "id", "result"}
    assert last["id"] == asked["id"]
    assert spoken.status == 200
    # What the revision's model gives back is what was sent: no member is one that the revision does not have.
    assert methods.serialize_server_result(asked["method"], revision, last["result"]) == last["result"]
    return last


ODD_VALUES: list[Json] = [
    None, True, 0, -1, 1.5, 2**70, 1e300, "", "x", "\u2028", "é" * 200, [], {}, [[]], {"": None}, {"name": "cycle"},
    "2025-11-25", "2026-07-28", "cycle", "tools/call", "=?base64?Y3ljbGU=?=",
]  # fmt: skip


def mutated(value: Json, chance: random.Random) -> Json:
    """A value with something in it dropped, doubled or replaced."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        changed = {**value, key: mutated(value[key], chance)}
        if chance.random() < 0.15:
            del changed[key]
        if chance.random() < 0.1:
            changed[str(chance.choice(ODD_VALUES))] = chance.choice(ODD_VALUES)
        return changed
    return chance.choice(ODD_VALUES)


async def told_of_anything(served: tuple[aiohttp.ClientSession, str], seed: int) -> None:
    """Posts one request that is nearly right, and judges whatever comes back."""
    chance = random.Random(seed)
    revision = chance.choice(REVISIONS)
    speaker = Speaker(*served, revision)
    modern = speaker.modern
    method = chance.choice(["tools/call", "tools/list", "initialize", "server/discover", "ping", *sorted(RESOURCES)])
    params = {"name": "wide_ids", "arguments": {"id": 1, "x": {}}} if method == "tools/call" else PARAMS.get(method, {})
    meta = {wire.VERSION_KEY: revision, wire.CAPABILITIES_KEY: {}, "progressToken": 1, wire.CALL_ID_KEY: "c"}
    body: Json = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**params, **({"_meta": meta} if modern else {})},
    }
    named = str(params.get("name", params.get("uri", "")))
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": method, "Mcp-Name": named}
    for _ in range(chance.randint(1, 3)):
        body = mutated(body, chance)
    if chance.random() < 0.3:
        name = chance.choice(list(headers))
        value = str(chance.choice(ODD_VALUES)).encode("ascii", "ignore").decode()
        headers = {key: held for key, held in headers.items() if key != name} | ({name: value} if value else {})
    spoken = await speaker.post(body, headers)
    assert spoken.status in (200, 202, 400, 404), (seed, spoken)
    if spoken.status == 202:
        assert spoken.messages == (), seed
        assert isinstance(body, dict), seed
        assert "id" not in body, seed
        return
    last = spoken.messages[-1]
    for era in (revision, wire.MODERN_VERSION, wire.LATEST_HANDSHAKE_VERSION):
        if "result" not in last or ("resultType" in last["result"]) == (era == wire.MODERN_VERSION):
            judged(spoken, era, status=False)
            break


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    async with served_odd(tmp_path_factory.mktemp("odd")) as (url, _), aiohttp.ClientSession() as session:
        yield session, url


@pytest.fixture(params=REVISIONS)
def speaker(request: pytest.FixtureRequest, served: tuple[aiohttp.ClientSession, str]) -> Speaker:
    return Speaker(*served, request.param)


#: Parameters with which a method of the protocol is asked for.
PARAMS: dict[str, Json] = {
    "initialize": {"capabilities": {}, "clientInfo": INFO},
    "tools/call": {"name": "cycle", "arguments": {}},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}},
    "logging/setLevel": {"level": "info"},
    "prompts/get": {"name": "x"},
    "resources/read": {"uri": CARD_URI},
    "resources/subscribe": {"uri": "ui://x"},
    "resources/unsubscribe": {"uri": "ui://x"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
}
RESOURCES = {"resources/list", "resources/templates/list", "resources/read"}
#: What is served, by era; every other method of the protocol is not found.
SERVED = {
    True: {"server/discover", "tools/list", "tools/call", *RESOURCES},
    False: {"initialize", "ping", "tools/list", "tools/call", *RESOURCES},
}


async def test_every_method_of_the_protocol_is_served_or_not_found(speaker: Speaker) -> None:
    served = set()
    for method in sorted(methods.SPEC_CLIENT_METHODS):
        params = PARAMS.get(method)
        if method == "initialize":
            params = {**PARAMS[method], "protocolVersion": speaker.revision}
        if (method, speaker.revision) in methods.CLIENT_REQUESTS:
            meta = {wire.VERSION_KEY: speaker.revision, wire.CAPABILITIES_KEY: {}} if speaker.modern else None
            asked = {**(params or {}), **({"_meta": meta} if meta else {})}
            methods.validate_client_request(method, speaker.revision, asked)  # the question itself is right
        answer = judged(await speaker.ask(method, params), speaker.revision)
        if "result" in answer:
            served.add(method)
        else:
            assert answer["error"]["code"] == wire.METHOD_NOT_FOUND, method
    assert served == SERVED[speaker.modern]


async def test_every_call_of_an_odd_tool(speaker: Speaker) -> None:
    for call in CALLS:
        spoken = await speaker.ask("tools/call", {"name": call.tool, "arguments": call.arguments}, id=call.tool)
        result = judged(spoken, speaker.revision)["result"]
        assert result.get("structuredContent") == call.answer
        assert tuple(block["type"] for block in result["content"]) == call.blocks
        assert result["isError"] is (call.tool == "fails")


async def test_a_question_to_a_person_and_what_becomes_of_it(speaker: Speaker) -> None:
    call: Json = {"name": "asks", "arguments": {}}
    unable = judged(await speaker.ask("tools/call", call), speaker.revision)
    if not speaker.modern:
        assert unable["result"]["isError"] is True
        return
    assert unable["error"]["code"] == wire.MISSING_CAPABILITY
    call |= {"_meta": {wire.CAPABILITIES_KEY: {"elicitation": {"form": {}}}}}
    question = judged(await speaker.ask("tools/call", call), speaker.revision)["result"]
    assert methods.is_input_required({**question})
    requests = mcp_types.InputRequiredResult.model_validate(question).input_requests
    assert requests is not None
    (asked,) = requests.values()
    assert isinstance(asked, mcp_types.ElicitRequest)
    assert asked.params.message == "Shall I do it?"
    ended = {}
    for action in ("accept", "decline", "cancel"):
        answer: Json = {wire.QUESTION: {"action": action, **({"content": {}} if action == "accept" else {})}}
        again = {**call, "inputResponses": answer, "requestState": question["requestState"]}
        posted, _ = speaker.request("tools/call", again)
        methods.validate_client_request("tools/call", speaker.revision, posted["params"])
        result = judged(await speaker.ask("tools/call", again), speaker.revision)["result"]
        ended[action] = (result["resultType"], result["isError"])
        made_up = judged(await speaker.ask("tools/call", {**again, "requestState": "made up"}), speaker.revision)
        assert made_up["error"]["code"] == wire.INVALID_PARAMS
    assert ended == {"accept": ("complete", False), "decline": ("complete", True), "cancel": ("complete", True)}


async def test_every_note_of_progress(speaker: Speaker) -> None:
    who = {"who": f"judge-{speaker.revision}"}
    for token in (0, "", "t"):
        asked = {"name": "slow", "arguments": who, "_meta": {"progressToken": token}}
        body, headers = speaker.request("tools/call", asked)
        async with speaker.session.post(speaker.url, json=body, headers=headers) as response:
            first = await response.content.readuntil(b"\n\n")
            await speaker.ask("tools/call", {"name": "release", "arguments": who})
            text = (first + await response.read()).decode()
        spoken = Spoken(response.status, body, tuple(events(text)))
        assert len(spoken.messages) > 1
        assert {note["params"]["progressToken"] for note in spoken.messages[:-1]} == {token}
        assert judged(spoken, speaker.revision)["result"]["structuredContent"] == {}
        who = {"who": who["who"] + "x"}


async def test_the_card_of_a_tool_is_found_and_read(speaker: Speaker) -> None:
    tools = judged(await speaker.ask("tools/list"), speaker.revision)["result"]["tools"]
    (bound,) = [tool["_meta"] for tool in tools if "_meta" in tool]
    assert bound == {"ui": {"resourceUri": CARD_URI, "visibility": ["model"]}, "ui/resourceUri": CARD_URI}
    (listed,) = judged(await speaker.ask("resources/list"), speaker.revision)["result"]["resources"]
    assert (listed["uri"], listed["size"]) == (CARD_URI, len(CARD.encode()))
    templates = judged(await speaker.ask("resources/templates/list"), speaker.revision)["result"]
    assert templates["resourceTemplates"] == []
    read = judged(await speaker.ask("resources/read", {"uri": CARD_URI}), speaker.revision)["result"]
    assert read["contents"] == [{"uri": CARD_URI, "mimeType": listed["mimeType"], "text": CARD}]
    assert listed["mimeType"] == "text/html;profile=mcp-app"
    opening = "server/discover" if speaker.modern else "initialize"
    params = None if speaker.modern else {**PARAMS["initialize"], "protocolVersion": speaker.revision}
    capabilities = judged(await speaker.ask(opening, params), speaker.revision)["result"]["capabilities"]
    assert "resources" in capabilities
    # The header repeats the URI, as it does a tool's name.
    answer = judged(await speaker.ask("resources/read", {"uri": CARD_URI}, Mcp_Name="other"), speaker.revision)
    assert answer.get("error", {}).get("code") == (wire.HEADER_MISMATCH if speaker.modern else None)


async def test_arguments_that_do_not_fit_are_a_tool_error(speaker: Speaker) -> None:
    for arguments in ({"id": "x"}, {"idd": 1}, {}, {"id": 2**63}):
        spoken = await speaker.ask("tools/call", {"name": "wide_ids", "arguments": arguments}, id=0)
        assert judged(spoken, speaker.revision)["result"]["isError"] is True


#: Requests that can be read and not answered, each odd in one way.
UNANSWERABLE: dict[str, tuple[str, Json]] = {
    "an unknown tool": ("tools/call", {"name": "nope"}),
    "a long name": ("tools/call", {"name": "n" * 300}),
    "a name of two lines": ("tools/call", {"name": "no\npe\u2028"}),
    "no name": ("tools/call", {"arguments": {}}),
    "a name that is a number": ("tools/call", {"name": 7}),
    "a list of arguments": ("tools/call", {"name": "cycle", "arguments": [1]}),
    "a cursor": ("tools/list", {"cursor": "x"}),
    "a cursor that is a number": ("tools/list", {"cursor": 7}),
    "an unknown method": ("made/up", None),
    "half a handshake": ("initialize", {}),
    "an unknown resource": ("resources/read", {"uri": "ui://toolview/nope.html"}),
    "a resource by a file's name": ("resources/read", {"uri": "ui://toolview/ui/a tree.html"}),
    "no resource": ("resources/read", {}),
    "a resource that is a number": ("resources/read", {"uri": 7}),
    "a cursor of resources": ("resources/list", {"cursor": "x"}),
    "a cursor of templates": ("resources/templates/list", {"cursor": "x"}),
}


@pytest.mark.parametrize("odd", UNANSWERABLE)
async def test_what_cannot_be_answered_is_a_protocol_error(speaker: Speaker, odd: str) -> None:
    method, params = UNANSWERABLE[odd]
    headers = {"Mcp_Name": "x"} if not str((params or {}).get("name", "")).isprintable() else {}
    for id in (0, "", 2**70, "\u2028"):
        assert "error" in judged(await speaker.ask(method, params, id=id, **headers), speaker.revision)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"7", b"null", b'"x"', b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', b"[" * 70_000,
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}], {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": True, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {"id": 1, "method": "ping"},
        b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}', b'{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}',
    ],
    ids=lambda body: str(body)[:50],
)  # fmt: skip
async def test_what_is_no_request_is_an_error_without_an_id(speaker: Speaker, body: Json) -> None:
    spoken = await speaker.post(body, {"MCP-Protocol-Version": speaker.revision})
    (message,) = spoken.messages
    assert message["id"] is None
    judged(Spoken(spoken.status, None, spoken.messages), speaker.revision)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b" " * 300_000, {}, 413),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {"Accept": "text/html"}, 406),
    ],
    ids=["too large", "not JSON", "JSON is not accepted"],
)
async def test_what_is_not_read_is_an_error_too(
    speaker: Speaker, body: bytes, headers: dict[str, str], status: int
) -> None:
    spoken = await speaker.post(body, {"MCP-Protocol-Version": speaker.revision, **headers})
    (message,) = spoken.messages
    assert spoken.status == status
    assert message["id"] is None
    assert mcp_types.JSONRPCError.model_validate(message).error.code == wire.INVALID_REQUEST


async def test_notifications_are_taken_without_a_word(speaker: Speaker) -> None:
    for method in sorted(methods.SPEC_CLIENT_NOTIFICATION_METHODS):
        spoken = await speaker.post({"jsonrpc": "2.0", "method": method}, {"MCP-Protocol-Version": speaker.revision})
        assert (spoken.status, spoken.messages) == (202, ())


async def test_headers_that_disagree_are_a_header_mismatch_in_the_modern_era(speaker: Speaker) -> None:
    told = set()
    for headers in (
        {"MCP_Protocol_Version": "2025-11-25"},
        {"MCP_Protocol_Version": "2099-01-01"},
        {"Mcp_Method": "tools/list"},
        {"Mcp_Name": "other"},
        {"Mcp_Name": "=?base64?!?="},
    ):
        revision = wire.MODERN_VERSION if "2099-01-01" in headers.values() else speaker.revision
        answer = judged(await speaker.ask("tools/call", {"name": "cycle"}, **headers), revision)
        told.add(answer.get("error", {}).get("code"))
    # In the handshake era such headers mean nothing; a version that is none of its own is for the modern ladder.
    assert told == ({wire.HEADER_MISMATCH} if speaker.modern else {None, wire.INVALID_PARAMS})


async def test_a_revision_that_is_not_served_is_told_which_one_is(speaker: Speaker) -> None:
    meta = {wire.VERSION_KEY: "2099-01-01", wire.CAPABILITIES_KEY: {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    spoken = await speaker.post(body, {"MCP-Protocol-Version": "2099-01-01", "Mcp-Method": "tools/list"})
    answer = judged(spoken, wire.MODERN_VERSION)
    assert answer["error"]["code"] == wire.UNSUPPORTED_VERSION


async def test_whatever_is_posted_is_answered_by_the_protocol(served: tuple[aiohttp.ClientSession, str]) -> None:
    for seed in range(300):
        await told_of_anything(served, seed)


@pytest.mark.long
async def test_whatever_is_posted_is_answered_by_the_protocol_for_long(
    served: tuple[aiohttp.ClientSession, str],
) -> None:
    for seed in range(300, 10_000):
        await told_of_anything(served, seed)
