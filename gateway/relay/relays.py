"""All pass-through listeners of a process: takes another set of routes without cutting anybody off. Knows no HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence

from gateway.relay.listen import Relay
from gateway.relay.observe import Observer
from gateway.relay.route import Route


class Relays:
    """What is relayed now, by the listener's name; `observer` gives the one that is told of a backend's exchanges."""

    def __init__(self, observer: Callable[[str], Observer]) -> None:
        self._observer = observer
        self._observers: dict[str, Observer] = {}
        self._serving: dict[str, Relay] = {}
        self._leaving: dict[Relay, asyncio.Task[None]] = {}

    @property
    def connections(self) -> int:
        """Client connections that are open now, also those of routes that are gone."""
        return sum(relay.connections for relay in [*self._serving.values(), *self._leaving])

    async def adopt(self, routes: Mapping[str, Route], doors: Mapping[str, Sequence[socket.socket]]) -> None:
        """Serve these routes from now on, at these doors.

        A connection keeps the route that it came by: one whose route changed ends when its exchange does, and one that
        nobody follows (a WebSocket) when its peers end it. A route that is the same stays, unless it speaks TLS, whose
        files may have changed.
        """
        for name, route in routes.items():
            old = self._serving.get(name)
            if old is not None and old.route == route and not (route.listen_tls or route.backend_tls):
                continue
            if route.name not in self._observers:
                self._observers[route.name] = self._observer(route.name)
            relay = Relay(route, self._observers[route.name])
            await relay.start([door.dup() for door in doors[name]])
            self._serving[name] = relay
            if old is not None:
                self._see_off(old)
        for name in self._serving.keys() - routes.keys():
            self._see_off(self._serving.pop(name))

    async def stop(self, grace: float) -> None:
        """Accept nothing more, finish what is in flight within `grace` seconds."""
        serving, self._serving = list(self._serving.values()), {}
        leaving = dict(self._leaving)
        await asyncio.gather(*(relay.stop(grace) for relay in [*serving, *leaving]), *leaving.values())

    def _see_off(self, relay: Relay) -> None:
        relay.shut()  # now, not when its task has its turn: who comes once the new routes are taken is theirs
        task = self._leaving[relay] = asyncio.get_running_loop().create_task(relay.stop(None))
        task.add_done_callback(lambda _: self._leaving.pop(relay))
