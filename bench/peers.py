"""`python -m bench.peers`: a tool call through Toolview, FastMCP and ContextForge to one backend, 1 KB and 140 KB.

Rounds in turn in one run. ContextForge lives in an environment of its own and gets its tools by its admin API.
"""

from __future__ import annotations

import argparse
import json
import subprocess
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

_SCRATCH = HERE / ".venv-contextforge"
_PEER = "mcp-contextforge-gateway>=1.0.7,<1.1"
_PATHS = {"small": "/items/{id}", "large": "/large/{id}"}
_INPUT = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
_PASSWORD = "Bench-admin-9x"  # of a server that lives for one run, on loopback


@dataclass
class Peer:
    """A server and how its tools are called there."""

    server: Server
    port: int
    calls: dict[str, bytes]
    #: Of what, for the report.
    version: str


@dataclass(frozen=True)
class Effort:
    """How much to measure: interleaved rounds, seconds of a round."""

    rounds: int = 3
    seconds: float = 1.5


QUICK = Effort(rounds=1, seconds=0.3)
SIZES = {"small": "1 KB", "large": "140 KB"}


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    options.add_argument("--quick", action="store_true", help="to see that the harness works")
    print(table(measure(QUICK if options.parse_args().quick else Effort())))
    return 0


def measure(effort: Effort) -> dict[str, Any]:
    """Run everything; plain values, ready to be written as JSON. A peer that is not to be had is said and left out."""
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        backend = free_port()
        asked = [sys.executable, "-m", "bench.backend", str(backend)]
        stack.enter_context(Server("backend", asked, backend, get("/items/1")))
        peers = [_toolview(stack, folder, backend)]
        for name, make in (("fastmcp", _fastmcp), ("contextforge", _contextforge)):
            try:
                peers.append(make(stack, folder, backend))
            except (OSError, RuntimeError, subprocess.CalledProcessError) as fault:
                absent[name] = str(fault)[:300]
        for peer in peers:
            for request in peer.calls.values():
                with Connection(peer.port) as connection:
                    _, body = connection.exchange(request)
                if b"1915883588174806058" not in body:  # a server that answers wrongly is not measured
                    raise RuntimeError(f"{peer.server.name} does not show the record: {body[:300]!r}")
        figures = _interleaved(peers, effort, absent)
    return {"versions": {peer.server.name: peer.version for peer in peers}, "absent": absent, "figures": figures}


def _interleaved(peers: list[Peer], effort: Effort, absent: dict[str, str]) -> list[dict[str, Any]]:
    """Rounds in turn, the first of which warms up; medians by size and server. Who fails on the way is `absent`."""
    cpu: dict[tuple[str, str], list[float]] = {}
    rate: dict[tuple[str, str], list[float]] = {}
    for number in range(effort.rounds + 1):
        for size in _PATHS:
            for peer in [peer for peer in peers if peer.server.name not in absent]:
                before = peer.server.cpu_seconds()
                try:
                    with Connection(peer.port) as connection:  # a new one each round: some close what is idle for long
                        taken = drive(connection, [peer.calls[size]], effort.seconds)
                except (OSError, RuntimeError) as fault:
                    if peer is peers[0]:
                        raise  # the one that all are compared with
                    absent[peer.server.name] = str(fault)[:300]
                    continue
                if number:
                    spent = (peer.server.cpu_seconds() - before) / len(taken)
                    cpu.setdefault((size, peer.server.name), []).append(spent)
                    rate.setdefault((size, peer.server.name), []).append(len(taken) / sum(taken))
    return [
        {
            "answer": SIZES[size],
            "server": name,
            "calls_per_second": median(rate[size, name]),
            "cpu_seconds_per_call": median(spent),
            "cpu_of_toolview": median(spent) / median(cpu[size, "toolview"]),
        }
        for (size, name), spent in cpu.items()
        if name not in absent
    ]


def table(measured: dict[str, Any]) -> str:
    """For people. `of ours`: how many times Toolview's CPU a call takes."""
    lines = ["; ".join(["tool calls through three gateways, one caller", *measured["versions"].values()])]
    lines += [f"NOT MEASURED: {name}: {why}" for name, why in measured["absent"].items()]
    lines.append(f"{'answer':>8}  {'server':14}{'calls/s':>10}{'CPU/call':>12}{'of ours':>10}")
    lines += [
        f"{figure['answer']:>8}  {figure['server']:14}{figure['calls_per_second']:>10,.0f}"
        f"{figure['cpu_seconds_per_call'] * 1e6:>9,.0f} µs{figure['cpu_of_toolview']:>10.1f}"
        for figure in measured["figures"]
    ]
    return "\n".join(lines)


_ROW, _WIDE, _LEFT = 18, 400, 180


def plot(measured: dict[str, Any]) -> str:
    """CPU per call, one bar for each server and answer, each answer on a scale of its own."""
    figures = measured["figures"]
    height = 40 + _ROW * len(figures)
    most = {each["answer"]: 0.0 for each in figures}
    for each in figures:
        most[each["answer"]] = max(most[each["answer"]], each["cpu_seconds_per_call"])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDE + 180}" height="{height}">',
        "<style>text { font: 12px sans-serif }</style>",
        '<text x="10" y="18">CPU per tool call, shorter is better; each answer has a scale of its own</text>',
    ]
    for row, each in enumerate(figures):
        y, spent = 30 + row * _ROW, each["cpu_seconds_per_call"]
        said = f"{spent * 1e6:,.0f} µs ({each['cpu_of_toolview']:.1f})"
        width = spent / most[each["answer"]] * _WIDE
        colour = "#2b6cb0" if each["server"] == "toolview" else "#8a8f98"
        parts += [
            f'<text x="10" y="{y + 12}">{each["answer"]}, {each["server"]}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{width:.0f}" height="14" fill="{colour}"/>',
            f'<text x="{_LEFT + 5 + width:.0f}" y="{y + 12}">{said}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _version(python: Path | str, *names: str) -> str:
    """What a peer's own environment has."""
    script = f"from importlib.metadata import version as v; print(', '.join(n + ' ' + v(n) for n in {list(names)!r}))"
    return subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


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
    calls = {size: _call("/mcp", size) for size in _PATHS}
    return Peer(server, tools, calls, _version(sys.executable, "toolview"))


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
    calls = {size: _call("/mcp", size) for size in _PATHS}
    return Peer(server, port, calls, _version(fastmcp_python(), "fastmcp", "mcp"))


def _contextforge(stack: ExitStack, folder: Path, backend: int) -> Peer:
    port = free_port()
    python = own_python(_SCRATCH, _PEER)
    command = [str(python.parent / "mcpgateway"), "--host", "127.0.0.1", "--port", str(port)]
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
        "RATE_LIMIT_MEDIUM_RPM": "100000000",
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
    version = _version(python, "mcp-contextforge-gateway")
    return Peer(server, port, calls, version)


def _asked(port: int, path: str, body: Any, token: str | None = None) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def _call(path: str, tool: str) -> bytes:
    return post(path, "tools/call", {"name": tool, "arguments": {"id": 1}})


if __name__ == "__main__":
    sys.exit(main())
