"""`python -m bench.runaway`: how long other calls take while projections loop for ever and eat memory, beside without.

Rounds with and without runaways in turn, in one run, over one gateway; each runaway must end in an error, and some of
each kind at its limit: where all are refused before they start, nothing was measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

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
        ended: list[Ended] = []
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
    reached = True
    for name in ("loop", "eat"):
        lines, at_limit = told(name, [each for each in ended if each.tool == name])
        reached &= at_limit
        print(*lines, sep="\n")
    print(f"within {BOUND:g} times: {'yes' if within else 'no'}; both ran to their limit: {'yes' if reached else 'no'}")
    return 0 if within and reached else 1


class Ended(NamedTuple):
    """One call of a tool that runs away."""

    tool: str
    code: str
    seconds: float


def told(name: str, ended: Sequence[Ended]) -> tuple[list[str], bool]:
    """Each code with its count and how long it took at most, and whether any call ran to its limit."""
    lines = []
    for code in AT_LIMIT, REFUSED:
        seconds = [each.seconds for each in ended if each.code == code]
        took = f", after {min(seconds):.2f} to {max(seconds):.2f} s" if seconds else ""
        lines.append(f"{name:6} {len(seconds):4} ended as {code} ({_MEANING[code]}){took}")
    return lines, any(each.code == AT_LIMIT for each in ended)


#: How a runaway ends that was stopped at its limit of time or memory; and one that found no worker, since the machine
#: is so busy that it has no time for what ran away before.
AT_LIMIT, REFUSED = "INTERNAL_SERVER_ERROR", "GATEWAY_OVERLOADED"
_MEANING = {AT_LIMIT: "it ran to its limit", REFUSED: "it was refused unstarted"}


class Runaways:
    """While inside, one caller that loops and one that eats, again and again; `ended` has how long each call took."""

    def __init__(self, port: int, on: bool) -> None:
        self.ended: list[Ended] = []
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
                if code not in (AT_LIMIT, REFUSED):
                    raise RuntimeError(f"a runaway ended as {code}")
                self.ended.append(Ended(name, code, time.perf_counter() - began))


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
