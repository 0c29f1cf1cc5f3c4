"""Listening sockets that outlive whoever accepts from them, so that nobody who has knocked is ever turned away.

A replaced or reloaded server gets a duplicate of the same door; what is queued there waits for whoever comes. Knows
addresses and no contract.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Mapping

from gateway.record import record

_BACKLOG = 1024

#: A host and a port; port 0 takes any.
Place = tuple[str, int]


@record
class Taken:
    """A place that cannot be had, by the name of the listener that wants it, and why."""

    name: str
    place: Place
    why: str

    def __str__(self) -> str:
        host, port = self.place
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        backend = self.name.removeprefix("passthrough.")
        name = self.name if backend == self.name else f"the pass-through of {backend}"
        return f"{address}, where {name} should listen, {self.why}; change its `listen` or free the port"


class Doors:
    """The open doors of one gateway, by place."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], list[socket.socket]] = {}

    def open(self, places: Mapping[str, Place]) -> dict[str, list[socket.socket]] | tuple[Taken, ...]:
        """The sockets of each listener, opened where they are not yet; or all that cannot be had, and none is new."""
        new: list[tuple[str, ...]] = []
        found = {}
        taken = []
        for name, place in places.items():
            key = _key(name, place)
            if key not in self._open:
                try:
                    self._open[key] = self._unlock(place)
                except OSError as fault:
                    taken.append(Taken(name, place, _why(fault)))
                    continue
                new.append(key)
            found[name] = self._open[key]
        if taken:
            for key in new:
                self._shut(key)
            return tuple(taken)
        return found

    def keep(self, places: Mapping[str, Place]) -> None:
        """Shut all doors but these."""
        kept = {_key(name, place) for name, place in places.items()}
        for key in self._open.keys() - kept:
            self._shut(key)

    def _shut(self, key: tuple[str, ...]) -> None:
        for door in self._open.pop(key):
            door.close()

    def _unlock(self, place: Place) -> list[socket.socket]:
        try:
            return _open(place, reuse_port=False)
        except OSError as fault:
            ours = [door for doors in self._open.values() for door in doors if door.getsockname()[1] == place[1]]
            if fault.errno != errno.EADDRINUSE or not ours:
                raise
        # One of our own stands in the way, as 127.0.0.1 does for 0.0.0.0: they share the port until it is shut.
        for door in ours:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            return _open(place, reuse_port=True)
        finally:
            for door in ours:
                door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)


def address_of(doors: Iterable[socket.socket]) -> Place:
    """Where the first of them listens."""
    host, port = next(iter(doors)).getsockname()[:2]
    return host, port


def _key(name: str, place: Place) -> tuple[str, ...]:
    host, port = place
    return (host, str(port)) if port else (host, "0", name)  # any port is another one for each listener


def _why(fault: OSError) -> str:
    if fault.errno == errno.EADDRINUSE:
        return "is in use by another process"
    return f"cannot be had: {fault.strerror}"


def _open(place: Place, *, reuse_port: bool) -> list[socket.socket]:
    host, port = place
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    doors: list[socket.socket] = []
    absent: OSError | None = None
    try:
        for family, where in dict.fromkeys((family, where) for family, _, _, _, where in found):
            # Port 0 takes any; a second address of the same name then takes the same one.
            at = doors[0].getsockname()[1] if doors else port
            try:
                doors.append(_door(family, (where[0], at, *where[2:]), reuse_port=reuse_port))
            except OSError as fault:
                if fault.errno not in _NOT_HERE:
                    raise
                absent = fault  # a name may have an address of a kind that this host does not speak
        if absent is not None and not doors:
            raise absent
    except OSError:
        for door in doors:
            door.close()
        raise
    return doors


_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def _door(family: int, where: tuple[object, ...], *, reuse_port: bool) -> socket.socket:
    door = socket.socket(family, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        door.bind(where)
        door.listen(_BACKLOG)
        door.setblocking(False)
    except OSError:
        door.close()
        raise
    return door
