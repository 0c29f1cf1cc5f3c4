"""The shell of a `tools` or `admin` listener: who may speak to it, how large a body may be, which route answers.

On aiohttp's low-level server: a table of paths, no middleware. Knows no contract beyond its `Listener`.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from gateway import json_text
from gateway.contract.model import Listener
from gateway.surfaces.principals import Principals

log = logging.getLogger("toolview.http")

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

#: RFC 9110 section 7.2, read as a whole, so that nothing hides behind a bracket or a port.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/\s]*?)\.?)(?::[0-9]*)?").fullmatch

_SCOPES = web.RequestKey("scopes", frozenset)


@dataclass(frozen=True, slots=True)
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
    body_limit: int
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
) -> web.Server:
    """The protocol factory of one listener; where there are `principals`, a request must carry the key of one.

    For the routes that are `keyed` it must be the key of one of those; on the others they do not matter.
    """

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
        if known is not None:
            principal = known.of(request.headers.getall("Authorization", ()))
            if principal is None and request.path not in routes.public:
                return _unauthenticated()
            request[_SCOPES] = frozenset() if principal is None else principal.scopes
        handlers = routes.find(request.path)
        if handlers is None:
            return problem(404, "not_found", "There is nothing under this path.")
        handler = handlers.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ", ".join(sorted({*handlers, "HEAD"} if "GET" in handlers else handlers))
            return problem(405, "method_not_allowed", f"This path answers {allowed}.", headers={"Allow": allowed})
        length = request.content_length
        if length is not None and length > manner.body_limit:
            return too_large(manner.body_limit)
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except web.RequestPayloadError:
            return problem(400, "body_broken", "The body breaks off, or its coding is broken.")
        except Exception:
            log.exception("a listener failed to answer")
            return problem(500, "internal_error", "The gateway failed to answer; its log says why.")

    return web.Server(handle, handler_cancellation=True, access_log=None)


def scopes_of(request: web.BaseRequest) -> frozenset[str] | None:
    """What the principal of a request may do; None where nobody has to prove who they are."""
    return request.get(_SCOPES)


async def read_body(request: web.BaseRequest, limit: int) -> bytes | None:
    """The whole body, or None where it is larger than `limit` bytes; it is not read beyond that."""
    if not request.can_read_body:
        return b""
    content = request.content
    if content.is_eof() and content.total_bytes <= limit:  # it came with the head: nothing to wait for
        return content.read_nowait()
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
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


def _unauthenticated() -> web.Response:
    """RFC 9110 section 11.6.1; nothing is said of whether a key was there or why it is none."""
    message = "This listener wants `Authorization: Bearer` with a key that the gateway knows."
    return problem(401, "unauthenticated", message, headers={"WWW-Authenticate": "Bearer"})


@dataclass(frozen=True, slots=True)
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
