"""Tools that ask a person first: nothing is sent before the yes, and then what the yes was to and nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import mcp_types
import psutil
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from gateway.call.outcome import Outcome
from gateway.contract.values import Address
from gateway.serve import Serving
from gateway.surfaces.mcp import server, wire
from gateway.surfaces.mcp.seal import Seal
from tests.processes.served import served
from tests.rig import Backend, accepted, backend, http
from tests.test_serve import agent, fetch, samples

Json = Any
ROOT = str(Path(__file__).parents[3])
CONTRACT = """
version: 1
gateway:
  tools: {listen: 127.0.0.1:0}
  admin: {listen: 127.0.0.1:0}
  log: {level: info, format: json}
  GATEWAY
backends: {b: {url: URL}}
endpoints:
  people.delete:
    request: DELETE /people/{name}
    description: Deletes a person.
    expose: [http, mcp, agent, cli]
    input:
      type: object
      required: [name]
      properties:
        name: {type: string}
        keep: {type: array, items: {type: string}}
        why: {type: string, default: no reason}
    send: {keep: {explode: false, empty: blank}}
    output: {type: object, properties: {gone: {type: boolean}}}
    tool:
      name: delete
      view: {defaults: {keep: [mail]}}
      mcp: {confirm: "Delete {name} but {keep}, for {why}?"}
  wipe: {request: POST /wipe, description: Wipes., output: {type: object}, tool: {mcp: {confirm: Wipe it?}}}
  read: {request: GET /read, description: Reads., output: {type: object}}
"""
QUESTION = 'Delete Ada but ["mail"], for no reason?'
SENT = "/people/Ada?keep=mail&why=no%20reason"
CAN_ASK: Json = {"elicitation": {}}


def meta(capabilities: Json = CAN_ASK) -> Json:
    return {wire.VERSION_KEY: wire.MODERN_VERSION, wire.CAPABILITIES_KEY: capabilities}


@dataclass
class Asked:
    """A gateway, its backend, and every ending that it told."""

    gateway: Serving
    behind: Backend
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def address(self) -> Address:
        return self.gateway.addresses["tools"]

    async def call(self, arguments: Json = None, tool: str = "delete", **params: Json) -> Json:
        return (await post(self.address, arguments, tool, **params))[1]

    def sent(self) -> list[str]:
        return [request.target for request in self.behind.received]


async def post(
    address: Address, arguments: Json = None, tool: str = "delete", key: str = "", **params: Json
) -> tuple[int, Json]:
    """One modern call, and its HTTP status and message."""
    given = {"name": tool, "arguments": {"name": "Ada"} if arguments is None else arguments, "_meta": meta(), **params}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}).encode()
    headers = (
        "Content-Type: application/json\r\nAccept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    )
    if key:
        headers += f"Authorization: Bearer {key}\r\n"
    status, _, content = await fetch(address, "POST", "/mcp", body, headers)
    return status, json.loads(content)


def answer(state: str, action: str = "accept") -> Json:
    return {"requestState": state, "inputResponses": {"confirm": {"action": action}}}


def envelope(message: Json) -> Json:
    """The envelope of a refusal, wherever the protocol wants it."""
    if "error" in message:
        return message["error"]["data"]
    assert message["result"]["isError"] is True
    return json.loads(message["result"]["content"][0]["text"])


@pytest.fixture
async def asking(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Asked]:
    text = CONTRACT.replace("GATEWAY", getattr(request, "param", ""))
    outcomes: list[Outcome] = []
    async with backend(lambda _: http({"gone": True})) as behind:
        gateway = Serving(accepted(tmp_path, text.replace("URL", behind.url)), outcomes.append)
        assert await gateway.start() is None
        try:
            yield Asked(gateway, behind, outcomes)
        finally:
            await gateway.stop(1)


@pytest.mark.requirement("196-5-elicitation-sees-defaults")
async def test_a_yes_sends_what_was_asked_about_defaults_included(asking: Asked) -> None:
    first = (await asking.call())["result"]
    assert first["resultType"] == "input_required"
    assert first["inputRequests"] == {
        "confirm": {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": QUESTION, "requestedSchema": {"type": "object", "properties": {}}},
        }
    }
    assert asking.sent() == []
    second = (await asking.call(**answer(first["requestState"])))["result"]
    assert (second["resultType"], second["structuredContent"]) == ("complete", {"gone": True})
    assert asking.sent() == [SENT]
    assert [(outcome.code, outcome.asked and outcome.asked.consent.value) for outcome in asking.outcomes] == [
        ("INPUT_REQUIRED", "unasked"),
        ("ok", "accepted"),
    ]
    assert [outcome.accepted for outcome in asking.outcomes] == [asking.outcomes[0].accepted] * 2


@pytest.mark.parametrize(
    ("action", "code", "words"),
    [("decline", "FORBIDDEN", "said no"), ("cancel", "REQUEST_ABORTED", "without an answer")],
)
async def test_a_no_and_a_closed_question_are_outcomes_of_their_own(
    asking: Asked, action: str, code: str, words: str
) -> None:
    state = (await asking.call())["result"]["requestState"]
    told = envelope(await asking.call(**answer(state, action)))
    assert (told["code"], told["retryable"], told["details"]["consent"]) == (
        code, False, {"decline": "declined", "cancel": "cancelled"}[action],
    )  # fmt: skip
    assert words in told["error"]
    assert "nothing was sent" in told["error"]
    assert asking.sent() == []
    found = await samples(asking.gateway.addresses["admin"])
    assert found["toolview_tool_calls_total", "INPUT_REQUIRED", "mcp", "delete"] == 1
    assert found["toolview_tool_calls_total", code, "mcp", "delete"] == 1


async def test_a_yes_to_one_call_is_none_to_another(asking: Asked) -> None:
    state = (await asking.call())["result"]["requestState"]
    wipe = (await asking.call({}, "wipe"))["result"]["requestState"]
    for message in [
        await asking.call({"name": "Eve"}, **answer(state)),
        await asking.call({"name": "Ada", "why": "fun"}, **answer(state)),
        await asking.call({"name": "Ada", "keep": []}, **answer(state)),
        await asking.call({}, "wipe", **answer(state)),
        await asking.call(**answer(wipe)),
        await asking.call(**answer(state + "-TAMPERED")),
        await asking.call(**answer(("A" if state[20] != "A" else "B").join((state[:20], state[21:])))),
        await asking.call(**answer("")),
    ]:
        assert message["error"]["code"] == wire.INVALID_PARAMS
        assert envelope(message)["code"] == "FORBIDDEN"
        assert envelope(message)["details"]["consent"] == "foreign"
    assert asking.sent() == []
    # Said in other words, it is the same call.
    await asking.call({"why": "no reason", "keep": ["mail"], "name": "Ada"}, **answer(state))
    assert asking.sent() == [SENT]


async def test_a_yes_that_comes_too_late_is_none(asking: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_800_000_000.0]
    monkeypatch.setattr(server, "Seal", partial(Seal, clock=lambda: now[0]))
    state = (await asking.call())["result"]["requestState"]
    now[0] += 601
    late = await asking.call(**answer(state))
    assert late["error"]["code"] == wire.INVALID_PARAMS
    assert envelope(late)["details"]["consent"] == "expired"
    assert asking.sent() == []
    now[0] -= 1
    assert "result" in await asking.call(**answer(state))
    assert asking.sent() == [SENT]


@pytest.mark.parametrize(
    "asking",
    [
        "auth: {keys: [{name: ann, sha256: ANN}, {name: bob, sha256: BOB}]}".replace(
            "ANN", hashlib.sha256(b"k-ann").hexdigest()
        ).replace("BOB", hashlib.sha256(b"k-bob").hexdigest())
    ],
    indirect=True,
)
async def test_one_callers_yes_is_not_anothers(asking: Asked) -> None:
    _, first = await post(asking.address, key="k-ann")
    state = first["result"]["requestState"]
    status, message = await post(asking.address, key="k-bob", **answer(state))
    assert (status, envelope(message)["details"]["consent"]) == (400, "foreign")
    assert asking.sent() == []
    await post(asking.address, key="k-ann", **answer(state))
    assert asking.sent() == [SENT]


@pytest.mark.parametrize(
    ("params", "again"),
    [
        ({"inputResponses": {"confirm": {"action": "accept"}}}, True),
        ({"inputResponses": {"other": {"action": "accept"}}, "requestState": "STATE"}, True),
        ({"requestState": "STATE"}, True),
        ({"inputResponses": None, "requestState": None}, True),
        ({"inputResponses": {"confirm": None}, "requestState": "STATE"}, True),
        ({"inputResponses": [], "requestState": "STATE"}, False),
        ({"inputResponses": {"confirm": 7}, "requestState": "STATE"}, False),
        ({"inputResponses": {"confirm": {"action": "yes"}}, "requestState": "STATE"}, False),
        ({"inputResponses": {"confirm": {"action": ["accept"]}}, "requestState": "STATE"}, False),
        ({"inputResponses": {"confirm": {"action": "accept"}}, "requestState": 7}, False),
    ],
)
async def test_half_an_answer_is_asked_for_again_and_a_broken_one_is_refused(
    asking: Asked, params: Json, again: bool
) -> None:
    state = (await asking.call())["result"]["requestState"]
    message = await asking.call(**{key: state if value == "STATE" else value for key, value in params.items()})
    if again:
        assert message["result"]["resultType"] == "input_required"
    else:
        assert message["error"]["code"] == wire.INVALID_PARAMS
    assert asking.sent() == []


@pytest.mark.parametrize(
    "capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": None}, {"sampling": {}}, []]
)
async def test_a_client_that_cannot_ask_is_told_what_it_takes(asking: Asked, capabilities: Json) -> None:
    status, message = await post(asking.address, _meta=meta(capabilities))
    assert (status, message["error"]["code"]) == (400, wire.MISSING_CAPABILITY)
    data = message["error"]["data"]
    mcp_types.MissingRequiredClientCapabilityErrorData.model_validate(data)
    assert data["requiredCapabilities"] == {"elicitation": {"form": {}}}
    assert (data["code"], data["details"]["consent"]) == ("FORBIDDEN", "cannot_ask")
    assert asking.sent() == []
    assert asking.outcomes[0].code == "FORBIDDEN"


async def test_the_handshake_era_is_told_in_the_result_and_other_surfaces_ask_nobody(asking: Asked) -> None:
    for version in sorted(wire.HANDSHAKE_VERSIONS):
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "delete", "arguments": {"name": "Ada"}},
        }
        headers = f"Content-Type: application/json\r\nMCP-Protocol-Version: {version}\r\n"
        status, _, content = await fetch(asking.address, "POST", "/mcp", json.dumps(body).encode(), headers)
        assert (status, envelope(json.loads(content))["code"]) == (200, "FORBIDDEN")
        assert "your client cannot" in envelope(json.loads(content))["error"]
    assert asking.sent() == []
    assert (await agent(asking.address, "delete", {"name": "Ada"}))[0] == 200
    assert asking.sent() == [SENT]


async def test_nobody_is_asked_about_what_is_refused_anyway(asking: Asked) -> None:
    assert envelope(await asking.call({"nam": "Ada"}))["code"] == "VALIDATION_ERROR"
    assert envelope(await asking.call({"name": ""}))["code"] == "VALIDATION_ERROR"  # a path has no form for it
    assert (await asking.call({}, "read", **answer("made up")))["result"]["isError"] is False
    assert asking.sent() == ["/read"]


@pytest.mark.parametrize("asking", ["mcp: {state_secret: '${SECRET}'}"], indirect=True)
async def test_replicas_with_one_secret_know_each_others_questions(asking: Asked, tmp_path: Path) -> None:
    state = (await asking.call())["result"]["requestState"]
    message = await heard_elsewhere(tmp_path, asking, "mcp: {state_secret: '${SECRET}'}", state)
    assert message["result"]["structuredContent"] == {"gone": True}
    _, _, shown = await fetch(asking.gateway.addresses["admin"], "GET", "/-/contract")
    assert b"${SECRET}" in shown
    assert SECRET not in shown.decode()


async def heard_elsewhere(folder: Path, asking: Asked, settings: str, state: str) -> Json:
    """What another gateway on the same backend says to the answer of a question that is not its own."""
    text = CONTRACT.replace("GATEWAY", settings).replace("URL", asking.behind.url)
    other = Serving(accepted(folder / "other", text))
    assert await other.start() is None
    try:
        _, message = await post(other.addresses["tools"], **answer(state))
    finally:
        await other.stop(1)
    return message


SECRET = "the secret of several replicas, 32 bytes or more"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)


async def test_gateways_without_a_secret_do_not_know_each_others_questions(asking: Asked, tmp_path: Path) -> None:
    state = (await asking.call())["result"]["requestState"]
    message = await heard_elsewhere(tmp_path, asking, "", state)
    assert envelope(message)["details"]["consent"] == "foreign"


async def test_whichever_worker_hears_the_answer_knows_the_question(tmp_path: Path) -> None:
    async with backend(lambda _: http({"gone": True})) as behind:
        path = tmp_path / "gateway.yaml"
        path.write_text(CONTRACT.replace("GATEWAY", "").replace("URL", behind.url))
        async with served(path, "--workers", "2", ready=2) as gateway:
            address = gateway.addresses["tools"]
            asks, hears = await gateway.until("tools", 2)
            for asking, hearing in ((asks, hears), (hears, asks)):
                message = await only(asking, hearing, partial(post, address))
                state = message["result"]["requestState"]
                message = await only(hearing, asking, partial(post, address, **answer(state)))
                assert message["result"]["structuredContent"] == {"gone": True}
            assert [request.target for request in behind.received] == [SENT] * 2
            line = await gateway.said("call", 4)
            assert (line["code"], line["consent"]) == ("ok", "accepted")


async def only(awake: psutil.Process, asleep: psutil.Process, work: Callable[[], Awaitable[tuple[int, Json]]]) -> Json:
    """What one of two workers answers; the other takes no connection meanwhile."""
    asleep.suspend()
    try:
        _, message = await work()
    finally:
        asleep.resume()
    assert awake.is_running()
    return message


class Person:
    """Somebody at a client, who does one thing after another with what they are asked."""

    def __init__(self, *actions: Literal["accept", "decline", "cancel"]) -> None:
        self._actions = iter(actions)
        self.heard: list[str] = []

    async def decide(self, context: Any, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        self.heard.append(params.message)
        action = next(self._actions)
        return mcp_types.ElicitResult(action=action, content={} if action == "accept" else None)


async def through(client: Client, person: Person, behind: Backend) -> None:
    """A whole round of the official client for each thing that its person may do."""
    async with client:
        assert (await client.call_tool("delete", {"name": "Ada"})).structured_content == {"gone": True}
        for code in ("FORBIDDEN", "REQUEST_ABORTED"):
            result = await client.call_tool("delete", {"name": "Ada"})
            assert result.is_error is True
            (block,) = result.content
            assert isinstance(block, mcp_types.TextContent)
            assert json.loads(block.text)["code"] == code
    assert person.heard == [QUESTION] * 3
    assert [request.target for request in behind.received] == [SENT]


async def test_the_official_client_asks_its_person_over_http(asking: Asked) -> None:
    person = Person("accept", "decline", "cancel")
    url = f"http://{asking.address}/mcp"
    await through(Client(url, elicitation_callback=person.decide), person, asking.behind)
    async with Client(url) as unable:
        with pytest.raises(MCPError, match="asks a person first") as refused:
            await unable.call_tool("delete", {"name": "Ada"})
        assert refused.value.code == wire.MISSING_CAPABILITY
    assert asking.sent() == [SENT]


async def test_the_official_client_asks_its_person_over_stdio(tmp_path: Path) -> None:
    person = Person("accept", "decline", "cancel")
    async with backend(lambda _: http({"gone": True})) as behind:
        path = tmp_path / "gateway.yaml"
        path.write_text(CONTRACT.replace("GATEWAY", "").replace("URL", behind.url))
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "gateway", "stdio", str(path)], env={"PYTHONPATH": ROOT}
        )
        await through(Client(stdio_client(command), elicitation_callback=person.decide), person, behind)


HOOKS = """
    count = 0

    def before(call):
        global count
        count += 1
        return {**call.arguments, "why": f"turn {count}"} if call.arguments["name"] == "new" else None
"""


async def test_the_before_hook_runs_for_the_question_and_for_the_answer(tmp_path: Path) -> None:
    async with backend(lambda _: http({"gone": True})) as behind:
        text = CONTRACT.replace("GATEWAY", 'projections: hooks\n  hooks: {before: "hooks:before"}')
        gateway = Serving(accepted(tmp_path, text.replace("URL", behind.url), {"hooks/hooks.py": HOOKS}))
        assert await gateway.start() is None
        try:
            asking = Asked(gateway, behind)
            state = (await asking.call())["result"]["requestState"]
            assert (await asking.call(**answer(state)))["result"]["isError"] is False
            hook = gateway.gateway.generation.contract.gateway.hooks.before
            assert hook is not None
            assert hook.__globals__["count"] == 2
            # One that says something else each time has changed what was asked about.
            state = (await asking.call({"name": "new"}))["result"]["requestState"]
            assert envelope(await asking.call({"name": "new"}, **answer(state)))["details"]["consent"] == "foreign"
            assert asking.sent() == [SENT]
        finally:
            await gateway.stop(1)


async def test_many_ask_at_once_and_each_gets_its_own(asking: Asked) -> None:
    names = [f"n{number}" for number in range(40)]
    first = await asyncio.gather(*(asking.call({"name": name}) for name in names))
    states = [message["result"]["requestState"] for message in first]
    crossed = zip(names, states[1:] + states[:1], strict=True)
    refused = await asyncio.gather(*(asking.call({"name": name}, **answer(state)) for name, state in crossed))
    assert {envelope(message)["details"]["consent"] for message in refused} == {"foreign"}
    straight = zip(names, states, strict=True)
    done = await asyncio.gather(*(asking.call({"name": name}, **answer(state)) for name, state in straight))
    assert all(message["result"]["structuredContent"] == {"gone": True} for message in done)
    assert len(asking.sent()) == len(names)
