"""A gateway that answers as it is told, with a catalog of odd tools; what a test of this surface needs and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from gateway import json_text
from gateway.call.outcome import Call, Code, Failure, Outcome
from gateway.catalog.advertise import Advertised, catalog_digest
from gateway.catalog.publish import published
from gateway.contract.model import Listener
from gateway.gateway import Gateway
from gateway.surfaces.http import Manner, listener_server
from gateway.surfaces.mcp.http import McpSurface, mcp_routes

Json = Any
READS = {"readOnlyHint": True}
BIG = 1915883588174806058

NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
}
#: By name: the input's properties, the output's document, and the answer. Each is odd in one way.
ODD: dict[str, tuple[Json, Json, Json]] = {
    "array_root": ({}, {"type": "array", "items": {"type": "integer"}}, [1, 2, 3]),
    "scalar_root": ({}, {"type": ["string", "null"]}, "seven"),
    "null_root": ({}, {"type": "null"}, None),
    "cycle": (
        {},
        {"type": "object", "properties": {"tree": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": NODE}},
        {"tree": {"name": "a", "kids": [{"name": "b", "kids": [{"name": "c"}]}]}},
    ),
    "nullable_enum": (
        {},
        {"type": "object", "properties": {"state": {"nullable": True, "enum": ["on", None]}}},
        {"state": None},
    ),
    "wide_ids": (
        {"id": {"type": "integer", "maximum": 2**63 - 1}},
        {"type": "object", "properties": {"id": {"type": "integer", "format": "int64"}}, "required": ["id"]},
        {"id": BIG},
    ),
    "pair": (
        {},
        {
            "type": "object",
            "properties": {"at": {"prefixItems": [{"type": "string"}, {"type": "number"}], "items": False}},
        },
        {"at": ["x", 1.5]},
    ),
    "loose_time": (
        {},
        {"type": "object", "properties": {"at": {"type": "string", "format": "date-time", "pattern": r"\_|."}}},
        {"at": "yesterday"},
    ),
    "anything": (
        {},
        {"type": "object", "properties": {"x": True}, "unevaluatedProperties": {"type": "null"}},
        {"x": [], "error": None},
    ),
    "n" * 64: ({}, {"type": "object"}, {"quote": '" \\ \u2028 é 😀 \x7f'}),
    "default_beside_ref": ({"unit": {"$ref": "#/$defs/Unit", "default": "m"}}, {"type": "object"}, {}),
}
_UNITS = {"Unit": {"enum": ["m", "ft"]}}


def advertised(name: str, properties: Json, output: Json, annotations: Json = READS, **root: Json) -> Advertised:
    """A tool as `advertise` would make it of an endpoint with these schemas."""
    given = {"type": "object", "properties": properties, "additionalProperties": False, "$defs": _UNITS, **root}
    wrapped = output is not None and output.get("type") != "object"
    shown = None if output is None else published([output], portable=True, wrapped=wrapped)
    return Advertised(
        name, None, f"What {name} is for.", published([given], portable=False), shown, wrapped, annotations
    )


TOOLS = [
    *(advertised(name, properties, output) for name, (properties, output, _) in ODD.items()),
    *(advertised(f"bulk_{number:03}", {"q": {"type": "string"}}, {"type": "object"}) for number in range(200)),
    advertised("write", {}, {"type": "object"}, {"readOnlyHint": False}),
    advertised("silent", {}, None),
    advertised("picture", {}, None),
    advertised(
        "regional",
        {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "zone": {"type": "object", "properties": {"number": {"type": "integer", "x-mcp-header": "Zone"}}},
        },
        {"type": "object"},
    ),
]


@dataclass(frozen=True)
class FakeCatalog:
    tools: tuple[Advertised, ...]
    digest: str


@dataclass
class FakeGateway:
    """Answers each tool with a value, an Outcome, or whatever a function makes of the call; keeps the calls."""

    answers: dict[str, Json] = field(default_factory=lambda: {name: odd[2] for name, odd in ODD.items()})
    text: str = "json"
    body_limit: int = 100_000
    progress: float = 0.01
    calls: list[Call] = field(default_factory=list)
    generations_read: int = 0

    def __post_init__(self) -> None:
        tools = tuple(sorted(TOOLS, key=lambda tool: tool.name))
        catalog = FakeCatalog(tools, catalog_digest(tools))
        self.digest = catalog.digest
        settings = SimpleNamespace(
            mcp=SimpleNamespace(
                text=self.text, instructions="Ask for people by team.", output_schema=True, progress=self.progress
            ),
            limits=SimpleNamespace(body=self.body_limit),
        )
        self._generation = SimpleNamespace(
            contract=SimpleNamespace(gateway=settings),
            catalog=lambda surface, scopes: catalog,
            find=lambda name, surface, scopes: SimpleNamespace(timeout=2.5, durable=None),
        )

    @property
    def generation(self) -> Json:
        self.generations_read += 1
        return self._generation

    async def run(self, call: Call, generation: Json) -> Outcome:
        assert generation is self._generation
        self.calls.append(call)
        if call.tool not in {tool.name for tool in TOOLS}:
            return Outcome(call, "unknown", failed(Code.UNKNOWN_TOOL, "There is no such tool.", near=["cycle"]))
        answer = self.answers.get(call.tool, SILENCE if call.tool == "silent" else {})
        if callable(answer):
            return cast(Outcome, await answer(call))
        return answered(call, answer)

    def as_gateway(self) -> Gateway:
        return cast(Gateway, self)


def answered(call: Call, value: Json) -> Outcome:
    return Outcome(call, call.tool, None, body=json_text.encode(value), value=value)


def failed(code: Code, error: str, **details: Json) -> Failure:
    return Failure(code.word, code.status, error, code.retryable, details)


def always(make: Callable[[Call], Outcome]) -> Json:
    async def answer(call: Call) -> Outcome:
        return make(call)

    return answer


SILENCE = always(lambda call: Outcome(call, call.tool, None))


@asynccontextmanager
async def served(gateway: Gateway) -> AsyncIterator[str]:
    """The surface on a real socket, behind the listener's own checks; gives its URL."""
    listener = Listener.model_validate({"listen": "127.0.0.1:8081"})  # says who may speak; the port is any free one
    server = listener_server(mcp_routes(McpSurface(gateway)), Manner(listener))
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    finally:
        listening.close()
        await server.shutdown(1)
