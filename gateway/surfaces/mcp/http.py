"""`POST /mcp` on aiohttp: what is refused before a message is read, and which answer a message gets.

Stateless: nothing is kept between requests but the encoded form of a catalog. The listener checks Host and Origin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import assert_never

from aiohttp import web

from gateway.call.outcome import Call, Code, Outcome
from gateway.gateway import Gateway, new_call_id
from gateway.generation import Generation
from gateway.surfaces.http import Routes, read_body, scopes_of
from gateway.surfaces.mcp import answers, wire
from gateway.surfaces.mcp.answers import Listing
from gateway.surfaces.mcp.wire import CallTool, Discover, Initialize, ListTools, Notification, Ping, Refusal

SURFACE = "mcp"

#: What a request's principal may do; None where nobody has to prove who they are.
ScopesOf = Callable[[web.BaseRequest], frozenset[str] | None]

_JSON = {"Content-Type": "application/json"}
_KEPT_LISTINGS = 64


def mcp_routes(surface: McpSurface) -> Routes:
    """`POST /mcp`; every other method is the listener's 405. The server cancels `handle` when the client leaves."""
    return Routes({"/mcp": {"POST": surface.handle}})


class McpSurface:
    """Answers MCP requests for one gateway."""

    def __init__(self, gateway: Gateway, scopes_of: ScopesOf = scopes_of) -> None:
        self._gateway = gateway
        self._scopes_of = scopes_of
        self._listings: dict[tuple[int, bool], Listing] = {}
        self._listings_of: Generation | None = None
        self._detached: set[asyncio.Task[Outcome]] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One POST to its one response."""
        if not _is_json(request.headers.get("Content-Type", "")):
            return _refused(415, "the Content-Type of a message is application/json")
        if not _accepts_json(",".join(request.headers.getall("Accept", ()))):
            return _refused(406, "the answer is application/json, which Accept leaves out")
        generation = self._gateway.generation
        limit: int = generation.contract.gateway.limits.body
        body = await _body(request, limit)
        if isinstance(body, Refusal):
            return _json(answers.error(body), body.status)
        scopes = self._scopes_of(request)
        listing = self._listing(generation, scopes)
        message = wire.read(body, request.headers, listing.mirrored)
        # The call comes first: it is the hot path.
        if isinstance(message, CallTool):
            return await self._call(message, request, generation, listing, scopes)
        return _answer(message, generation, listing)

    async def _call(
        self,
        message: CallTool,
        request: web.BaseRequest,
        generation: Generation,
        listing: Listing,
        scopes: frozenset[str] | None,
    ) -> web.Response:
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
        )
        outcome = await self._run(call, generation, listing, interruptible=message.modern)
        failure = outcome.failure
        if failure is not None and failure.code == Code.UNKNOWN_TOOL.word and message.name not in listing.tools:
            refusal = answers.unknown_tool(message.id, outcome, listing, modern=message.modern)
            return _stamped(answers.error(refusal), listing, refusal.status)
        text = generation.contract.gateway.mcp.text
        result = answers.call_result(outcome, listing, text, modern=message.modern)
        return _stamped(answers.reply(message.id, result), listing)

    async def _run(self, call: Call, generation: Generation, listing: Listing, *, interruptible: bool) -> Outcome:
        """Run a call; when the caller leaves, this task is cancelled.

        That cancels the call in the modern era, as it says, and for a tool that only reads. In the handshake era a
        broken connection SHOULD NOT be read as a cancellation, so what may have effects is brought to its end.
        """
        tool = listing.tools.get(call.tool)
        if interruptible or tool is None or tool.annotations.get("readOnlyHint") is True:
            return await self._gateway.run(call, generation)
        task = asyncio.create_task(self._gateway.run(call, generation))
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for calls whose callers have left."""
        await asyncio.gather(*self._detached, return_exceptions=True)

    def _listing(self, generation: Generation, scopes: frozenset[str] | None) -> Listing:
        if generation is not self._listings_of:  # a reload: what the contract before listed is kept no longer
            self._listings, self._listings_of = {}, generation
        catalog, private = generation.catalog(SURFACE, scopes), scopes is not None
        # Catalogs live as long as their generation; the listing holds its catalog, so an id is not used again.
        key = (id(catalog), private)
        listing = self._listings.get(key)
        if listing is None:
            if len(self._listings) >= _KEPT_LISTINGS:
                self._listings.clear()
            shown = generation.contract.gateway.mcp.output_schema
            listing = self._listings[key] = Listing(catalog, private, shown)
        return listing


def _answer(
    message: Discover | Initialize | Ping | ListTools | Notification | Refusal, generation: Generation, listing: Listing
) -> web.Response:
    instructions = generation.contract.gateway.mcp.instructions
    match message:
        case Refusal():
            return _json(answers.error(message), message.status)
        case Notification():
            return web.Response(status=202)
        case ListTools(request_id, modern):
            return _stamped(answers.reply(request_id, listing.result(modern=modern)), listing)
        case Initialize(request_id, version):
            return _json(answers.reply(request_id, answers.initialize_result(version, instructions)))
        case Discover(request_id):
            result = answers.discover_result(instructions, private=listing.private)
            return _json(answers.reply(request_id, result))
        case Ping(request_id):
            return _json(answers.reply(request_id, b"{}"))
        case _:
            assert_never(message)


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers=_JSON)


def _stamped(body: bytes, listing: Listing, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers=listing.headers)


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
