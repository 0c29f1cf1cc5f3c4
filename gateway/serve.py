"""The composition root: one contract to running listeners, and back down again without a lost answer.

The only file that knows every room. One process for now: relay, tools and admin share an event loop.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TextIO
from urllib.parse import urlsplit

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from gateway.backend.client import BackendClient
from gateway.backend.health import Health
from gateway.call.outcome import Call, Outcome
from gateway.contract.model import Backend, Contract, Listener, Passthrough
from gateway.contract.values import Address
from gateway.gateway import Gateway, Observer, new_call_id
from gateway.generation import index
from gateway.projection.runner import ProjectionRunner
from gateway.relay import BackendTls, ListenTls, Relay, Route
from gateway.surfaces.admin import admin_routes
from gateway.surfaces.agent import agent_routes
from gateway.surfaces.catalog import catalog_routes
from gateway.surfaces.cli import SURFACE, Misused, read_arguments
from gateway.surfaces.http import Routes, listener_server
from gateway.surfaces.mcp.http import McpSurface, mcp_routes
from gateway.surfaces.principals import Principals, principals_of
from gateway.telemetry.log import DriftLog
from gateway.telemetry.metrics import BackendStates, CatalogSizes, LastReload, ToolMetrics
from gateway.telemetry.passthrough import PassthroughMetrics

log = logging.getLogger("toolview")


@dataclass(frozen=True, slots=True)
class PortTaken:
    """A listener's address is in use; the sentence says which and what to do."""

    message: str


class Serving:
    """A gateway with its listeners. `start` opens them all or none; `stop` drains and closes them."""

    def __init__(self, contract: Contract, *observers: Observer) -> None:
        generation = index(contract)
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.metrics = ToolMetrics(self.registry)
        self.passthrough_metrics = PassthroughMetrics(self.registry)
        self.client = BackendClient(contract.backends.values())
        self.health = Health(contract.backends.values(), self.client.send)
        BackendStates(
            self.registry,
            self.health.last,
            self.client.in_flight,
            lambda: {name: state.value for name, state in self.client.breakers().items()},
        )
        limits = contract.gateway.limits
        self.projections = ProjectionRunner(limits.projection)
        trace = contract.gateway.log.level == "debug"
        told = (self.metrics.observe, DriftLog().observe, *observers)
        self.gateway = Gateway(generation, self.client.send, self.projections, told, trace=trace)
        self._mcp = McpSurface(self.gateway)
        CatalogSizes(self.registry, lambda: self.gateway.generation)
        LastReload(self.registry, lambda: self.gateway.last_reload)
        self.relays: list[Relay] = []
        #: Where each listener came to listen, by name: `tools`, `admin`, `passthrough.NAME`.
        self.addresses: dict[str, Address] = {}
        self._servers: list[tuple[asyncio.Server, web.Server]] = []

    async def start(self) -> PortTaken | None:
        """Open every listener; where one cannot be, close what was opened and say why."""
        contract = self.gateway.generation.contract
        await self.client.start()
        await self.projections.start(self.gateway.generation.projections())
        try:
            for name, backend in contract.backends.items():
                if backend.passthrough is not None and backend.url is not None:
                    await self._listen_passthrough(name, backend, backend.passthrough)
            principals = principals_of(lambda: self.gateway.generation.contract.gateway.auth)
            await self._listen("tools", contract.gateway.tools, self._tool_routes(), principals)
            admin = admin_routes(self.gateway, self.registry, self.health.states)
            # on loopback whoever runs the host may look; off it metrics ask for a key as tools do
            open_to_all = contract.gateway.admin.listen.loopback
            await self._listen("admin", contract.gateway.admin, admin, (lambda: None) if open_to_all else principals)
        except _CannotListen as fault:
            await self.stop(0)
            return PortTaken(str(fault))
        return None

    async def stop(self, grace: float) -> None:
        """Stop accepting, let what is in flight finish within `grace` seconds, then close everything."""
        for listening, server in self._servers:
            listening.close()
            server.pre_shutdown()  # a kept connection that is idle would be waited for
        until = asyncio.get_running_loop().time() + grace
        # aiohttp waits twice as long as it is told: for a request, then for the task that serves its connection
        await asyncio.gather(
            *(relay.stop(grace) for relay in self.relays), *(server.shutdown(grace / 2) for _, server in self._servers)
        )
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._mcp.drain()
        await self.projections.close()
        await self.client.close()

    def _tool_routes(self) -> Routes:
        parts = (mcp_routes(self._mcp), agent_routes(self.gateway), catalog_routes(self.gateway))
        return Routes(
            {path: methods for part in parts for path, methods in part.exact.items()},
            {path: methods for part in parts for path, methods in part.prefixes.items()},
            frozenset(path for part in parts for path in part.public),
        )

    async def _listen(
        self,
        name: str,
        listener: Listener,
        routes: Routes,
        principals: Callable[[], Principals | None] = lambda: None,
    ) -> None:
        limit = self.gateway.generation.contract.gateway.limits.body
        server = listener_server(routes, listener, limit, principals)
        context = _server_tls(listener)
        address = listener.listen
        loop = asyncio.get_running_loop()
        try:
            listening = await loop.create_server(server, address.host, address.port, ssl=context, backlog=1024)
        except OSError as fault:
            raise _CannotListen(name, address, fault) from fault
        self._servers.append((listening, server))
        self.addresses[name] = _bound(address, listening.sockets[0].getsockname())

    async def _listen_passthrough(self, name: str, backend: Backend, passthrough: Passthrough) -> None:
        relay = Relay(
            _route(name, backend, passthrough, self._declared(name, passthrough)),
            self.passthrough_metrics.observer(name),
        )
        try:
            host, port = await relay.start()
        except OSError as fault:
            raise _CannotListen(f"passthrough of {name}", passthrough.listen, fault) from fault
        self.relays.append(relay)
        self.addresses[f"passthrough.{name}"] = Address(host, port)

    def _declared(self, name: str, passthrough: Passthrough) -> tuple[tuple[str, str], ...] | None:
        """Under `only: declared`, what may pass: method and raw path of each endpoint that exposes `http`."""
        if passthrough.only == "all":
            return None
        contract = self.gateway.generation.contract
        base = urlsplit(contract.backends[name].url or "").path.rstrip("/")
        return tuple(
            (endpoint.method, base + endpoint.path)
            for endpoint in contract.endpoints.values()
            if endpoint.backend == name and "http" in endpoint.expose
        )


async def serve(contract: Contract, *observers: Observer) -> PortTaken | None:
    """Serve until SIGINT or SIGTERM; a second signal does not wait for what is in flight."""
    serving = Serving(contract, *observers)
    if (taken := await serving.start()) is not None:
        return taken
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    for name, address in serving.addresses.items():
        log.info("listening", extra={"listener": name, "address": str(address)})
    await stopping.wait()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
    await serving.stop(contract.gateway.shutdown)
    return None


async def call_once(contract: Contract, tool: str, words: Sequence[str], stdin: TextIO) -> Outcome | Misused:
    """One tool call from the command line, without a listener."""
    generation = index(contract)
    endpoint = generation.find(tool, SURFACE, None)
    given = endpoint.input if endpoint is not None else None
    properties = {name: given.property_document(name) for name in given.property_names} if given is not None else {}
    arguments = read_arguments(words, properties, stdin)
    if isinstance(arguments, Misused):
        return arguments
    client = BackendClient(contract.backends.values())
    projections = ProjectionRunner(contract.gateway.limits.projection)
    await client.start()
    try:
        gateway = Gateway(generation, client.send, projections)
        return await gateway.run(Call(tool, arguments, SURFACE, new_call_id()), generation)
    finally:
        await projections.close()
        await client.close()


class _CannotListen(Exception):
    def __init__(self, name: str, address: Address, fault: OSError) -> None:
        why = "is in use by another process" if fault.errno == errno.EADDRINUSE else f"cannot be had: {fault.strerror}"
        super().__init__(f"{address}, where {name} should listen, {why}; change its `listen` or free the port")


def _route(
    name: str, backend: Backend, passthrough: Passthrough, declared: tuple[tuple[str, str], ...] | None
) -> Route:
    """What the relay is told of a backend: plain values, nothing of the contract."""
    url = urlsplit(backend.url or "")
    secure = url.scheme == "https"
    return Route(
        name,
        passthrough.listen.host,
        passthrough.listen.port,
        url.hostname or "",
        url.port or (443 if secure else 80),
        backend_socket=backend.socket,
        backend_tls=BackendTls(backend.tls.ca, backend.tls.cert, backend.tls.key, backend.tls.verify)
        if secure
        else None,
        listen_tls=ListenTls(passthrough.tls.cert, passthrough.tls.key) if passthrough.tls is not None else None,
        client_address=passthrough.client_address,
        max_connections=passthrough.max_connections,
        idle_timeout=passthrough.idle_timeout,
        connect_timeout=backend.connect_timeout,
        declared=declared,
    )


def _server_tls(listener: Listener) -> ssl.SSLContext | None:
    if listener.tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(listener.tls.cert, listener.tls.key)
    return context


def _bound(address: Address, name: Any) -> Address:
    return Address(address.host, name[1])
