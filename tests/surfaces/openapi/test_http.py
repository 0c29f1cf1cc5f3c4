"""The listeners' own descriptions: each route is in them and nothing else, and a scan finds no answer beside them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from gateway import __version__
from gateway.serve import Serving
from gateway.surfaces.http import Routes
from gateway.surfaces.openapi.http import description
from tests.demo.test_run import demo, get
from tests.rig import accepted, backend, http
from tests.surfaces.openapi import scan
from tests.surfaces.tokens import AUDIENCE, ISSUER, key_set, token
from tests.test_serve import fetch, serving

CONTRACT = """
    version: 1
    gateway:
      tools: {listen: 127.0.0.1:0}
      admin: {listen: 127.0.0.1:0AND}
    backends: {api: {url: http://127.0.0.1:9}}
    endpoints:
      read: {request: GET /read, description: Reads., output: {type: object}, tool: {safety_tier: read}}
"""
KEYED = CONTRACT.replace("AND", ", scopes: [ops]").replace(
    "    backends:", f"      auth: {{keys: [{{name: agent, sha256: {'0' * 64}}}]}}\n    backends:"
)
GUARDED = """
    version: 1
    gateway:
      tools: {listen: 127.0.0.1:0}
      admin: {listen: 127.0.0.1:0, scopes: [ops]}
      auth:
        keys: [{name: agent, sha256: DIGEST, scopes: [read]}]
        jwt: {jwks: keys.json, issuer: ISSUER, audience: AUDIENCE}
        oauth: {resource: AUDIENCE, authorization_servers: [ISSUER]}
    backends: {api: {url: URL}}
    endpoints:
      list_people:
        request: GET /read
        description: Reads.
        input: {properties: {team: {type: string}}, additionalProperties: true}
        output: {type: object}
        scopes: [read]
        tool: {safety_tier: read}
      write: {request: POST /write, description: Writes., scopes: [write], tool: {safety_tier: write}}
""".replace("ISSUER", ISSUER).replace("AUDIENCE", AUDIENCE)
LISTENERS = ("tools", "admin")
#: What an answer is held against; on the pass-through the requests are the backend's to judge.
OF_ANSWERS = (
    "not_a_server_error,status_code_conformance,content_type_conformance"
    ",response_headers_conformance,response_schema_conformance"
)
OF_ALL = f"{OF_ANSWERS},negative_data_rejection,missing_required_header,unsupported_method,allow_header_conformance"
EVERY_CORNER = "examples,coverage,fuzzing"


def described(listener: str) -> Any:
    return json.loads(description(listener))


def operations(listener: str) -> set[tuple[str, str]]:
    return {(path, method.upper()) for path, item in described(listener)["paths"].items() for method in item}


def served(routes: Routes) -> set[tuple[str, str]]:
    """Each route as OpenAPI has it: a prefix is a path that ends in some name."""
    exact = {(path, method) for path, methods in routes.exact.items() for method in methods}
    return exact | {(f"{path}{{}}", method) for path, methods in routes.prefixes.items() for method in methods}


async def test_every_route_is_described_and_nothing_else(tmp_path: Path) -> None:
    whole = Serving(accepted(tmp_path, CONTRACT.replace("AND", "")))
    for listener, routes in (("tools", whole._tool_routes()), ("admin", whole._admin_routes())):
        written = {(re.sub(r"{\w+}", "{}", path), method) for path, method in operations(listener)}
        assert written == served(routes)


@pytest.mark.parametrize("listener", LISTENERS)
async def test_a_listener_serves_its_description_as_it_is_shipped(tmp_path: Path, listener: str) -> None:
    async with serving(accepted(tmp_path, CONTRACT.replace("AND", ""))) as gateway:
        status, headers, body = await fetch(gateway.addresses[listener], "GET", "/openapi.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert body == description(listener)
    assert described(listener)["info"]["version"] == __version__


@pytest.mark.parametrize("listener", LISTENERS)
async def test_a_key_is_asked_for_where_the_description_says_so(tmp_path: Path, listener: str) -> None:
    """A route that is answered without one says `security: []`, and no 401."""
    async with serving(accepted(tmp_path, KEYED)) as gateway:
        for path, item in described(listener)["paths"].items():
            for method, operation in item.items():
                status, _, _ = await fetch(gateway.addresses[listener], method.upper(), re.sub(r"{\w+}", "x", path))
                asked = "security" not in operation
                assert (status == 401, "401" in operation["responses"]) == (asked, asked), path


async def test_a_scan_of_what_every_listener_says_of_itself_finds_no_other_answer(tmp_path: Path) -> None:
    await scanned(tmp_path, behind="fuzzing", examples=4, seed=None)


@pytest.mark.long
async def test_a_long_scan_finds_none_either(tmp_path: Path) -> None:
    await scanned(tmp_path, behind=EVERY_CORNER, examples=200, seed=random.randrange(2**32))


async def test_a_scan_of_a_gateway_that_asks_who_speaks_finds_none_either(tmp_path: Path) -> None:
    await scanned_with_keys(tmp_path, speakers=1, phases="examples,fuzzing", examples=1, seed=None)


@pytest.mark.long
async def test_nor_does_a_long_scan_of_it(tmp_path: Path) -> None:
    await scanned_with_keys(tmp_path, speakers=4, phases=EVERY_CORNER, examples=100, seed=random.randrange(2**32))


async def scanned_with_keys(folder: Path, *, speakers: int, phases: str, examples: int, seed: int | None) -> None:
    """By a static key, by a signed token, and by one that lacks a scope; OAuth's metadata answers 200."""
    (folder / "keys.json").write_bytes(key_set("ec-1"))
    text = GUARDED.replace("DIGEST", hashlib.sha256(b"k").hexdigest())
    async with backend(http({"read": 1})) as api, serving(accepted(folder, text.replace("URL", api.url))) as gateway:
        tools, admin = (gateway.addresses[name] for name in LISTENERS)
        all_of_them = [(tools, token()), (admin, token(scope="ops")), (tools, "k"), (admin, token(scope="none"))]
        runs = []
        for number, (address, key) in enumerate(all_of_them[:speakers]):
            home = folder / str(number)
            home.mkdir()
            url = f"http://{address}/openapi.json"
            if number == 3:  # who may not read the document of this listener has it from a file
                url = str(home / "openapi.json")
                (home / "openapi.json").write_bytes(description("admin"))
            runs.append(scan(url, OF_ALL, phases, examples=examples, seed=seed, folder=home, key=key, at=str(address)))
        for (address, key), (status, told) in zip(all_of_them, await asyncio.gather(*runs), strict=False):
            assert status == 0, f"{address} {key[:4]}\n{told}"
        metadata = await fetch(tools, "GET", "/.well-known/oauth-protected-resource")
        metrics = (await fetch(admin, "GET", "/metrics", headers=f"Authorization: Bearer {token(scope='ops')}\r\n"))[2]
    assert (metadata[0], json.loads(metadata[2])["resource"]) == (200, AUDIENCE)
    assert b'tool_calls_total{code="ok",surface="mcp",tool="list_people"}' in metrics


async def scanned(folder: Path, *, behind: str, examples: int, seed: int | None) -> None:
    """The demo as it is served: both listeners of ours, and what is behind the pass-through."""
    async with demo() as (process, printed):
        _, tools, admin = re.findall(r"curl -s (http://[0-9.:]+)/", printed)
        assert process.stdout is not None
        logged = asyncio.create_task(process.stdout.read())
        documents = {
            f"{tools}/openapi.json": (OF_ALL, EVERY_CORNER),
            f"{admin}/openapi.json": (OF_ALL, EVERY_CORNER),
            f"{tools}/v1/openapi.json": (OF_ANSWERS, behind),
        }
        runs = (scan(url, *how, examples=examples, seed=seed, folder=folder) for url, how in documents.items())
        for url, (status, told) in zip(documents, await asyncio.gather(*runs), strict=True):
            assert status == 0, f"{url}\n{told}"
        metrics = (await asyncio.to_thread(get, f"{admin}/metrics")).decode()
        process.terminate()
        log = (await asyncio.wait_for(logged, 60)).decode()
        assert await process.wait() == 0
    assert "Traceback" not in log
    assert '"level":"error"' not in log
    # The scans got as far as the tools and the backend.
    for surface in ("agent", "mcp", "console"):
        assert f'tool_calls_total{{code="ok",surface="{surface}",tool="list_people"}}' in metrics
    assert 'method="POST",status_class="4xx"}' in metrics
