"""Published descriptions come over whole, as far as a contract has words for them. CAT-13: Swagger 2.0 among them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from gateway.authoring.openapi.importing import Choice, Imported, import_openapi
from gateway.contract.load import load
from gateway.contract.model import Contract
from tests.authoring.openapi.test_malformed import DESCRIPTIONS


def imported(name: str, folder: Path, **choice: Any) -> tuple[Imported, Contract]:
    result = import_openapi(str(DESCRIPTIONS / name), io.BytesIO(), Choice(**choice))
    assert isinstance(result, Imported), result
    (folder / "gateway.yaml").write_text(result.contract)
    contract = load(folder / "gateway.yaml", {})
    assert isinstance(contract, Contract), "\n".join(map(str, contract))
    assert contract.warnings == ()
    return result, contract


@pytest.mark.parametrize(
    ("name", "operations", "tools", "notes"),
    [
        ("alertmanager-v2.swagger2.yaml", 9, 6, 1),
        ("petstore2.swagger2.yaml", 20, 8, 6),
        ("petstore3.oas30.yaml", 19, 8, 6),
        ("swashbuckle-nullable.oas30.json", 2, 2, 3),
        ("swashbuckle-basic.oas31.json", 35, 13, 11),
    ],
)
def test_every_operation_comes_over(name: str, operations: int, tools: int, notes: int, tmp_path: Path) -> None:
    result, contract = imported(name, tmp_path)
    assert (result.operations, result.endpoints, result.tools) == (operations, operations, tools)
    assert len(contract.endpoints) == operations
    assert len([each for each in contract.endpoints.values() if each.tool]) == tools
    assert len(result.notes) == notes, result.notes


def test_swagger_2_is_converted(tmp_path: Path) -> None:
    """CAT-13: definitions, body and formData, collectionFormat, basePath and schemes."""
    result, contract = imported("alertmanager-v2.swagger2.yaml", tmp_path, all=True)
    assert result.notes == ("#/host: the description names no host; write where the API is",)
    (backend,) = contract.backends.values()
    assert backend.url == "http://127.0.0.1:8000/api/v2"  # basePath is all that it says
    silences = contract.endpoints["getSilences"]
    request = silences.request.build({"filter": ['a="b"', "c"], "active": False})
    assert getattr(request, "target", None) == "/api/v2/silences?filter=a%3D%22b%22&filter=c&active=false"
    posted = contract.endpoints["postSilences"]
    assert posted.input.required == {"matchers", "startsAt", "endsAt", "createdBy", "comment"}
    assert contract.endpoints["postAlerts"].request.whole == "alerts"
    output = contract.endpoints["getAlerts"].output
    assert output is not None
    assert not output.valid([{"labels": {}}])

    _, contract = imported("petstore2.swagger2.yaml", tmp_path, all=True)
    (backend,) = contract.backends.values()
    assert backend.url == "http://petstore.swagger.io/v2"
    form = contract.endpoints["updatePetWithForm"].request.build({"petId": 3, "name": "a b"})
    assert getattr(form, "body", None) == b"name=a+b"
    assert contract.endpoints["uploadFile"].kind == "multipart"


def test_what_is_written_is_made_for_people(tmp_path: Path) -> None:
    text = imported("petstore3.oas30.yaml", tmp_path, only=("getPetById", "deletePet"))[0].contract
    assert text.partition("\nendpoints:\n")[2] == EXPECTED


EXPECTED = """\
  getPetById:
    request: GET /pet/{petId}
    description: Returns a single pet.
    title: Find pet by ID.
    expose: [http, mcp, agent, cli]
    input:
      type: object
      required: [petId]
      properties:
        petId: {type: integer, description: ID of pet to return, format: int64}
    output: {$ref: "#/schemas/Pet"}
    tool:
      safety_tier: read
      # view: {output: …} # the part of the answer that a model needs

  # `api_key` is the credential `api_key`, which the backend's `auth` sends
  deletePet:
    request: DELETE /pet/{petId}
    description: Delete a pet.
    title: Deletes a pet.
    expose: [http, mcp, agent, cli]
    input:
      type: object
      required: [petId]
      properties:
        petId: {type: integer, description: Pet id to delete, format: int64}
    tool:
      safety_tier: write
"""
