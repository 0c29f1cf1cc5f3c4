"""TLS in and out: the bytes inside are the same, http/1.1 is all that is offered, and a cut stream looks cut."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.relay.route import BackendTls, ListenTls
from tests.relay.rig import PATIENCE, Door, connect, relay_to, within

# A key made for these tests alone, and its certificate for localhost and 127.0.0.1.
_CERT, _KEY = (str(Path(__file__).parent / "data" / name) for name in ("cert.pem", "key.pem"))

_GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
_BIG = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + bytes(range(250)) * 12000


def _client_context(*protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=_CERT)
    context.set_alpn_protocols(list(protocols or ["h2", "http/1.1"]))
    return context


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_CERT, _KEY)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def _talk(port: int, request: bytes) -> tuple[bytes, str | None]:
    """A TLS client in a thread of its own: sends, then reads to a proper end."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE) as sock,
        _client_context().wrap_socket(sock, server_hostname="localhost", suppress_ragged_eofs=False) as secured,
    ):
        secured.sendall(request)
        received = b""
        while data := secured.recv(65536):
            received += data
        return received, secured.selected_alpn_protocol()


def _serve(door: Door, act: Callable[[ssl.SSLSocket], None]) -> None:
    """A TLS backend in a thread of its own, for one connection."""
    door.sock.settimeout(PATIENCE)
    sock, _ = door.sock.accept()
    sock.settimeout(PATIENCE)
    with _server_context().wrap_socket(sock, server_side=True) as secured:
        act(secured)


def _read(secured: ssl.SSLSocket, count: int) -> bytes:
    received = b""
    while len(received) < count and (data := secured.recv(65536)):
        received += data
    return received


async def test_a_client_speaks_tls_and_the_backend_sees_plain_bytes() -> None:
    door = Door()
    upload = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + b"u" * 1_000_000
    async with relay_to(door, listen_tls=ListenTls(_CERT, _KEY)) as (_, port, notes):
        talk = asyncio.create_task(asyncio.to_thread(_talk, port, upload))
        far = await door.accept()
        await far.read_until(len(upload))
        await far.send(_BIG)
        far.end()
        received, protocol = await within(talk)
        far.close()
        assert far.received == upload
        assert received == _BIG
        assert protocol == "http/1.1"
        assert notes.exchanges == [("POST", 200)]
    door.close()


async def test_the_backend_speaks_tls_and_the_client_sees_plain_bytes() -> None:
    door = Door()
    seen = {}

    def act(secured: ssl.SSLSocket) -> None:
        seen["request"] = _read(secured, len(_GET))
        seen["protocol"] = (secured.selected_alpn_protocol() or "").encode()
        secured.sendall(_BIG)
        with pytest.raises(OSError):
            secured.unwrap()  # our goodbye goes out; the answer to it comes when the client is done

    async with relay_to(door, backend_host="localhost", backend_tls=BackendTls(ca=_CERT)) as (_, port, _notes):
        served = asyncio.create_task(asyncio.to_thread(_serve, door, act))
        near = await connect(port)
        await near.send(_GET)
        await near.read_until(len(_BIG))
        near.reset()
        await within(served)
        assert near.received == _BIG
        assert seen == {"request": _GET, "protocol": b"http/1.1"}
    door.close()


async def test_tls_on_both_sides() -> None:
    door = Door()

    def act(secured: ssl.SSLSocket) -> None:
        assert _read(secured, len(_GET)) == _GET
        secured.sendall(_BIG)
        with suppress(OSError):  # the client may be gone before it answers the goodbye
            secured.unwrap()

    out = BackendTls(ca=_CERT, server_name="localhost")
    async with relay_to(door, listen_tls=ListenTls(_CERT, _KEY), backend_tls=out) as (_, port, _notes):
        served = asyncio.create_task(asyncio.to_thread(_serve, door, act))
        received, _ = await within(asyncio.to_thread(_talk, port, _GET))
        await within(served)
        assert received == _BIG
    door.close()


async def test_a_backend_whose_certificate_nobody_vouches_for_is_a_502() -> None:
    door = Door()

    def act(secured: ssl.SSLSocket) -> None:
        raise AssertionError("nobody may get here")

    async with relay_to(door, backend_host="localhost", backend_tls=BackendTls()) as (_, port, _notes):
        served = asyncio.create_task(asyncio.to_thread(_serve, door, act))
        near = await connect(port)
        await near.send(_GET)
        assert (await near.read_to_end()).startswith(b"HTTP/1.1 502 ")
        near.close()
        with pytest.raises(ssl.SSLError):
            await within(served)
    door.close()


async def test_that_certificate_passes_where_verification_is_off() -> None:
    door = Door()

    def act(secured: ssl.SSLSocket) -> None:
        _read(secured, len(_GET))
        secured.sendall(_BIG)

    async with relay_to(door, backend_tls=BackendTls(verify=False)) as (_, port, _notes):
        served = asyncio.create_task(asyncio.to_thread(_serve, door, act))
        near = await connect(port)
        await near.send(_GET)
        await near.read_until(len(_BIG))
        near.close()
        await within(served)
        assert near.received == _BIG
    door.close()


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "end"),  # complete: many servers leave without a goodbye
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "reset"),
        (b"HTTP/1.1 200 OK\r\n\r\nok", "reset"),  # nobody can tell whether that was all
    ],
)
async def test_a_tls_backend_that_leaves_without_a_goodbye_looks_clean_only_between_exchanges(
    answer: bytes, end: str
) -> None:
    door = Door()

    def act(secured: ssl.SSLSocket) -> None:
        _read(secured, len(_GET))
        secured.sendall(answer)

    async with relay_to(door, backend_tls=BackendTls(ca=_CERT)) as (_, port, _notes):
        served = asyncio.create_task(asyncio.to_thread(_serve, door, act))
        near = await connect(port)
        await near.send(_GET)
        await near.read_to_end()
        assert (near.received, near.saw) == (answer, end)
        near.close()
        await within(served)
    door.close()


async def test_a_client_that_speaks_no_tls_to_a_tls_listener_is_let_go() -> None:
    door = Door()
    async with relay_to(door, listen_tls=ListenTls(_CERT, _KEY)) as (relay, port, _):
        near = await connect(port)
        await near.send(_GET)
        await near.read_to_end()
        near.close()
        assert relay.connections == 0
    door.close()
