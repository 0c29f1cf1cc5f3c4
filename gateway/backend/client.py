"""Sends a Request and brings back an Answer, or says why there is none. Knows no contract's meaning, schema or call.

aiohttp resolves, connects, speaks TLS, keeps the pool and parses answers; the bytes of a request are written here, so
that its target and headers go out exactly as they were built and it is known for certain whether any byte has left.
"""

from __future__ import annotations

import asyncio
import base64
import re
import select
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from weakref import WeakSet

from aiohttp import (
    BaseConnector,
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
    ClientPayloadError,
    ClientTimeout,
    TCPConnector,
    UnixConnector,
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from gateway import __version__
from gateway.backend.decode import ACCEPT_ENCODING, Decoder, decoder
from gateway.backend.exchange import Answer, NoAnswer, Request, Silence

if TYPE_CHECKING:
    from gateway.contract.model import Backend


class BackendClient:
    """One per process: every call of every backend goes through its pools."""

    def __init__(self, backends: Iterable[Backend]) -> None:
        self._destinations = _destinations(backends)
        self._connectors: dict[str | None, BaseConnector] = {}
        self._reused: WeakSet[ResponseHandler] = WeakSet()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Call once, inside the loop that will send."""
        self._loop = asyncio.get_running_loop()

    def use(self, backends: Iterable[Backend]) -> None:
        """Serve another contract's backends from now on; calls in flight and kept connections go on."""
        self._destinations = _destinations(backends)

    async def close(self) -> None:
        """Close every connection, kept or in use."""
        connectors, self._connectors = list(self._connectors.values()), {}
        for connector in connectors:
            await connector.close()

    async def send(self, request: Request) -> Answer | NoAnswer:
        """Send one request within its deadline. Raises nothing but `CancelledError`."""
        assert self._loop is not None, "start() comes first"
        destination = self._destinations.get(request.backend)
        if destination is None:
            return NoAnswer(Silence.STUBBED, "the backend has no url", sent=False)
        head = destination.head(request)
        if head is None:
            return NoAnswer(Silence.UNREACHABLE, "the request holds a character that HTTP cannot carry", sent=False)
        exchange = _Exchange(request, destination, self._loop.time())
        try:
            async with asyncio.timeout(request.timeout):
                return await self._exchange(exchange, head if request.body is None else head + request.body)
        except TimeoutError:
            # The deadline passed, or aiohttp's own limit for connecting did.
            return exchange.silent(Silence.TIMEOUT if exchange.sent else Silence.UNREACHABLE, "deadline", self._loop)
        except (ClientConnectorCertificateError, ClientConnectorSSLError, ssl.SSLError):
            return exchange.silent(Silence.CLOSED if exchange.sent else Silence.UNREACHABLE, "TLS", self._loop)
        except ClientConnectorDNSError:
            return exchange.silent(Silence.UNREACHABLE, "the name does not resolve", self._loop)
        except (ClientError, OSError) as fault:
            silence = Silence.CLOSED if exchange.sent else Silence.UNREACHABLE
            return exchange.silent(silence, _said(fault), self._loop)
        except HttpProcessingError:
            return exchange.silent(Silence.UNDECODABLE, "the answer is no HTTP", self._loop)
        except Exception as fault:  # noqa: BLE001 - the promise of this function; whatever it is, the call must end
            return exchange.silent(Silence.CLOSED, f"unforeseen {type(fault).__name__}", self._loop)

    async def _exchange(self, exchange: _Exchange, content: bytes) -> Answer | NoAnswer:
        """Write and read once; once more where a kept connection turns out to be closed and repeating is harmless."""
        destination = exchange.destination
        connector = self._connectors.get(destination.socket) or self._connector(destination.socket)
        template = destination.template(self._loop)
        may_repeat = exchange.request.idempotent
        while True:
            connection = await connector.connect(template, [], destination.timeout)
            try:
                protocol = connection.protocol
                assert protocol is not None
                reused = protocol in self._reused
                if reused and _is_stale(protocol):
                    continue  # closed while idle, or it speaks unasked: nothing was sent on it
                protocol.set_response_params(
                    skip_payload=exchange.request.method == "HEAD",
                    read_until_eof=True,
                    auto_decompress=False,
                    max_line_size=_LONGEST_LINE,
                    max_field_size=_LONGEST_LINE,
                    max_headers=_MOST_HEADERS,
                )
                transport = protocol.transport
                if transport is None:
                    continue
                exchange.sent = True
                transport.write(content)
                try:
                    message, payload = await _first_answer(protocol)
                except (ClientError, OSError):
                    if not (reused and may_repeat):
                        raise
                    # RFC 9110 section 9.2.2: only a request that may be repeated, and only on a kept connection
                    may_repeat = False
                    continue
                answer = await _read(exchange, message, payload)
                if isinstance(answer, Answer) and not transport.get_write_buffer_size():
                    if not reused:
                        self._reused.add(protocol)
                    connection.release()
                return answer
            finally:
                _drop(connection)

    def _connector(self, socket: str | None) -> BaseConnector:
        # No limit here: how many calls may be under way is for `limits` to say, and to refuse at once.
        connector = TCPConnector(limit=0) if socket is None else UnixConnector(socket, limit=0)
        self._connectors[socket] = connector
        return connector


#: RFC 9112 section 2.3 asks for 8000 at least; old backends put whole sessions into cookies.
_LONGEST_LINE: Final = 65536
_MOST_HEADERS: Final = 256
_BAD_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z").match
_TARGET: Final = re.compile(r"/[!-~]*\Z").match
_EXPECTS_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})
_MOST_INTERIM: Final = 32


class _Destination:
    """One backend as far as sending goes: where it is, and the bytes that are the same in every request."""

    def __init__(self, backend: Backend) -> None:
        url = URL(backend.url or "http://localhost")
        if backend.socket and url.scheme == "https":
            raise ValueError("a backend on a unix socket is plain http")
        self.socket: str | None = backend.socket
        self.limit: int = backend.limits.answer
        # `connect` counts the name, the connection and the handshake; the whole call has its own deadline.
        self.timeout = ClientTimeout(total=None, connect=backend.connect_timeout, ceil_threshold=3600)
        self._origin = url.origin()
        self._tls = _tls(backend) if url.scheme == "https" else True
        self._template: ClientRequest | None = None
        defaults = {
            "host": ("Host", url.host_port_subcomponent or "localhost"),
            "accept": ("Accept", "application/json"),
            "accept-encoding": ("Accept-Encoding", ACCEPT_ENCODING),
            "user-agent": ("User-Agent", f"toolview/{__version__}"),
        }
        credentials, self._query = _credentials(backend.auth)
        written = {name.lower(): (name, value) for name, value in (*backend.headers.items(), *credentials)}
        self._lines = {name: f"{spelled}: {value}\r\n" for name, (spelled, value) in (defaults | written).items()}
        self._block = "".join(self._lines.values())
        #: What the operator wrote for the backend, and what frames the message, wins over what a call brings.
        self._protected = frozenset({*written, "host", "content-length", "transfer-encoding"})
        self._replaceable = defaults.keys() - self._protected

    def template(self, loop: asyncio.AbstractEventLoop | None) -> ClientRequest:
        """What aiohttp's connector wants to know of a request in order to connect; the same for every call."""
        if self._template is None or self._template.loop is not loop:
            self._template = ClientRequest("GET", self._origin, loop=loop, ssl=self._tls)
        return self._template

    def head(self, request: Request) -> bytes | None:
        """The request line and headers; None where something in them could end its line."""
        if not _TARGET(request.target):
            return None
        target = request.target
        if self._query:
            target += ("&" if "?" in target else "?") + self._query
        block = self._block
        lines = ""
        replaced: list[str] = []
        for name, value in request.headers:
            lower = name.lower()
            if _BAD_VALUE(value) or not _NAME(name):
                return None
            if lower in self._protected:
                continue
            if lower in self._replaceable:
                replaced.append(lower)
            lines += f"{name}: {value}\r\n"
        if replaced:
            block = "".join(line for name, line in self._lines.items() if name not in replaced)
        if request.body is not None:
            lines += f"Content-Length: {len(request.body)}\r\n"
        elif request.method in _EXPECTS_LENGTH:
            lines += "Content-Length: 0\r\n"
        try:
            return f"{request.method} {target} HTTP/1.1\r\n{block}{lines}\r\n".encode()
        except UnicodeEncodeError:
            return None


@dataclass(slots=True)
class _Exchange:
    """One request under way, and whether any of it has left."""

    request: Request
    destination: _Destination
    began: float
    sent: bool = False

    def silent(self, silence: Silence, note: str, loop: asyncio.AbstractEventLoop) -> NoAnswer:
        return NoAnswer(silence, note, loop.time() - self.began, self.sent)


def _destinations(backends: Iterable[Backend]) -> dict[str, _Destination]:
    return {backend.name: _Destination(backend) for backend in backends if backend.url or backend.socket}


def _credentials(auth: object) -> tuple[list[tuple[str, str]], str]:
    """Headers and query text that a backend's `auth` adds to every request."""
    headers: list[tuple[str, str]] = []
    query = ""
    if bearer := getattr(auth, "bearer", None):
        headers.append(("Authorization", f"Bearer {bearer}"))
    if basic := getattr(auth, "basic", None):
        pair = f"{basic.username}:{basic.password}".encode()
        headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
    if header := getattr(auth, "header", None):
        headers.append((header.name, header.value))
    if parameter := getattr(auth, "query", None):
        query = f"{quote(parameter.name, safe='~')}={quote(parameter.value, safe='~')}"
    return headers, query


def _tls(backend: Backend) -> ssl.SSLContext:
    files = backend.tls
    context = ssl.create_default_context(cafile=files.ca if files else None)
    context.set_alpn_protocols(["http/1.1"])
    if files and not files.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files and files.cert:
        context.load_cert_chain(files.cert, files.key)
    return context


def _drop(connection: Connection) -> None:
    """Close a connection that was not released. At once: a peer that does not read would hold a polite close open."""
    if connection.protocol is not None:
        connection.protocol.abort()
        connection.close()


def _is_stale(protocol: ResponseHandler) -> bool:
    """Whether a kept connection was closed, or spoke without being asked; looked up in the kernel, not in the loop.

    A byte that waits there belongs to no request of ours: read as the answer to this one it would be another's.
    """
    transport = protocol.transport
    if transport is None or transport.is_closing() or protocol.should_close:
        return True
    held = transport.get_extra_info("socket")
    if held is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(held.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def _first_answer(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """The first answer that is no interim one; 101 without having asked for it is no answer to anything."""
    for _ in range(_MOST_INTERIM):
        message, payload = await protocol.read()
        if message.code >= 200:
            return message, payload
        if message.code == 101:
            break
    raise HttpProcessingError(message="interim answers only")


async def _read(exchange: _Exchange, message: RawResponseMessage, payload: StreamReader) -> Answer | NoAnswer:
    """The body, decoded, within the backend's limit."""
    loop = asyncio.get_running_loop()
    headers = _first_values(message)
    limit = exchange.destination.limit
    if "content-encoding" in headers:
        undo = decoder(", ".join(message.headers.getall("content-encoding")), limit)
        if undo is None:
            return exchange.silent(Silence.UNDECODABLE, "an unknown content coding", loop)
        body, wire_bytes = await _decoded(payload, undo, limit)
    elif payload.is_eof() and payload.total_bytes <= limit:
        # the whole answer came with its head, as most small ones do
        body = payload.read_nowait() if payload.total_bytes else b""
        wire_bytes = len(body)
    else:
        length = headers.get("content-length", "")
        announced = int(length[:19]) if length.isdecimal() else 0
        body = Silence.TOO_LARGE if announced > limit else await _plain(payload, limit)
        wire_bytes = len(body) if isinstance(body, bytes) else 0
    if isinstance(body, Silence):
        note = "over limits.answer" if body is Silence.TOO_LARGE else "the content coding is broken"
        return exchange.silent(body, note, loop)
    return Answer(message.code, headers, body, wire_bytes, loop.time() - exchange.began)


async def _plain(payload: StreamReader, limit: int) -> bytes | Silence:
    pieces, size = [], 0
    while not payload.at_eof():
        pieces.append(await payload.readany())
        size += len(pieces[-1])
        if size > limit:
            return Silence.TOO_LARGE
    return b"".join(pieces)


async def _decoded(payload: StreamReader, undo: Decoder, limit: int) -> tuple[bytes | Silence, int]:
    wire_bytes = 0
    while not payload.at_eof():
        piece = await payload.readany()
        wire_bytes += len(piece)
        trouble = undo.feed(piece)
        if trouble is not None:
            return trouble, wire_bytes
        if wire_bytes > limit + _OVERHEAD:
            return Silence.TOO_LARGE, wire_bytes  # a coding that yields nothing for ever
    return undo.finish(), wire_bytes


#: What a coding may cost beyond what it holds: headers, empty blocks, padding.
_OVERHEAD: Final = 65536


def _first_values(message: RawResponseMessage) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in message.headers.items():
        headers.setdefault(name.lower(), value)
    return headers


def _said(fault: BaseException) -> str:
    """What may be logged of a fault: its kind and the system's number, never its text, which may hold an address."""
    number = fault.errno if isinstance(fault, OSError) else None
    if isinstance(fault, ClientPayloadError):
        return "the body was cut short"
    if isinstance(fault, ClientConnectorError):
        return f"cannot connect (errno {number})" if number else "cannot connect"
    return f"the connection broke ({type(fault).__name__})"
