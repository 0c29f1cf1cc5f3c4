"""`toolview mock`: stands where a backend will be and answers from the contract's examples. Knows no tool and no view.

A request that an example's arguments make gets that example's answer; any other to the same endpoint its first one.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from aiohttp import web

from gateway import json_text, view
from gateway.backend.exchange import Request
from gateway.contract.model import Contract, Endpoint, Example
from gateway.contract.values import Address


@dataclass(frozen=True)
class Unfit:
    """Nothing can be served as it was asked for; one sentence for the person at the terminal."""

    message: str


@dataclass(frozen=True)
class Told:
    """One answer of the mock."""

    status: int
    body: bytes
    allow: str | None = None


class Mock:
    """The side of one backend, from the examples of its endpoints."""

    def __init__(self, contract: Contract, backend: str) -> None:
        self._endpoints = [each for each in contract.endpoints.values() if each.backend == backend]
        self._credential = _credential(contract, backend)
        self._patterns = [(_pattern(each), each) for each in self._endpoints]
        self._exact = {
            (sent.method, sent.target, sent.body): example
            for each in reversed(self._endpoints)
            for example in reversed(_answering(each))
            for sent in _requests(each, example)
        }

    def answer(self, method: str, target: str, body: bytes) -> Told:
        """What the backend would say."""
        target = self._credential.sub("", target)
        path = target.partition("?")[0]
        found = [each for pattern, each in self._patterns if pattern.fullmatch(path)]
        if not found:
            return _failed(404, f"the contract declares no endpoint at {path}")
        endpoint = next((each for each in found if each.method == method), None)
        if endpoint is None:
            allow = ", ".join(sorted({each.method for each in found}))
            return _failed(405, f"the contract declares only {allow} here", allow)
        examples = _answering(endpoint)
        example = self._exact.get((method, target, body or None)) or next(
            (each for each in examples if each.status < 300), examples[0] if examples else None
        )
        if example is None:
            return _failed(501, f"`endpoints.{endpoint.id}` has no example with an answer")
        return Told(example.status, b"" if example.status in (204, 205, 304) else json_text.encode(example.answer))


def places(contract: Contract, backend: str | None, listen: Address | None) -> dict[str, Address] | Unfit:
    """Where to stand, by backend: at `listen`, or where the contract says that the backend is."""
    if backend is not None and backend not in contract.backends:
        return Unfit(f"there is no backend `{backend}`; there is {', '.join(contract.backends)}")
    names = [backend] if backend is not None else list(contract.backends)
    if listen is not None:
        if len(names) > 1:
            return Unfit(f"--listen is one place, and there are {len(names)} backends; name one with --backend")
        return {names[0]: listen}
    found = {name: place for name in names if (place := _own_place(contract.backends[name].url)) is not None}
    if not found:
        return Unfit("no backend is at a plain http:// address of this host; say where to stand with --listen")
    return found


async def serve_mock(contract: Contract, where: dict[str, Address]) -> Unfit | None:
    """Answer until SIGINT or SIGTERM, and say where."""
    runners: list[web.ServerRunner] = []
    try:
        for name, place in where.items():
            runner, address = await start(Mock(contract, name), place)
            runners.append(runner)
            print(f"backend {name}: http://{address}, {_told_of(contract, name)}", flush=True)
        stopping = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        await stopping.wait()
    except OSError as fault:
        return Unfit(f"{place} cannot be listened at: {fault.strerror or type(fault).__name__}")
    finally:
        for runner in runners:
            await runner.cleanup()
    return None


async def start(mock: Mock, place: Address) -> tuple[web.ServerRunner, Address]:
    """Listen at a place; whoever asked cleans the runner up."""

    async def handle(request: web.BaseRequest) -> web.Response:
        told = mock.answer(request.method, request.raw_path, await request.read())
        headers = {"Content-Type": "application/json"} if told.body else {}
        if told.allow is not None:
            headers["Allow"] = told.allow
        return web.Response(status=told.status, body=told.body, headers=headers)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, place.host, place.port)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    return runner, Address(place.host, int(runner.addresses[0][1]))


def _answering(endpoint: Endpoint) -> Sequence[Example]:
    return [example for example in endpoint.examples if example.has_answer]


def _requests(endpoint: Endpoint, example: Example) -> Iterator[Request]:
    """What the gateway sends for an example's arguments, with the view's defaults and without."""
    declared_view = endpoint.tool.view if endpoint.tool is not None else None
    for declared in (None, declared_view):
        accepted = endpoint.input.fill(view.fill_defaults(declared, dict(example.arguments)))
        built = endpoint.request.build(accepted)
        if isinstance(built, Request):
            yield built


def _pattern(endpoint: Endpoint) -> re.Pattern[str]:
    """Raw paths of an endpoint, its backend's base path included; a placeholder stands for one segment."""
    built = endpoint.request
    path = re.escape(built.start) + "".join(f"[^/]+{re.escape(text)}" for _, _, text in built.segments)
    return re.compile(path)


def _credential(contract: Contract, backend: str) -> re.Pattern[str]:
    """The credential at the end of a query, which the gateway adds to what an example makes; else nothing."""
    auth = contract.backends[backend].auth
    if auth is None or auth.query is None:
        return re.compile(r"(?!)")
    return re.compile(rf"[?&]{re.escape(quote(auth.query.name, safe='~'))}=[^&]*\Z")


def _failed(status: int, sentence: str, allow: str | None = None) -> Told:
    return Told(status, json_text.encode({"error": f"toolview mock: {sentence}"}), allow)


def _own_place(url: str | None) -> Address | None:
    """The address of a plain URL on this host."""
    parts = urlsplit(url or "")
    if parts.scheme != "http" or parts.hostname is None:
        return None
    place = Address(parts.hostname, parts.port or 80)
    return place if place.loopback else None


def _told_of(contract: Contract, backend: str) -> str:
    endpoints = [each for each in contract.endpoints.values() if each.backend == backend]
    without = [each.id for each in endpoints if not _answering(each)]
    said = f"{len(endpoints) - len(without)} of {len(endpoints)} endpoints answer from examples"
    return f"{said}; 501 from {', '.join(without)}" if without else said
