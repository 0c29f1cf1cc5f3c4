"""A pass-through listener: accepts connections, gives each a backend connection of its own, drains. Knows no HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from gateway.relay.backend import Backend, tune
from gateway.relay.flow import HELD, Means, Unread
from gateway.relay.gate import Routes
from gateway.relay.observe import Observer, Silent
from gateway.relay.pair import Pair, Setting
from gateway.relay.ready import ready
from gateway.relay.route import Route
from gateway.relay.tls import listen_context

_TICK = 0.5
_REST = 0.5


class Relay:
    """One route being served. `await start(doors)`, and later `await stop(grace)`."""

    def __init__(self, route: Route, observer: Observer | None = None) -> None:
        self.route = route
        self._observer = observer or Silent()
        self._doors: list[socket.socket] = []
        self._pairs: set[Pair] = set()
        #: Of these, the ones `max_connections` counts.
        self._admitted = 0
        self._setting: Setting | None = None
        self._everybody_left = asyncio.Event()
        self._ticking: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        """Client connections that are open now."""
        return len(self._pairs)

    async def start(self, doors: Sequence[socket.socket]) -> None:
        """Accept at these listening sockets, which are this relay's own from now on and do not block."""
        loop = asyncio.get_running_loop()
        tls = listen_context(self.route.listen_tls) if self.route.listen_tls else None
        backend = Backend(self.route, loop)
        self._doors = list(doors)
        unread = Unread()
        self._setting = Setting(
            route=self.route,
            means=Means(loop, ready(loop, unread.catch_up), memoryview(bytearray(HELD)), unread),
            backend=backend,
            observer=self._observer,
            listen_tls=tls,
            routes=Routes(self.route.declared) if self.route.declared is not None else None,
            closed=self._forget,
        )
        for door in self._doors:
            self._setting.means.ready.add_reader(door, partial(self._accept, door))

    def shut(self) -> None:
        """Accept nothing more from now on; a client whose connection the kernel has taken is our guest already."""
        for door in self._doors:
            assert self._setting is not None
            self._accept(door)
            self._setting.means.ready.remove_reader(door)
            door.close()
        self._doors = []

    async def stop(self, grace: float | None) -> None:
        """Accept nothing more, finish what is in flight within `grace` seconds, reset what is not finished by then.

        None waits as long as it takes; a later call with a time may end that.
        """
        if self._setting is None:
            return
        self.shut()
        for pair in list(self._pairs):
            pair.drain()
        if self._pairs:
            self._everybody_left.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._everybody_left.wait()
        for pair in list(self._pairs):
            pair.abort()
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self._setting.means.ready.close()

    def _accept(self, door: socket.socket) -> None:
        setting = self._setting
        assert setting is not None
        while True:
            try:
                client, _ = door.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # that client left before it was accepted
            except OSError:
                # Out of descriptors or memory: leave clients in the backlog for a while instead of spinning on them.
                setting.means.ready.remove_reader(door)
                setting.means.loop.call_later(_REST, self._accept_again, door)
                return
            self._welcome(client, setting)

    def _accept_again(self, door: socket.socket) -> None:
        if self._setting is not None and door in self._doors:
            self._setting.means.ready.add_reader(door, partial(self._accept, door))

    def _welcome(self, client: socket.socket, setting: Setting) -> None:
        client.setblocking(False)
        try:
            tune(client)
        except OSError:
            client.close()
            return
        limit = self.route.max_connections
        pair = Pair(client, setting, refused=limit is not None and self._admitted >= limit)
        self._pairs.add(pair)
        self._admitted += not pair.refused
        self._observer.connection_opened()
        pair.start()
        if self._ticking is None:
            self._ticking = setting.means.loop.call_later(_TICK, self._tick)

    def _forget(self, pair: Pair) -> None:
        self._pairs.discard(pair)
        self._admitted -= not pair.refused
        self._observer.connection_closed()
        if not self._pairs:
            self._everybody_left.set()

    def _tick(self) -> None:
        assert self._setting is not None
        self._ticking = None
        self._setting.means.unread.catch_up()
        now = self._setting.means.loop.time()
        for pair in list(self._pairs):
            pair.tick(now)
        if self._pairs:
            self._ticking = self._setting.means.loop.call_later(_TICK, self._tick)
