"""Projections of the demo directory: functions from full answer to shown; no I/O, nothing of the gateway."""

from __future__ import annotations

from typing import Any


def cards(full: dict[str, Any], ctx: Any) -> dict[str, Any]:
    """A card for each hit of a search, with the fields in which the text that was asked for stands."""
    query = ctx.input["query"].casefold()
    return {"total": full["total"], "people": [_card(person, query) for person in full["people"]]}


def _card(person: dict[str, Any], query: str) -> dict[str, Any]:
    texts = {field: person[field] for field in ("name", "title", "office")}
    texts["tags"] = "\n".join(tag["label"] for tag in person["tags"])
    return {
        "id": str(person["id"]),
        "name": person["name"],
        "title": person["title"],
        "team": person["team"],
        "found_in": [field for field, text in texts.items() if query in text.casefold()],
    }
