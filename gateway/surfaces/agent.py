"""The agent surface: tool definitions in four vendors' shapes, and one POST per call. Knows HTTP and Outcomes only."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from gateway import json_text
from gateway.call.failure import failure, too_large
from gateway.call.outcome import Call, Code, Outcome
from gateway.catalog.advertise import Advertised
from gateway.gateway import Gateway, new_call_id
from gateway.generation import Catalog
from gateway.surfaces.http import Handler, Routes, caller_of, json_response, problem, read_body, scopes_of

SURFACE = "agent"
PREFIX = "/agent/tools/"
_CATALOG_HEADER = "Toolview-Catalog"
_HARMLESS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
#: What a caller's own id of a call may be, as on MCP: it travels in headers and in the log.
_CALL_ID = re.compile(r"[!-~]{1,128}").fullmatch


def agent_routes(gateway: Gateway) -> Routes:
    """`GET /agent/tools?format=` and `POST /agent/tools/{name}`."""
    return Routes({"/agent/tools": {"GET": _listing(gateway)}}, {PREFIX: {"POST": _calling(gateway)}})


def openai(tools: tuple[Advertised, ...]) -> list[Any]:
    """What goes under `tools` of a chat completion."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in tools
    ]


def anthropic(tools: tuple[Advertised, ...]) -> list[Any]:
    """What goes under `tools` of a message."""
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in tools]


def gemini(tools: tuple[Advertised, ...]) -> list[Any]:
    """What goes under `tools` of a content generation; JSON Schema has a field of its own there."""
    declarations = [
        {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema}
        for tool in tools
    ]
    return [{"functionDeclarations": declarations}]


def mcp(tools: tuple[Advertised, ...]) -> list[Any]:
    """The tools as MCP's tools/list has them."""
    return [tool.mcp() for tool in tools]


FORMATS: dict[str, Callable[[tuple[Advertised, ...]], list[Any]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "mcp": mcp,
}


#: Lists that are kept as bytes.
_KEPT_LISTINGS = 256


def _listing(gateway: Gateway) -> Handler:
    made: dict[tuple[str, str], bytes] = {}  # a catalog's digest and a format: the same bytes every time

    async def list_tools(request: web.BaseRequest) -> web.StreamResponse:
        form = request.query.get("format", "openai")
        catalog = gateway.generation.catalog(SURFACE, scopes_of(request))
        if form not in FORMATS:
            said = {_CATALOG_HEADER: catalog.digest}
            return problem(400, "bad_request", f"`format` is one of: {', '.join(FORMATS)}.", said)
        body = made.get((catalog.digest, form))
        if body is None:
            if len(made) >= _KEPT_LISTINGS:  # reloads and sets of scopes bring ever new ones
                made.clear()
            body = made[catalog.digest, form] = json_text.encode(FORMATS[form](catalog.tools))
        return json_response(None, body=body, headers={_CATALOG_HEADER: catalog.digest})

    return list_tools


def _calling(gateway: Gateway) -> Handler:
    async def call_tool(request: web.BaseRequest) -> web.StreamResponse:
        generation, scopes = gateway.generation, scopes_of(request)
        limit = generation.contract.gateway.limits.body
        body = await read_body(request, limit)
        arguments = None if body is None else json_text.parse(body) if body.strip() else {}
        call_id = request.headers.get("X-Tool-Call-Id", "")
        call = Call(
            request.path[len(PREFIX) :],
            arguments if isinstance(arguments, dict) else {},
            SURFACE,
            call_id if _CALL_ID(call_id) else new_call_id(),
            {name.lower(): value for name, value in request.headers.items()},
            scopes,
            caller=caller_of(request),
        )
        if body is None:
            outcome = gateway.refuse(call, too_large(limit), generation)
        elif isinstance(arguments, dict):
            outcome = await gateway.run(call, generation)
        else:
            outcome = gateway.refuse(call, failure(Code.BAD_REQUEST, _why_no_arguments(arguments)), generation)
        response = _response(outcome, generation.catalog(SURFACE, scopes))
        if body is None:  # the rest of it is not read
            response.force_close()
        return response

    return call_tool


def _why_no_arguments(body: Any) -> str:
    if isinstance(body, json_text.NotJson):
        return f"The body is not JSON, and nothing was sent: {body.reason}."
    return "The body is the arguments, one JSON object; nothing was sent."


def _response(outcome: Outcome, catalog: Catalog) -> web.Response:
    headers = {_CATALOG_HEADER: catalog.digest, "X-Tool-Call-Id": outcome.call.call_id}
    if outcome.failure is not None:
        if isinstance(after := outcome.failure.details.get("retry_after"), int):
            headers["Retry-After"] = str(after)
        return json_response(outcome.envelope(), outcome.failure.status, headers)
    if outcome.media_type is not None:
        # A file as it is. A browser takes it for nothing else, and runs nothing of what a backend wrote as a page.
        sent = {**headers, "Content-Type": outcome.media_type, **_HARMLESS}
        return web.Response(body=outcome.body, headers=sent)
    data = b"null" if outcome.body is None else outcome.body
    return json_response(None, body=b'{"ok":true,"data":' + data + b"}", headers=headers)
