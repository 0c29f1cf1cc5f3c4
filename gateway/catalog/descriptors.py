"""Tools as OpenWOP describes them (RFC 0078), and in short (RFC 0112), encoded once. Knows no HTTP and no principal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gateway import __version__, json_text
from gateway.catalog.advertise import Advertised
from gateway.contract.model import Backend, Contract, Endpoint
from gateway.contract.secrets import Secret
from gateway.record import record
from gateway.schema.widen import widen

Json = Any

PROTOCOL_VERSION = "1.0"
#: RFC 0069: what runs code is the host's own extension, never an ordinary tool.
_SOURCE_OF_TIER = {"exec": "host-extension"}
_SCOPE_OF_SOURCE = {"mcp": "mcp", "host-extension": "x-host-toolview-exec"}
_CREDENTIALS = frozenset({"authorization", "cookie"})


@record
class Described:
    """One tool's two descriptors as JSON text."""

    tool_id: str
    source: str
    standard: bytes
    compact: bytes


def described(endpoint: Endpoint, tool: Advertised, backend: Backend, *, characters: int) -> Described:
    """A tool's descriptors; what it does not have is absent. `characters` is the length of a short description."""
    assert endpoint.tool is not None
    tier = endpoint.tool.safety_tier or "write"
    source = _SOURCE_OF_TIER.get(tier, "mcp")
    head = {"toolId": f"{_SCOPE_OF_SOURCE[source]}:{tool.name}", "source": source}

    def short(text: str) -> str:
        return shortened(text, characters)

    standard = {
        **head,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "auth": {"scopes": sorted(endpoint.scopes), "credentialRef": _has_credential(backend)},
        "egress": "host-mediated",
        # Only what the gateway holds to: a confirmation is MCP's, so with one nothing is claimed for all surfaces.
        "approval": "never" if endpoint.tool.mcp is None else None,
        # `non-deterministic` would promise replays out of a record.
        "replayPolicy": "idempotent" if endpoint.idempotent else None,
        "safetyTier": tier,
        "costHint": endpoint.tool.cost,
        "latencyHint": endpoint.tool.latency,
    }
    compact = {
        **head,
        "safetyTier": tier,
        "title": tool.title,
        "description": short(tool.description),
        "inputSchema": widen(tool.input_schema, short),
    }
    return Described(head["toolId"], source, _text(standard), _text(compact))


def listing(tools: Iterable[Described], *, compact: bool, bare: bool = False) -> bytes:
    """The list of some tools, by id; `bare` is the standard list as an array."""
    entries = b",".join(tool.compact if compact else tool.standard for tool in tools)
    return b"[%b]" % entries if bare and not compact else b'{"tools":[%b]}' % entries


def discovery(contract: Contract, sources: Iterable[str]) -> bytes:
    """`/.well-known/openwop`: what this host serves of OpenWOP, which is the catalog and nothing of runs."""
    catalog: dict[str, Json] = {"supported": True, "sources": sorted(sources), "sessionLifecycle": False}
    if contract.gateway.catalog.compact:
        catalog["compactView"] = True
    return json_text.encode(
        {
            "protocolVersion": PROTOCOL_VERSION,
            "implementation": {"name": "toolview", "version": __version__},
            "supportedTransports": ["mcp"],
            "supportedEnvelopes": [],
            "schemaVersions": {},
            "limits": {
                "clarificationRounds": 0,
                "schemaRounds": 0,
                "envelopesPerTurn": 0,
                "maxRequestBodyBytes": contract.gateway.limits.body,
            },
            "toolCatalog": catalog,
        }
    )


def shortened(text: str, characters: int) -> str:
    """A text on one line, cut on a word where it is longer."""
    line = " ".join(text.split())
    if len(line) <= characters:
        return line
    kept = line[: characters - 1]
    words = kept if line[characters - 1] == " " else kept.rpartition(" ")[0] or kept
    return words.rstrip(" ,;:") + "…"


def _has_credential(backend: Backend) -> bool:
    """A header that is written out is one where its name says so; one from outside the contract is one in any case."""
    return backend.auth is not None or any(
        name.lower() in _CREDENTIALS or type(value) is Secret for name, value in backend.headers.items()
    )


def _text(descriptor: Mapping[str, Json]) -> bytes:
    return json_text.encode({name: value for name, value in descriptor.items() if value is not None})
