"""`GET /console` and what its page asks for: the tools, the state, and one real call beside its full answer.

The figures are read from `/metrics`. A call is made for a page of this very listener only, and in the name of whoever
holds a key where the contract knows any. Knows no metric.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from aiohttp import web

from gateway import __version__, json_text
from gateway.call.failure import credentials
from gateway.call.outcome import Call, Outcome
from gateway.contract.model import Backend, Endpoint
from gateway.gateway import Gateway, new_call_id
from gateway.generation import CONSOLE, TOOL_SURFACES, Generation
from gateway.surfaces.http import Handler, Routes, caller_of, json_response, problem, read_body, scopes_of, too_large

if TYPE_CHECKING:
    from gateway.surfaces.console import panes

#: The page's own files: each is asked for by the page, and none holds anything of the contract.
_FILES = {
    "/console": ("console.html", "text/html; charset=utf-8"),
    "/console/console.css": ("console.css", "text/css; charset=utf-8"),
    "/console/console.js": ("console.js", "text/javascript; charset=utf-8"),
    "/console/icon.svg": ("icon.svg", "image/svg+xml"),
}
_TRY = "/console/try"
_GUARDED = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
#: Answers larger than this are compared beside the event loop, so that no other call waits for a page.
_ASIDE = 64 * 1024
_INDEX = re.compile(r"\[\d+\]")
#: The most paths of one call that are listed.
_PATHS = 100


def console_routes(gateway: Gateway) -> Routes:
    """The page and its files, for whoever reaches the listener; data, for whom it lets in; calls, `keyed`."""

    def where_on(answer: Handler) -> Handler:
        async def guarded(request: web.BaseRequest) -> web.StreamResponse:
            if not gateway.generation.contract.gateway.console:
                return problem(404, "not_found", "There is nothing under this path.")
            response = await answer(request)
            response.headers.update(_GUARDED)
            return response

        return guarded

    routes: dict[str, Mapping[str, Handler]] = {
        path: {"GET": where_on(_file(name, kind))} for path, (name, kind) in _FILES.items()
    }
    routes["/console/state"] = {"GET": where_on(_state(gateway))}
    routes["/console/tools"] = {"GET": where_on(_tools(gateway))}
    routes[_TRY] = {"POST": where_on(_trying(gateway))}
    return Routes(routes, public=frozenset(_FILES), keyed=frozenset({_TRY}))


def _file(name: str, kind: str) -> Handler:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=_read(name), headers={"Content-Type": kind})

    return answer


@cache
def _read(name: str) -> bytes:
    from importlib import resources  # a page is rarely asked for, and a start is always in a hurry

    return resources.files(__package__).joinpath("page", name).read_bytes()


def _state(gateway: Gateway) -> Handler:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        contract, last = gateway.generation.contract, gateway.last_reload
        reload = {
            "at": last.at,
            "ok": last.ok,
            "accepted_at": last.accepted_at,
            "refusals": [refusal.as_json() for refusal in last.refusals[:100]],
            "refused": len(last.refusals),
        }
        return json_response(
            {
                "version": __version__,
                "contract": contract.digest,
                "reload": reload,
                "warnings": [warning.as_json() for warning in contract.warnings[:100]],
                "backends": list(contract.backends),
                "keyed": contract.gateway.auth is not None,
            }
        )

    return answer


def _tools(gateway: Gateway) -> Handler:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        generation = gateway.generation
        shown = [_tool(generation, endpoint) for endpoint in generation.visible(CONSOLE, None)]
        return json_response({"contract": generation.contract.digest, "tools": shown})

    return answer


def _tool(generation: Generation, endpoint: Endpoint) -> dict[str, Any]:
    tool = endpoint.tool
    assert tool is not None
    listed = generation.catalog(CONSOLE, None).by_name[tool.name]
    return {
        "name": tool.name,
        "title": listed.title,
        "description": listed.description,
        "request": f"{endpoint.method} {endpoint.path}",
        "backend": endpoint.backend,
        "surfaces": [surface for surface in TOOL_SURFACES if surface in endpoint.expose],
        "safety_tier": tool.safety_tier or "write",
        "asks_first": tool.mcp is not None and tool.mcp.confirm is not None,
        "view": _view(endpoint),
        "scopes": sorted(endpoint.scopes),
        "input": listed.input_schema,
        "examples": [{"title": each.title, "arguments": dict(each.arguments)} for each in endpoint.examples],
    }


def _view(endpoint: Endpoint) -> str:
    view = endpoint.tool.view if endpoint.tool is not None else None
    if endpoint.kind == "media":
        return "media"
    if view is None:
        return "full"
    return "projection" if view.project is not None else "slice" if view.output is not None else "defaults"


def _trying(gateway: Gateway) -> Handler:
    async def try_tool(request: web.BaseRequest) -> web.StreamResponse:
        if (refused := _foreign(request)) is not None:
            return refused
        generation = gateway.generation
        limit = generation.contract.gateway.limits.body
        body = await read_body(request, limit)
        if body is None:
            return too_large(limit)
        asked = json_text.parse(body)
        if not isinstance(asked, dict) or set(asked) != {"tool", "arguments"}:
            return problem(400, "bad_request", "The body is one JSON object with `tool` and `arguments`.")
        tool, arguments = asked["tool"], asked["arguments"]
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            return problem(400, "bad_request", "`tool` is a name, and `arguments` is an object.")
        call = Call(
            tool, arguments, CONSOLE, new_call_id(), scopes=scopes_of(request), caller=caller_of(request), keep=True
        )
        outcome = await gateway.run(call, generation)
        if outcome.full_bytes + outcome.view_bytes <= _ASIDE and len(outcome.full or b"") <= _ASIDE:
            return json_response(tried(outcome, generation))
        return json_response(await asyncio.to_thread(tried, outcome, generation))

    return try_tool


def _foreign(request: web.BaseRequest) -> web.Response | None:
    """Refuses what a page of another origin can send: browsers say where a request comes from, and no page can lie
    there; and none can send JSON elsewhere without asking first. The listener has looked at `Origin` and `Host`."""
    if any(site != "same-origin" for site in request.headers.getall("Sec-Fetch-Site", ())):
        return problem(403, "origin_refused", "Only the console's own page may try a tool.")
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        return problem(415, "unsupported_media_type", "The body is JSON, and its Content-Type is application/json.")
    return None


def tried(outcome: Outcome, generation: Generation) -> dict[str, Any]:
    """One call as the page shows it: the full answer beside the card, what was dropped, and no secret of a backend."""
    from gateway.surfaces.console import panes  # likewise

    endpoint = generation.find(outcome.call.tool, CONSOLE, outcome.call.scopes)
    hide = _hiding(() if endpoint is None else _spelled(generation.contract.backends[endpoint.backend]))
    shows_json = outcome.body is not None and outcome.media_type is None
    card = json_text.parse(outcome.body) if outcome.body is not None and shows_json else None
    full: panes.Pane | None = None
    if outcome.full is not None:
        value = json_text.parse(outcome.full)
        projects = endpoint is not None and _view(endpoint) == "projection"
        compare = panes.projected if projects else panes.sliced
        full = compare(value, card, hide) if shows_json else panes.pane(value, hide)
    undeclared = Counter(_INDEX.sub("[]", path) for path in outcome.stripped)
    return {
        "ok": outcome.ok,
        "code": outcome.code,
        "call_id": outcome.call.call_id,
        "seconds": outcome.duration,
        "backend_seconds": outcome.backend_seconds,
        "projection_seconds": outcome.projection_seconds,
        "media_type": outcome.media_type,
        "full_bytes": outcome.full_bytes,
        "card_bytes": outcome.view_bytes,
        "accepted": None if outcome.accepted is None else json_text.encode(outcome.accepted).decode(),
        "violations": list(outcome.violations[:_PATHS]),
        "undeclared": [[hide(path), count] for path, count in undeclared.most_common(_PATHS)],
        "undeclared_count": len(outcome.stripped),
        "failure": None if outcome.failure is None else _lines(panes.pane(outcome.envelope(), hide)),
        "full": None if full is None else _lines(full),
        "card": _lines(panes.pane(card, hide)) if shows_json else None,
    }


def _lines(pane: panes.Pane) -> dict[str, Any]:
    lines = [[line.text, line.dropped] for line in pane.lines]
    return {"lines": lines, "cut": pane.cut, "values": pane.values, "kept": pane.kept}


def _spelled(backend: Backend) -> tuple[str, ...]:
    """A backend's credentials as they may stand in JSON text."""
    known = credentials(backend)
    return tuple(dict.fromkeys((*(json_text.encode(secret).decode()[1:-1] for secret in known), *known)))


def _hiding(secrets: tuple[str, ...]) -> panes.Hide:
    def hide(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "(left out)")
        return text

    return hide
