"""The composition root: one contract to running listeners, to another contract, and back down without a lost answer.

The only file that knows every room.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from aiohttp import web

from gateway.backend.client import BackendClient
from gateway.backend.destination import Destination, destinations
from gateway.backend.exchange import Send
from gateway.backend.health import Health
from gateway.contract.load import load
from gateway.contract.model import Backend, Contract, Listener, Passthrough
from gateway.contract.refusal import Refusal
from gateway.contract.values import Address
from gateway.gateway import Gateway, Observer
from gateway.generation import TOOL_SURFACES, Generation, Reload, index
from gateway.processes import SAME_SIGNAL
from gateway.processes.doors import Doors, Place, Taken, address_of
from gateway.processes.tally import Tallies
from gateway.projection.runner import ProjectionRunner
from gateway.record import record
from gateway.relay.route import BackendTls, ListenTls, Route
from gateway.relay.tls import listen_context
from gateway.surfaces.admin import admin_routes
from gateway.surfaces.agent import agent_routes
from gateway.surfaces.catalog import catalog_routes
from gateway.surfaces.console.http import console_routes
from gateway.surfaces.http import Manner, Routes, listener_server
from gateway.surfaces.mcp.http import McpSurface, mcp_routes
from gateway.surfaces.oauth import oauth_routes
from gateway.surfaces.openapi.http import openapi_routes
from gateway.surfaces.principals import Doorman, Principal, Principals
from gateway.telemetry.carried import CarriedLog
from gateway.telemetry.log import DriftLog, form_of, set_up_again
from gateway.telemetry.metrics import GUARD, HEALTH, ToolMetrics
from gateway.watch import watch_files

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from gateway.relay.relays import Relays
    from gateway.telemetry.traces import CallSpans

log = logging.getLogger("toolview")

_T = TypeVar("_T")


#: What a listener is called whose address is a backend's pass-through.
PASSTHROUGH = "passthrough."

#: Seconds for which a reload waits for a key set that it has read anew.
_KEYS_PATIENCE = 1.0

#: Reads the contract's files: the contract, or everything that is wrong with it.
Load = Callable[[], Contract | tuple[Refusal, ...]]


@record
class PortTaken:
    """Listeners cannot be opened; each sentence says which and what to do."""

    messages: tuple[str, ...]


class Serving:
    """A gateway with its listeners. `start` opens them all or none; `reload` changes them; `stop` drains and closes.

    `load` is how the contract is read again; from its own files unless given. One of several processes is told where it
    counts, whom to `ask` for a reload and the `state_secret` of all: it opens no door and relays nothing; doors are
    given to `open` and `adopt`.
    """

    def __init__(
        self,
        contract: Contract,
        *observers: Observer,
        load: Load | None = None,
        plan: Plan | None = None,
        tallies: Tallies | None = None,
        part: int = 0,
        ask: Callable[[], Awaitable[Reload]] | None = None,
        state_secret: bytes | None = None,
    ) -> None:
        made = plan or plan_of(contract)
        assert isinstance(made, Plan), f"ask `plan_of` first: {made}"
        self._plan = plan = made
        self._load = load or partial(_load_again, contract)
        self._tallies = tallies = tallies or Tallies()
        self._registry: CollectorRegistry | None = None
        tally = tallies.own(part)
        self.metrics = ToolMetrics(tally)
        self.client = BackendClient(
            contract.backends.values(), lambda backend: tally.cells((GUARD, backend), 2, state=True)
        )

        def told_of_health(backend: str, asked: float, well: bool) -> None:
            cells = tally.cells((HEALTH, backend), 2, state=True)
            cells[1], cells[0] = float(well), asked

        self.health = Health(contract.backends.values(), self.client.send, told=told_of_health)
        self.projections = ProjectionRunner(contract.gateway.limits.projection)
        self._spans = _spans_asked()
        carried = CarriedLog(lambda: self.gateway.generation)
        told = (self.metrics.observe, DriftLog().observe, *observers, carried.observe)
        self.gateway = Gateway(
            plan.generation,
            self._followed(self.client.sender()),
            self.projections,
            told,
            trace=_traces(contract),
            spans=self._spans,
        )
        self._mcp = McpSurface(self.gateway, state_secret=state_secret)
        self._doorman = Doorman(lambda: self.gateway.generation.contract)
        self._reading_keys: asyncio.Task[None] | None = None
        self._doors = Doors()
        self._tally = tally
        #: The pass-through, where this process serves it: the relay's own code waits for that.
        self.relays: Relays | None = None
        self._listeners: dict[str, HttpListener] = {}
        #: Where each listener came to listen, by name: `tools`, `admin`, `passthrough.NAME`.
        self.addresses: dict[str, Address] = {}
        self._turns = Turns(self._load_anew)
        self._ask = ask

    def scrape(self) -> tuple[bytes, Mapping[str, str]]:
        """What Prometheus gets: the numbers of all processes, and the headers."""
        from gateway.telemetry.exposition import exposition, registry_of  # Prometheus's library waits for this

        if self._registry is None:
            self._registry = registry_of(
                self._tallies, lambda: self.gateway.generation, lambda: self.gateway.last_reload
            )
        return exposition(self._registry)

    def _relaying(self) -> Relays:
        if self.relays is None:
            from gateway.relay.relays import Relays
            from gateway.telemetry.passthrough import PassthroughMetrics

            self.relays = Relays(PassthroughMetrics(self._tally).observer)
        return self.relays

    async def start(self) -> PortTaken | None:
        """Open every listener; where one cannot be, close what was opened and say why."""
        doors = self._doors.open(self._plan.places)
        if isinstance(doors, tuple):
            return PortTaken(tuple(map(str, doors)))
        await self.open(doors)
        return None

    async def open(self, doors: Mapping[str, Sequence[socket.socket]]) -> None:
        """Begin to serve at these doors."""
        await self.client.start()
        await self.projections.start(self.gateway.generation.projections())
        contract = self.gateway.generation.contract
        principals = self._doorman.principals
        tools, admin = Manner(contract.gateway.tools), Manner(contract.gateway.admin)
        self._listeners["tools"] = HttpListener(
            tools, listener_server(self._tool_routes(), tools, principals, wants=Principals.wants)
        )
        routes = self._admin_routes()

        def operators() -> Principals | None:
            # on loopback whoever runs the host may look; off it, or where scopes are written, a key is asked for
            asked = not admin.listener.listen.loopback or self.gateway.generation.contract.gateway.admin.scopes
            return principals() if asked else None

        self._listeners["admin"] = HttpListener(
            admin, listener_server(routes, admin, operators, principals, self._admin_wants)
        )
        await self._listen(self._plan, doors)
        self._reading_keys = asyncio.create_task(self._doorman.ready())

    async def reload(self) -> Reload:
        """Load the contract anew and serve it, or leave everything as it is. Whoever asks while a load runs gets the
        end of the one after it, which has seen what was written by then."""
        if self._ask is not None:
            return await self._ask()
        await self._turns.ask()
        return self.gateway.last_reload

    async def stop(self, grace: float) -> None:
        """Stop accepting, let what is in flight finish within `grace` seconds, then close everything."""
        until = asyncio.get_running_loop().time() + grace
        if self._spans is not None:
            self._spans.flush()  # a second signal does not wait for the end of this
        await self._turns.close()
        relays = [self.relays.stop(grace)] if self.relays is not None else []
        await asyncio.gather(*relays, *(listener.stop(grace) for listener in self._listeners.values()))
        self._doors.keep({})
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._mcp.drain()
        await self._doorman.close()
        await self.projections.close()
        await self.client.close()
        if self._spans is not None:
            await self._spans.close(min(5.0, max(1.0, until - asyncio.get_running_loop().time())))

    def _followed(self, send: Send) -> Send:
        return send if self._spans is None else self._spans.sending(send)

    async def _load_anew(self) -> None:
        plan = await plan_aside(self._load)
        if isinstance(plan, Plan):
            doors = self._doors.open(plan.places)
            if not isinstance(doors, tuple):
                await self.adopt(plan, doors)
                log.info("the contract was reloaded", extra={"contract": plan.generation.contract.digest})
                return
            plan = tuple(_not_had(taken, plan.generation.contract) for taken in doors)
        self.gateway.refuse_reload(plan)
        for refusal in plan:
            log.error("the contract was refused", extra={"refusal": str(refusal)})

    async def adopt(self, plan: Plan, doors: Mapping[str, Sequence[socket.socket]]) -> None:
        """Serve another contract from now on, at these doors; calls in flight end on the one before."""
        contract = plan.generation.contract
        self.projections.limit(contract.gateway.limits.projection)
        await self.projections.start(plan.generation.projections())
        self.gateway.adopt(plan.generation, self._followed(self.client.use(plan.destinations)), trace=_traces(contract))
        self.health.use(contract.backends.values())
        set_up_again(form_of(contract.gateway.log.format), contract.gateway.log.level)
        self._plan = plan
        await self._listen(plan, doors)
        # Who rotates keys reloads, and wants to know that it is done; an issuer that does not answer holds nothing up.
        self._reading_keys = asyncio.create_task(self._doorman.renew())
        await asyncio.wait({self._reading_keys}, timeout=_KEYS_PATIENCE)

    async def _listen(self, plan: Plan, doors: Mapping[str, Sequence[socket.socket]]) -> None:
        contract = plan.generation.contract
        for name, listener in (("tools", contract.gateway.tools), ("admin", contract.gateway.admin)):
            await self._listeners[name].adopt(listener, doors[name], plan.contexts.get(name))
        if self._ask is None:
            await self._relaying().adopt(plan.routes, doors)
            self._doors.keep(plan.places)
        self.addresses = {}
        for name, sockets in doors.items():
            host, port = address_of(sockets)
            self.addresses[name] = Address(plan.places[name][0] if name in self._listeners else host, port)

    def _tool_routes(self) -> Routes:
        oauth = oauth_routes(lambda: self.gateway.generation.contract, self._doorman.principals)
        calls = mcp_routes(self._mcp), agent_routes(self.gateway)
        return _together(*calls, catalog_routes(self.gateway), oauth, openapi_routes("tools"))

    def _admin_routes(self) -> Routes:
        operations = admin_routes(self.gateway, self.scrape, self.health.states, self.reload)
        return _together(operations, console_routes(self.gateway), openapi_routes("admin"))

    def _admin_wants(self, _: Principals, principal: Principal) -> Sequence[str]:
        """What a principal lacks of `gateway.admin.scopes`: all of it is told at once."""
        wanted = self.gateway.generation.contract.gateway.admin.scopes
        return () if principal.scopes.issuperset(wanted) else wanted


def _spans_asked() -> CallSpans | None:
    """What follows calls, where the environment says a word of it; else not even the module is imported."""
    if not any(name.startswith("OTEL_") for name in os.environ):
        return None
    from gateway.telemetry.traces import spans_of

    return spans_of(os.environ)


def _together(*parts: Routes) -> Routes:
    """The routes of several surfaces on one listener."""
    return Routes(
        {path: methods for part in parts for path, methods in part.exact.items()},
        {path: methods for part in parts for path, methods in part.prefixes.items()},
        frozenset(path for part in parts for path in part.public),
        frozenset(path for part in parts for path in part.keyed),
    )


async def serve(
    contract: Contract, *observers: Observer, load: Load | None = None, watch: bool = False
) -> PortTaken | None:
    """Serve until SIGINT or SIGTERM; a later signal does not wait for what is in flight. SIGHUP reloads."""
    if isinstance(plan := plan_of(contract), tuple):
        return PortTaken(tuple(map(str, plan)))
    serving = Serving(contract, *observers, load=load, plan=plan)
    if (taken := await serving.start()) is not None:
        return taken
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    reloads: set[asyncio.Task[Any]] = set()
    loop.add_signal_handler(signal.SIGHUP, lambda: reloads.add(loop.create_task(serving.reload())))
    for name, address in serving.addresses.items():
        log.info("listening", extra={"listener": name, "address": str(address)})
    if watch:
        current = lambda: serving.gateway.generation.contract  # noqa: E731 - it is short
        reloads.add(loop.create_task(watch_files(current, serving.reload)))
    await stopping.wait()
    for task in reloads:
        task.cancel()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.call_later(SAME_SIGNAL, loop.remove_signal_handler, number)
    await serving.stop(serving.gateway.generation.contract.gateway.shutdown)
    return None


@dataclass(frozen=True)
class Plan:
    """Everything that serving a contract takes, made before anything changes: what can fail has not."""

    generation: Generation
    destinations: Mapping[str, Destination]
    #: Where each listener listens, by name.
    places: Mapping[str, Place]
    #: What the relay is told, by the name of its listener.
    routes: Mapping[str, Route]
    #: The TLS of `tools` and `admin`, where they speak it.
    contexts: Mapping[str, ssl.SSLContext]

    @property
    def fingerprint(self) -> str:
        """The same in every process that read the same contract and the same projections."""
        sources = {each.sources.digest for each in self.generation.projections() if each.sources is not None}
        return ".".join([self.generation.contract.digest, *sorted(sources)])


def plan_of(contract: Contract) -> Plan | tuple[Refusal, ...]:
    """What serving a contract takes; or what of it is not there: files of keys and certificates."""
    refusals = []

    def made(path: str, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (OSError, ValueError) as fault:  # a fault of TLS is an OSError
            why = fault.strerror if isinstance(fault, OSError) and fault.strerror else type(fault).__name__
            refusals.append(_refusal(contract, path, f"the files of `tls` cannot be used ({why}); mend them"))
            return None

    listeners = {"tools": contract.gateway.tools, "admin": contract.gateway.admin}
    contexts = {name: made(f"gateway.{name}.tls", partial(_server_tls, each)) for name, each in listeners.items()}
    reached = {
        name: made(f"backends.{name}.tls", partial(destinations, [backend]))
        for name, backend in contract.backends.items()
    }
    routes = {}
    for name, backend in contract.backends.items():
        if backend.passthrough is not None and backend.url is not None:
            route = routes[PASSTHROUGH + name] = _route(name, backend, backend.passthrough, _declared(contract, name))
            if route.listen_tls is not None:
                made(f"backends.{name}.passthrough.tls", partial(listen_context, route.listen_tls))
    if refusals:
        return tuple(refusals)
    return Plan(
        index(contract),
        {name: place for found in reached.values() for name, place in found.items()},
        {
            **{name: (route.listen_host, route.listen_port) for name, route in routes.items()},
            **{name: (each.listen.host, each.listen.port) for name, each in listeners.items()},
        },
        routes,
        {name: context for name, context in contexts.items() if context is not None},
    )


class HttpListener:
    """One listener of ours: its server stays, while doors, certificates and manners may change."""

    def __init__(self, manner: Manner, server: web.Server) -> None:
        self._manner = manner
        self._server = server
        self._listening: list[asyncio.Server] = []
        self._doors: list[int] = []
        self._tls = False

    async def adopt(self, listener: Listener, doors: Sequence[socket.socket], tls: ssl.SSLContext | None) -> None:
        """Answer at these doors from now on; whoever is connected stays so, wherever they came in."""
        self._manner.listener = listener
        numbers = [os.fstat(door.fileno()).st_ino for door in doors]  # a duplicate is the same door
        if numbers == self._doors and tls is None and not self._tls:
            return
        before = self._listening
        loop = asyncio.get_running_loop()
        self._listening = [
            await loop.create_server(self._server, sock=door.dup(), ssl=tls, backlog=1024) for door in doors
        ]
        self._doors, self._tls = numbers, tls is not None
        await _close(before)

    async def stop(self, grace: float) -> None:
        """Accept nothing more, and answer what is asked on open connections, each for the last time."""
        await _close(self._listening)
        self._manner.leaving = True
        loop = asyncio.get_running_loop()
        # Whoever is about to ask on a connection of ours would be cut off by its end: there is a moment for that.
        until = loop.time() + min(_LAST_MOMENT, grace / 2)
        while self._server.connections and loop.time() < until:  # noqa: ASYNC110 - a count, not an event
            await asyncio.sleep(0.02)
        self._server.pre_shutdown()  # a kept connection that is idle would be waited for
        # aiohttp waits twice as long as it is told: for a request, then for the task that serves its connection
        await self._server.shutdown(max(0, grace - (loop.time() - until)) / 2)


#: Seconds in which an open connection may still bring a request, once its listener is closed.
_LAST_MOMENT = 1.0


async def _close(listening: Sequence[asyncio.Server]) -> None:
    """Close, once all who wait at the door are let in."""
    for _ in range(2):
        await asyncio.sleep(0)
    for each in listening:
        each.close()


class Turns:
    """One load after the other; all who ask while one runs share the next."""

    def __init__(self, load: Callable[[], Awaitable[None]]) -> None:
        self._load = load
        self._running = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def ask(self) -> None:
        """Come back when a load that began after now has ended."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._take())
        await asyncio.shield(self._next)

    async def close(self) -> None:
        """Wait for the load that runs."""
        async with self._running:
            pass

    async def _take(self) -> None:
        async with self._running:
            self._next = None
            await self._load()


async def plan_aside(load: Load) -> Plan | tuple[Refusal, ...]:
    """Load in a thread, which gives way to the event loop ten times as often as threads do.

    Measured on 2,000 endpoints, 3.6 s of work: an event waits 0.8 ms in the middle and 4.5 ms at p99, not 5.4 and 13.3.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        return await asyncio.to_thread(lambda: _planned(load()))
    finally:
        sys.setswitchinterval(before)


def _planned(loaded: Contract | tuple[Refusal, ...]) -> Plan | tuple[Refusal, ...]:
    """For a thread: what every caller would else wait for is made here, too."""
    if isinstance(loaded, tuple):
        return loaded
    plan = plan_of(loaded)
    if isinstance(plan, Plan):
        for surface in TOOL_SURFACES:
            plan.generation.catalog(surface, None)
        plan.generation.described("mcp")
    return plan


def _load_again(contract: Contract) -> Contract | tuple[Refusal, ...]:
    return load(Path(contract.files[0]))


def _not_had(taken: Taken, contract: Contract) -> Refusal:
    backend = taken.name.removeprefix(PASSTHROUGH)
    path = f"gateway.{taken.name}.listen" if backend == taken.name else f"backends.{backend}.passthrough"
    return _refusal(contract, path, str(taken))


def _refusal(contract: Contract, path: str, message: str) -> Refusal:
    return Refusal(Path(contract.files[0]).name, 1, 1, path, message)


def _traces(contract: Contract) -> bool:
    return contract.gateway.log.level == "debug"


def _declared(contract: Contract, name: str) -> tuple[tuple[str, str], ...] | None:
    """Under `only: declared`, what may pass: method and raw path of each endpoint that exposes `http`."""
    backend = contract.backends[name]
    if backend.passthrough is None or backend.passthrough.only == "all":
        return None
    base = urlsplit(backend.url or "").path.rstrip("/")
    return tuple(
        (endpoint.method, base + endpoint.path)
        for endpoint in contract.endpoints.values()
        if endpoint.backend == name and "http" in endpoint.expose
    )


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
        head_timeout=passthrough.head_timeout,
        connect_timeout=backend.connect_timeout,
        declared=declared,
    )


def _server_tls(listener: Listener) -> ssl.SSLContext | None:
    if listener.tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(listener.tls.cert, listener.tls.key)
    return context
