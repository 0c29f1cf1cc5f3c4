"""TLS for the relay: contexts from file names, and a handshake on a non-blocking socket. ALPN offers http/1.1 alone."""

from __future__ import annotations

import asyncio
import socket
import ssl

from gateway.relay.route import BackendTls, ListenTls


def listen_context(files: ListenTls) -> ssl.SSLContext:
    """What the listener shows its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    return _settle(context)


def backend_context(wanted: BackendTls) -> ssl.SSLContext:
    """How the backend is checked, and what it is shown."""
    context = ssl.create_default_context(cafile=wanted.ca)
    if not wanted.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if wanted.cert is not None:
        context.load_cert_chain(wanted.cert, wanted.key)
    return _settle(context)


async def handshake(loop: asyncio.AbstractEventLoop, sock: ssl.SSLSocket) -> None:
    """Shake hands; raises `OSError` where that fails. The caller sets the deadline."""
    while True:
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(loop, sock, writing=False)
        except ssl.SSLWantWriteError:
            await _ready(loop, sock, writing=True)
        else:
            return


def _settle(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # so that reading never has to write
    # The bytes are HTTP/1.1 on both sides; a peer that agreed on anything else would not be understood.
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _ready(loop: asyncio.AbstractEventLoop, sock: socket.socket, *, writing: bool) -> None:
    turn: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not turn.done():
            turn.set_result(None)

    add, remove = (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    add(sock, wake)
    try:
        await turn
    finally:
        remove(sock)
