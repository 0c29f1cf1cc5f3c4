"""`python -m bench.peers`: a tool call through Toolview, FastMCP and ContextForge to one backend, 1 KB and 140 KB.

Rounds in turn in one run. ContextForge lives in an environment of its own and gets its tools by its admin API.
"""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.driver import Connection, drive, get, post
from bench.server import Server, free_port, own_python
from bench.tool_call import HERE, fastmcp_python

ROUNDS = 3
SECONDS = 1.5
_SCRATCH = HERE / ".venv-contextforge"
_PEER = "mcp-contextforge-gateway>=1.0.7,<1.1"
_PATHS = {"small": "/items/{id}", "large": "/large/{id}"}
_INPUT = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
_PASSWORD = "Bench-admin-9x"  # of a server that lives for one run, on loopback


@dataclass
class Peer:
    """A server and how its tools are called there."""

    server: Server
    connection: Connection
    calls: dict[str, bytes]


def main() -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        backend = free_port()
        asked = [sys.executable, "-m", "bench.backend", str(backend)]
        stack.enter_context(Server("backend", asked, backend, get("/items/1")))
        peers = [make(stack, folder, backend) for make in (_toolview, _fastmcp, _contextforge)]
        print(f"{'':14}{'answer':>8}{'calls/s':>10}{'CPU/call':>12}")
        for peer in peers:
            for request in peer.calls.values():
                _, body = peer.connection.exchange(request)
                if b"1915883588174806058" not in body:  # a server that answers wrongly is not measured
                    raise RuntimeError(f"{peer.server.name} does not show the record: {body[:300]!r}")
        cpu: dict[tuple[str, str], list[float]] = {}
        rate: dict[tuple[str, str], list[float]] = {}
        for number in range(ROUNDS + 1):
            for size in _PATHS:
                for peer in peers:
                    before = peer.server.cpu_seconds()
                    taken = drive(peer.connection, [peer.calls[size]], SECONDS)
                    if number:  # the first round warms up
                        spent = (peer.server.cpu_seconds() - before) / len(taken)
                        cpu.setdefault((peer.server.name, size), []).append(spent)
                        rate.setdefault((peer.server.name, size), []).append(len(taken) / sum(taken))
        for size in _PATHS:
            for peer in peers:
                key = peer.server.name, size
                print(f"{key[0]:14}{size:>8}{median(rate[key]):>10.0f}{median(cpu[key]) * 1e6:>9.0f} µs")
    return 0


def _toolview(stack: ExitStack, folder: Path, backend: int) -> Peer:
    tools, admin = free_port(), free_port()
    row = "{type: object, required: [id, name], properties: {id: {type: integer}, name: {type: string}}}"
    outputs = {"small": row, "large": f"{{type: object, properties: {{rows: {{type: array, items: {row}}}}}}}"}
    (folder / "gateway.yaml").write_text(
        f"version: 1\ngateway: {{log: {{level: warning}}, tools: {{listen: 127.0.0.1:{tools}}}, "
        f"admin: {{listen: 127.0.0.1:{admin}}}}}\nbackends: {{api: {{url: http://127.0.0.1:{backend}}}}}\nendpoints:\n"
        + "".join(
            f"  {size}: {{request: 'GET {path}', description: One., "
            f"input: {json.dumps(_INPUT)}, output: {outputs[size]}}}\n"
            for size, path in _PATHS.items()
        )
    )
    command = [sys.executable, "-m", "gateway", "serve", str(folder / "gateway.yaml")]
    server = stack.enter_context(Server("toolview", command, admin, get("/-/ready")))
    return Peer(server, stack.enter_context(Connection(tools)), {size: _call("/mcp", size) for size in _PATHS})


def _fastmcp(stack: ExitStack, folder: Path, backend: int) -> Peer:
    port = free_port()
    parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    answer = {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "bench", "version": "1"},
        "paths": {
            path: {"get": {"operationId": size, "parameters": [parameter], "responses": {"200": answer}}}
            for size, path in _PATHS.items()
        },
    }
    (folder / "openapi.json").write_text(json.dumps(document))
    script = str(HERE / "fastmcp_proxy.py")
    command = [str(fastmcp_python()), script, str(port), f"http://127.0.0.1:{backend}", str(folder / "openapi.json")]
    server = stack.enter_context(Server("fastmcp", command, port, post("/mcp", "tools/list", {})))
    return Peer(server, stack.enter_context(Connection(port)), {size: _call("/mcp", size) for size in _PATHS})


def _contextforge(stack: ExitStack, folder: Path, backend: int) -> Peer:
    port = free_port()
    command = [str(own_python(_SCRATCH, _PEER).parent / "mcpgateway"), "--host", "127.0.0.1", "--port", str(port)]
    environment = {
        "DATABASE_URL": f"sqlite:///{folder}/forge.db",
        "MCPGATEWAY_UI_ENABLED": "false",
        "MCPGATEWAY_ADMIN_API_ENABLED": "true",
        "JWT_SECRET_KEY": "0123456789abcdef0123456789abcdef01",
        "AUTH_ENCRYPTION_SECRET": "0123456789abcdef0123456789abcdef02",
        "PLATFORM_ADMIN_EMAIL": "admin@example.com",
        "PLATFORM_ADMIN_PASSWORD": _PASSWORD,
        "BASIC_AUTH_PASSWORD": _PASSWORD,
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "TOOL_RATE_LIMIT": "100000000",
        "LOG_LEVEL": "ERROR",
    }
    server = stack.enter_context(Server("contextforge", command, port, get("/health"), environment))
    login = {"email": "admin@example.com", "password": _PASSWORD}
    token = _asked(port, "/auth/login", login)["access_token"]
    for size, path in _PATHS.items():
        url = f"http://127.0.0.1:{backend}{path}"
        tool = {"name": size, "url": url, "description": "One.", "integration_type": "REST", "request_type": "GET"}
        _asked(port, "/tools", {"tool": {**tool, "input_schema": _INPUT}}, token)
    credential = f"Authorization: Bearer {token}\r\n\r\n".encode()
    calls = {size: _call("/mcp/", size).replace(b"\r\n\r\n", b"\r\n" + credential, 1) for size in _PATHS}
    return Peer(server, stack.enter_context(Connection(port)), calls)


def _asked(port: int, path: str, body: Any, token: str | None = None) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def _call(path: str, tool: str) -> bytes:
    return post(path, "tools/call", {"name": tool, "arguments": {"id": 1}})


if __name__ == "__main__":
    sys.exit(main())
