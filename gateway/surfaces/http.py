"""The shell of a `tools` or `admin` listener: who may speak to it, how large a body may be, which route answers.

On aiohttp's low-level server: a table of paths, no middleware. Knows no contract beyond its `Listener`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from gateway import json_text
from gateway.backend.arrived import arrived
from gateway.backend.decode import decoder
from gateway.backend.exchange import Silence
from gateway.contract.model import Listener
from gateway.record import record
from gateway.surfaces.principals import Principal, Principals, Stranger

log = logging.getLogger("toolview.http")

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

#: RFC 9110 section 7.2, read as a whole, so that nothing hides behind a bracket or a port.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/\s]*?)\.?)(?::[0-9]*)?").fullmatch

#: Whom calls are counted for where nobody has to prove who they are: all such callers together.
ANYONE = "anyone"
#: What a principal would have to hold to be let in; empty where they may go on.
Wants = Callable[[Principals, Principal], Sequence[str]]


@record
class Routes:
    """What a listener answers: exact paths, and prefixes for paths that end in a name; both by method."""

    exact: Mapping[str, Mapping[str, Handler]]
    prefixes: Mapping[str, Mapping[str, Handler]] = field(default_factory=dict)
    #: Exact paths that are answered to anyone, also where the listener asks who speaks.
    public: frozenset[str] = frozenset()
    #: Exact paths for which a key is asked wherever the contract knows any, also where the listener asks nobody.
    keyed: frozenset[str] = frozenset()

    def find(self, path: str) -> Mapping[str, Handler] | None:
        """The handlers of a path by method, or None where nothing is there."""
        if (known := self.exact.get(path)) is not None:
            return known
        cut = path.rfind("/") + 1
        return self.prefixes.get(path[:cut]) if cut < len(path) else None


@dataclass(slots=True)
class Manner:
    """How a listener behaves just now: a reload gives it another `Listener`, its end makes it part with everybody."""

    listener: Listener
    #: Each answer is the last one on its connection.
    leaving: bool = False
    _gate: _Gate | None = None

    def gate(self) -> _Gate:
        """Whose requests are let in, made anew where the listener is another one."""
        if self._gate is None or self._gate.listener is not self.listener:
            self._gate = _gate(self.listener)
        return self._gate


def listener_server(
    routes: Routes,
    manner: Manner,
    principals: Callable[[], Principals | None] = lambda: None,
    keyed: Callable[[], Principals | None] = lambda: None,
    wants: Wants = lambda _, principal: (),
) -> web.Server:
    """The protocol factory of one listener; where there are `principals`, a request must carry the key of one.

    For the routes that are `keyed` it must be the key of one of those; on the others they do not matter.
    """

    async def admitted(request: web.BaseRequest, known: Principals) -> web.Response | None:
        """None where the request may go on, with its principal noted."""
        assert isinstance(request, _Request)
        authorization = request.headers.getall("Authorization", ())
        found: Principal | Stranger | None = known.of(authorization)
        if found is None:
            found = await known.introduce(authorization)
        if isinstance(found, Principal):
            request.principal = found
        elif request.path not in routes.public:
            return _turned_away(found, known, wants(known, _NOBODY) or known.scopes)
        else:
            request.principal = _NOBODY
            return None
        wanted = wants(known, found)
        return None if not wanted or request.path in routes.public else _insufficient(wanted, known)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = await answer(request)
        if manner.leaving:
            response.force_close()
        return response

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if (refused := _refused(request, manner.gate())) is not None:
            return refused
        known = principals()
        if known is None and request.path in routes.keyed:
            known = keyed()
        if known is not None and (refused := await admitted(request, known)) is not None:
            return refused
        handlers = routes.find(request.path)
        if handlers is None:
            return nothing_there()
        handler = handlers.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ", ".join(sorted({*handlers, "HEAD"} if "GET" in handlers else handlers))
            return problem(405, "method_not_allowed", f"This path answers {allowed}.", headers={"Allow": allowed})
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except web.RequestPayloadError:
            return problem(400, "body_broken", "The body breaks off, or its coding is broken.")
        except Exception:
            log.exception("a listener failed to answer")
            return problem(500, "internal_error", "The gateway failed to answer; its log says why.")

    # aiohttp would undo a body's coding as it comes, whoever sent it and whoever reads it, and a bomb has no end.
    return _Server(
        handle,
        request_factory=_request,
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=_IDLE,
        auto_decompress=False,
    )


def scopes_of(request: web.BaseRequest) -> frozenset[str] | None:
    """What the principal of a request may do; None where nobody has to prove who they are."""
    principal = _principal(request)
    return None if principal is None else principal.scopes


def caller_of(request: web.BaseRequest) -> str:
    """Whose calls a request's are, for the log and for limits."""
    principal = _principal(request)
    return ANYONE if principal is None else principal.name


async def read_body(request: web.BaseRequest, limit: int) -> bytes | None:
    """The whole body, decoded, or None where it is larger than `limit` bytes; it is not read or decoded beyond that."""
    if not request.can_read_body:
        return b""
    body = await _received(request, limit)
    if body is None or "Content-Encoding" not in request.headers:
        return body
    undo = decoder(",".join(request.headers.getall("Content-Encoding")), limit)
    decoded = None if undo is None else undo.feed(body) or undo.finish()
    if decoded is Silence.TOO_LARGE:
        return None
    if not isinstance(decoded, bytes):
        raise web.RequestPayloadError("the body's coding is broken, or none that is undone here")
    return decoded


async def _received(request: web.BaseRequest, limit: int) -> bytes | None:
    """The body as it was sent."""
    content = request.content
    if (whole := arrived(content, limit)) is not None:
        return whole
    if (request.content_length or 0) > limit:
        return None
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_PATIENCE):
            async for part in content.iter_any():
                size += len(part)
                if size > limit:
                    return None
                parts.append(part)
    except TimeoutError:  # whoever sends so slowly holds a place for nothing
        raise web.RequestPayloadError("the body did not come in time") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(limit: int) -> web.Response:
    """Refuses a body and closes: the rest of it is not read."""
    response = problem(413, "body_too_large", f"A body may have at most {limit} bytes.")
    response.force_close()
    return response


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> web.Response:
    """A JSON answer; `body` where it is encoded already."""
    return web.Response(
        body=json_text.encode(value) if body is None else body,
        status=status,
        headers={"Content-Type": "application/json", **(headers or {})},
    )


def problem(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """What a listener answers on its own behalf, in the catalog's error shape."""
    return json_response({"error": code, "message": message}, status, headers)


def nothing_there() -> web.Response:
    """404, for whatever reason a path answers nothing."""
    return problem(404, "not_found", "There is nothing under this path.")


#: Seconds for a body that is sent slowly, and for a connection on which nothing comes.
_BODY_PATIENCE = 60.0
_IDLE = 75.0

_NOBODY = Principal("nobody", frozenset())


def _turned_away(stranger: Stranger, known: Principals, scopes: Sequence[str]) -> web.Response:
    """RFC 9110 section 11.6.1; of a key or token nothing is said but that it was not taken (RFC 6750 section 3.1)."""
    if stranger is Stranger.UNCHECKED:
        message = "The gateway has not had the keys to check a token with; its log says why. Try again later."
        return problem(503, "keys_unavailable", message, headers={"Retry-After": "10"})
    told = () if stranger is Stranger.SILENT else (("error", "invalid_token"),)
    message = "This listener wants `Authorization: Bearer` with a key or token that the gateway knows."
    return problem(401, "unauthenticated", message, {"WWW-Authenticate": _challenge(known, scopes, *told)})


def _insufficient(wanted: Sequence[str], known: Principals) -> web.Response:
    """RFC 6750 section 3.1: the scopes are named all at once, so that a client asks for them once."""
    message = "Whoever holds this key or token may do nothing here; the scopes are named in `WWW-Authenticate`."
    challenge = _challenge(known, wanted, ("error", "insufficient_scope"))
    return problem(403, "insufficient_scope", message, {"WWW-Authenticate": challenge})


def _challenge(known: Principals, scopes: Sequence[str], *told: tuple[str, str]) -> str:
    """MCP's authorization text, "Protected Resource Metadata Discovery" and "Scope Challenge Handling"."""
    parts = list(told)
    if known.metadata is not None:
        if scopes:
            parts.append(("scope", " ".join(scopes)))
        parts.append(("resource_metadata", known.metadata))
    return "Bearer" + ("" if not parts else " " + ", ".join(f'{name}="{value}"' for name, value in parts))


@record
class _Gate:
    listener: Listener
    origins: frozenset[str]
    hosts: frozenset[str]
    check_hosts: bool


def _gate(listener: Listener) -> _Gate:
    hosts = frozenset(host.lower() for host in listener.hosts)
    origins = frozenset(origin.lower().rstrip("/") for origin in listener.origins)
    return _Gate(listener, origins, hosts, _is_loopback(listener.listen.host) or bool(hosts))


def _refused(request: web.BaseRequest, gate: _Gate) -> web.Response | None:
    """403 for a foreign Origin, 421 for a foreign Host: a web page cannot rebind its name to this listener."""
    given = request.headers.getall("Origin", ())
    if not all(_origin_allowed(origin.lower().rstrip("/"), gate, request) for origin in given):
        return problem(
            403, "origin_refused", "This Origin may not speak to the gateway (`origins` names those that may)."
        )
    if gate.check_hosts:
        host = _host_name(request.headers.get("Host", ""))
        if host not in gate.hosts and not _is_loopback(host):
            return problem(
                421, "host_refused", "The gateway does not answer to this Host (`hosts` names those it does)."
            )
    return None


def _origin_allowed(origin: str, gate: _Gate, request: web.BaseRequest) -> bool:
    if origin in gate.origins or "*" in gate.origins:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:  # brackets that hold no address
        return False
    if parts.scheme not in ("http", "https"):
        return False
    # a page of this very listener, under a name that nobody but its operator can have given it
    own = _is_loopback(parts.hostname or "") or parts.hostname in gate.hosts
    return own and parts.netloc == request.headers.get("Host", "").lower()


@lru_cache(maxsize=256)
def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    found = _HOST(host.strip().lower())
    return "" if found is None else found[1] or found[2]


class _Request(web.BaseRequest):
    """aiohttp's, but that no answer to it tells what made it, and in which version; with who speaks, once known."""

    __slots__ = ("principal",)
    ATTRS = web.BaseRequest.ATTRS | {"principal"}

    principal: Principal | None

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    request = _Request(message, payload, protocol, writer, task, task.get_loop())
    request.principal = None
    return request


def _principal(request: web.BaseRequest) -> Principal | None:
    return request.principal if isinstance(request, _Request) else None


class _Protocol(web.RequestHandler):
    """aiohttp's, but that whatever its parser refuses is answered in the listener's one shape."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP is said without the words it held; they may be a key, and they are a stranger's."""
        super().handle_error(request, status, exc, message)  # logs it, and gives up where an answer has begun
        if status == 500:
            answer = problem(500, "internal_error", "The gateway failed to answer; its log says why.")
        elif isinstance(exc, LineTooLong):
            answer = problem(431, "head_too_large", "A line of the request's head is longer than the gateway reads.")
        else:
            answer = problem(400, "bad_request", "This is no HTTP request that the gateway can read.")
        answer.force_close()
        return answer


class _Server(web.Server):
    """aiohttp's low-level server with our protocol."""

    def __call__(self) -> web.RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)
