"""Tokens on a running gateway: one predicate on every surface, OAuth's metadata and challenges, rates by caller."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.refusal import Refusal
from gateway.contract.values import Address
from gateway.serve import Serving
from tests.rig import Backend, accepted, backend, contract_at, http
from tests.surfaces.tokens import AUDIENCE, ISSUER, key_set, token
from tests.test_serve import fetch, serving

TOOLS = {"a_open": "", "b_red": "scopes: [red],", "c_blue": "scopes: [blue],", "d_both": "scopes: [red, blue],"}
OAUTH = f"oauth: {{resource: {AUDIENCE}, authorization_servers: [{ISSUER}]}}"
PLAIN_KEY = f"keys: [{{name: ops, sha256: {hashlib.sha256(b'k-ops').hexdigest()}, scopes: [red]}}]"


def text_of(auth: str, tools: Iterable[str] = TOOLS, more: str = "", url: str = "http://127.0.0.1:1") -> str:
    endpoints = "\n".join(
        f"  {name}: {{request: GET /{name}, description: Says {name}., expose: [http, mcp, agent, cli], {TOOLS[name]}"
        f" output: {{type: object}}, tool: {{safety_tier: read}}}}"
        for name in tools
    )
    return (
        f"version: 1\ngateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}, {more}"
        f" auth: {{{auth}}}}}\nbackends: {{api: {{url: {url}}}}}\nendpoints:\n{endpoints}\n"
    )


def jwt(issuer: Backend | str) -> str:
    where = issuer if isinstance(issuer, str) else issuer.url + "/jwks"
    return f"jwt: {{jwks: {where}, issuer: {ISSUER}, audience: {AUDIENCE}}}"


@asynccontextmanager
async def gateway_of(folder: Path, text: str) -> AsyncIterator[Serving]:
    async with serving(accepted(folder, text)) as served:
        yield served


def bearer(sent: str) -> str:
    return f"Authorization: Bearer {sent}\r\n"


async def mcp(address: Address, method: str, params: Any, headers: str) -> tuple[int, dict[str, str], bytes]:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return await fetch(address, "POST", "/mcp", message, f"Content-Type: application/json\r\n{headers}")


async def everything(address: Address, headers: str) -> list[Any]:
    """Lists, by id and calls, on every surface of the listener; call ids aside."""
    answers = [
        await fetch(address, "GET", path, headers=headers)
        for path in (
            *("/v1/tools", "/v1/tools?view=compact", "/v1/openapi.json", "/agent/tools", "/agent/tools?format=mcp"),
            *(f"/v1/tools/mcp:{name}" for name in (*TOOLS, "absent")),
        )
    ]
    sent = headers + "X-Tool-Call-Id: one\r\n"
    answers += [await fetch(address, "POST", f"/agent/tools/{name}", headers=sent) for name in (*TOOLS, "absent")]
    answers.append(await mcp(address, "tools/list", {}, headers))
    for name in (*TOOLS, "absent"):
        params = {"name": name, "arguments": {}, "_meta": {"toolview/toolCallId": "one"}}
        answers.append(await mcp(address, "tools/call", params, headers))
    return [
        (status, {k: v for k, v in fields.items() if k not in ("date", "server")}, body)
        for status, fields, body in answers
    ]


@pytest.mark.parametrize(
    ("scopes", "visible"),
    [
        ("", ["a_open"]),
        ("red", ["a_open", "b_red"]),
        (["blue"], ["a_open", "c_blue"]),
        ("blue red other", list(TOOLS)),
    ],
)
async def test_a_token_sees_byte_for_byte_a_gateway_that_has_nothing_but_its_tools(
    tmp_path: Path, scopes: Any, visible: list[str]
) -> None:
    async with backend(http({"said": 1})) as api, backend(http(key_set("ec-1"))) as issuer:
        headers = bearer(token(scope=scopes))
        told = []
        for folder, tools in (("all", list(TOOLS)), ("own", visible)):
            async with gateway_of(tmp_path / folder, text_of(jwt(issuer), tools, url=api.url)) as served:
                told.append(await everything(served.addresses["tools"], headers))
    assert told[0] == told[1]
    assert len(api.received) == 2 * 2 * len(visible), "each visible tool was called on two surfaces, no other"
    assert not any(request.header("Authorization") for request in api.received), "no token reaches a backend"


async def test_keys_rotate_without_a_restart_and_outlive_their_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.surfaces.key_set.FLOOR", 0.0)
    served_keys = [key_set("ec-1")]
    async with backend(lambda _: http(served_keys[0])) as issuer:
        async with gateway_of(tmp_path, text_of(jwt(issuer))) as served:
            address = served.addresses["tools"]

            async def status(sent: str) -> int:
                return (await fetch(address, "GET", "/v1/tools", headers=bearer(sent)))[0]

            old, new = token("ec-1"), token("ec-2")
            assert [await status(old), await status(old)] == [200, 200]
            assert len(issuer.received) == 1, "a token that is remembered asks for nothing"
            assert await status(new) == 401, "nobody has this key yet"
            served_keys[0] = key_set("ec-2")
            assert await status(new) == 200, "an unknown key id has the set read again"
            assert await status(old) == 401, "and what left the set is not remembered"
            served_keys[0] = b"broken"
            assert await status(token("ec-3")) == 401
            assert await status(new) == 200
        assert not any(sent in caplog.text for sent in (old, new)), "a token is in no log"


@pytest.mark.parametrize("source", ["file", "issuer"])
async def test_a_reload_reads_the_key_set_though_the_contract_is_the_same(tmp_path: Path, source: str) -> None:
    served_keys = [key_set("ec-1")]
    file = tmp_path / "keys.json"
    file.write_bytes(served_keys[0])
    async with backend(lambda _: http(served_keys[0])) as issuer:
        text = text_of(jwt(str(file) if source == "file" else issuer))
        async with gateway_of(tmp_path, text) as served:
            address = served.addresses["tools"]

            async def status(sent: str) -> int:
                return (await fetch(address, "GET", "/v1/tools", headers=bearer(sent)))[0]

            assert [await status(token("ec-1")), await status(token("ec-2"))] == [200, 401]
            served_keys[0] = key_set("ec-2")
            file.write_bytes(served_keys[0])
            assert [await status(token("ec-1")), await status(token("ec-2"))] == [200, 401], "too soon to ask unasked"
            await served.reload()
            assert [await status(token("ec-1")), await status(token("ec-2"))] == [401, 200]


async def test_many_unknown_key_ids_cause_one_request_to_the_issuer(tmp_path: Path) -> None:
    async with backend(http(key_set("ec-1"))) as issuer, gateway_of(tmp_path, text_of(jwt(issuer))) as served:
        address = served.addresses["tools"]
        sent = [bearer(token(headers={"kid": f"made-up-{index}"})) for index in range(30)]
        told = await asyncio.gather(*(fetch(address, "GET", "/v1/tools", headers=each) for each in sent))
        assert {status for status, _, _ in told} == {401}
        assert len(issuer.received) == 1


async def test_without_any_key_the_gateway_says_that_it_cannot_check(tmp_path: Path) -> None:
    async with gateway_of(tmp_path, text_of(f"{jwt('http://127.0.0.1:1/jwks')}, {PLAIN_KEY}")) as served:
        address = served.addresses["tools"]
        status, fields, _ = await fetch(address, "GET", "/v1/tools", headers=bearer(token()))
        assert (status, fields["retry-after"]) == (503, "10")
        assert (await fetch(address, "GET", "/v1/tools", headers=bearer("k-ops")))[0] == 200, "keys need no issuer"
        assert (await fetch(address, "GET", "/v1/tools", headers=bearer("k-no")))[0] == 401


@pytest.mark.parametrize("path", ["", "/mcp"])
async def test_oauth_metadata_are_told_to_anyone(tmp_path: Path, path: str) -> None:
    async with backend(http(key_set("ec-1"))) as issuer:
        async with gateway_of(tmp_path / "with", text_of(f"{jwt(issuer)}, {OAUTH}")) as served:
            where = f"/.well-known/oauth-protected-resource{path}"
            status, fields, body = await fetch(served.addresses["tools"], "GET", where)
            assert (status, fields["content-type"]) == (200, "application/json")
            assert json.loads(body) == {
                "resource": AUDIENCE,
                "authorization_servers": [ISSUER],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["blue", "red"],
            }
            deeper = await fetch(served.addresses["tools"], "GET", f"{where}/other", headers=bearer(token()))
            assert deeper[0] == 404
        async with gateway_of(tmp_path / "without", text_of(jwt(issuer))) as served:
            assert (await fetch(served.addresses["tools"], "GET", where))[0] == 404


async def test_challenges_are_those_of_mcps_authorization_text(tmp_path: Path) -> None:
    told = "https://gateway.example/.well-known/oauth-protected-resource/mcp"
    tools = ["b_red", "c_blue"]
    async with (
        backend(http(key_set("ec-1"))) as issuer,
        gateway_of(tmp_path, text_of(f"{jwt(issuer)}, {OAUTH}, {PLAIN_KEY}", tools)) as served,
    ):
        address = served.addresses["tools"]
        silent = await mcp(address, "initialize", {}, "")
        expired = await mcp(address, "initialize", {}, bearer(token(exp=1)))
        poor = await mcp(address, "tools/list", {}, bearer(token(scope="green")))
        enough = await mcp(address, "tools/list", {}, bearer(token(scope="red")))
        metadata = await fetch(
            address, "GET", "/.well-known/oauth-protected-resource", headers=bearer(token(scope="green"))
        )
    assert (silent[0], silent[1]["www-authenticate"]) == (
        401,
        f'Bearer scope="blue red", resource_metadata="{told}"',
    )
    assert (expired[0], expired[1]["www-authenticate"]) == (
        401,
        f'Bearer error="invalid_token", scope="blue red", resource_metadata="{told}"',
    )
    assert (poor[0], poor[1]["www-authenticate"]) == (
        403,
        f'Bearer error="insufficient_scope", scope="blue red", resource_metadata="{told}"',
    )
    assert json.loads(poor[2])["error"] == "insufficient_scope"
    assert enough[0] == 200
    assert metadata[0] == 200, "the way to more scopes is open to whoever has too few"


async def test_the_operator_may_name_the_scopes_that_are_told(tmp_path: Path) -> None:
    oauth = OAUTH.replace("resource:", "scopes: [red], resource:")
    async with (
        backend(http(key_set("ec-1"))) as issuer,
        gateway_of(tmp_path, text_of(f"{jwt(issuer)}, {oauth}")) as served,
    ):
        _, _, body = await fetch(served.addresses["tools"], "GET", "/.well-known/oauth-protected-resource")
        _, fields, _ = await fetch(served.addresses["tools"], "GET", "/v1/tools")
    assert json.loads(body)["scopes_supported"] == ["red"]
    assert 'scope="red"' in fields["www-authenticate"]


async def test_each_caller_has_a_rate_of_its_own_on_every_surface(tmp_path: Path) -> None:
    more = "limits: {per_principal: 2/h},"
    async with backend(http({})) as api, backend(http(key_set("ec-1"))) as issuer:
        async with gateway_of(tmp_path, text_of(f"{jwt(issuer)}, {PLAIN_KEY}", more=more, url=api.url)) as served:
            address = served.addresses["tools"]
            ann, bob = bearer(token(sub="ann")), bearer(token(sub="bob"))
            params = {"name": "a_open", "arguments": {}}
            assert (await fetch(address, "POST", "/agent/tools/a_open", headers=ann))[0] == 200
            assert json.loads((await mcp(address, "tools/call", params, ann))[2])["result"]["isError"] is False
            status, fields, body = await fetch(address, "POST", "/agent/tools/a_open", headers=ann)
            over = json.loads(body)
            assert (status, over["code"], over["retryable"]) == (429, "RATE_LIMITED", True)
            assert 1 <= over["details"]["retry_after"] <= 1800
            assert int(fields["retry-after"]) == over["details"]["retry_after"]
            result = json.loads((await mcp(address, "tools/call", params, ann))[2])["result"]
            assert result["isError"] is True
            assert json.loads(result["content"][0]["text"])["code"] == "RATE_LIMITED"
            listed = await mcp(address, "tools/list", {}, ann)
            assert listed[0] == 200, "listing is no call"
            # the same holder with another token is the same caller; another holder is not
            again = bearer(token(sub="ann", jti="2"))
            assert (await fetch(address, "POST", "/agent/tools/a_open", headers=again))[0] == 429
            assert (await fetch(address, "POST", "/agent/tools/a_open", headers=bob))[0] == 200
            assert (await fetch(address, "POST", "/agent/tools/a_open", headers=bearer("k-ops")))[0] == 200
        assert len(api.received) == 4, "nothing was sent for a refused call"


async def test_without_auth_all_callers_together_are_one(tmp_path: Path) -> None:
    text = text_of("", more="limits: {per_principal: 1/h},").replace(", auth: {}", "").replace(" auth: {}", "")
    async with backend(http({})) as api:
        open_text = text.replace("http://127.0.0.1:1", api.url)
        for scopes in TOOLS.values():
            open_text = open_text.replace(scopes, "") if scopes else open_text
        async with gateway_of(tmp_path, open_text) as served:
            address = served.addresses["tools"]
            assert (await fetch(address, "POST", "/agent/tools/a_open"))[0] == 200
            assert (await fetch(address, "POST", "/agent/tools/b_red"))[0] == 429
            inside = await served.gateway.invoke("a_open", {})
            assert inside.ok, "code in this process is no caller"


@pytest.mark.parametrize(("scopes", "statuses"), [("[red]", [401, 200, 403, 200]), ("[]", [200, 200, 200, 200])])
async def test_the_admin_listener_asks_for_the_scopes_that_it_names(
    tmp_path: Path, scopes: str, statuses: list[int]
) -> None:
    async with backend(http(key_set("ec-1"))) as issuer:
        text = text_of(f"{jwt(issuer)}, {PLAIN_KEY}").replace("admin: {listen", f"admin: {{scopes: {scopes}, listen")
        async with gateway_of(tmp_path, text) as served:
            admin = served.addresses["admin"]
            challenge = (await fetch(admin, "GET", "/metrics"))[1].get("www-authenticate", "")
            told = [
                (await fetch(admin, "GET", path, headers=headers))[0]
                for path, headers in (
                    ("/metrics", ""),
                    ("/metrics", bearer("k-ops")),
                    ("/metrics", bearer(token(scope="blue"))),
                    ("/-/healthy", ""),
                )
            ]
    assert told == statuses
    assert bool(challenge) == (scopes != "[]")


def test_both_listeners_off_loopback_are_told_of_at_once(tmp_path: Path) -> None:
    text = text_of("").replace(" auth: {}", "")
    for listener in ("tools", "admin"):
        text = text.replace(f"{listener}: {{listen: 127.0.0.1:0", f"{listener}: {{listen: '0.0.0.0:0'")
    refusals = contract_at(tmp_path, text)
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == ["gateway.tools.listen", "gateway.admin.listen"]


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "gateway.example", "192.168.0.7", "[fe80::1]", "127.1"])
@pytest.mark.parametrize("listener", ["tools", "admin"])
def test_a_listener_off_loopback_without_auth_is_refused(tmp_path: Path, host: str, listener: str) -> None:
    text = (
        text_of("")
        .replace(" auth: {}", "")
        .replace(f"{listener}: {{listen: 127.0.0.1:0", f"{listener}: {{listen: '{host}:0'")
    )
    refusals = contract_at(tmp_path, text)
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == [f"gateway.{listener}.listen"]


@pytest.mark.parametrize(
    ("auth", "path"),
    [
        (OAUTH, "gateway.auth.oauth"),
        (jwt("http://issuer.example/jwks"), "gateway.auth.jwt.jwks"),
        (jwt("https://user@issuer.example/jwks"), "gateway.auth.jwt.jwks"),
        (jwt("absent.json"), "gateway.auth.jwt.jwks"),
        (jwt("empty.json"), "gateway.auth.jwt.jwks"),
        (jwt("private.json"), "gateway.auth.jwt.jwks"),
        (jwt("shared.json"), "gateway.auth.jwt.jwks"),
        (jwt("good.json").replace("jwt: {", "jwt: {algorithms: [HS256], "), "gateway.auth.jwt.algorithms[0]"),
        (jwt("good.json").replace("jwt: {", "jwt: {algorithms: [none], "), "gateway.auth.jwt.algorithms[0]"),
        (jwt("good.json").replace("jwt: {", "jwt: {algorithms: [], "), "gateway.auth.jwt.algorithms"),
        (
            f"{jwt('good.json')}, oauth: {{resource: {AUDIENCE}, authorization_servers: []}}",
            "gateway.auth.oauth.authorization_servers",
        ),
    ],
)
def test_auth_that_could_not_work_or_would_not_be_safe_is_refused_at_load(tmp_path: Path, auth: str, path: str) -> None:
    own = json.loads(key_set("ec-1"))["keys"][0]
    files = {
        "good.json": key_set("ec-1").decode(),
        "empty.json": '{"keys": []}',
        "private.json": json.dumps({"keys": [{**own, "d": "c2VjcmV0LXBhcnQ"}]}),
        "shared.json": json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0LXBhcnQ"}]}),
    }
    refusals = contract_at(tmp_path, text_of(auth), files)
    assert isinstance(refusals, tuple)
    assert all(isinstance(each, Refusal) for each in refusals)
    assert [refusal.path for refusal in refusals] == [path]
    assert "c2VjcmV0LXBhcnQ" not in "".join(map(str, refusals))
