"""CPU per small tool call, memory after many calls, and time to ready: Toolview beside FastMCP's OpenAPI proxy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.backend import RECORD
from bench.driver import Connection, drive, get, post, volleys
from bench.server import Server, free_port, own_python

HERE = Path(__file__).parent
#: Callers at once where a figure says "of many".
CALLERS = 8
_SCRATCH = HERE / ".venv"
_PEER = "fastmcp>=4,<5"
_CALLS = [post("/mcp", "tools/call", {"name": "get_item", "arguments": {"id": item}}) for item in range(1, 101)]
_CARD = {
    "id": RECORD["id"],
    "name": RECORD["name"],
    "state": "OPEN",
    "tags": [{"label": "urgent"}, {"label": "north"}],
    "owner": {"login": "m.okafor"},
    "address": {"city": "Rotterdam"},
}


@dataclass(frozen=True)
class Effort:
    """How much to measure: starts, interleaved rounds, seconds of a round, calls before memory is read."""

    starts: int = 5
    rounds: int = 7
    seconds: float = 2.0
    calls: int = 10_000


QUICK = Effort(starts=1, rounds=3, seconds=0.5, calls=500)


def measure(effort: Effort, on_one_core: Callable[[], object]) -> dict[str, Any]:
    """Run everything against one backend process; figures by server name, and what each server is.

    Starts are measured on all cores, as they happen in life, and calls after `on_one_core`.
    """
    python = fastmcp_python()
    backend_port = free_port()
    backend = Server(
        "backend", [sys.executable, "-m", "bench.backend", str(backend_port)], backend_port, get("/items/1")
    )
    with backend:
        servers = [(_toolview(backend_port), _CARD), (_fastmcp(python, backend_port), RECORD)]
        figures: dict[str, dict[str, Any]] = {server.name: {} for server, _ in servers}
        _measure_starts([server for server, _ in servers], effort, figures)
        on_one_core()
        _measure_calls(servers, effort, figures)
    return {"figures": figures, "peer": _peer_version(python)}


def _measure_starts(servers: list[Server], effort: Effort, figures: dict[str, dict[str, Any]]) -> None:
    ready: dict[str, list[tuple[float, float]]] = {server.name: [] for server in servers}
    for _ in range(effort.starts):
        for server in servers:
            with server:
                ready[server.name].append((server.ready_after, server.ready_cpu))
    for name, times in ready.items():
        figures[name]["ready_seconds"] = median(wall for wall, _ in times)
        figures[name]["ready_cpu_seconds"] = median(cpu for _, cpu in times)


def _measure_calls(
    servers: list[tuple[Server, dict[str, Any]]], effort: Effort, figures: dict[str, dict[str, Any]]
) -> None:
    with ExitStack() as stack:
        for server, _ in servers:
            stack.enter_context(server)
        lines = [(server, stack.enter_context(Connection(_tools_port(server)))) for server, _ in servers]
        for (_, expected), (_, connection) in zip(servers, lines, strict=True):
            _expect(connection, expected)
        done = _interleave(lines, effort, figures)
        crowds = {
            server.name: [stack.enter_context(Connection(_tools_port(server))) for _ in range(CALLERS)]
            for server, _ in servers
        }
        for server, _ in servers:
            done[server.name] += volleys(crowds[server.name], _CALLS, effort.seconds / 4)
        _interleave_crowds([server for server, _ in servers], crowds, effort, figures, done)
        for server, _ in lines:
            with Connection(_tools_port(server)) as connection:  # the first ones were idle for too long by now
                drive(connection, _CALLS, 0, calls=max(0, effort.calls - done[server.name]))
            figures[server.name] |= {
                "calls": max(effort.calls, done[server.name]),
                "resident_bytes": server.resident_bytes(),
                "proportional_bytes": server.proportional_bytes(),
                "processes": server.processes(),
            }


def _interleave(
    lines: list[tuple[Server, Connection]], effort: Effort, figures: dict[str, dict[str, Any]]
) -> dict[str, int]:
    """Rounds in turn, so that whatever else the machine does meets every server alike; how many calls each got."""
    cpu: dict[str, list[float]] = {server.name: [] for server, _ in lines}
    wall: dict[str, list[float]] = {server.name: [] for server, _ in lines}
    done = {server.name: 0 for server, _ in lines}
    for number in range(effort.rounds + 1):
        for server, connection in lines:
            before = server.cpu_seconds()
            taken = drive(connection, _CALLS, effort.seconds)
            spent = server.cpu_seconds() - before
            done[server.name] += len(taken)
            if number == 0:  # the first round warms up
                continue
            cpu[server.name].append(spent / len(taken))
            wall[server.name].append(median(taken))
    for name in done:
        figures[name] |= {
            "cpu_seconds_per_call": median(cpu[name]),
            "wall_seconds_per_call": median(wall[name]),
            "cpu_rounds": cpu[name],
        }
    return done


def _interleave_crowds(
    servers: list[Server],
    crowds: dict[str, list[Connection]],
    effort: Effort,
    figures: dict[str, dict[str, Any]],
    done: dict[str, int],
) -> None:
    """The same with several callers at once: what a call costs a server that has something to do."""
    cpu: dict[str, list[float]] = {server.name: [] for server in servers}
    for _ in range(effort.rounds):
        for server in servers:
            before = server.cpu_seconds()
            calls = volleys(crowds[server.name], _CALLS, effort.seconds)
            cpu[server.name].append((server.cpu_seconds() - before) / calls)
            done[server.name] += calls
    for name, rounds in cpu.items():
        figures[name] |= {"cpu_seconds_per_call_of_many": median(rounds), "cpu_rounds_of_many": rounds}


def _expect(connection: Connection, expected: dict[str, Any]) -> None:
    """A server that answers wrongly is not measured."""
    _, body = connection.exchange(_CALLS[0])
    shown = json.loads(body)["result"]["structuredContent"]
    if shown != expected:
        raise RuntimeError(f"not the answer that was asked for: {shown}")


def _toolview(backend_port: int) -> Server:
    tools, admin = free_port(), free_port()
    return Server(
        "toolview",
        [sys.executable, "-m", "gateway", "serve", str(HERE / "contract.yaml")],
        admin,
        get("/-/ready"),
        {"BENCH_TOOLS_PORT": str(tools), "BENCH_ADMIN_PORT": str(admin), "BENCH_BACKEND_PORT": str(backend_port)},
    )


def _fastmcp(python: Path, backend_port: int) -> Server:
    port = free_port()
    script, document = str(HERE / "fastmcp_proxy.py"), str(HERE / "openapi.json")
    command = [str(python), script, str(port), f"http://127.0.0.1:{backend_port}", document]
    return Server("fastmcp", command, port, post("/mcp", "tools/list", {}))


def _tools_port(server: Server) -> int:
    return int(server.environment.get("BENCH_TOOLS_PORT", server.probe_port))


def fastmcp_python() -> Path:
    """The interpreter that has FastMCP."""
    return own_python(_SCRATCH, _PEER)


def _peer_version(python: Path) -> str:
    script = "from importlib.metadata import version as v; print('fastmcp', v('fastmcp'), 'on mcp', v('mcp'))"
    return subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
