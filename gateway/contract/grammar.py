"""The grammar of a contract file as JSON Schema, for editors and `toolview schema`; drawn from the model alone."""

from __future__ import annotations

from typing import Any

from gateway.contract.model import BodyWritten, ContractWritten, SendWritten

Json = Any

_META = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Json]:
    """The JSON Schema (2020-12) of the contract's file, as close as JSON Schema can say it; `check` knows more."""
    drawn: dict[str, Json] = _without_nulls(ContractWritten.model_json_schema(by_alias=True))
    definitions: dict[str, Json] = drawn.pop("$defs")
    for shape in (SendWritten, BodyWritten):
        own = _without_nulls(shape.model_json_schema(by_alias=True))
        definitions.update(own.pop("$defs", {}))
        definitions[shape.__name__] = own
    schema = {"anyOf": [{"type": "object", "$ref": _META}, {"type": "boolean"}]}
    properties = drawn["properties"]
    properties["version"] = {"const": 1, "description": "always 1"}
    _describe(properties["schemas"], {"additionalProperties": schema})
    endpoint = definitions["EndpointWritten"]["properties"]
    _describe(endpoint["input"], {"type": "object", "$ref": _META})
    _describe(
        endpoint["output"],
        {"anyOf": [schema, {"type": "object", "patternProperties": {"^2(\\d\\d|XX)$": schema}}]},
    )
    send = definitions["SendWritten"]
    body = {"anyOf": [{"$ref": "#/$defs/BodyWritten"}, {"$ref": "#/$defs/SendWritten"}]}
    _describe(endpoint["send"], {"type": "object", "properties": {"body": body}, "additionalProperties": send})
    _describe(definitions["ViewWritten"]["properties"]["output"], schema)
    _shorten(
        definitions["BackendWritten"]["properties"], "passthrough", definitions["Passthrough"]["properties"]["listen"]
    )
    _shorten(definitions["ViewWritten"]["properties"], "budget", definitions["BudgetWritten"]["properties"]["bytes"])
    return {"$schema": _META, "title": "Toolview contract", **drawn, "$defs": definitions}


def _describe(field: dict[str, Json], schema: Json) -> None:
    """Gives a field that the model leaves open the schema it has, and keeps its description."""
    said = field.get("description")
    field.clear()
    field.update({"description": said, **schema})


def _shorten(properties: dict[str, Json], key: str, short: dict[str, Json]) -> None:
    """A group that may also be written as one scalar."""
    field = properties[key]
    said = field.pop("description")
    scalar = {name: value for name, value in short.items() if name not in ("description", "title")}
    properties[key] = {"description": said, "anyOf": [scalar, field]}


def _without_nulls(node: Json) -> Json:
    """Keys may be left out but never be null: the model's `None` is the absence of a key."""
    if isinstance(node, list):
        return [_without_nulls(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _without_nulls(item)
        for key, item in node.items()
        if not (key == "default" and (item is None or isinstance(item, (dict, list))))
        and not (key == "title" and isinstance(item, str))
    }
    members = kept.get("anyOf")
    if isinstance(members, list):
        members = [member for member in members if member != {"type": "null"}]
        if len(members) == 1 and isinstance(members[0], dict):
            del kept["anyOf"]
            return {**members[0], **kept}
    return kept
