"""One backend as far as sending goes: where it is, how it is trusted, and the bytes that every request to it shares."""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from aiohttp import ClientTimeout
from aiohttp.client_reqrep import ClientRequest
from yarl import URL

from gateway import __version__
from gateway.backend.decode import ACCEPT_ENCODING
from gateway.backend.exchange import Request
from gateway.backend.guard import Guard
from gateway.backend.token import TokenSource

if TYPE_CHECKING:
    from gateway.contract.model import Backend, BackendAuth, BackendTls


class Destination:
    """Where requests of one backend go. Credentials live here and nowhere else; nothing here is ever logged."""

    def __init__(
        self,
        url: str | None,
        socket: str | None,
        tls: BackendTls,
        connect_timeout: float,
        attempts: int,
        limit: int,
        headers: Iterable[tuple[str, str]],
        query: str,
        guard: Guard,
        tokens: TokenSource | None = None,
        declared: Backend | None = None,
    ) -> None:
        self._declared = declared
        place = URL(url or "http://localhost")
        if socket and place.scheme == "https":
            raise ValueError("a backend on a unix socket is plain http")
        self.socket, self.attempts, self.limit, self.guard, self.tokens = socket, attempts, limit, guard, tokens
        # `connect` counts the name, the connection and the handshake; the whole call has its own deadline.
        self.timeout = ClientTimeout(total=None, connect=connect_timeout, ceil_threshold=3600)
        self._origin = place.origin()
        self._tls = _context(tls) if place.scheme == "https" else True
        self._template: ClientRequest | None = None
        defaults = {
            "host": ("Host", place.host_port_subcomponent or "localhost"),
            "accept": ("Accept", "application/json"),
            "accept-encoding": ("Accept-Encoding", ACCEPT_ENCODING),
            "user-agent": ("User-Agent", f"toolview/{__version__}"),
        }
        written = {name.lower(): (name, value) for name, value in headers}
        self._query = query
        self._lines = {name: f"{spelled}: {value}\r\n" for name, (spelled, value) in (defaults | written).items()}
        self._block = "".join(self._lines.values())
        #: What the operator wrote for the backend wins over what a call brings.
        self._dropped = _NEVER.union(written, ("authorization",) if tokens else ())
        self._replaceable = defaults.keys() - self._dropped

    def follow(self, before: Destination) -> bool:
        """Take over what was learned of this backend under the contract before, where it is declared as it was."""
        same = self._declared is not None and self._declared == before._declared
        if same:
            self.guard, self.tokens = before.guard, before.tokens
        return same

    def template(self, loop: asyncio.AbstractEventLoop | None) -> ClientRequest:
        """What aiohttp's connector wants to know of a request in order to connect; the same for every call."""
        if self._template is None or self._template.loop is not loop:
            self._template = ClientRequest("GET", self._origin, loop=loop, ssl=self._tls)
        return self._template

    def head(self, request: Request, token: str | None = None) -> bytes | None:
        """The request line and headers; None where something in them could end its line."""
        target = request.target
        if not _TARGET(target):
            return None
        if self._query:
            target += ("&" if "?" in target else "?") + self._query
        block, lines = self._block, ""
        replaced: list[str] = []
        for name, value in request.headers:
            if _BAD_VALUE(value) or not _NAME(name):
                return None
            lower = name.lower()
            if lower in self._dropped:
                continue
            if lower in self._replaceable:
                replaced.append(lower)
            lines += f"{name}: {value}\r\n"
        if replaced:
            block = "".join(line for name, line in self._lines.items() if name not in replaced)
        if token is not None:
            lines += f"Authorization: Bearer {token}\r\n"
        if request.body is not None:
            lines += f"Content-Length: {len(request.body)}\r\n"
        elif request.method in _EXPECTS_LENGTH:
            lines += "Content-Length: 0\r\n"
        try:
            # a caller's header that is passed on may hold bytes that are no UTF-8; they leave as they came
            return f"{request.method} {target} HTTP/1.1\r\n{block}{lines}\r\n".encode(errors="surrogateescape")
        except UnicodeEncodeError:
            return None


def destinations(backends: Iterable[Backend]) -> dict[str, Destination]:
    """By name, every backend that is somewhere; those without a url or socket are stubs."""
    return {backend.name: _destination(backend) for backend in backends if backend.url or backend.socket}


def shown(backend: Backend, request: Request) -> bytes | None:
    """The head that a request would leave with, every value that the operator wrote for the backend as `***`."""
    headers, query = _credentials(backend.auth)
    written = [(name, _HIDDEN) for name in (*backend.headers, *(name for name, _ in headers))]
    asks = backend.auth is not None and backend.auth.client_credentials is not None
    masked_query = f"{query.partition('=')[0]}={_HIDDEN}" if query else ""
    place = Destination(
        backend.url, backend.socket, backend.tls, backend.connect_timeout, 1, 0, written, masked_query, Guard()
    )
    if asks:
        request = replace(
            request, headers=tuple(pair for pair in request.headers if pair[0].lower() != "authorization")
        )
    return place.head(request, _HIDDEN if asks else None)


_HIDDEN: Final = "***"

#: Headers no call may bring: they frame the message, belong to the connection, or would ask for less than an answer.
_NEVER: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "accept-encoding"}
    | {"connection", "keep-alive", "te", "trailer", "upgrade", "expect", "proxy-authorization", "proxy-connection"}
    | {"range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"}
)
_BAD_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z").match
_TARGET: Final = re.compile(r"/[!-~]*\Z").match
_EXPECTS_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})
#: Decoded bytes of a token answer; those in use are under 10 KiB.
_TOKEN_LIMIT: Final = 262144


def _destination(backend: Backend) -> Destination:
    headers, query = _credentials(backend.auth)
    breaker = backend.breaker
    return Destination(
        backend.url,
        backend.socket,
        backend.tls,
        backend.connect_timeout,
        backend.retry.attempts,
        backend.limits.answer,
        [*backend.headers.items(), *headers],
        query,
        Guard(backend.limits.concurrency, breaker.failures if breaker else None, breaker.reset if breaker else 0.0),
        _tokens(backend),
        backend,
    )


def _credentials(auth: BackendAuth | None) -> tuple[list[tuple[str, str]], str]:
    """Headers and query text that a backend's `auth` adds to every request."""
    headers: list[tuple[str, str]] = []
    if auth is None:
        return headers, ""
    if auth.bearer is not None:
        headers.append(("Authorization", f"Bearer {auth.bearer}"))
    if auth.basic is not None:
        headers.append(_basic(auth.basic.username, auth.basic.password))
    if auth.header is not None:
        headers.append((auth.header.name, auth.header.value))
    if auth.query is None:
        return headers, ""
    return headers, f"{quote(auth.query.name, safe='~')}={quote(auth.query.value, safe='~')}"


def _tokens(backend: Backend) -> TokenSource | None:
    credentials = backend.auth.client_credentials if backend.auth is not None else None
    if credentials is None:
        return None
    # RFC 6749 section 2.3.1: both are form-encoded first
    name, secret = quote_plus(credentials.client_id), quote_plus(credentials.client_secret)
    asked: Mapping[str, str | None] = {
        "grant_type": "client_credentials",
        "scope": " ".join(credentials.scopes) or None,
        "audience": credentials.audience,
    }
    body = "&".join(f"{key}={quote_plus(value)}" for key, value in asked.items() if value is not None)
    place = Destination(
        credentials.token_url,
        None,
        backend.tls,
        backend.connect_timeout,
        backend.retry.attempts,
        _TOKEN_LIMIT,
        [_basic(name, secret)],
        "",
        Guard(),
    )
    return TokenSource(place, URL(credentials.token_url).raw_path_qs, body.encode())


def _basic(name: str, secret: str) -> tuple[str, str]:
    return "Authorization", f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"


def _context(files: BackendTls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files.ca)
    context.set_alpn_protocols(["http/1.1"])
    if not files.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files.cert is not None:
        context.load_cert_chain(files.cert, files.key)
    return context
