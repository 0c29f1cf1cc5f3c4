"""The catalog surface: OpenWOP's tool list, discovery, the served OpenAPI document. Knows HTTP and descriptors only.

Every body is made once per generation and set of visible tools, so the same request gets the same bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from gateway.catalog.descriptors import Described, discovery, listing
from gateway.catalog.openapi import openapi
from gateway.gateway import Gateway
from gateway.generation import Catalog, Generation, may_use
from gateway.record import record
from gateway.surfaces.http import Handler, Routes, json_response, problem, scopes_of

#: The catalog lists what MCP lists.
SURFACE = "mcp"
TOOLS = "/v1/tools"
TOOL = "/v1/tools/"
DISCOVERY = "/.well-known/openwop"
OPENAPI = "/v1/openapi.json"

_VIEWS = ("standard", "compact")
_CATALOG_HEADER = "Toolview-Catalog"
_PRIVATE = {"Cache-Control": "private, max-age=0, must-revalidate", "Vary": "Authorization"}
_PUBLIC = {"Cache-Control": "public, max-age=300"}
_KEPT = 256
_WARM = 16

Scopes = frozenset[str] | None


@record
class Page:
    """A body, and the strong tag that names its bytes."""

    body: bytes
    tag: str


class Pages:
    """Everything this surface says of one generation, each made when first asked for and kept."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        contract = generation.contract
        self.settings = contract.gateway.catalog
        self._tools = generation.described(SURFACE)
        self._names = {tool.tool_id: name for name, tool in self._tools.items()}
        self._kept: dict[tuple[Any, ...], Page] = {}
        # What anyone may see decides, so that a tool nobody is shown moves no byte of what is public.
        anyone = None if contract.gateway.auth is None else frozenset[str]()
        self.discovery = _page(
            discovery(contract, {"mcp", *(tool.source for tool in self._shown(self.catalog(anyone)))})
        )

    def catalog(self, scopes: Scopes) -> Catalog:
        return self.generation.catalog(SURFACE, scopes)

    def listed(self, scopes: Scopes, *, compact: bool, source: str | None) -> Page:
        """The list that a principal sees, of one source where one is asked for."""
        catalog = self.catalog(scopes)

        def made() -> bytes:
            shown = [tool for tool in self._shown(catalog) if source in (None, tool.source)]
            return listing(shown, compact=compact, bare=self.settings.list == "array")

        # Only sources that exist tell lists apart, so that callers cannot fill the store.
        known = source if source is None or any(tool.source == source for tool in self._tools.values()) else ""
        return self._once(("list", catalog.digest, tuple(catalog.by_name), compact, known), made)

    def one(self, scopes: Scopes, tool_id: str, *, compact: bool) -> Page | None:
        """One tool's descriptor, where the principal may know of it."""
        name = self._names.get(tool_id)
        if name is None or name not in self.catalog(scopes).by_name:
            return None
        tool = self._tools[name]
        return self._once(("one", name, compact), lambda: tool.compact if compact else tool.standard)

    async def openapi(self, scopes: Scopes) -> Page:
        """The endpoints that expose http and that a principal may know of; large ones are written beside the loop."""
        endpoints = [each for each in self.generation.contract.endpoints.values() if may_use(each, scopes)]
        key = ("openapi", tuple(each.id for each in endpoints))
        if key not in self._kept:
            body = await asyncio.to_thread(openapi, self.generation.contract, endpoints)
            return self._once(key, lambda: body)
        return self._kept[key]

    def warm(self) -> None:
        """Make the lists of the principals that the contract names, so that no first caller waits for them."""
        auth = self.generation.contract.gateway.auth
        named: list[Scopes] = [None] if auth is None else [frozenset(key.scopes) for key in auth.keys]
        for scopes in list(dict.fromkeys(named))[:_WARM]:
            for compact in (False, True):
                self.listed(scopes, compact=compact, source=None)

    def _shown(self, catalog: Catalog) -> list[Described]:
        return sorted((self._tools[name] for name in catalog.by_name), key=lambda tool: tool.tool_id)

    def _once(self, key: tuple[Any, ...], make: Callable[[], bytes]) -> Page:
        page = self._kept.get(key)
        if page is None:
            if len(self._kept) >= _KEPT + 2 * len(self._tools):
                self._kept.clear()
            page = self._kept[key] = _page(make())
        return page


def catalog_routes(gateway: Gateway) -> Routes:
    """`GET /v1/tools`, `/v1/tools/{toolId}`, `/.well-known/openwop`, `/v1/openapi.json`; the last two to anyone."""
    made = [Pages(gateway.generation)]
    made[0].warm()

    def pages() -> Pages:
        if made[0].generation is not gateway.generation:
            made[0] = Pages(gateway.generation)
        return made[0]

    async def list_tools(request: web.BaseRequest) -> web.StreamResponse:
        known, scopes = pages(), scopes_of(request)
        compact = _compact(request, known)
        if compact is None:
            return _unknown_view()
        page = known.listed(scopes, compact=compact, source=request.query.get("source"))
        return _answer(request, page, {**_PRIVATE, _CATALOG_HEADER: known.catalog(scopes).digest})

    async def get_tool(request: web.BaseRequest) -> web.StreamResponse:
        known, scopes = pages(), scopes_of(request)
        compact = _compact(request, known)
        if compact is None:
            return _unknown_view()
        headers = {**_PRIVATE, _CATALOG_HEADER: known.catalog(scopes).digest}
        page = known.one(scopes, request.path[len(TOOL) :], compact=compact)
        if page is None:  # the same for a tool that is not there and one that is not for this principal
            return problem(404, "not_found", "There is no tool of this id.", headers)
        return _answer(request, page, headers)

    async def discover(request: web.BaseRequest) -> web.StreamResponse:
        return _answer(request, pages().discovery, _PUBLIC)

    async def describe_http(request: web.BaseRequest) -> web.StreamResponse:
        return _answer(request, await pages().openapi(scopes_of(request)), _PRIVATE)

    exact: dict[str, dict[str, Handler]] = {
        TOOLS: {"GET": list_tools},
        DISCOVERY: {"GET": discover},
        OPENAPI: {"GET": describe_http},
    }
    return Routes(exact, {TOOL: {"GET": get_tool}}, frozenset({DISCOVERY, OPENAPI}))


def _compact(request: web.BaseRequest, pages: Pages) -> bool | None:
    """Whether the compact view is asked for; None where `view` is no view. Where it is off, `view` is ignored."""
    if not pages.settings.compact:
        return False
    views = set(request.query.getall("view", ["standard"]))
    return views == {"compact"} if len(views) == 1 and views <= set(_VIEWS) else None


def _unknown_view() -> web.Response:
    message = "`view` is `standard` or `compact`."
    return json_response({"error": "validation_error", "message": message, "details": {"view": list(_VIEWS)}}, 400)


def _answer(request: web.BaseRequest, page: Page, headers: Mapping[str, str]) -> web.Response:
    """The page, or 304 where the client has these very bytes (RFC 9110 section 13.1.2)."""
    headers = {**headers, "ETag": page.tag}
    asked = ",".join(request.headers.getall("If-None-Match", ()))
    tags = [tag.strip().removeprefix("W/") for tag in asked.split(",")]
    if page.tag in tags or "*" in tags:
        return web.Response(status=304, headers=headers)
    return json_response(None, body=page.body, headers=headers)


def _page(body: bytes) -> Page:
    return Page(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
