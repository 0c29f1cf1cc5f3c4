"""`python -m bench`: one run of every measurement, a table on stdout and the figures under bench/results/."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import passthrough, peers
from bench.tool_call import CALLERS, HERE, QUICK, Effort, measure

_OURS = ("toolview", "aiohttp", "jiter", "jsonschema-rs", "orjson", "uvloop")


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    options.add_argument("--quick", action="store_true", help="a minute, to see that the harness works")
    options.add_argument("--only", choices=("tool", "passthrough", "peers"), help="one of the three parts")
    chosen = options.parse_args()
    quick = chosen.quick
    report = {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": _machine(),
    }
    report["versions"] = {name: version(name) for name in _OURS}
    print(_heading(report), flush=True)
    # The last part binds this process to one core. Each is told and written as soon as it is there.
    if chosen.only in (None, "passthrough"):
        report["passthrough"] = passthrough.measure(passthrough.QUICK if quick else passthrough.Effort())
        _tell(report, passthrough.table(report["passthrough"]))
    if chosen.only in (None, "peers"):
        report["peers"] = peers.measure(peers.QUICK if quick else peers.Effort())
        _tell(report, peers.table(report["peers"]))
    if chosen.only in (None, "tool"):
        report["tool_call"] = measure(QUICK if quick else Effort(), _one_core)
        _tell(report, _table(report))
    return 0


def _tell(report: dict[str, Any], table: str) -> None:
    print(f"{table}\n\nWritten to {_write(report)}\n", flush=True)


def _one_core() -> int | None:
    """Everything on one core, servers included: no figure then depends on which core woke which."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _heading(report: dict[str, Any]) -> str:
    machine = report["machine"]
    versions = ", ".join(f"{name} {found}" for name, found in report["versions"].items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}\n"
        f"load before the run {machine['load_before']:.2f}\nPython {machine['python']}; {versions}\n"
    )


def _table(report: dict[str, Any]) -> str:
    measured = report["tool_call"]
    ours, peer = measured["figures"]["toolview"], measured["figures"]["fastmcp"]
    rows = [
        ("CPU per tool call, one caller", "cpu_seconds_per_call", 1e6, "µs"),
        (f"CPU per tool call, {CALLERS} callers at once", "cpu_seconds_per_call_of_many", 1e6, "µs"),
        ("time of a tool call, one caller", "wall_seconds_per_call", 1e6, "µs"),
        (f"resident memory after {ours['calls']:,} and {peer['calls']:,} calls", "resident_bytes", 1e-6, "MB"),
        ("the same, shared pages counted once", "proportional_bytes", 1e-6, "MB"),
        ("start to ready", "ready_seconds", 1e3, "ms"),
        ("CPU from start to ready", "ready_cpu_seconds", 1e3, "ms"),
    ]
    lines = [
        f"tool calls, against {measured['peer']}: from_openapi, stateless, JSON answers",
        f"{'':52}{'Toolview':>12}{'FastMCP':>12}{'ratio':>8}",
    ]
    for title, key, scale, unit in rows:
        left, right = ours[key] * scale, peer[key] * scale
        ratio = f"{right / left:.1f}" if left else "-"
        lines.append(f"{title:52}{left:>9,.0f} {unit}{right:>9,.0f} {unit}{ratio:>8}")
    lines.append(f"processes: {ours['processes']} and {peer['processes']}; ratio: how many times as much FastMCP takes")
    return "\n".join(lines)


def _write(report: dict[str, Any]) -> Path:
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"{report['taken'].replace(':', '')[:17]}.json"
    path.write_text(json.dumps(report, indent=2) + "\n")
    if "passthrough" in report:
        path.with_suffix(".svg").write_text(passthrough.plot(report["passthrough"]))
    if "peers" in report:
        path.with_suffix(".peers.svg").write_text(peers.plot(report["peers"]))
    return path


if __name__ == "__main__":
    sys.exit(main())
