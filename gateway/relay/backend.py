"""Opens one connection to the backend: every address in turn, one deadline, the PROXY header, TLS. Knows no HTTP."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from ipaddress import ip_address

from gateway.relay.route import Route
from gateway.relay.tls import backend_context, handshake

_NAMES_KEPT = 5.0
_PROXY_V2 = b"\r\n\r\n\x00\r\nQUIT\n"


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No connection, and why: for the log, never for a client."""

    note: str


@dataclass(frozen=True, slots=True)
class _Address:
    family: int
    where: tuple[object, ...] | str


class Backend:
    """Where connections to one backend come from."""

    def __init__(self, route: Route, loop: asyncio.AbstractEventLoop) -> None:
        self._route = route
        self._loop = loop
        self._tls = backend_context(route.backend_tls) if route.backend_tls else None
        self._addresses: list[_Address] = []
        self._looked_up = 0.0
        #: Addresses that need no look-up never change.
        self._fixed = _fixed_address(route)

    async def connect(self, client: socket.socket) -> socket.socket | Unreachable:
        """A connected non-blocking socket, ready for the client's first byte."""
        deadline = self._loop.time() + self._route.connect_timeout
        try:
            async with asyncio.timeout_at(deadline):
                addresses = await self._resolve()
        except (OSError, TimeoutError) as fault:
            return Unreachable(f"name look-up failed: {fault}")
        note = "no address"
        for index, address in enumerate(addresses):
            # A silent first address must leave time for the others.
            share = (deadline - self._loop.time()) / (len(addresses) - index)
            opened = await self._open(address, client, share)
            if not isinstance(opened, Unreachable):
                return opened
            note = opened.note
        return Unreachable(note)

    async def _open(self, address: _Address, client: socket.socket, seconds: float) -> socket.socket | Unreachable:
        sock = socket.socket(address.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            async with asyncio.timeout(seconds):
                await self._loop.sock_connect(sock, address.where)
                if address.family != socket.AF_UNIX:
                    tune(sock)
                if self._route.client_address == "proxy-v2":
                    await self._loop.sock_sendall(sock, proxy_header(client))
                if self._tls is not None and self._route.backend_tls is not None:
                    name = self._route.backend_tls.server_name or self._route.backend_host
                    sock = self._tls.wrap_socket(
                        sock, server_hostname=name, do_handshake_on_connect=False, suppress_ragged_eofs=False
                    )
                    await handshake(self._loop, sock)
        except (OSError, TimeoutError) as fault:
            sock.close()
            return Unreachable(f"{address.where}: {fault or 'timed out'}")
        except BaseException:
            sock.close()
            raise
        return sock

    async def _resolve(self) -> list[_Address]:
        if self._fixed is not None:
            return [self._fixed]
        now = self._loop.time()
        if not self._addresses or now - self._looked_up > _NAMES_KEPT:
            found = await self._loop.getaddrinfo(
                self._route.backend_host, self._route.backend_port, type=socket.SOCK_STREAM
            )
            self._addresses = [_Address(family, tuple(where)) for family, _, _, _, where in found]
            self._looked_up = now
        return self._addresses


def tune(sock: socket.socket) -> None:
    """Send small writes at once, and notice a peer that vanished without a word."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def proxy_header(client: socket.socket) -> bytes:
    """The PROXY protocol version 2 header that tells the backend who the client is."""
    peer, local = client.getpeername(), client.getsockname()
    family = {socket.AF_INET: 0x11, socket.AF_INET6: 0x21}.get(client.family)
    if family is None:
        return _PROXY_V2 + struct.pack("!BBH", 0x20, 0, 0)  # LOCAL: the backend uses the connection's own addresses
    ends = socket.inet_pton(client.family, peer[0].partition("%")[0])
    ends += socket.inet_pton(client.family, local[0].partition("%")[0])
    ends += struct.pack("!HH", peer[1], local[1])
    return _PROXY_V2 + struct.pack("!BBH", 0x21, family, len(ends)) + ends


def _fixed_address(route: Route) -> _Address | None:
    if route.backend_socket is not None:
        return _Address(socket.AF_UNIX, route.backend_socket)
    try:
        address = ip_address(route.backend_host)
    except ValueError:
        return None
    if address.version == 4:
        return _Address(socket.AF_INET, (str(address), route.backend_port))
    # A scoped address (fe80::1%eth0) carries an interface that only a look-up turns into a number.
    return None if address.scope_id else _Address(socket.AF_INET6, (str(address), route.backend_port, 0, 0))
