"""Swagger 2.0 to the normal form. Knows no contract."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import urlsplit

from gateway.authoring.openapi.description import Description, Node
from gateway.authoring.openapi.normal import Answer, Api, Body, Credential, Operation, Parameter, is_json
from gateway.authoring.openapi.paths import operations_of, parameters_of

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_PLACES: dict[str, Any] = {"path": "path", "query": "query", "header": "header", "formData": "field"}

#: `collectionFormat` as style and explode of OpenAPI 3.
_FORMATS: dict[str, tuple[str | None, bool | None]] = {
    "csv": (None, False),
    "multi": (None, True),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
}


def read_swagger2(description: Description) -> Api:
    root = description.root
    return Api(
        dialect="2.0",
        title=root.get("info").text("title") or "",
        version=str(root.get("info", "version").value or ""),
        servers=tuple(_servers(root)),
        operations=operations_of(description, _operation),
        credentials=tuple(_credentials(root.get("securityDefinitions"))),
        description=description,
    )


def _servers(root: Node) -> Iterable[str]:
    schemes = root.get("schemes").value
    known = [scheme for scheme in schemes if scheme in ("http", "https")] if isinstance(schemes, list) else []
    if isinstance(schemes, list) and schemes and not known:
        root_schemes = ", ".join(str(scheme) for scheme in schemes)
        return (f"{root_schemes}://",)
    base = root.text("basePath") or ""
    base = base if base.startswith("/") or not base else f"/{base}"
    host = root.text("host")
    if host is None:
        return (base,) if base.strip("/") else ()
    # https first: a credential that goes over both should go over this one
    order = [scheme for scheme in ("https", "http") if scheme in known] or ["http"]
    return tuple(f"{scheme}://{host}{base.rstrip('/')}" for scheme in order)


def _operation(description: Description, method: str, path: str, item: Node, at: Node) -> Operation:
    parameters: list[Parameter] = []
    fields: list[Parameter] = []
    body = None
    for found in parameters_of(description, item, at):
        where = found.text("in") or ""
        if where == "body":
            body = _body(description, at, found)
        elif where in _PLACES:
            parameter = _parameter(description, found, _PLACES[where])
            (fields if where == "formData" else parameters).append(parameter)
        else:
            description.notes.add(found.place, "a parameter of Swagger 2.0 is not sent there; it is left out")
    if fields and body is None:
        body = _form(description, at, fields)
    if "schemes" in at.value and at.get("schemes").value != description.root.get("schemes").value:
        description.notes.add(at.place, "its own `schemes` are not carried over; the backend's URL is used")
    return Operation(
        method=method.upper(),
        path=path,
        at=at,
        id=at.text("operationId"),
        summary=at.text("summary"),
        description=at.text("description"),
        deprecated=at.value.get("deprecated") is True,
        parameters=tuple(parameters),
        body=body,
        answers=tuple(_answers(description, at)),
    )


def _parameter(description: Description, found: Node, where: Any) -> Parameter:
    written = found.value
    # Whatever is said of its values stands in the parameter itself; some write a `schema` all the same.
    schema = found.get("schema") if isinstance(written.get("schema"), dict) and "type" not in written else found
    style, explode, unfit = None, None, None
    if written.get("type") == "array":
        spelled = found.text("collectionFormat") or "csv"
        if spelled not in _FORMATS or (where in ("path", "header") and spelled != "csv"):
            unfit = f"`collectionFormat: {spelled}` has no spelling in a contract"
        else:
            style, explode = _FORMATS[spelled]
            explode = None if where in ("path", "header") or (style is not None and not explode) else explode
    return Parameter(
        name=written["name"],
        where=where,
        required=written.get("required") is True,
        description=found.text("description"),
        schema=schema,
        at=found,
        style=style,
        explode=explode,
        blank=written.get("allowEmptyValue") is True,
        is_file=written.get("type") == "file",
        unfit=unfit,
    )


def _body(description: Description, at: Node, found: Node) -> Body:
    media = _media(description, at, "consumes")
    json = [each for each in media if is_json(each)]
    return Body(
        kind="json" if json or not media else "raw",
        media=json[0] if json else media[0] if media else "application/json",
        required=found.value.get("required") is True,
        name=found.value["name"],
        description=found.text("description"),
        at=found,
        schema=found.get("schema"),
    )


def _form(description: Description, at: Node, fields: list[Parameter]) -> Body:
    media = _media(description, at, "consumes")
    multipart = any(each.is_file for each in fields) or (_MULTIPART in media and _FORM not in media)
    return Body(
        kind="multipart" if multipart else "form",
        media=_MULTIPART if multipart else _FORM,
        required=any(each.required for each in fields),
        name="body",
        description=None,
        at=at.get("parameters"),
        fields=tuple(fields),
    )


def _answers(description: Description, at: Node) -> Iterable[Answer]:
    media = _media(description, at, "produces")
    json = [each for each in media if is_json(each)]
    for status, written in at.get("responses").items():
        if status.startswith("x-"):
            continue
        found = description.follow(written)
        if found is None or not isinstance(found.value, dict):
            continue
        schema = found.get("schema") if "schema" in found.value else None
        kind: Literal["nothing", "json", "file", "stream"] = "json" if json or not media else "file"
        if schema is None:
            kind = "nothing"
        elif schema.value == {"type": "file"} or (schema.text("type") == "file"):
            kind = "file"
        elif kind == "file" and "text/event-stream" in media:
            kind = "stream"
        shown = json[0] if json and kind == "json" else next((each for each in media if not is_json(each)), "")
        yield Answer(status, kind, shown, schema if kind == "json" else None, found.text("description"), found)


def _media(description: Description, at: Node, key: str) -> list[str]:
    written = at.get(key).value if isinstance(at.get(key).value, list) else description.root.get(key).value
    return [each for each in written if isinstance(each, str)] if isinstance(written, list) else []


def _credentials(schemes: Node) -> Iterable[Credential]:
    for name, scheme in schemes.items():
        kind = scheme.text("type")
        wire = scheme.text("name")
        if kind == "basic":
            auth: dict[str, object] | None = {"basic": {"username": "${USERNAME}", "password": "${PASSWORD}"}}
            yield Credential(name, "HTTP Basic", auth)
        elif kind == "apiKey" and wire and scheme.text("in") in ("header", "query"):
            where: Any = scheme.text("in")
            yield Credential(
                name, f"a key in the {where} `{wire}`", {where: {"name": wire, "value": "${API_KEY}"}}, (where, wire)
            )
        elif kind == "oauth2":
            flow = scheme.text("flow") or "?"
            auth = None
            if flow == "application" and (token_url := scheme.text("tokenUrl")) and urlsplit(token_url).scheme:
                auth = client_credentials(token_url)
            yield Credential(name, f"OAuth 2, flow `{flow}`", auth or {"bearer": "${ACCESS_TOKEN}"})
        else:
            yield Credential(name, f"of the type `{kind}`", None)


def client_credentials(token_url: str) -> dict[str, object]:
    # what a description says is a text, never a `${…}` that the contract would read
    url = token_url.replace("${", "$${")
    return {"client_credentials": {"token_url": url, "client_id": "${CLIENT_ID}", "client_secret": "${CLIENT_SECRET}"}}
