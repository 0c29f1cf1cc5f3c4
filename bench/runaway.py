"""`python -m bench.runaway`: how long other calls take while projections loop for ever and eat memory, beside without.

Rounds with and without runaways in turn, in one run, over one gateway; each runaway must end in an error at its limit.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles

from bench.driver import Connection, drive, get, post
from bench.server import Server, free_port

ROUNDS = 6
SECONDS = 3.0
#: The issue's bound: other calls stay within so many times their own p99.
BOUND = 2.0

_PROJECTIONS = """
def card(full, ctx):
    return {"id": full["id"], "name": full["name"]}

def loop(full, ctx):
    while True:
        pass

def eat(full, ctx):
    held = []
    while True:
        held.append(bytearray(16 * 1024 * 1024))
"""
_ENDPOINT = """
  {name}:
    request: GET /items/{{id}}
    description: One item.
    expose: [agent, mcp]
    input: {{type: object, required: [id], properties: {{id: {{type: integer}}}}}}
    output: {{type: object, required: [id, name], properties: {{id: {{type: integer}}, name: {{type: string}}}}}}
    tool: {{view: {{{view}}}}}
"""
_VIEWS = {
    "slice": "output: {type: object, required: [id], properties: {id: {type: integer}}}",
    "card": "project: {python: 'shapes:card'}",
    "loop": "project: {python: 'shapes:loop'}",
    "eat": "project: {python: 'shapes:eat'}",
}


def main() -> int:
    with ExitStack() as stack:
        port = _start(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        others = {name: stack.enter_context(Connection(port)) for name in ("slice", "card")}
        calls = {name: [_call(name)] for name in _VIEWS}
        for name, connection in others.items():
            drive(connection, calls[name], 1.0)
        taken: dict[tuple[str, bool], list[float]] = {(name, on): [] for name in others for on in (False, True)}
        ended: list[tuple[str, float]] = []
        for _ in range(ROUNDS):
            for on in (False, True):
                with Runaways(port, on) as runaways:
                    for name, connection in others.items():
                        taken[name, on] += drive(connection, calls[name], SECONDS)
                ended += runaways.ended
    within = True
    for name in others:
        alone, beside = (quantiles(taken[name, on], n=100)[98] * 1e3 for on in (False, True))
        within &= beside <= BOUND * alone
        print(f"{name:6} p99 {alone:7.2f} ms alone, {beside:7.2f} ms beside runaways, ratio {beside / alone:.2f}")
    for name in ("loop", "eat"):
        seconds = [took for what, took in ended if what == name]
        print(f"{name:6} {len(seconds)} calls, each ended in an error after {max(seconds):.2f} s at most")
    print(f"within {BOUND:g} times: {'yes' if within else 'no'}")
    return 0 if within else 1


class Runaways:
    """While inside, one caller that loops and one that eats, again and again; `ended` has how long each call took."""

    def __init__(self, port: int, on: bool) -> None:
        self.ended: list[tuple[str, float]] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, name)) for name in ("loop", "eat") if on]

    def __enter__(self) -> Runaways:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, port: int, name: str) -> None:
        with Connection(port) as connection:
            while not self._over.is_set():
                began = time.perf_counter()
                _, body = connection.exchange(_call(name))
                code = json.loads(json.loads(body)["result"]["content"][0]["text"])["code"]
                # the second where the machine is so busy that it finds no time for what ran away before
                if code not in ("INTERNAL_SERVER_ERROR", "GATEWAY_OVERLOADED"):
                    raise RuntimeError(f"a runaway ended as {code}")
                self.ended.append((name, time.perf_counter() - began))


def _call(name: str) -> bytes:
    return post("/mcp", "tools/call", {"name": name, "arguments": {"id": 1}})


def _start(stack: ExitStack, folder: Path) -> int:
    """The backend and the gateway; the port of its tools."""
    backend, tools, admin = free_port(), free_port(), free_port()
    (folder / "projections").mkdir()
    (folder / "projections" / "shapes.py").write_text(_PROJECTIONS)
    endpoints = "".join(_ENDPOINT.format(name=name, view=view) for name, view in _VIEWS.items())
    (folder / "gateway.yaml").write_text(
        f"version: 1\ngateway: {{projections: projections, log: {{level: error}}, "
        f"tools: {{listen: 127.0.0.1:{tools}}}, admin: {{listen: 127.0.0.1:{admin}}}}}\nbackends: {{api: {{url: http://127.0.0.1:{backend}}}}}\n"
        f"endpoints:{endpoints}"
    )
    asked = [sys.executable, "-m", "bench.backend", str(backend)]
    stack.enter_context(Server("backend", asked, backend, get("/items/1")))
    command = [sys.executable, "-m", "gateway", "serve", str(folder / "gateway.yaml")]
    stack.enter_context(Server("toolview", command, admin, get("/-/ready")))
    return tools


if __name__ == "__main__":
    sys.exit(main())
