"""MCP results as bytes: a catalog is encoded once, an answer's own bytes are spliced in. Pure, knows no HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol
from urllib.parse import quote

from gateway import __version__, json_text
from gateway.call.consent import Consent
from gateway.call.outcome import Outcome
from gateway.catalog.advertise import Advertised
from gateway.contract.model import Card
from gateway.surfaces.mcp import media, wire
from gateway.surfaces.mcp.wire import Id, Mirrored, Refusal

Json = Any
TextMode = Literal["json", "short", "none"]

#: How long a client may keep a listing, in milliseconds; changes are not announced, they are found when this is over.
TTL_MS = 60_000

CATALOG_KEY = "toolview/catalog"
_SERVER = {"name": "toolview", "version": __version__}
_STAMP = {"io.modelcontextprotocol/serverInfo": _SERVER}
_TOOL_ERROR = b'"isError":true'
_SUCCESS = b'"isError":false'


class Catalog(Protocol):
    """What is read of a generation's catalog."""

    @property
    def tools(self) -> Sequence[Advertised]: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True)
class Listing:
    """One catalog as this surface says it; what every answer needs of it is encoded once."""

    catalog: Catalog
    #: Whether the catalog is one principal's, so that no shared cache may keep it.
    private: bool
    #: Whether tools are listed with their output schemas.
    output_schema: bool = True

    @cached_property
    def tools(self) -> Mapping[str, Advertised]:
        return {tool.name: tool for tool in self.catalog.tools}

    @cached_property
    def cards(self) -> Mapping[str, Card]:
        """The cards of the catalog's tools, by what clients read them by; tools may share one."""
        found = {tool.card.uri: tool.card for tool in self.catalog.tools if tool.card is not None}
        return dict(sorted(found.items()))

    @cached_property
    def _mirrored(self) -> Mapping[str, tuple[Mirrored, ...]]:
        found = {tool.name: tuple(mirrored_arguments(tool.input_schema)) for tool in self.catalog.tools}
        return {name: arguments for name, arguments in found.items() if arguments}

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers of every response that speaks of this catalog."""
        return headers(self.catalog.digest)

    def mirrored(self, name: str) -> tuple[Mirrored, ...]:
        """The arguments of a tool that clients repeat in headers."""
        return self._mirrored.get(name, ())

    def result(self, *, modern: bool) -> bytes:
        """The result of `tools/list`, the same bytes every time."""
        return self._modern_result if modern else self._legacy_result

    def page(self, member: bytes, *, modern: bool) -> bytes:
        """A result that a client may keep, around its one member."""
        shared = {"resultType": "complete", "ttlMs": TTL_MS, "cacheScope": self._scope}
        head = json_text.encode(shared)[:-1] + b"," if modern else b"{"
        return b"".join((head, member, b",", self.meta(modern=modern), b"}"))

    def meta(self, *, modern: bool) -> bytes:
        """The `_meta` member of every result."""
        return self._modern_meta if modern else self._legacy_meta

    @cached_property
    def _legacy_meta(self) -> bytes:
        return b'"_meta":' + json_text.encode({CATALOG_KEY: self.catalog.digest})

    @cached_property
    def _modern_meta(self) -> bytes:
        return b'"_meta":' + json_text.encode({**_STAMP, CATALOG_KEY: self.catalog.digest})

    @cached_property
    def _entries(self) -> bytes:
        return json_text.encode([tool.mcp(output_schema=self.output_schema, card=True) for tool in self.catalog.tools])

    @cached_property
    def _legacy_result(self) -> bytes:
        return self.page(b'"tools":' + self._entries, modern=False)

    @cached_property
    def _modern_result(self) -> bytes:
        return self.page(b'"tools":' + self._entries, modern=True)

    @property
    def _scope(self) -> str:
        return "private" if self.private else "public"


def headers(digest: str) -> dict[str, str]:
    """The HTTP headers of every response that speaks of the catalog with this digest."""
    return {"Content-Type": "application/json", "Toolview-Catalog": digest}


def mirrored_arguments(schema: Json, path: tuple[str, ...] = ()) -> Iterator[Mirrored]:
    """Arguments that carry `x-mcp-header`, found where clients look: along `properties` alone, on plain scalars."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, declared in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(declared, dict):
            continue
        token = declared.get("x-mcp-header")
        if isinstance(token, str) and declared.get("type") in ("string", "integer", "boolean"):
            yield Mirrored((*path, name), wire.PARAM_HEADER + token, declared["type"] == "integer")
        yield from mirrored_arguments(declared, (*path, name))


def discover_result(instructions: str | None, *, private: bool, cards: bool) -> bytes:
    """The result of `server/discover`: one version, and tools with their cards, which is all that answers here."""
    shown: dict[str, Json] = {"resources": {}, "extensions": {wire.APPS: {}}} if cards else {}
    result: dict[str, Json] = {
        "resultType": "complete",
        "supportedVersions": [wire.MODERN_VERSION],
        "capabilities": {"tools": {}, **shown},
        "ttlMs": TTL_MS,
        "cacheScope": "private" if private else "public",
        "_meta": _STAMP,
    }
    if instructions:
        result["instructions"] = instructions
    return json_text.encode(result)


def initialize_result(version: str, instructions: str | None, *, cards: bool) -> bytes:
    """The result of the handshake."""
    shown = {"resources": {"subscribe": False, "listChanged": False}} if cards else {}
    result: dict[str, Json] = {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": False}, **shown},
        "serverInfo": _SERVER,
    }
    if instructions:
        result["instructions"] = instructions
    return json_text.encode(result)


def call_result(outcome: Outcome, listing: Listing, text: TextMode, *, modern: bool) -> bytes:
    """The result of a call that ended in `outcome`; the answer's bytes are never parsed again."""
    parts = [b'{"resultType":"complete",' if modern else b"{"]
    if outcome.failure is not None:
        envelope = json_text.encode(outcome.envelope())
        # No structuredContent: some clients hold it against the output schema even here.
        parts += (b'"content":', _text_block(envelope), b",", _TOOL_ERROR)
    elif outcome.body is None:
        parts += (b'"content":[],', _SUCCESS)
    elif outcome.media_type is not None:
        content = media.blocks(outcome.body, outcome.media_type, _uri(outcome))
        parts += (b'"content":', json_text.encode(content), b",", _SUCCESS)
    else:
        tool = listing.tools.get(outcome.call.tool)
        wrapped = tool is not None and tool.wrapped
        body = b'{"result":' + outcome.body + b"}" if wrapped else outcome.body
        parts += (b'"content":', _answer_text(body, text), b',"structuredContent":', body, b",", _SUCCESS)
    parts += (b",", listing.meta(modern=modern), b"}")
    return b"".join(parts)


def question_result(outcome: Outcome, state: str, listing: Listing) -> bytes:
    """The result that asks the client for its person's yes before it calls again."""
    assert outcome.asked is not None
    # Nothing to fill in: the form's own yes and no are the answer.
    form = {"mode": "form", "message": outcome.asked.question, "requestedSchema": {"type": "object", "properties": {}}}
    asking = {
        "resultType": "input_required",
        "inputRequests": {wire.QUESTION: {"method": "elicitation/create", "params": form}},
        "requestState": state,
    }
    return b"".join((json_text.encode(asking)[:-1], b",", listing.meta(modern=True), b"}"))


def unconfirmed(request_id: Id, outcome: Outcome, listing: Listing) -> Refusal:
    """The protocol error where a client cannot ask, or answers no question of ours; its data is the envelope."""
    assert outcome.asked is not None
    assert outcome.failure is not None
    data = {**outcome.envelope(), "_meta": {CATALOG_KEY: listing.catalog.digest}}
    code = wire.INVALID_PARAMS
    if outcome.asked.consent is Consent.CANNOT_ASK:
        code = wire.MISSING_CAPABILITY
        data["requiredCapabilities"] = {"elicitation": {"form": {}}}
    return Refusal(request_id, wire.status_of(code, modern=True), code, outcome.failure.error, data)


def unknown_tool(request_id: Id, outcome: Outcome, listing: Listing, *, modern: bool) -> Refusal:
    """The protocol error for a tool that is not there; its data is the envelope, with the nearest names."""
    data = {**outcome.envelope(), "_meta": {CATALOG_KEY: listing.catalog.digest}}
    status = wire.status_of(wire.INVALID_PARAMS, modern=modern)
    # The message stays one line, whatever the name.
    name = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in outcome.call.tool[:128]
    )
    return Refusal(request_id, status, wire.INVALID_PARAMS, f"Unknown tool: {name}", data)


def reply(request_id: Id, result: bytes) -> bytes:
    """A JSON-RPC response around an encoded result."""
    return b"".join((b'{"jsonrpc":"2.0","id":', json_text.encode(request_id), b',"result":', result, b"}"))


def progress(token: Id, seconds: float, limit: float | None) -> bytes:
    """The note that a call is still under way, after so many seconds of at most `limit`."""
    within = "" if limit is None else f" of at most {limit:g} s"
    params = {
        "progressToken": token,
        "progress": round(seconds, 3),
        "message": f"Waiting for the backend: {seconds:.0f} s{within}.",
    }
    return json_text.encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def error(refusal: Refusal) -> bytes:
    """A JSON-RPC error response."""
    fault: dict[str, Json] = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        fault["data"] = refusal.data
    return json_text.encode({"jsonrpc": "2.0", "id": refusal.id, "error": fault})


def _text_block(text: bytes) -> bytes:
    return b"".join((b'[{"type":"text","text":', json_text.encode(text.decode()), b"}]"))


def _answer_text(body: bytes, text: TextMode) -> bytes:
    if text == "json":
        return _text_block(body)
    if text == "none":
        return b"[]"
    return _text_block(b"The answer is in structuredContent: %d bytes of JSON." % len(body))


def _uri(outcome: Outcome) -> str:
    """Names a file answer after its call; it is nothing that could be read again."""
    return f"toolview://{outcome.call.tool}/{quote(outcome.call.call_id, safe='')}"
