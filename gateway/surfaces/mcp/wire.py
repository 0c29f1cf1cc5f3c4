"""One MCP message, from its bytes and headers to one of a few values, in both eras; pure, knows no HTTP library.

The two eras share a path: the handshake revisions open with `initialize` and trust the connection, 2026-07-28 carries
its envelope in every request (`params._meta`) and repeats it in headers that must agree with it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from gateway import json_text
from gateway.record import record

Json = Any

MODERN_VERSION = "2026-07-28"
LATEST_HANDSHAKE_VERSION = "2025-11-25"
HANDSHAKE_VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", LATEST_HANDSHAKE_VERSION})

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
#: Of the handshake era; in the modern one a resource that is not there is an invalid parameter.
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"
PARAM_HEADER = "Mcp-Param-"

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
#: The extension by which hosts show a tool's answer in a card.
APPS = "io.modelcontextprotocol/ui"
CALL_ID_KEY = "toolview/toolCallId"
#: Under which name a question is asked, and its answer comes back.
QUESTION = "confirm"

_ACTIONS = ("accept", "decline", "cancel")
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_OF_RESOURCES = frozenset({"resources/list", "resources/templates/list", "resources/read"})
_MODERN_STATUS = {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 200}

_CALL_ID = re.compile(r"[!-~]{1,128}")
_TRACE_CONTEXT = {
    "traceparent": re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{0,128})?"),
    "tracestate": re.compile(r"[ -~]{1,512}"),
    "baggage": re.compile(r"[ -~]{1,8192}"),
}
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_DECIMAL = re.compile(r"(-?[0-9]{1,400})(?:\.0+)?")

Id = str | int


class Headers(Protocol):
    """What is read of a request's headers: the values of one name, whatever its case, in order."""

    def getall(self, key: str, default: Sequence[str]) -> Sequence[str]: ...


@record
class Mirrored:
    """An argument whose schema carries `x-mcp-header`: clients repeat its value in a header."""

    #: Property names from the root of the arguments.
    path: tuple[str, ...]
    header: str
    integer: bool


@record
class Discover:
    """`server/discover`, which opens the modern era."""

    id: Id


@record
class Initialize:
    """The handshake; `version` is what to answer with."""

    id: Id
    version: str


@record
class Ping:
    """Answered with an empty result; the modern era has none."""

    id: Id


@record
class ListTools:
    """`tools/list`, the one page there is."""

    id: Id
    modern: bool


@record
class ListResources:
    """`resources/list`, or that of templates, of which there are none."""

    id: Id
    modern: bool
    templates: bool
    #: Why it cannot be answered, where there are resources at all.
    fault: str | None = None


@record
class ReadResource:
    """`resources/read`; whether there is such a resource is for the catalog to say."""

    id: Id
    modern: bool
    #: None where none is given.
    uri: str | None


@record
class Reply:
    """What a client brings back of a question: its state, and what the person did."""

    state: str | None
    #: `accept`, `decline` or `cancel`.
    action: str | None


@record
class CallTool:
    """`tools/call`; whether there is such a tool is for the call to find out."""

    id: Id
    modern: bool
    name: str
    arguments: dict[str, Json]
    #: The caller's own id of the call, where it gave one that can travel as a header.
    call_id: str | None = None
    #: W3C trace context, as headers for the backend.
    trace: Mapping[str, str] = field(default_factory=dict)
    #: What the client wants notes of the call's progress to carry; None where it wants none.
    progress: Id | None = None
    #: Whether the client can ask its person something, as it says with each request of the modern era.
    asks: bool = False
    #: What it brings of a question that it was given; None where it brings nothing.
    reply: Reply | None = None


@record
class Notification:
    """A message that wants no answer; nothing is dispatched."""

    method: str
    #: The request that a client takes back, which a connection that is kept can find among those it is working on.
    cancels: Id | None = None


@record
class Refusal:
    """A protocol error; `id` is None where none could be read."""

    id: Id | None
    status: int
    code: int
    message: str
    data: Json = None
    #: Whether this refuses an answer to a question that was never asked; on a pipe nobody wants to hear of it.
    unasked: bool = False


Message = Discover | Initialize | Ping | ListTools | ListResources | ReadResource | CallTool | Notification | Refusal


def read(body: bytes, headers: Headers | None, mirrored: Callable[[str], Sequence[Mirrored]]) -> Message:
    """Read one message; `headers` is None on stdio, `mirrored` tells of the arguments that a tool has in headers."""
    message = json_text.parse(body)
    if isinstance(message, json_text.NotJson):
        return Refusal(None, 400, PARSE_ERROR, f"Parse error: {_not_utf_8(body) or message.reason}")
    if not isinstance(message, dict):
        return _malformed("the body must be one JSON-RPC object; batches are not served")
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        why = 'a message has "jsonrpc": "2.0" and a "method"'
        return _malformed(why, unasked=method is None and ("result" in message or "error" in message))
    if "id" not in message:
        return _notification(method, message.get("params"))
    # 0 and "" are ids; true, 1.5 and null are not.
    request_id = message["id"]
    if type(request_id) not in (str, int):
        return _malformed("an id is a string or an integer")
    params = message.get("params")
    if params is None:
        params = {}
    if _is_modern(method, params, headers):
        return _read_modern(request_id, method, params, headers, mirrored)
    return _read_legacy(request_id, method, params)


def _not_utf_8(body: bytes) -> str | None:
    """What a message is no text by, as a reason; None where it is UTF-8, as JSON-RPC wants it."""
    try:
        body.decode()
    except UnicodeDecodeError as fault:
        return f"a message is UTF-8, and its byte {fault.start + 1} is not"
    return None


def status_of(code: int, *, modern: bool) -> int:
    """The HTTP status of a JSON-RPC error: the handshake era answers 200 to whatever could be read as a request."""
    return _MODERN_STATUS.get(code, 400) if modern else 200


def decoded_header(value: str) -> str | None:
    """A header's value, out of its base64 wrapping where it has one; None where that is malformed or not canonical."""
    wrapped = _ENCODED.fullmatch(value)
    if wrapped is None:
        return value
    try:
        raw = base64.b64decode(wrapped[1], validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == wrapped[1] else None
    except (binascii.Error, UnicodeError, ValueError):
        return None


def _is_modern(method: str, params: Json, headers: Headers | None) -> bool:
    """Which era a request belongs to; one that names both is modern, and its ladder refuses the disagreement."""
    if headers is not None and any(value not in HANDSHAKE_VERSIONS for value in headers.getall(VERSION_HEADER, ())):
        return True
    if method == "initialize" or not isinstance(params, dict):
        return False
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def _read_legacy(request_id: Id, method: str, params: Json) -> Message:
    if method == "tools/call":
        return _call(request_id, params, modern=False)
    if method == "tools/list":
        return _list(request_id, params, modern=False)
    if method == "ping":
        return Ping(request_id)
    if method == "initialize":
        return _initialize(request_id, params)
    if method in _OF_RESOURCES:
        return _resources(request_id, method, params, modern=False)
    return _refusal(request_id, METHOD_NOT_FOUND, "Method not found", modern=False)


def _read_modern(
    request_id: Id,
    method: str,
    params: Json,
    headers: Headers | None,
    mirrored: Callable[[str], Sequence[Mirrored]],
) -> Message:
    """The ladder: the first rung that fails is what the client hears of."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
        lacks = f"params._meta must be an object with {VERSION_KEY} and {CAPABILITIES_KEY}"
        return _refusal(request_id, INVALID_PARAMS, lacks, modern=True)
    version = meta[VERSION_KEY]
    if headers is not None and (mismatch := _header_mismatch(method, params, version, headers)):
        return _refusal(request_id, HEADER_MISMATCH, mismatch, modern=True)
    if not isinstance(version, str):
        return _refusal(request_id, INVALID_PARAMS, f"{VERSION_KEY} must be a string", modern=True)
    if version != MODERN_VERSION:
        known = {"supported": [MODERN_VERSION], "requested": version}
        return _refusal(request_id, UNSUPPORTED_VERSION, "Unsupported protocol version", known, modern=True)
    if method == "tools/call":
        message = _call(request_id, params, modern=True)
        if isinstance(message, CallTool) and headers is not None:
            for argument in mirrored(message.name):
                if fault := _mirror_mismatch(argument, message.arguments, headers):
                    return _refusal(request_id, HEADER_MISMATCH, fault, modern=True)
        return message
    if method == "tools/list":
        return _list(request_id, params, modern=True)
    if method == "server/discover":
        return Discover(request_id)
    if method in _OF_RESOURCES:
        return _resources(request_id, method, params, modern=True)
    return _refusal(request_id, METHOD_NOT_FOUND, "Method not found", modern=True)


def _header_mismatch(method: str, params: dict[str, Json], version: Json, headers: Headers) -> str | None:
    versions = headers.getall(VERSION_HEADER, ())
    methods = headers.getall(METHOD_HEADER, ())
    names = headers.getall(NAME_HEADER, ())
    for header, values in ((VERSION_HEADER, versions), (METHOD_HEADER, methods), (NAME_HEADER, names)):
        if len(values) > 1:
            return f"the {header} header appears more than once"
    if not versions or versions[0] != version:
        return f"the {VERSION_HEADER} header does not match the version in params._meta"
    if not methods or methods[0] != method:
        return f"the {METHOD_HEADER} header does not match the method"
    key = _NAMED_BY.get(method)
    named = params.get(key) if key is not None else None
    if named is not None and (not names or decoded_header(names[0]) != named):
        return f"the {NAME_HEADER} header does not match params.{key}"
    return None


def _mirror_mismatch(argument: Mirrored, arguments: dict[str, Json], headers: Headers) -> str | None:
    """Header and argument are both there and equal, or both absent (`null` counts as absent)."""
    values = headers.getall(argument.header, ())
    shown = ".".join(argument.path)
    if len(values) > 1:
        return f"the {argument.header} header appears more than once"
    value: Json = arguments
    for name in argument.path:
        value = value.get(name) if isinstance(value, dict) else None
    expected = _header_text(value)
    if expected is None:
        return (
            f"the {argument.header} header is there, but no argument {shown} that it could repeat" if values else None
        )
    if not values:
        return f"the {argument.header} header is missing, and the argument {shown} is there"
    found = decoded_header(values[0])
    if found is None:
        return f"the {argument.header} header is not canonical base64 of UTF-8"
    if argument.integer and (number := _DECIMAL.fullmatch(found)) and (whole := _whole(value)) is not None:
        return None if int(number[1]) == whole else f"the {argument.header} header does not match the argument {shown}"
    return None if found == expected else f"the {argument.header} header does not match the argument {shown}"


def _header_text(value: Json) -> str | None:
    """The text that a client puts into a header for a value; None where it puts none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return json_text.encode(value).decode() if isinstance(value, (int, float)) else None


def _whole(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == int(value) else None


def _call(request_id: Id, params: Json, *, modern: bool) -> CallTool | Refusal:
    name = params.get("name") if isinstance(params, dict) else None
    if not isinstance(name, str):
        return _refusal(request_id, INVALID_PARAMS, "params.name must be the name of a tool", modern=modern)
    arguments = params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return _refusal(request_id, INVALID_PARAMS, "params.arguments must be an object", modern=modern)
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return CallTool(request_id, modern, name, arguments)
    call_id = meta.get(CALL_ID_KEY)
    if not isinstance(call_id, str) or not _CALL_ID.fullmatch(call_id):
        call_id = None
    trace = {
        key: meta[key]
        for key, pattern in _TRACE_CONTEXT.items()
        if key in meta and isinstance(meta[key], str) and pattern.fullmatch(meta[key])
    }
    progress = meta.get("progressToken")
    if type(progress) not in (str, int):
        progress = None
    if not modern:
        return CallTool(request_id, modern, name, arguments, call_id, trace, progress)
    reply = _reply(params) if "inputResponses" in params or "requestState" in params else None
    if isinstance(reply, str):
        return _refusal(request_id, INVALID_PARAMS, reply, modern=True)
    asks = _can_ask(meta.get(CAPABILITIES_KEY))
    return CallTool(request_id, modern, name, arguments, call_id, trace, progress, asks, reply)


def _can_ask(capabilities: Json) -> bool:
    """Whether a client can show a form; before there were modes, a bare `elicitation` said so."""
    asking = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(asking, dict) and (not asking or isinstance(asking.get("form"), dict))


def _reply(params: dict[str, Json]) -> Reply | str:
    """What a client brings back of a question, or what is wrong with it; answers to other questions are nothing."""
    state, responses = params.get("requestState"), params.get("inputResponses")
    if state is not None and not isinstance(state, str):
        return "params.requestState must be a string"
    if responses is not None and not isinstance(responses, dict):
        return "params.inputResponses must be an object"
    answer = None if responses is None else responses.get(QUESTION)
    if answer is None:
        return Reply(state, None)
    action = answer.get("action") if isinstance(answer, dict) else None
    if action not in _ACTIONS:
        return f"params.inputResponses.{QUESTION}.action must be one of {', '.join(_ACTIONS)}"
    return Reply(state, action)


def _list(request_id: Id, params: Json, *, modern: bool) -> ListTools | Refusal:
    if fault := _misread(params):
        return _refusal(request_id, INVALID_PARAMS, fault, modern=modern)
    return ListTools(request_id, modern)


def _misread(params: Json) -> str | None:
    """Why nothing can be listed with these parameters."""
    if not isinstance(params, dict):
        return "params must be an object"
    # There is one page, so no cursor was ever handed out.
    return None if params.get("cursor") is None else "Invalid cursor"


def _resources(request_id: Id, method: str, params: Json, *, modern: bool) -> ListResources | ReadResource:
    if method == "resources/read":
        uri = params.get("uri") if isinstance(params, dict) else None
        return ReadResource(request_id, modern, uri if isinstance(uri, str) else None)
    return ListResources(request_id, modern, method == "resources/templates/list", _misread(params))


def _initialize(request_id: Id, params: Json) -> Initialize | Refusal:
    version = params.get("protocolVersion") if isinstance(params, dict) else None
    client = params.get("clientInfo") if isinstance(params, dict) else None
    if (
        not isinstance(version, str)
        or not isinstance(params.get("capabilities"), dict)
        or not isinstance(client, dict)
        or not isinstance(client.get("name"), str)
        or not isinstance(client.get("version"), str)
    ):
        lacks = "initialize needs protocolVersion, capabilities and clientInfo with its name and version"
        return _refusal(request_id, INVALID_PARAMS, lacks, modern=False)
    return Initialize(request_id, version if version in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE_VERSION)


def _notification(method: str, params: Json) -> Notification:
    cancels = params.get("requestId") if method == "notifications/cancelled" and isinstance(params, dict) else None
    return Notification(method, cancels if type(cancels) in (str, int) else None)


def _malformed(reason: str, *, unasked: bool = False) -> Refusal:
    return Refusal(None, 400, INVALID_REQUEST, f"Invalid request: {reason}", unasked=unasked)


def _refusal(request_id: Id, code: int, message: str, data: Json = None, *, modern: bool) -> Refusal:
    return Refusal(request_id, status_of(code, modern=modern), code, message, data)
