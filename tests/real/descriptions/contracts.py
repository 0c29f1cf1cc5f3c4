"""A contract with one endpoint for each described resource, written from an extract; knows nothing of the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.real.descriptions.translate import SCHEMAS, Null, translate

Json = Any

EXTRACTS = Path(__file__).parent.parent.parent / "data" / "openapi"
OBSERVED = ".observed"


def schemas(extract: str, null: Null) -> dict[str, Json]:
    """The schemas of an extract, as a contract may hold them."""
    described = json.loads((EXTRACTS / f"{extract}.json").read_bytes())
    return {name: translate(schema, null) for name, schema in described.items()}


def card(schema: Json, *names: str) -> Json:
    """A slice of these fields as far as a schema declares them, each required where the schema requires it."""
    declared = schema.get("properties", {name: {"type": "string"} for name in names})
    return {
        "type": "object",
        "required": [name for name in names if name in schema.get("required", ())],
        "properties": {name: {"type": declared[name]["type"]} for name in names if name in declared},
    }


def endpoint(request: str, output: Json, view: Json, validate: str) -> Json:
    return {
        "request": request,
        "description": "As it is described.",
        "output": output,
        "validate": validate,
        "tool": {"safety_tier": "read", "view": {"output": view}},
    }


def stripe(names: Iterable[str], null: Null) -> Json:
    """Each resource at `/NAME`, as a card of its `id` and `object`: strict, and observed under `NAME.observed`."""
    described = schemas("stripe", null)
    endpoints = {}
    for name in names:
        request, output = f"GET /{name}", {"$ref": SCHEMAS + name}
        view = card(described[name], "id", "object")
        endpoints[name] = endpoint(request, output, view, "strict")
        endpoints[name + OBSERVED] = endpoint(request, output, view, "observe")
    return contract(described, endpoints)


def jira(null: Null) -> Json:
    """The list of projects, as cards of `key` and `name`."""
    described = schemas("jira", null)
    rows = {"type": "array", "items": {"$ref": SCHEMAS + "Project"}}
    cards = {"type": "array", "items": card(described["Project"], "key", "name")}
    return contract(described, {"projects": endpoint("GET /rest/api/3/project", rows, cards, "strict")})


def contract(described: Json, endpoints: Json) -> Json:
    return {
        "version": 1,
        "backends": {"described": {"url": "http://127.0.0.1:9"}},
        "schemas": described,
        "endpoints": endpoints,
    }


def write(folder: Path, document: Json) -> Path:
    """The contract as a file; what is JSON is YAML too."""
    path = folder / "gateway.yaml"
    path.write_text(json.dumps(document, indent=1))
    return path
