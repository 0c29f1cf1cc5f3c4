"""One round of load on one port: by wrk where it is installed, else by a client of our own, with the same figures."""

from __future__ import annotations

import json
import re
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

_REQUEST = "GET /{size} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@dataclass(frozen=True)
class Load:
    """What the callers saw of one round."""

    requests: int
    requests_per_second: float
    p50_us: float
    p99_us: float


def client() -> str:
    """Which client `press` uses on this machine."""
    return "wrk" if shutil.which("wrk") else "bench.load"


def press(port: int, size: int, callers: int, seconds: int, pin: Callable[[], None]) -> Load:
    """Keep `callers` connections busy, each with one request at a time; `pin` binds the client's process to a core."""
    if client() == "wrk":
        url = f"http://127.0.0.1:{port}/{size}"
        command = ["wrk", "-t1", f"-c{callers}", f"-d{seconds}s", "--latency", "--timeout", "30s", url]
        return read_wrk(_run(command, pin))
    command = [sys.executable, "-m", "bench.load", str(port), str(size), str(callers), str(seconds)]
    return Load(**json.loads(_run(command, pin)))


def _run(command: list[str], pin: Callable[[], None]) -> str:
    run = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=pin)
    if run.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{run.stderr[-2000:]}")
    return run.stdout


def read_wrk(out: str) -> Load:
    """What wrk printed; a round with failed requests is an error."""
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(f"failed requests:\n{out}")
    return Load(
        int(_found(r"(\d+) requests in", out)),
        float(_found(r"Requests/sec:\s+([\d.]+)", out)),
        _microseconds(_found(r"50%\s+([\d.]+[a-z]+)", out)),
        _microseconds(_found(r"99%\s+([\d.]+[a-z]+)", out)),
    )


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"wrk said something else:\n{text}")
    return found[1]


def _microseconds(text: str) -> float:
    unit = text.lstrip("0123456789.")
    return float(text.removesuffix(unit)) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


class _Caller:
    """One connection with one request under way."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._left = 0
        self._head = b""
        self.began = 0.0

    def ask(self) -> None:
        self._head, self._left, self.began = b"", 0, time.perf_counter()
        self.socket.sendall(self._request)

    def take(self, buffer: memoryview) -> bool:
        """Read what came; true once the answer is whole."""
        count = self.socket.recv_into(buffer)
        if not count:
            raise ConnectionError("closed in the middle of an answer")
        if self._left:
            self._left -= count
            return self._left == 0
        self._head += bytes(buffer[:count])
        head, end, body = self._head.partition(b"\r\n\r\n")
        if not end:
            return False
        if b" 200 " not in head[:16]:
            raise ConnectionError(f"not a 200: {head[:80]!r}")
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        self._left = length - len(body)
        return self._left == 0


def press_here(port: int, size: int, callers: int, seconds: float) -> Load:
    """The same by a client in this process."""
    buffer = memoryview(bytearray(1 << 20))
    request = _REQUEST.format(size=size).encode()
    poll = select.poll()
    connections: dict[int, _Caller] = {}
    for _ in range(callers):
        caller = _Caller(port, request)
        connections[caller.socket.fileno()] = caller
        poll.register(caller.socket, select.POLLIN)
        caller.ask()
    taken: list[float] = []
    begin = time.perf_counter()
    end = begin + seconds
    while (now := time.perf_counter()) < end or not taken:
        for number, _ in poll.poll(1000):
            caller = connections[number]
            if caller.take(buffer):
                taken.append(time.perf_counter() - caller.began)
                caller.ask()
    for caller in connections.values():
        caller.socket.close()
    taken.sort()
    p50, p99 = (taken[min(len(taken) - 1, len(taken) * share // 100)] * 1e6 for share in (50, 99))
    return Load(len(taken), len(taken) / (now - begin), p50, p99)


if __name__ == "__main__":
    where, how_large, how_many, how_long = map(int, sys.argv[1:])
    print(json.dumps(vars(press_here(where, how_large, how_many, how_long))))
