"""An imported contract served to a real backend: every argument lands where the description says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from gateway.authoring.openapi.importing import Choice
from tests.authoring.openapi.describing import made, v2, v3
from tests.rig import backend, http, running

Json = Any
TEXTS = {"type": "array", "items": {"type": "string"}}
SWAGGER = {
    "parameters": [
        {"name": "id", "in": "path", "required": True, "type": "string"},
        {"name": "multi", "in": "query", **TEXTS, "collectionFormat": "multi"},
        {"name": "csv", "in": "query", **TEXTS, "collectionFormat": "csv"},
        {"name": "pipes", "in": "query", **TEXTS, "collectionFormat": "pipes"},
        {"name": "page[size]", "in": "query", "type": "integer", "default": 10},
        {"name": "X-Request-Tags", "in": "header", **TEXTS},
        {"name": "id", "in": "formData", "type": "string"},
        {"name": "tags", "in": "formData", **TEXTS, "collectionFormat": "multi"},
    ],
    "consumes": ["application/x-www-form-urlencoded"],
    "responses": {"200": {"description": "Ok.", "schema": {"$ref": "#/definitions/Done"}}},
}
DONE = {"type": "object", "required": ["done"], "properties": {"done": {"type": "boolean", "x-nullable": True}}}
OPENAPI = {
    "parameters": [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "deep", "in": "query", "style": "deepObject", "explode": True, "schema": {"type": "object"}},
        {
            "name": "page",
            "in": "query",
            "schema": {"properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}},
        },
        {"name": "as", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
        {"name": "at", "in": "query", "allowReserved": True, "schema": {"type": "string"}},
        {"name": "session", "in": "cookie", "schema": {"type": "string"}},
    ],
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
    },
    "responses": {"200": {"description": "Ok.", "content": {"application/json": {"schema": TEXTS}}}},
}
THING = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string", "nullable": True}, "size": {"type": "integer"}},
}


def test_a_call_of_swagger_2(tmp_path: Path) -> None:
    """CAT-13: path, header, formData, and a list in each `collectionFormat`."""
    description = v2(SWAGGER, "/things/{id}", "post", basePath="/v1", definitions={"Done": DONE})

    async def call() -> None:
        async with backend(http({"done": None, "secret": "stays here"})) as api:
            description["host"] = api.url.removeprefix("http://")
            contract = made(tmp_path, description, Choice(all=True)).contract
            arguments = {
                "id": "a/b",
                "multi": ["x", "y"],
                "csv": ["x", "y"],
                "pipes": ["x", "y"],
                "X-Request-Tags": ["p", "q"],
                "body_id": "i d",
                "tags": ["t", "u"],
            }
            async with running(contract) as gateway:
                outcome = await gateway.call("op", arguments)
            assert outcome.failure is None, outcome.failure
            assert outcome.value == {"done": None}
            (received,) = api.received
            assert received.method == "POST"
            assert received.target == ("/v1/things/a%2Fb?multi=x&multi=y&csv=x,y&pipes=x%7Cy&page%5Bsize%5D=10")
            assert received.header("X-Request-Tags") == "p,q"
            assert received.header("Content-Type") == "application/x-www-form-urlencoded"
            assert parse_qsl(received.body.decode()) == [("id", "i d"), ("tags", "t"), ("tags", "u")]

    asyncio.run(call())


def test_a_call_of_openapi_3(tmp_path: Path) -> None:
    description = v3(OPENAPI, "/things/{id}", "put", components={"schemas": {"Thing": THING}})

    async def call() -> None:
        async with backend(http(["a", "b"])) as api:
            contract = made(tmp_path, description, Choice(url=f"{api.url}/v2", only=("op",))).contract
            arguments = {
                "id": 7,
                "deep": {"a": 1, "b": "x"},
                "from": 1,
                "to": 2,
                "as": {"c": [1]},
                "at": "/x:y",
                "session": "s1",
                "body_id": None,
                "size": 3,
            }
            async with running(contract) as gateway:
                outcome = await gateway.call("op", arguments)
            assert outcome.failure is None, outcome.failure
            assert outcome.value == ["a", "b"]
            (received,) = api.received
            assert received.method == "PUT"
            assert received.target == (
                "/v2/things/7?deep%5Ba%5D=1&deep%5Bb%5D=x&from=1&to=2&as=%7B%22c%22%3A%5B1%5D%7D&at=/x:y"
            )
            assert received.header("Cookie") == "session=s1"
            assert json.loads(received.body) == {"id": None, "size": 3}

    asyncio.run(call())
