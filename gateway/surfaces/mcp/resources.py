"""The cards of tools as resources: listed, read, and not there for whoever may not see their tools. Pure."""

from __future__ import annotations

from typing import Any

from gateway import json_text
from gateway.surfaces.mcp import wire
from gateway.surfaces.mcp.answers import Listing
from gateway.surfaces.mcp.wire import ListResources, ReadResource, Refusal

Json = Any

#: MCP Apps: the one kind of page that hosts show.
CARD_TYPE = "text/html;profile=mcp-app"


def answer(message: ListResources | ReadResource, listing: Listing) -> bytes | Refusal:
    """The result; where no visible tool has a card there are no such methods, as the capabilities say."""
    if not listing.cards:
        return _refusal(message, wire.METHOD_NOT_FOUND, "Method not found")
    if isinstance(message, ListResources):
        return _listed(message, listing)
    if message.uri is None:
        return _refusal(message, wire.INVALID_PARAMS, "params.uri must be the URI of a resource")
    card = listing.cards.get(message.uri)
    if card is None:
        code = wire.INVALID_PARAMS if message.modern else wire.RESOURCE_NOT_FOUND
        return _refusal(message, code, "Resource not found", {"uri": message.uri})
    contents = [{"uri": card.uri, "mimeType": CARD_TYPE, "text": card.html}]
    return listing.page(b'"contents":' + json_text.encode(contents), modern=message.modern)


def _listed(message: ListResources, listing: Listing) -> bytes | Refusal:
    if message.fault is not None:
        return _refusal(message, wire.INVALID_PARAMS, message.fault)
    if message.templates:
        return listing.page(b'"resourceTemplates":[]', modern=message.modern)
    entries = [
        {
            "uri": uri,
            "name": card.file,
            "description": "Shows the answers of " + ", ".join(_shown_by(uri, listing)),
            "mimeType": CARD_TYPE,
            "size": len(card.html.encode()),
        }
        for uri, card in listing.cards.items()
    ]
    return listing.page(b'"resources":' + json_text.encode(entries), modern=message.modern)


def _shown_by(uri: str, listing: Listing) -> list[str]:
    """The tools of a card that the principal may know of."""
    return [tool.name for tool in listing.catalog.tools if tool.card is not None and tool.card.uri == uri]


def _refusal(message: ListResources | ReadResource, code: int, text: str, data: Json = None) -> Refusal:
    return Refusal(message.id, wire.status_of(code, modern=message.modern), code, text, data)
