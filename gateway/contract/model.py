"""The contract as frozen values: what every later room may rely on, with schemas, projections and requests compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gateway.backend.request import RequestBuilder
from gateway.projection import Projection
from gateway.schema import Schema

# HINGE: attribute names below are what call/, view.py, generation.py, surfaces/ and serve.py read.
# Pydantic models where YAML enters; names and types stay. Durations are float seconds, sizes int bytes.


@dataclass(frozen=True)
class Address:
    host: str
    port: int


@dataclass(frozen=True)
class TlsFiles:
    cert: str
    key: str


@dataclass(frozen=True)
class Listener:  # gateway.tools, gateway.admin
    listen: Address
    tls: TlsFiles | None
    origins: tuple[str, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Passthrough:
    listen: Address
    tls: TlsFiles | None
    client_address: Literal["none", "proxy-v2"]
    only: Literal["all", "declared"]
    max_connections: int | None
    idle_timeout: float | None


@dataclass(frozen=True)
class Backend:  # backends.NAME
    name: str
    url: str | None  # None: stubbed
    socket: str | None
    passthrough: Passthrough | None
    timeout: float
    connect_timeout: float
    headers: Mapping[str, str]
    forward_headers: tuple[str, ...]
    tls: Any  # ca, cert, key, verify
    limits: Any  # .concurrency int|None, .answer int (10 MiB)
    retry: Any  # .attempts
    breaker: Any
    health: Any  # .path, .interval
    auth: Any  # bearer | basic | header | query | client_credentials
    errors: Mapping[str, str]  # {"code": "/error/code", "message": "/error/message"}


@dataclass(frozen=True)
class DeclaredError:
    status: int
    retryable: bool | None
    hint: str | None


@dataclass(frozen=True)
class Budget:
    bytes: int
    trim: str | None  # JSON Pointer
    note: str | None


@dataclass(frozen=True)
class View:
    defaults: Mapping[str, Any]
    output: Schema | None
    project: Projection | None
    budget: Budget | None


@dataclass(frozen=True)
class Tool:
    name: str  # given or derived, always set
    title: str | None
    view: View | None
    annotations: Mapping[str, Any]  # MCP hints, derived where not written
    safety_tier: str | None
    ui: Any
    mcp: Any
    cost: Any
    latency: Any


@dataclass(frozen=True)
class Endpoint:  # endpoints.ID
    id: str
    backend: str  # name, always set
    method: str
    path: str  # template
    description: str
    title: str | None
    expose: frozenset[str]
    kind: Literal["json", "media", "raw", "multipart", "stream"]
    input: Schema  # closed object schema
    request: RequestBuilder
    outputs: Mapping[str, Schema]  # by status "200", or {"2XX": schema} where one schema serves all; {} = none declared
    output: Schema | None  # THE full output for views: the single one, or the lowest 2xx of a map
    validate_mode: Literal["strict", "observe"]  # YAML key `validate`
    errors: Mapping[str, DeclaredError]
    idempotent: bool
    timeout: float  # effective: endpoint's, else backend's
    scopes: frozenset[str]
    consumers: tuple[str, ...]
    examples: tuple[Any, ...]
    tool: Tool | None  # set for every endpoint that exposes mcp, agent or cli (name derived), else None


@dataclass(frozen=True)
class Contract:
    gateway: Any  # .tools .admin Listener; .auth .hooks .catalog .mcp .limits .missing_backend .formats .insecure .projections .shutdown .log .ledger .console
    backends: Mapping[str, Backend]
    endpoints: Mapping[str, Endpoint]
    digest: str  # 16 hex of the canonical contract, secrets left out
    folder: str
    warnings: tuple[Any, ...]  # Refusal values that did not refuse
