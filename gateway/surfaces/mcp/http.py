"""`POST /mcp` on aiohttp: what is refused before a message is read, and which answer a message gets.

The answer is JSON, or a stream of events where notes come before it. The listener checks Host and Origin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any

from aiohttp import web

from gateway.call.outcome import Call
from gateway.gateway import Gateway, new_call_id
from gateway.generation import Generation
from gateway.surfaces.http import Routes, caller_of, read_body, scopes_of
from gateway.surfaces.mcp import answers, wire
from gateway.surfaces.mcp.answers import Listing
from gateway.surfaces.mcp.server import SURFACE, Answered, McpServer
from gateway.surfaces.mcp.wire import CallTool, Refusal
from gateway.surfaces.ready import Kind, Ready

#: What a request's principal may do; None where nobody has to prove who they are.
ScopesOf = Callable[[web.BaseRequest], frozenset[str] | None]

_JSON = {"Content-Type": "application/json"}
#: What keeps proxies from holding back or rewriting a stream.
_EVENTS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


def mcp_routes(surface: McpSurface) -> Routes:
    """`POST /mcp`; every other method is the listener's 405. The server cancels `handle` when the client leaves."""
    return Routes({"/mcp": {"POST": surface.handle}})


class McpSurface:
    """Answers MCP requests for one gateway."""

    def __init__(self, gateway: Gateway, scopes_of: ScopesOf = scopes_of, *, state_secret: bytes | None = None) -> None:
        self._gateway = gateway
        self._scopes_of = scopes_of
        self._server = McpServer(gateway, state_secret)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One POST to its one response."""
        accept = ",".join(request.headers.getall("Accept", ()))
        if not _is_json(request.headers.get("Content-Type", "")):
            return _refused(415, "the Content-Type of a message is application/json")
        if not _accepts_json(accept):
            return _refused(406, "the answer is application/json, which Accept leaves out")
        generation = self._gateway.generation
        limit: int = generation.contract.gateway.limits.body
        body = await _body(request, limit)
        if isinstance(body, Refusal):
            refused = _json(answers.error(body), body.status)
            refused.force_close()  # the rest of the body is not read
            return refused
        scopes = self._scopes_of(request)
        listing = self._server.listing(generation, scopes)
        message = wire.read(body, request.headers, listing.mirrored)
        # The call comes first: it is the hot path.
        if isinstance(message, CallTool):
            stream = None if message.progress is None or not _accepts_stream(accept) else _Stream(request, listing)
            return await self._call(message, request, generation, listing, scopes, stream)
        return _response(self._server.answer(message, generation, listing), listing)

    async def _call(
        self,
        message: CallTool,
        request: web.BaseRequest,
        generation: Generation,
        listing: Listing,
        scopes: frozenset[str] | None,
        stream: _Stream | None,
    ) -> web.StreamResponse:
        # Read by any case, so there is no need to write every name anew for the few that a backend wants.
        headers: Mapping[str, str] = request.headers
        if message.trace:
            headers = {**{name.lower(): value for name, value in headers.items()}, **message.trace}
        call = Call(
            message.name,
            message.arguments,
            SURFACE,
            message.call_id or new_call_id(),
            headers,
            scopes,
            caller=caller_of(request),
            ask=self._server.ask(message, generation),
        )
        # In the handshake era a broken connection SHOULD NOT be read as a cancellation; in the modern era it is one.
        note = None if stream is None else stream.note
        answered = await self._server.call(call, message, generation, listing, note, interruptible=message.modern)
        if stream is not None and stream.begun:
            return await stream.end(answered.body or b"")
        return _response(answered, listing)

    async def drain(self) -> None:
        """Wait for calls whose callers have left."""
        await self._server.drain()


class _Stream:
    """One response as server-sent events, which it becomes with the first note."""

    def __init__(self, request: web.BaseRequest, listing: Listing) -> None:
        self._request = request
        self._listing = listing
        self._response: web.StreamResponse | None = None

    @property
    def begun(self) -> bool:
        return self._response is not None

    async def note(self, message: bytes) -> None:
        """Send one message before the answer."""
        if self._response is None:
            self._response = web.StreamResponse(headers={**self._listing.headers, **_EVENTS})
            await self._written(self._response.prepare(self._request))
        await self._written(self._response.write(_event(message)))

    async def end(self, message: bytes) -> web.StreamResponse:
        """Send the answer, which is the last message."""
        assert self._response is not None
        await self._written(self._response.write(_event(message)))
        await self._written(self._response.write_eof())
        return self._response

    async def _written(self, writing: Awaitable[Any]) -> None:
        try:
            await writing
        except ConnectionError as fault:  # the client has left, which is told in the same way as while nothing is sent
            raise asyncio.CancelledError from fault


def _event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"


def _response(answered: Answered, listing: Listing) -> web.StreamResponse:
    if answered.body is None:
        return web.Response(status=answered.status)
    if answered.stamped and answered.status == 200:
        return Ready(_kind(listing.catalog.digest), answered.body)
    headers = listing.headers if answered.stamped else _JSON
    return web.Response(body=answered.body, status=answered.status, headers=headers)


@lru_cache(maxsize=64)
def _kind(digest: str) -> Kind:
    """What every answer that speaks of one catalog begins with."""
    return Kind(answers.headers(digest))


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers=_JSON)


def _refused(status: int, reason: str) -> web.Response:
    return _json(answers.error(Refusal(None, status, wire.INVALID_REQUEST, reason)), status)


async def _body(request: web.BaseRequest, limit: int) -> bytes | Refusal:
    try:
        body = await read_body(request, limit)
    except web.RequestPayloadError:
        return Refusal(None, 400, wire.PARSE_ERROR, "Parse error: the body breaks off or its coding is broken")
    if body is None:
        return Refusal(None, 413, wire.INVALID_REQUEST, f"the body is over {limit} bytes")
    return body


@lru_cache(maxsize=64)
def _is_json(content_type: str) -> bool:
    media_type, _, parameters = content_type.partition(";")
    charset = [part.strip().lower() for part in parameters.split(";") if "charset" in part.lower()]
    return media_type.strip().lower() == "application/json" and all(
        part in ("charset=utf-8", 'charset="utf-8"') for part in charset
    )


@lru_cache(maxsize=64)
def _accepts_json(accept: str) -> bool:
    """Whether `application/json` is among what a client accepts; a client that says nothing accepts anything."""
    weights: dict[str, bool] = {}
    for item in accept.lower().split(","):
        media_range, *parameters = (part.strip() for part in item.split(";"))
        weights[media_range] = not any(part in ("q=0", "q=0.0", "q=0.00", "q=0.000") for part in parameters)
    if not accept.strip():
        return True
    named = [weights[name] for name in ("application/json", "application/*", "*/*") if name in weights]
    return bool(named) and named[0]


@lru_cache(maxsize=64)
def _accepts_stream(accept: str) -> bool:
    """Whether a client names `text/event-stream`; one that takes anything may not know what to do with a stream."""
    items = [[part.strip() for part in item.split(";")] for item in accept.lower().split(",")]
    return any(
        name == "text/event-stream" and not {"q=0", "q=0.0", "q=0.00", "q=0.000"} & {*rest} for name, *rest in items
    )
