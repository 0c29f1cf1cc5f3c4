"""What a tool says of itself, the same on every surface that lists it, and the digest of a whole catalog. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gateway import json_text
from gateway.catalog.positions import DEFINITIONS, rebuilt
from gateway.catalog.publish import published, with_default
from gateway.record import record

if TYPE_CHECKING:
    from gateway.contract.model import Card, Endpoint, View
    from gateway.schema import Schema

Json = Any


@record
class Advertised:
    """One tool as it is listed; its schemas are self-contained and as wide as what is checked, or wider."""

    name: str
    title: str | None
    description: str
    input_schema: dict[str, Json]
    #: None where the tool answers nothing or a file.
    output_schema: dict[str, Json] | None
    #: Whether the answer stands under `result`, since its own root need not be an object.
    wrapped: bool
    annotations: Mapping[str, Json]
    #: What hosts show its answers in; it moves no digest.
    card: Card | None = None

    def mcp(self, *, output_schema: bool = True, card: bool = False) -> dict[str, Json]:
        """The tool as MCP lists it; what it does not have, or is not asked for, is absent, never null.

        Its card is named where it can be read as well.
        """
        entry: dict[str, Json] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema if output_schema else None,
            "annotations": dict(self.annotations) or None,
            "_meta": _meta(self.card) if card and self.card is not None else None,
        }
        return {key: value for key, value in entry.items() if value is not None}


def advertise(endpoint: Endpoint) -> Advertised:
    """What the tool of an endpoint says of itself; the endpoint reaches a tool surface, so it has one."""
    tool = endpoint.tool
    assert tool is not None
    outputs = [] if endpoint.kind == "media" else _shown_outputs(endpoint, tool.view)
    wrapped = not all(schema.is_object for schema in outputs)
    documents = [schema.document for schema in outputs]
    return Advertised(
        name=tool.name,
        title=tool.title or endpoint.title,
        description=endpoint.description.strip(),
        input_schema=_input(endpoint, tool.view),
        output_schema=published(documents, portable=True, wrapped=wrapped) if outputs else None,
        wrapped=wrapped,
        annotations=tool.annotations,
        card=tool.ui,
    )


def catalog_digest(tools: Sequence[Advertised]) -> str:
    """16 hex of SHA-256 over what the tools say of themselves, sorted by name; no order but that of lists moves it."""
    return json_text.digest(
        [
            {
                "name": tool.name,
                "description": tool.description,
                "input": unordered(tool.input_schema),
                "output": unordered(tool.output_schema),
                "annotations": dict(tool.annotations),
            }
            for tool in sorted(tools, key=lambda tool: tool.name)
        ]
    )


def _meta(card: Card) -> dict[str, Json]:
    """How MCP Apps binds a tool to its card; the flat key is what hosts read before there was the other."""
    said: dict[str, Json] = {"resourceUri": card.uri}
    if set(card.visibility) != {"model", "app"}:
        said["visibility"] = list(card.visibility)
    return {"ui": said, "ui/resourceUri": card.uri}


def _input(endpoint: Endpoint, view: View | None) -> dict[str, Json]:
    """The input with each view default shown, and its argument no longer required."""
    defaults = view.defaults if view is not None else {}
    if not defaults:
        return published([endpoint.input.document], portable=False)
    shown = published([endpoint.input.optional(tuple(defaults))], portable=False)
    properties = dict(shown.get("properties", {}))
    for name, value in defaults.items():
        # An argument that is declared behind a reference gets its default beside it.
        properties[name] = with_default(properties.get(name, True), value)
    return {**shown, "properties": properties}


def _shown_outputs(endpoint: Endpoint, view: View | None) -> list[Schema]:
    """The schemas that an answer may keep: the view's, else those declared for the statuses, each once."""
    if view is not None and view.output is not None:
        return [view.output]
    distinct: list[Schema] = []
    for schema in endpoint.outputs.values():
        if all(schema.document != known.document for known in distinct):
            distinct.append(schema)
    return distinct


def unordered(schema: Json) -> Json:
    """A schema with `required`, whose order says nothing, in order."""
    if not isinstance(schema, dict):
        return schema
    ordered = {keyword: rebuilt(keyword, value, unordered) for keyword, value in schema.items()}
    for keyword in DEFINITIONS & ordered.keys():
        ordered[keyword] = {name: unordered(inner) for name, inner in ordered[keyword].items()}
    if isinstance(required := ordered.get("required"), list):
        ordered["required"] = sorted(required)
    return ordered
