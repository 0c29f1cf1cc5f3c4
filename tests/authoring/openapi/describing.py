"""What the tests of `import openapi` stand on: small descriptions in each version, and the contract of one."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.authoring.openapi.importing import Choice, Imported, Refused, import_openapi
from gateway.contract.document import Marks, read_yaml
from gateway.contract.load import load
from gateway.contract.model import Contract

Json = Any


@dataclass(frozen=True)
class Made:
    """A contract as text, as data, and as it loads."""

    imported: Imported
    written: dict[str, Json]
    contract: Contract

    @property
    def notes(self) -> tuple[str, ...]:
        return self.imported.notes

    def endpoint(self, name: str = "op") -> dict[str, Json]:
        found: dict[str, Json] = self.written["endpoints"][name]
        return found


def made(folder: Path, description: Json, choice: Choice | None = None) -> Made:
    """The contract of a description that must be imported; loading it again must not tell anything else."""
    imported = tried(folder, description, choice)
    assert isinstance(imported, Imported), imported
    file = folder / "imported.yaml"
    file.write_text(imported.contract)
    contract = load(file, {})
    assert isinstance(contract, Contract), "\n".join(map(str, contract))
    document = read_yaml(imported.contract.encode(), "imported.yaml", Marks())
    assert document.refusals == ()
    return Made(imported, document.value, contract)


def tried(folder: Path, description: Json, choice: Choice | None = None) -> Imported | Refused:
    file = folder / "description.json"
    file.write_bytes(description if isinstance(description, bytes) else json.dumps(description).encode())
    return import_openapi(str(file), io.BytesIO(), choice or Choice(all=True))


def v2(operation: Json, path: str = "/things", method: str = "get", **root: Json) -> dict[str, Json]:
    """A description in Swagger 2.0 with one operation."""
    return {
        "swagger": "2.0",
        "info": {"title": "Things", "version": "1"},
        "host": "things.example",
        "paths": {path: {method: {"operationId": "op", "responses": {"200": {"description": "Ok."}}, **operation}}},
        **root,
    }


def v3(
    operation: Json, path: str = "/things", method: str = "get", version: str = "3.0.3", **root: Json
) -> dict[str, Json]:
    """A description in OpenAPI 3 with one operation."""
    return {
        "openapi": version,
        "info": {"title": "Things", "version": "1"},
        "servers": [{"url": "https://things.example"}],
        "paths": {path: {method: {"operationId": "op", "responses": {"200": {"description": "Ok."}}, **operation}}},
        **root,
    }


def answering(schema: Json, **root: Json) -> dict[str, Json]:
    """OpenAPI 3.0 with one operation that answers this."""
    version = root.pop("version", "3.0.3")
    answers = {"200": {"description": "Ok.", "content": {"application/json": {"schema": schema}}}}
    return v3({"responses": answers}, version=version, **root)


def taking(schema: Json, *, method: str = "post", required: bool = True, **root: Json) -> dict[str, Json]:
    """OpenAPI 3.0 with one operation that takes this as its JSON body."""
    body = {"required": required, "content": {root.pop("media", "application/json"): {"schema": schema}}}
    version = root.pop("version", "3.0.3")
    return v3({"requestBody": body}, method=method, version=version, **root)
