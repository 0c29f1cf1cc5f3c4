"""`python -m bench.passthrough`: the relay beside nginx and haproxy, interleaved, in front of one backend.

Needs nginx, haproxy, wrk and taskset on the path. Every proxy has one worker on the first core with kept connections to
the backend; the backend (nginx with files) and the client (wrk) share the second. Ratios within one run are the result;
the absolute figures belong to the machine, and a machine with other work gives neither.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import psutil

HERE = Path(__file__).parent
SIZES = {"1 KB": 1024, "14 KB": 14 * 1024, "140 KB": 140 * 1024, "10 MB": 10 * 1024 * 1024}
CALLERS = (1, 32, 128)
NEEDED = ("nginx", "haproxy", "wrk", "taskset")
BACKEND, FIRST_PROXY = 19300, 19301

_BACKEND = """
worker_processes 1; pid {folder}/backend.pid; error_log {folder}/backend.err; daemon off;
events {{ worker_connections 16384; }}
http {{ access_log off; sendfile on; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 600s;
  open_file_cache max=10; default_type application/octet-stream;
  server {{ listen 127.0.0.1:{backend} backlog=1024; root {folder}; }} }}
"""
_NGINX = """
worker_processes 1; pid {folder}/proxy.pid; error_log {folder}/proxy.err; daemon off;
events {{ worker_connections 16384; }}
http {{ access_log off; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 600s;
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 256; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port} backlog=1024;
    location / {{ proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""
_HAPROXY = """
global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 3s
  timeout client 600s
  timeout server 600s
  http-reuse always
frontend front
  bind 127.0.0.1:{port}
  default_backend back
backend back
  server one 127.0.0.1:{backend}
"""


@dataclass(frozen=True)
class Round:
    """One run of wrk against one target."""

    requests_per_second: float
    p50_us: float
    p99_us: float
    cpu_us_per_request: float


@dataclass(frozen=True)
class Figure:
    """The medians of all rounds of one target at one size and one number of callers."""

    target: str
    size: str
    callers: int
    medians: Round
    #: Requests per second as a multiple of nginx's in the same run.
    of_nginx: float


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench.passthrough", description=__doc__)
    options.add_argument("--quick", action="store_true", help="1 KB and 140 KB at 32 callers, one second each")
    quick = options.parse_args().quick
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        print(f"not on the path: {', '.join(missing)}", file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, _running(Path(name)) as processes:
        figures = list(_compare(processes, quick))
        memory = _memory(processes, 200 if quick else 5000)
    report = {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "load_before": load,
        "cores": os.cpu_count(),
        "versions": _versions(),
        "figures": [asdict(figure) for figure in figures],
        "bytes_per_idle_connection": memory,
    }
    print(_table(figures, memory, load))
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    stem = folder / f"passthrough-{str(report['taken']).replace(':', '')[:17]}"
    stem.with_suffix(".json").write_text(json.dumps(report, indent=2) + "\n")
    stem.with_suffix(".svg").write_text(_plot(figures))
    print(f"\nWritten to {stem}.json and .svg")
    return 0


@contextmanager
def _running(folder: Path) -> Iterator[dict[str, psutil.Process]]:
    """Backend and proxies, each pinned; ended by their own process ids."""
    folder.chmod(0o755)  # started by root, nginx reads files as somebody else
    for size in SIZES.values():
        (folder / str(size)).write_bytes(os.urandom(size))
    ports = {"nginx": FIRST_PROXY, "haproxy": FIRST_PROXY + 1, "toolview": FIRST_PROXY + 2}
    texts = {"backend.conf": _BACKEND, "nginx.conf": _NGINX, "haproxy.conf": _HAPROXY}
    for file, text in texts.items():
        port = ports.get(file.removesuffix(".conf"), BACKEND)
        (folder / file).write_text(text.format(folder=folder, backend=BACKEND, port=port))
    commands = {
        "direct": ["nginx", "-c", f"{folder}/backend.conf"],
        "nginx": ["nginx", "-c", f"{folder}/nginx.conf"],
        "haproxy": ["haproxy", "-db", "-f", f"{folder}/haproxy.conf"],
        "toolview": [sys.executable, "-m", "bench.passthrough_relay", str(ports["toolview"]), str(BACKEND)],
    }
    started = {
        name: subprocess.Popen(["taskset", "-c", _core(name == "direct"), *command], cwd=HERE.parent)
        for name, command in commands.items()
    }
    try:
        for port in (BACKEND, *ports.values()):
            _wait_for(port)
        yield {name: psutil.Process(process.pid) for name, process in started.items()}
    finally:
        for process in started.values():
            process.terminate()
            process.wait()


def _core(second: bool) -> str:
    cores = sorted(os.sched_getaffinity(0))
    return str(cores[1 if second and len(cores) > 1 else 0])


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on {port}")


def _port(target: str) -> int:
    return BACKEND + ("direct", "nginx", "haproxy", "toolview").index(target)


def _compare(processes: dict[str, psutil.Process], quick: bool) -> Iterator[Figure]:
    for size in ("1 KB", "140 KB") if quick else SIZES:
        for callers in (32,) if quick else CALLERS:
            rounds: dict[str, list[Round]] = {target: [] for target in processes}
            for _ in range(3 if quick else 5):
                for target, process in processes.items():
                    rounds[target].append(_round(target, process, SIZES[size], callers, 1 if quick else 4))
            medians = {
                target: Round(
                    *(median(values) for values in zip(*(asdict(one).values() for one in taken), strict=True))
                )
                for target, taken in rounds.items()
            }
            for target, middle in medians.items():
                ratio = middle.requests_per_second / medians["nginx"].requests_per_second
                yield Figure(target, size, callers, middle, ratio)


def _round(target: str, process: psutil.Process, size: int, callers: int, seconds: int) -> Round:
    before = _cpu(process)
    command = [
        "taskset",
        "-c",
        _core(True),
        "wrk",
        "-t1",
        f"-c{callers}",
        f"-d{seconds}s",
        "--latency",
        "--timeout",
        "30s",
    ]
    url = f"http://127.0.0.1:{_port(target)}/{size}"
    out = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    spent = _cpu(process) - before
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(f"{target} failed requests:\n{out}")
    count = int(_found(r"(\d+) requests in", out))
    return Round(
        float(_found(r"Requests/sec:\s+([\d.]+)", out)),
        _microseconds(_found(r"50%\s+([\d.]+[a-z]+)", out)),
        _microseconds(_found(r"99%\s+([\d.]+[a-z]+)", out)),
        spent / count * 1e6,
    )


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"wrk said something else:\n{text}")
    return found[1]


def _microseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", text).groups()  # type: ignore[union-attr]  # of _found's pattern
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def _cpu(process: psutil.Process) -> float:
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def _resident(process: psutil.Process) -> int:
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


def _memory(processes: dict[str, psutil.Process], count: int) -> dict[str, int]:
    """What a connection costs once it has been used and lies idle."""
    measured = {}
    for target, process in processes.items():
        if target == "direct":
            continue
        before = _resident(process)
        clients = [socket.create_connection(("127.0.0.1", _port(target))) for _ in range(count)]
        for client in clients:
            client.sendall(b"GET /1024 HTTP/1.1\r\nHost: bench\r\n\r\n")
            client.recv(65536)
        measured[target] = (_resident(process) - before) // count
        for client in clients:
            client.close()
    return measured


def _versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name, command in {"nginx": ["nginx", "-v"], "haproxy": ["haproxy", "-v"]}.items():
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        found[name] = (run.stdout + run.stderr).splitlines()[0]
    return found


def _table(figures: list[Figure], memory: dict[str, int], load: float) -> str:
    lines = [f"load before the run {load:.2f}", ""]
    lines.append(
        f"{'size':>7}{'callers':>9}  {'target':10}{'req/s':>9}{'of nginx':>10}{'p50 µs':>10}{'p99 µs':>10}{'CPU µs':>9}"
    )
    for figure in figures:
        middle = figure.medians
        lines.append(
            f"{figure.size:>7}{figure.callers:>9}  {figure.target:10}{middle.requests_per_second:>9,.0f}"
            f"{figure.of_nginx:>10.2f}{middle.p50_us:>10,.0f}{middle.p99_us:>10,.0f}{middle.cpu_us_per_request:>9,.0f}"
        )
    idle = ", ".join(f"{target} {size:,}" for target, size in memory.items())
    return "\n".join([*lines, "", f"bytes for each idle connection: {idle}"])


def _plot(figures: list[Figure]) -> str:
    """Requests per second as a multiple of nginx's: one bar for each proxy, size and number of callers."""
    bars = [figure for figure in figures if figure.target in ("haproxy", "toolview")]
    height, colours = 18, {"haproxy": "#8a8f98", "toolview": "#2b6cb0"}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{40 + height * len(bars)}">',
        "<style>text { font: 12px sans-serif }</style>",
        '<text x="10" y="18">requests per second, nginx = 1 (the line)</text>',
    ]
    for row, bar in enumerate(bars):
        y = 30 + row * height
        parts.append(f'<text x="10" y="{y + 12}">{bar.size}, {bar.callers} callers, {bar.target}</text>')
        parts.append(
            f'<rect x="230" y="{y}" width="{bar.of_nginx * 180:.0f}" height="14" fill="{colours[bar.target]}"/>'
        )
        parts.append(f'<text x="{235 + bar.of_nginx * 180:.0f}" y="{y + 12}">{bar.of_nginx:.2f}</text>')
    parts.append(f'<line x1="410" x2="410" y1="26" y2="{30 + height * len(bars)}" stroke="black"/></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
