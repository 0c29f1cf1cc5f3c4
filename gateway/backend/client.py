"""Sends a Request and brings back an Answer, or says why there is none. Knows no contract's meaning, schema or call.

aiohttp resolves, connects, speaks TLS, keeps the pool and parses answers; the bytes of a request are written here, so
that its target and headers go out exactly as they were built and it is known for certain whether any byte has left.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import (
    BaseConnector,
    ClientConnectionError,
    ClientConnectionResetError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientSSLError,
    TCPConnector,
    UnixConnector,
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.streams import StreamReader

from gateway.backend.arrived import arrived
from gateway.backend.deadline import Deadlines
from gateway.backend.decode import Decoder, decoder
from gateway.backend.destination import Destination, destinations
from gateway.backend.exchange import Answer, NoAnswer, Request, Send, Silence
from gateway.backend.guard import BreakerState
from gateway.backend.kept import KeptLines, Line
from gateway.backend.token import TokenSource

if TYPE_CHECKING:
    from gateway.contract.model import Backend


class BackendClient:
    """One per process: every call of every backend goes through its pools.

    `cells` gives the two numbers in which the state of a backend is kept, for others to see.
    """

    def __init__(
        self, backends: Iterable[Backend], cells: Callable[[str], MutableSequence[float]] | None = None
    ) -> None:
        self._cells = cells
        self._kept = KeptLines()
        self._deadlines = Deadlines()
        self._destinations: Mapping[str, Destination] = {}
        self.use(destinations(backends))
        self._connectors: dict[str | None, BaseConnector] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def start(self) -> None:
        """Call once, inside the loop that will send."""
        self._loop = asyncio.get_running_loop()

    def use(self, made: Mapping[str, Destination]) -> Send:
        """Serve another contract's backends from now on; calls in flight go on.

        A backend that is declared as before keeps its breaker. What is returned sends to these for ever, as the calls
        of that contract want it, while `send` follows the next `use`. Connections that wait are closed: they were
        opened on the old contract's terms.
        """
        for name, destination in made.items():
            before = self._destinations.get(name)
            if (before is None or not destination.follow(before)) and self._cells is not None:
                destination.guard.share(self._cells(name))
        self._destinations = made
        self._kept.drop_all()
        return self.sender()

    def sender(self) -> Send:
        """Sends to the backends that are served now, also after the next `use`."""
        return partial(self._send_to, self._destinations)

    async def close(self) -> None:
        """Close every connection, kept or in use."""
        self._closed = True
        self._kept.close()
        connectors, self._connectors = list(self._connectors.values()), {}
        for connector in connectors:
            await connector.close()

    def breakers(self) -> dict[str, BreakerState]:
        """What each backend's breaker says now."""
        now = time.monotonic()
        return {name: destination.guard.state(now) for name, destination in self._destinations.items()}

    def in_flight(self) -> dict[str, int]:
        """Calls under way to each backend."""
        return {name: destination.guard.in_flight for name, destination in self._destinations.items()}

    async def send(self, request: Request) -> Answer | NoAnswer:
        """Send one request within its deadline. Raises nothing but `CancelledError`."""
        return await self._send_to(self._destinations, request)

    async def _send_to(self, known: Mapping[str, Destination], request: Request) -> Answer | NoAnswer:
        destination = known.get(request.backend)
        if destination is None:
            return NoAnswer(Silence.STUBBED, "the backend has no url", sent=False)
        return await self._guarded(destination, request)

    async def _guarded(self, destination: Destination, request: Request) -> Answer | NoAnswer:
        refused = destination.guard.enter(began := time.monotonic())
        if refused is not None:
            return NoAnswer(Silence.OVERLOADED, refused, sent=False)
        exchange = _Exchange(request, destination, began)
        answer = None
        try:
            answer = await self._answer(exchange)
        finally:
            destination.guard.leave(answer, time.monotonic(), began)
        return answer

    async def _answer(self, exchange: _Exchange) -> Answer | NoAnswer:
        """Try as often as may be within the deadline, and say in which way it failed."""
        try:
            with self._deadlines.within(exchange.request.timeout):
                if exchange.destination.tokens is not None:
                    return await self._with_token(exchange, exchange.destination.tokens)
                return await self._attempts(exchange)
        except TimeoutError:
            # The deadline passed, or aiohttp's own limit for connecting did.
            return exchange.silent(Silence.TIMEOUT if exchange.sent else Silence.UNREACHABLE, "deadline")
        except (ClientError, OSError) as fault:
            return exchange.silent(Silence.CLOSED if exchange.sent else Silence.UNREACHABLE, _said(fault))
        except HttpProcessingError:
            return exchange.silent(Silence.UNDECODABLE, "the answer is no HTTP")
        except Exception as fault:  # noqa: BLE001 - the promise of `send`; whatever it is, the call must end
            return exchange.silent(Silence.CLOSED, f"unforeseen {type(fault).__name__}")

    async def _with_token(self, exchange: _Exchange, tokens: TokenSource) -> Answer | NoAnswer:
        token = await tokens.token(self._guarded)
        if token is None:
            return exchange.silent(Silence.UNREACHABLE, "no token could be had for the backend")
        answer = await self._attempts(exchange, token)
        if isinstance(answer, Answer) and answer.status == 401:
            tokens.refused(token)
        return answer

    async def _attempts(self, exchange: _Exchange, token: str | None = None) -> Answer | NoAnswer:
        content = exchange.destination.head(exchange.request, token)
        if content is None:
            return exchange.silent(Silence.UNREACHABLE, "the request holds a character that HTTP cannot carry")
        if exchange.request.body is not None:
            content += exchange.request.body
        left = exchange.destination.attempts
        while True:
            left -= 1
            try:
                return await self._attempt(exchange, content)
            except (TimeoutError, ClientSSLError):
                raise  # neither waiting again nor another handshake would end better
            except (ClientError, OSError):
                # RFC 9110 section 9.2.2: what has left is sent again only where repeating it does no harm
                if not left or (exchange.sent and not exchange.request.idempotent):
                    raise
            if not exchange.sent:
                await asyncio.sleep(_PAUSE)

    async def _attempt(self, exchange: _Exchange, content: bytes) -> Answer | NoAnswer:
        destination = exchange.destination
        line = self._kept.take(destination) or await self._open(destination)
        protocol = line.protocol
        fit = False
        try:
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
                raise ClientConnectionResetError("the connection was closed before anything was sent")
            exchange.sent = True
            transport.write(content)
            message, payload = await _first_answer(protocol)
            if payload.is_eof():
                answer = await _read(exchange, message, payload)
            else:
                with _ending_with(protocol, payload):
                    answer = await _read(exchange, message, payload)
            # an answer that came before the request had left is right, but its connection is not fit for another
            fit = isinstance(answer, Answer) and not transport.get_write_buffer_size()
            return answer
        finally:
            if fit and self._destinations.get(exchange.request.backend) is destination:
                self._kept.keep(destination, line)
            else:
                line.drop()

    async def _open(self, destination: Destination) -> Line:
        connector = self._connectors.get(destination.socket) or self._connector(destination.socket)
        return Line(await connector.connect(destination.template(self._loop), [], destination.timeout))

    def _connector(self, socket: str | None) -> BaseConnector:
        # No limit here: how many calls may be under way is for `limits` to say, and to refuse at once.
        if self._closed:
            raise ClientConnectionError("the gateway is stopping")
        connector = TCPConnector(limit=0) if socket is None else UnixConnector(socket, limit=0)
        self._connectors[socket] = connector
        return connector


#: RFC 9112 section 2.3 asks for 8000 at least; old backends put whole sessions into cookies.
_LONGEST_LINE: Final = 65536
_MOST_HEADERS: Final = 256
_MOST_INTERIM: Final = 32
#: Seconds before connecting again where connecting failed.
_PAUSE: Final = 0.05


@dataclass(slots=True)
class _Exchange:
    """One request under way, and whether any of it has left."""

    request: Request
    destination: Destination
    began: float
    sent: bool = False

    def silent(self, silence: Silence, note: str) -> NoAnswer:
        return NoAnswer(silence, note, time.monotonic() - self.began, self.sent)


async def _first_answer(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """The first answer that is no interim one; 101 unasked, or a status below 100, is no answer to anything."""
    for _ in range(_MOST_INTERIM):
        message, payload = await protocol.read()
        if message.code >= 200:
            return message, payload
        if message.code == 101 or message.code < 100:
            break
    raise HttpProcessingError(message="no final answer")


@contextmanager
def _ending_with(protocol: ResponseHandler, payload: StreamReader) -> Iterator[None]:
    """Fail a body whose connection ends before it does.

    Where aiohttp's parser meets bytes that are no HTTP inside a body, it closes the connection and tells only the
    reader of heads; whoever waits for the body would wait for ever.
    """

    def end(_: asyncio.Future[None] | None) -> None:
        if not payload.is_eof() and payload.exception() is None:
            payload.set_exception(protocol.exception() or ClientPayloadError())

    closed = protocol.closed
    if closed is None:
        end(None)
        yield
        return
    closed.add_done_callback(end)
    try:
        yield
    finally:
        closed.remove_done_callback(end)
        if closed.done() and not closed.cancelled():
            closed.exception()  # it was seen here, so nobody has to be told


async def _read(exchange: _Exchange, message: RawResponseMessage, payload: StreamReader) -> Answer | NoAnswer:
    """The body, decoded, within the backend's limit."""
    headers = message.headers
    limit = exchange.destination.limit
    if "content-encoding" in headers:
        undo = decoder(", ".join(headers.getall("content-encoding")), limit)
        if undo is None:
            return exchange.silent(Silence.UNDECODABLE, "an unknown content coding")
        body, wire_bytes = await _decoded(payload, undo, limit)
    elif (whole := arrived(payload, limit)) is not None:
        body, wire_bytes = whole, len(whole)
    else:
        length = headers.get("content-length", "")
        announced = int(length[:19]) if length.isdecimal() else 0
        body = Silence.TOO_LARGE if announced > limit else await _plain(payload, limit)
        wire_bytes = len(body) if isinstance(body, bytes) else 0
    if isinstance(body, Silence):
        note = "over limits.answer" if body is Silence.TOO_LARGE else "the content coding is broken"
        return exchange.silent(body, note)
    return Answer(message.code, headers, body, wire_bytes, time.monotonic() - exchange.began)


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


def _said(fault: BaseException) -> str:
    """What may be logged of a fault: its kind and the system's number, never its text, which may hold an address."""
    number = fault.errno if isinstance(fault, OSError) else None
    if isinstance(fault, ClientPayloadError):
        return "the body was cut short"
    if isinstance(fault, ClientSSLError | ssl.SSLError):
        return "TLS failed"
    if isinstance(fault, ClientConnectorDNSError):
        return "the name does not resolve"
    if isinstance(fault, ClientConnectorError):
        return f"cannot connect (errno {number})" if number else "cannot connect"
    return f"the connection broke ({type(fault).__name__})"
