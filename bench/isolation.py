"""`python -m bench.isolation`: what others feel while eight agents keep calling a tool with a 140 KB answer.

One run, rounds in turn: the pass-through and a tool with a 1 KB answer alone, then with the callers at work; medians of
the rounds' p50 and p99, and their ratios. What is behind the pass-through is asked directly as well: what others feel
there, they feel of the machine, which the callers share, and not of the gateway. It is a process of its own, since a
backend that is busy with the callers' answers would let others wait whoever stands before it. `--workers` is
what `toolview serve` is given; 0 shows what one process would do.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import multiprocessing.synchronize
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

ROWS = [{"id": number, "name": f"Somebody {number}", "notes": "n" * 100} for number in range(1000)]
LARGE = json.dumps({"people": ROWS}).encode()
SMALL = b'{"people": "' + b"x" * 1000 + b'"}'
CALLERS = 8
CONTRACT = """
version: 1
gateway: {{tools: {{listen: "127.0.0.1:{tools}"}}, admin: {{listen: "127.0.0.1:{admin}"}}, log: {{level: error}}}}
backends:
  api: {{url: "http://127.0.0.1:{backend}"}}
  old: {{url: "http://127.0.0.1:{old}", passthrough: "127.0.0.1:{plain}"}}
endpoints:
  people.list:
    request: GET /large
    backend: api
    description: Lists people.
    output:
      type: object
      properties:
        people:
          type: array
          items:
            type: object
            properties: {{id: {{type: integer}}, name: {{type: string}}, notes: {{type: string}}}}
    tool:
      name: list_people
      safety_tier: read
      view:
        output:
          type: object
          properties:
            people:
              type: array
              items: {{type: object, properties: {{id: {{type: integer}}, name: {{type: string}}}}}}
  people.one:
    request: GET /small
    backend: api
    description: Shows one.
    output: {{type: object, properties: {{people: {{type: string}}}}}}
    tool: {{name: show_one, safety_tier: read}}
"""
PLAIN = b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n"
TOOL = (
    b"POST /agent/tools/show_one HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 2\r\n\r\n{}"
)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench.isolation", description=__doc__)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--requests", type=int, default=2000, help="through, for each round")
    options.add_argument("--calls", type=int, default=400, help="of the small tool, for each round")
    given = options.parse_args()
    ports = {name: _free_port() for name in ("tools", "admin", "plain", "backend", "old")}
    busy, calls = multiprocessing.Event(), multiprocessing.Value("L")
    others = [multiprocessing.Process(target=_backend, args=(ports[name],), daemon=True) for name in ("backend", "old")]
    others += [
        multiprocessing.Process(target=_call, args=(ports["tools"], busy, calls), daemon=True) for _ in range(CALLERS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        contract = Path(folder, "gateway.yaml")
        contract.write_text(CONTRACT.format(**ports))
        command = [sys.executable, "-m", "gateway", "serve", str(contract), "--workers", str(given.workers)]
        gateway = subprocess.Popen(command)
        try:
            for each in others[:2]:
                each.start()
            _until_ready(ports["admin"])
            for caller in others[2:]:
                caller.start()
            rounds = _rounds(ports, busy, given)
        finally:
            gateway.send_signal(signal.SIGTERM)
            gateway.wait()
            for other in others:
                if other.pid is not None:
                    other.terminate()
                    other.join()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, --workers {given.workers}")
    print(f"{given.rounds} rounds, {calls.value:,} calls")
    if not calls.value:
        return 1
    for what, pairs in rounds.items():
        for name, place in (("p50", 0.5), ("p99", 0.99)):
            alone, beside = (
                statistics.median(sorted(each)[int(len(each) * place)] for each in times) * 1e3
                for times in zip(*pairs, strict=True)
            )
            beside_text = f"beside {CALLERS} callers {beside:.3f} ms, ratio {beside / alone:.2f}"
            print(f"{what} {name}: alone {alone:.3f} ms, {beside_text}")
    return 0


def _rounds(
    ports: dict[str, int], busy: multiprocessing.synchronize.Event, given: argparse.Namespace
) -> dict[str, list[tuple[list[float], list[float]]]]:
    asked = {
        "without a gateway": (ports["old"], PLAIN, given.requests),
        "pass-through": (ports["plain"], PLAIN, given.requests),
        "tool": (ports["tools"], TOOL, given.calls),
    }
    found: dict[str, list[tuple[list[float], list[float]]]] = {what: [] for what in asked}
    for _ in range(given.rounds):
        alone = {what: _times(*how) for what, how in asked.items()}
        busy.set()
        _times(ports["plain"], PLAIN, 100)
        for what, how in asked.items():
            found[what].append((alone[what], _times(*how)))
        busy.clear()
        time.sleep(0.5)  # the calls in flight end
    return found


def _times(port: int, request: bytes, count: int) -> list[float]:
    times = []
    with socket.create_connection(("127.0.0.1", port)) as kept:
        kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            began = time.perf_counter()
            kept.sendall(request)
            size = 0
            while size < len(SMALL):  # it is longer by its head, which never comes alone
                size += len(kept.recv(65536))
            times.append(time.perf_counter() - began)
    return times


def _call(port: int, busy: multiprocessing.synchronize.Event, calls: Synchronized[int]) -> None:
    kept = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        busy.wait()
        kept.request("POST", "/agent/tools/list_people", b"{}")
        answer = kept.getresponse()
        if answer.status != 200 or not answer.read().startswith(b'{"ok":true'):
            raise SystemExit("a call failed")
        with calls.get_lock():
            calls.value += 1


def _backend(port: int) -> None:
    import asyncio

    def whole(body: bytes) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    small, large = whole(SMALL), whole(LARGE)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                return
            writer.write(large if b" /large " in head else small)

    async def forever() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
            await server.serve_forever()

    asyncio.run(forever())


def _until_ready(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            asked.request("GET", "/-/ready")
            if asked.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the gateway is not ready after 30 seconds")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
