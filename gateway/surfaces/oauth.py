"""What OAuth clients are told of this gateway as a protected resource (RFC 9728). Knows HTTP and scopes, no token."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import web

from gateway.contract.model import Contract
from gateway.surfaces.http import Handler, Routes, json_response, nothing_there
from gateway.surfaces.principals import METADATA, Principals

#: A client derives the path from the URL it was given: the bare one, or the one with the resource's own path.
_OF_MCP = METADATA + "/mcp"


def oauth_routes(contract: Callable[[], Contract], principals: Callable[[], Principals | None]) -> Routes:
    """`GET /.well-known/oauth-protected-resource` and its path form, to anyone; nothing without `auth.oauth`."""

    async def describe(request: web.BaseRequest) -> web.StreamResponse:
        auth, known = contract().gateway.auth, principals()
        if auth is None or auth.oauth is None or known is None:
            return nothing_there()
        own = METADATA + urlsplit(auth.oauth.resource).path.rstrip("/")
        if request.path not in (METADATA, _OF_MCP, own):
            return nothing_there()
        told = {
            "resource": auth.oauth.resource,
            "authorization_servers": list(auth.oauth.authorization_servers),
            "bearer_methods_supported": ["header"],
            **({"scopes_supported": list(known.scopes)} if known.scopes else {}),
        }
        return json_response(told, headers={"Cache-Control": "public, max-age=300"})

    gets: dict[str, Handler] = {"GET": describe}
    exact = {METADATA: gets, _OF_MCP: gets}
    auth = contract().gateway.auth
    if auth is not None and auth.oauth is not None:  # a resource under more than one segment has a longer path
        exact[METADATA + urlsplit(auth.oauth.resource).path.rstrip("/")] = gets
    return Routes(exact, {METADATA + "/": gets}, frozenset(exact))
