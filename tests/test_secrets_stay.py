"""A planted secret is in no output of the program: logs, errors, listings, metrics, health, refusals, reprs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.values import Address
from gateway.serve import Serving
from tests.rig import Backend, Received, accepted, backend, contract_at, http
from tests.test_serve import fetch, serving

ROOT = Path(__file__).parent.parent
SECRETS = {"HEADER": "planted-header-1b7e", "TOKEN": "planted-token-2c8f", "QUERY": "planted-query-3d9a"}
CONTRACT = """
    version: 1
    gateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}, log: {{level: debug, format: json}}}}
    backends:
      api:
        url: {url}
        passthrough: 127.0.0.1:0
        headers: {{X-Api-Key: "${{HEADER}}"}}
        auth: {{bearer: "${{TOKEN}}"}}
        errors: {{code: /code, message: /message}}
      other: {{url: {url}, auth: {{query: {{name: key, value: "${{QUERY}}"}}}}}}
    endpoints:
      read: {{backend: api, request: GET /read, description: Reads., output: {{type: object}}, expose: [http, mcp, agent]}}
      ask: {{backend: other, request: GET /ask, description: Asks., output: {{type: object}}, expose: [http, mcp, agent]}}
"""


async def test_a_running_gateway_shows_no_secret_even_where_the_backend_says_it_back(tmp_path: Path) -> None:
    def echo(request: Received) -> bytes:
        said = " ".join([request.target, *(f"{name}: {value}" for name, value in request.headers)])
        return http({"code": "E_ECHO", "message": f"refused: {said}"}, status=403)

    async with backend(echo) as api:
        assert isinstance(contract_at(tmp_path, CONTRACT.format(url=api.url)), tuple), "the secrets are not set here"
        pipe = asyncio.subprocess.PIPE
        environment = {
            **os.environ,
            **SECRETS,
            "PYTHONPATH": str(ROOT),
            "TOOLVIEW_CONFIG": str(tmp_path / "gateway.yaml"),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "serve", env=environment, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout is not None
        printed: list[str] = []
        addresses: dict[str, Address] = {}
        try:
            while "admin" not in addresses:
                line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
                printed.append(line)
                told = json.loads(line)
                if "listener" in told:
                    host, _, port = told["address"].rpartition(":")
                    addresses[told["listener"]] = Address(host, int(port))
            tools, admin = addresses["tools"], addresses["admin"]
            seen = [
                await fetch(tools, "POST", "/agent/tools/read"),
                await fetch(tools, "POST", "/agent/tools/ask"),
                await fetch(tools, "GET", "/agent/tools?format=mcp"),
                await fetch(tools, "GET", "/v1/tools"),
                await fetch(tools, "GET", "/v1/openapi.json"),
                await fetch(admin, "GET", "/metrics"),
                await fetch(admin, "GET", "/-/ready"),
                await fetch(admin, "GET", "/-/contract"),
            ]
        finally:
            process.terminate()
            rest, _ = await process.communicate()
        printed.append(rest.decode())
    assert api.received[0].header("Authorization") == f"Bearer {SECRETS['TOKEN']}"
    assert api.received[1].target == f"/ask?key={SECRETS['QUERY']}"
    assert not re.search("|".join([SECRETS["TOKEN"], SECRETS["HEADER"]]), api.received[1].raw.decode()), (
        "nor another backend"
    )
    everything = "".join(printed) + repr(seen)
    assert "E_ECHO" in everything, "what the contract declares is shown"
    for secret in SECRETS.values():
        assert secret not in everything


def test_a_loaded_contract_shows_no_secret_in_any_repr(tmp_path: Path) -> None:
    contract_at(tmp_path, CONTRACT.format(url="http://127.0.0.1:1"))
    contract = load(tmp_path / "gateway.yaml", SECRETS)
    assert isinstance(contract, Contract)
    shown = repr(contract) + str(contract.backends["api"]) + json.dumps(dict(contract.written))
    for secret in SECRETS.values():
        assert secret not in shown


@pytest.mark.parametrize("bad", ["timeout: never", "heders: {}", "url: 7"])
def test_a_refusal_shows_no_secret(tmp_path: Path, bad: str) -> None:
    text = CONTRACT.format(url="http://127.0.0.1:1").replace("passthrough: 127.0.0.1:0", bad)
    contract_at(tmp_path, text)
    refusals = load(tmp_path / "gateway.yaml", SECRETS)
    assert isinstance(refusals, tuple)
    for secret in SECRETS.values():
        assert secret not in "".join(map(str, refusals))


KEY_SET = """
    version: 1
    gateway:
      tools: {{listen: 127.0.0.1:0}}
      admin: {{listen: 127.0.0.1:0}}
      log: {{level: debug}}
      auth: {{jwt: {{jwks: "{jwks}", issuer: "https://issuer.example", audience: api}}}}
    backends: {{api: {{url: http://127.0.0.1:1}}}}
    endpoints:
      read: {{request: GET /read, description: Reads., output: {{type: object}}, tool: {{safety_tier: read}}}}
"""


@pytest.mark.parametrize("answer", [http({"keys": []}), http({"no": "keys"}, status=403), b"no http"])
async def test_a_key_in_the_url_of_a_key_set_is_shown_to_its_server_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: bytes
) -> None:
    caplog.set_level(logging.DEBUG)
    async with backend(lambda _: answer) as issuer:
        text = KEY_SET.format(jwks=f"{issuer.url}/jwks?key=planted-key-set")
        async with serving(accepted(tmp_path, text)) as served:
            tools, admin = served.addresses["tools"], served.addresses["admin"]
            seen = [await fetch(tools, "GET", "/v1/tools", headers="Authorization: Bearer a.b.c\r\n")]
            paths = ("/-/contract", "/console/state", "/console/tools", "/metrics", "/-/ready")
            seen += [await fetch(admin, "GET", path) for path in paths]
            (tmp_path / "gateway.yaml").write_text(text.replace("issuer:", "isuer:"))
            seen.append(await fetch(admin, "POST", "/-/reload"))
    assert issuer.received[0].target == "/jwks?key=planted-key-set"
    assert f"{issuer.url}/jwks?***" in repr(seen)
    logged = "".join(str(vars(record)) for record in caplog.records)
    assert "planted" not in repr(seen) + logged + repr(served.gateway.generation.contract)


@pytest.mark.parametrize(
    "url",
    [
        "https://planted@issuer.example/jwks",
        "https://a:planted@issuer.example/jwks?x",
        "http://issuer.example/?planted",
    ],
)
def test_a_refused_url_of_a_key_set_is_not_repeated(tmp_path: Path, url: str) -> None:
    refusals = contract_at(tmp_path, KEY_SET.format(jwks=url))
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == ["gateway.auth.jwt.jwks"]
    assert "planted" not in "".join(map(str, refusals))


EVERY_KIND = """
    version: 1
    gateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}, log: {{level: debug}}, auth: {{keys: [{{name: ann, sha256: {digest}}}]}}}}
    backends:
      bearer: {{url: {url}/bearer, auth: {{bearer: planted-bearer-1a}}}}
      basic: {{url: {url}/basic, auth: {{basic: {{username: planted-user-2b, password: planted-pass-3c}}}}}}
      header: {{url: {url}/header, auth: {{header: {{name: X-Key, value: planted-header-4d}}}}}}
      query: {{url: {url}/query, auth: {{query: {{name: k, value: planted-query-5e}}}}}}
      static: {{url: {url}/static, headers: {{X-Static: planted-static-6f}}}}
      client: {{url: {url}/client, auth: {{client_credentials: {{token_url: {url}/token, client_id: planted-id-7g, client_secret: planted-secret-8h}}}}}}
      forwards: {{url: {url}/forwards, forward_headers: [X-Caller]}}
      nothing: {{url: {url}/nothing}}
    endpoints:
{endpoints}
"""
KINDS = ("bearer", "basic", "header", "query", "static", "client", "forwards", "nothing")
ENDPOINT = "      {name}: {{backend: {name}, request: GET /read, description: Reads., output: {{type: object}}, expose: [http, mcp, agent], tool: {{safety_tier: read}}}}"


def planted(text: str) -> set[str]:
    """Which of the planted texts a text holds, in the form they were written or sent in."""
    forms = {each: each for each in re.findall(r"planted-[a-z]+-\w+", EVERY_KIND)} | {
        base64.b64encode(pair.encode()).decode(): pair
        for pair in ("planted-user-2b:planted-pass-3c", "planted-id-7g:planted-secret-8h")
    }
    given = {
        "planted-token-9i": "planted-token-9i",
        "planted-caller-0j": "planted-caller-0j",
        "planted-key-00": "planted-key-00",
    }
    return {name for form, name in (forms | given).items() if form in text}


@asynccontextmanager
async def every_kind(folder: Path) -> AsyncIterator[tuple[Serving, Backend]]:
    def answer(request: Received) -> bytes:
        if request.target == "/token":
            return http({"access_token": "planted-token-9i", "expires_in": 3600})
        said = {"code": "E", "error": {"code": "E", "message": request.raw.decode("latin-1")}}
        return http(said, status=400)

    digest = hashlib.sha256(b"planted-key-00").hexdigest()
    async with backend(answer) as api:
        endpoints = "\n".join(ENDPOINT.format(name=kind) for kind in KINDS)
        text = EVERY_KIND.format(url=api.url, digest=digest, endpoints=endpoints)
        async with serving(accepted(folder, text)) as served:
            yield served, api


CALLER = "Authorization: Bearer planted-key-00\r\nX-Caller: planted-caller-0j\r\nCookie: s=planted-caller-0j\r\n"


async def test_no_credential_of_one_backend_reaches_another(tmp_path: Path) -> None:
    async with every_kind(tmp_path) as (served, api):
        for kind in KINDS:
            await fetch(served.addresses["tools"], "POST", f"/agent/tools/{kind}", headers=CALLER)
    sent: dict[str, set[str]] = {}
    for request in api.received:
        sent.setdefault(request.target.split("/")[1], set()).update(planted(request.raw.decode("latin-1")))
    assert sent == {
        "bearer": {"planted-bearer-1a"},
        "basic": {"planted-user-2b:planted-pass-3c"},
        "header": {"planted-header-4d"},
        "query": {"planted-query-5e"},
        "static": {"planted-static-6f"},
        "token": {"planted-id-7g:planted-secret-8h"},
        "client": {"planted-token-9i"},
        "forwards": {"planted-caller-0j"},
        "nothing": set(),
    }


async def test_no_kind_of_credential_is_in_any_answer_listing_metric_log_repr_or_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with every_kind(tmp_path) as (served, api):
        tools, admin = served.addresses["tools"], served.addresses["admin"]
        seen = []
        for kind in KINDS:
            own = CALLER if kind != "forwards" else CALLER.replace("planted-caller-0j", "mine")
            seen.append(await fetch(tools, "POST", f"/agent/tools/{kind}", headers=own))
            question = json.dumps({"tool": kind, "arguments": {}}).encode()
            seen.append(
                await fetch(admin, "POST", "/console/try", question, own + "Content-Type: application/json\r\n")
            )
        asked = len(api.received)
        for path in ("/agent/tools", "/v1/tools", "/v1/tools?view=compact", "/v1/openapi.json", "/.well-known/openwop"):
            seen.append(await fetch(tools, "GET", path, headers=CALLER))
        for path in ("/metrics", "/-/ready", "/-/contract", "/console", "/console/state", "/console/tools"):
            seen.append(await fetch(admin, "GET", path, headers=CALLER))
        shown = repr(seen) + repr(served.gateway.generation) + repr(served.gateway.generation.contract.written)
    assert asked == 2 * len(KINDS) + 1, "each backend was asked on both, and a token once"
    # aiohttp and asyncio do not log what they send; what they say at debug is searched too
    assert planted(shown + caplog.text) - {"planted-id-7g", "planted-user-2b"} == set(), "but for names, which are none"
