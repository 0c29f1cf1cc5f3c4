"""The proxies that `bench.passthrough` compares, and the backend behind them: started, pinned to a core, ended."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.server import free_port

_ROOT = Path(__file__).parent.parent

_BACKEND = """
worker_processes 1; pid {folder}/backend.pid; error_log {folder}/backend.err; daemon off;
events {{ worker_connections 16384; }}
http {{ access_log off; sendfile on; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 600s;
  open_file_cache max=10; default_type application/octet-stream;
  server {{ listen 127.0.0.1:{backend} backlog=8192; root {folder}; }} }}
"""
_NGINX = """
worker_processes 1; pid {folder}/proxy.pid; error_log {folder}/proxy.err; daemon off;
events {{ worker_connections 16384; }}
http {{ access_log off; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 600s;
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 256; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port} backlog=8192;
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
  bind 127.0.0.1:{port} backlog 8192
  default_backend back
backend back
  server one 127.0.0.1:{backend}
"""
_TOOLVIEW = """
version: 1
gateway:
  tools: {{listen: "127.0.0.1:{tools}"}}
  admin: {{listen: "127.0.0.1:{admin}"}}
  log: {{level: warning}}
backends:
  legacy: {{url: "http://127.0.0.1:{backend}", passthrough: "127.0.0.1:{port}"}}
endpoints:
  blob: {{request: "GET /1024", description: A kilobyte.}}
"""


@dataclass(frozen=True)
class Target:
    """Something that answers on a port: a proxy, or the backend itself under the name `direct`."""

    name: str
    port: int
    process: psutil.Process

    def cpu_seconds(self) -> float:
        return sum(sum(one.cpu_times()[:2]) for one in self._tree())

    def resident_bytes(self) -> int:
        return sum(one.memory_info().rss for one in self._tree())

    def _tree(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


def absent() -> list[str]:
    """Which of the peers are not installed; they are left out, and what they would have done is done by stand-ins."""
    return [name for name in ("nginx", "haproxy", "wrk") if shutil.which(name) is None]


def versions() -> dict[str, str]:
    found = {}
    for name, flag in (("nginx", "-v"), ("haproxy", "-v"), ("wrk", "-v")):
        if shutil.which(name):
            run = subprocess.run([name, flag], capture_output=True, text=True, check=False)
            found[name] = (run.stdout + run.stderr).splitlines()[0].split(" Copyright")[0]
    return found


def pin_proxy() -> None:
    """Bind this process to the core on which the proxies take turns."""
    _pin(0)


def pin_others() -> None:
    """Bind this process to the core that the backend and the client share."""
    _pin(-1)


def _pin(which: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[which]})


@contextmanager
def running(folder: Path, sizes: Sequence[int]) -> Iterator[dict[str, Target]]:
    """The backend and every proxy that is installed, in the order in which they are measured."""
    folder.chmod(0o755)  # started by root, nginx reads files as somebody else
    for size in sizes:
        (folder / str(size)).write_bytes(os.urandom(size))
    backend = free_port()
    ports = {"direct": backend} | {name: free_port() for name in ("nginx", "haproxy", "toolview")}
    commands = _commands(folder, backend, ports)
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in commands.items():
            started[name] = _start(command, folder / f"{name}.log", pin_others if name == "direct" else pin_proxy)
            _wait_for(ports[name], started[name], folder / f"{name}.log")
        yield {name: Target(name, ports[name], psutil.Process(process.pid)) for name, process in started.items()}
    finally:
        for process in started.values():
            process.terminate()
        for process in started.values():
            process.wait()


def _commands(folder: Path, backend: int, ports: dict[str, int]) -> dict[str, list[str]]:
    texts = {"nginx": _NGINX, "haproxy": _HAPROXY, "toolview": _TOOLVIEW, "direct": _BACKEND}
    for name, text in texts.items():
        filled = text.format(folder=folder, backend=backend, port=ports[name], tools=free_port(), admin=free_port())
        (folder / f"{name}.conf").write_text(filled)
    missing = absent()
    commands = {}
    if "nginx" in missing:
        commands["direct"] = [sys.executable, "-m", "bench.blobs", str(backend)]
    else:
        commands["direct"] = ["nginx", "-c", f"{folder}/direct.conf"]
        commands["nginx"] = ["nginx", "-c", f"{folder}/nginx.conf"]
    if "haproxy" not in missing:
        commands["haproxy"] = ["haproxy", "-db", "-f", f"{folder}/haproxy.conf"]
    commands["toolview"] = [sys.executable, "-m", "gateway", "serve", f"{folder}/toolview.conf"]
    return commands


def _start(command: list[str], log: Path, pin: Callable[[], None]) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(command, cwd=_ROOT, stdout=out, stderr=out, preexec_fn=pin)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(400):
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on {port}; it said:\n{log.read_text(errors='replace')[-2000:]}")
