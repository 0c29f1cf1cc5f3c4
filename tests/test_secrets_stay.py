"""A planted secret is in no output of the program: logs, errors, listings, metrics, health, refusals, reprs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.values import Address
from tests.rig import Received, backend, contract_at, http
from tests.test_serve import fetch

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
