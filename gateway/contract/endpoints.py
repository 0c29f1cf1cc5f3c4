"""One endpoint: its keys to compiled values, and the rules its keys keep with each other. Knows no other endpoint."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from gateway.backend.request import Body, RequestBuilder, SendRule, compile_request
from gateway.contract import moved
from gateway.contract.cards import read_card
from gateway.contract.examples import read_examples
from gateway.contract.model import (
    Backend,
    BodyWritten,
    DeclaredError,
    Endpoint,
    EndpointWritten,
    SendWritten,
    Tool,
    ToolWritten,
    Ui,
)
from gateway.contract.names import HTTP_ONLY, TOOL_SURFACES, hints, is_tool_name, surfaces, tool_name
from gateway.contract.reading import Reading
from gateway.contract.refusal import Path, either, nearest, quoted
from gateway.contract.schemas import Schemas
from gateway.contract.values import idempotent
from gateway.contract.views import read_view
from gateway.schema import Schema

Json = Any

_STAND_INS = {"request": "GET /", "description": "missing"}
_STATUS = re.compile(r"2[0-9][0-9]|2XX")
_ERROR_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class EndpointReader:
    """Reads the endpoints of one contract."""

    def __init__(
        self, reading: Reading, schemas: Schemas, backends: Mapping[str, Backend], projections: FilePath | None
    ) -> None:
        self.reading = reading
        self.schemas = schemas
        self.backends = backends
        self.projections = projections

    def read(self, name: str, written: Json) -> Endpoint | None:
        """The endpoint, or None where anything was refused that its own parts need."""
        at: Path = ("endpoints", name)
        shape = self.reading.shape(EndpointWritten, _spelled_out(written), at, moved.ENDPOINT_KEYS, _STAND_INS)
        if shape is None:
            return None
        exposed = self._surfaces(shape, at)
        backend = self._backend(shape, at)
        arguments = self._input(shape, at)
        outputs = self._outputs(shape, at)
        output = self._full_output(outputs)
        builder = None
        if arguments is not None and not self.reading.faulted((*at, "request")):
            builder = self._request(shape, at, arguments, backend)
        self._check_errors(shape, at)
        examples = read_examples(self.reading, shape, at, arguments, outputs or {})
        tool = self._tool(name, shape, at, exposed, arguments, output, outputs, builder)
        if builder is None or arguments is None or outputs is None or isinstance(tool, _Refused):
            return None
        return Endpoint(
            id=name,
            backend=backend.name if backend else "",
            method=shape.request.method,
            path=shape.request.path,
            description=shape.description.strip(),
            title=shape.title,
            expose=exposed,
            kind=shape.kind,
            input=arguments,
            request=builder,
            outputs=MappingProxyType(outputs),
            output=output,
            validate_mode=shape.validate_mode,
            errors=MappingProxyType(
                {code: DeclaredError(each.status, each.retryable, each.hint) for code, each in shape.errors.items()}
            ),
            idempotent=_idempotent(shape),
            timeout=_timeout(shape, backend),
            scopes=frozenset(shape.scopes),
            consumers=shape.consumers,
            examples=examples,
            durable=shape.durable,
            tool=tool,
        )

    def _surfaces(self, shape: EndpointWritten, at: Path) -> frozenset[str]:
        exposed = surfaces(shape.expose, shape.kind)
        if shape.expose is not None and not shape.expose:
            self.reading.refuse((*at, "expose"), "the list is empty; write at least one of http, mcp, agent or cli")
        if shape.kind in HTTP_ONLY and exposed - {"http"}:
            self.reading.refuse(
                (*at, "expose"), f"`kind: {shape.kind}` is HTTP only; write `expose: [http]`, or leave `expose` out"
            )
        return exposed

    def _backend(self, shape: EndpointWritten, at: Path) -> Backend | None:
        if shape.backend is not None:
            if shape.backend in self.backends or self.reading.faulted(("backends", shape.backend)):
                return self.backends.get(shape.backend)
            meant = nearest(shape.backend, list(self.backends))
            hint = f"did you mean {quoted(meant)}?" if meant else f"write {either(self.backends) or 'one'}"
            self.reading.refuse((*at, "backend"), f"there is no backend {quoted(shape.backend)}; {hint}")
            return None
        if len(self.backends) > 1 and not self.reading.faulted((*at, "backend")):
            self.reading.refuse(at, f"which backend answers this is not said; write `backend: {either(self.backends)}`")
            return None
        return next(iter(self.backends.values()), None)

    def _input(self, shape: EndpointWritten, at: Path) -> Schema | None:
        schema = self.schemas.compile_input(shape.input, (*at, "input"))
        if schema is not None and not schema.is_object:
            self.reading.refuse((*at, "input"), "arguments are an object; write `type: object` at the root of `input`")
            return None
        return schema

    def _outputs(self, shape: EndpointWritten, at: Path) -> dict[str, Schema] | None:
        """The output schemas by status; None where one was refused."""
        path: Path = (*at, "output")
        if shape.output is None:
            return {}
        if shape.kind not in ("json", "multipart"):  # an upload may answer JSON
            self.reading.refuse(path, f"an answer of `kind: {shape.kind}` has no JSON Schema; take `output` out")
            return None
        if not _is_map_by_status(shape.output):
            schema = self.schemas.compile_output(shape.output, path)
            return None if schema is None else {"2XX": schema}
        outputs: dict[str, Schema] = {}
        whole = True
        for status, node in shape.output.items():
            if not _STATUS.fullmatch(status):
                message = f'{quoted(status)} is no 2xx status; write `"200"`, and declare failures under `errors`'
                self.reading.refuse((*path, status), message)
                whole = False
            elif node is not None:
                schema = self.schemas.compile_output(node, (*path, status))
                whole = whole and schema is not None
                if schema is not None:
                    outputs[status] = schema
        return outputs if whole else None

    def _full_output(self, outputs: Mapping[str, Schema] | None) -> Schema | None:
        """The full output for views: the single one, or the lowest 2xx."""
        return outputs[min(outputs)] if outputs else None

    def _request(
        self, shape: EndpointWritten, at: Path, arguments: Schema, backend: Backend | None
    ) -> RequestBuilder | None:
        rules, body = self._send(shape, at, arguments)
        builder = compile_request(
            shape.request.method,
            shape.request.path,
            rules,
            body,
            {name: arguments.property_document(name) for name in arguments.property_names},
            backend=backend.name if backend else "",
            base_path=urlsplit(backend.url).path if backend and backend.url else "",
            timeout=_timeout(shape, backend),
            idempotent=_idempotent(shape),
            required=arguments.required,
            open_input=_is_open(arguments),
            credential=backend.auth.query.name if backend and backend.auth and backend.auth.query else None,
            headers=(("Accept", "*/*"),) if shape.kind == "media" else (),
        )
        if isinstance(builder, RequestBuilder):
            for fault in builder.warnings:
                self.reading.warn((*at, *fault.path), fault.message)
            return builder
        for fault in builder:
            if not self.reading.faulted((*at, *fault.path)):
                self.reading.refuse((*at, *fault.path), fault.message)
        return None

    def _send(self, shape: EndpointWritten, at: Path, arguments: Schema) -> tuple[dict[str, SendRule], Body | None]:
        rules: dict[str, SendRule] = {}
        body = None
        for name, group in (shape.send or {}).items():
            path: Path = (*at, "send", name)
            if name == "body" and _is_body(group, arguments):
                whole = self.reading.shape(BodyWritten, group, path)
                body = Body(whole.type, whole.argument) if whole else None
                continue
            rule = self.reading.shape(SendWritten, group, path)
            if rule is not None:
                rules[name] = SendRule(
                    rule.in_, rule.name, rule.style, rule.explode, rule.reserved, rule.encode, rule.empty
                )
        return rules, body

    def _check_errors(self, shape: EndpointWritten, at: Path) -> None:
        for code, declared in shape.errors.items():
            if not _ERROR_CODE.fullmatch(code):
                self.reading.refuse((*at, "errors", code), "an error code is a word; write one, as `QUOTA_EXCEEDED`")
            if not 400 <= declared.status <= 599:
                self.reading.refuse(
                    (*at, "errors", code, "status"), "a failure has a status from 400 to 599; write one"
                )

    def _tool(
        self,
        name: str,
        shape: EndpointWritten,
        at: Path,
        exposed: frozenset[str],
        arguments: Schema | None,
        output: Schema | None,
        outputs: dict[str, Schema] | None,
        builder: RequestBuilder | None,
    ) -> Tool | _Refused | None:
        path: Path = (*at, "tool")
        written = shape.tool
        if written is not None and shape.kind in HTTP_ONLY:
            self.reading.refuse(path, f"`kind: {shape.kind}` is HTTP only and never a tool; take `tool` out")
            return _Refused()
        if not exposed & set(TOOL_SURFACES):
            if written is None or self.reading.faulted((*at, "expose")):
                return None
            self.reading.refuse(
                path, "the endpoint reaches no tool surface; add mcp, agent or cli to `expose`, or take `tool` out"
            )
            return _Refused()
        if shape.kind in HTTP_ONLY:
            return None
        given = written or ToolWritten()
        if given.name is not None and not is_tool_name(given.name):
            self.reading.refuse(
                (*path, "name"),
                f"a tool's name is 1 to 64 of A-Z, a-z, 0-9, `_` and `-`; write `{tool_name(given.name)}`",
            )
        view = None
        if given.view is not None:
            if shape.kind == "media":
                self.reading.refuse((*path, "view"), "an answer of `kind: media` is shown as it is; take `view` out")
                return _Refused()
            view = read_view(self, given.view, (*path, "view"), arguments, output, outputs, builder)
            if view is None:
                return _Refused()
        card = None
        if given.ui is not None:
            card = read_card(self.reading, given.ui, (*path, "ui"))
            self._warn_of_card(given.ui, (*path, "ui"), exposed, shape.expose or ())
        self._check_question(given, path, arguments)
        title = given.title or shape.title
        told = given.annotations.model_dump(exclude_none=True) if given.annotations else {}
        return Tool(
            name=given.name or tool_name(name),
            title=title,
            view=view,
            annotations=MappingProxyType(
                hints(told, shape.request.method, _idempotent(shape), given.safety_tier, title)
            ),
            safety_tier=given.safety_tier,
            ui=card,
            mcp=given.mcp,
            cost=given.cost,
            latency=given.latency,
        )

    def _warn_of_card(self, ui: Ui, path: Path, exposed: frozenset[str], written: Collection[str]) -> None:
        if "mcp" not in exposed:
            self.reading.warn(path, "a card is shown by MCP clients alone, and `expose` leaves mcp out; add it")
        elif "model" not in ui.visibility and "agent" in written:
            message = (
                "this leaves the model out, so the tool is none of agent, which `expose` names; take one of them out"
            )
            self.reading.warn((*path, "visibility"), message)

    def _check_question(self, tool: ToolWritten, path: Path, arguments: Schema | None) -> None:
        question = tool.mcp.confirm if tool.mcp else None
        if question is None or arguments is None:
            return
        for argument in re.findall(r"\{([^{}]*)\}", question):
            if argument not in arguments.property_names:
                meant = nearest(argument, arguments.property_names)
                hint = f"did you mean `{{{meant}}}`?" if meant else "declare it in `input`, or take it out"
                self.reading.refuse((*path, "mcp", "confirm"), f"the input has no `{argument}`; {hint}")


def _spelled_out(written: Json) -> Json:
    """`budget: 24KiB` is short for `{bytes: 24KiB}`."""
    tool = written.get("tool") if isinstance(written, dict) else None
    view = tool.get("view") if isinstance(tool, dict) else None
    if isinstance(tool, dict) and isinstance(view, dict) and isinstance(view.get("budget"), (str, int, float)):
        return {**written, "tool": {**tool, "view": {**view, "budget": {"bytes": view["budget"]}}}}
    return written


class _Refused:
    """The tool group was refused."""


def _is_map_by_status(node: Json) -> bool:
    return isinstance(node, dict) and bool(node) and all(re.fullmatch(r"[0-9]{3}|[0-9]XX", key) for key in node)


def _is_body(group: Json, arguments: Schema) -> bool:
    """Whether `send.body` speaks of the body as a whole, not of an argument that is named so."""
    if "body" not in arguments.property_names or not isinstance(group, dict):
        return True
    return bool(group.keys() & BodyWritten.model_fields.keys())


def _is_open(arguments: Schema) -> bool:
    """Whether an argument that nothing declares may come."""
    probe = "toolview-undeclared"
    kept = arguments.cut({probe: 0})
    return isinstance(kept, dict) and probe in kept


def _idempotent(shape: EndpointWritten) -> bool:
    return idempotent(shape.request.method) if shape.idempotent is None else shape.idempotent


def _timeout(shape: EndpointWritten, backend: Backend | None) -> float:
    return shape.timeout or (backend.timeout if backend else 30.0)
