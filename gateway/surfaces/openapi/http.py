"""`GET /openapi.json` of a listener: the description of its routes, as it is shipped. Knows no contract."""

from __future__ import annotations

from functools import cache
from typing import Literal

from aiohttp import web

from gateway.surfaces.http import Routes

PATH = "/openapi.json"


def openapi_routes(listener: Literal["tools", "admin"]) -> Routes:
    """The same bytes for whoever the listener lets in: what it says is no secret, and a scan begins here."""

    async def describe(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=description(listener), headers={"Content-Type": "application/json"})

    return Routes({PATH: {"GET": describe}})


@cache
def description(listener: str) -> bytes:
    """The description as it is shipped."""
    from importlib import resources  # it is rarely asked for, and a start is always in a hurry

    return resources.files(__package__).joinpath(f"{listener}.json").read_bytes()
