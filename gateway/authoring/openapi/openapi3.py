"""OpenAPI 3.0 and 3.1 to the normal form. Knows no contract."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import urlsplit

from gateway.authoring.openapi.description import Description, Node
from gateway.authoring.openapi.normal import (
    STYLES,
    Answer,
    Api,
    Body,
    Credential,
    Encoding,
    Operation,
    Parameter,
    is_json,
)
from gateway.authoring.openapi.paths import operations_of, parameters_of
from gateway.authoring.openapi.swagger2 import client_credentials

_FORMS: dict[str, Literal["form", "multipart"]] = {
    "application/x-www-form-urlencoded": "form",
    "multipart/form-data": "multipart",
}


def read_openapi3(description: Description, dialect: Literal["3.0", "3.1"]) -> Api:
    root = description.root
    if isinstance(root.get("webhooks").value, dict) and root.get("webhooks").value:
        description.notes.add("#/webhooks", "webhooks are calls that the API makes; they are left out")
    return Api(
        dialect=dialect,
        title=root.get("info").text("title") or "",
        version=str(root.get("info", "version").value or ""),
        servers=tuple(_servers(root.get("servers"))),
        operations=operations_of(description, _operation),
        credentials=tuple(_credentials(description, root.get("components", "securitySchemes"))),
        description=description,
    )


def _servers(servers: Node) -> Iterable[str]:
    """The URLs, with each variable at its default."""
    for server in servers.each():
        url = server.text("url")
        if url is None:
            continue
        variables = server.get("variables")

        def default(name: re.Match[str], variables: Node = variables) -> str:
            value = variables.get(name[1], "default").value
            return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else name[0]

        yield re.sub(r"\{([^{}]*)\}", default, url).strip()


def _operation(description: Description, method: str, path: str, item: Node, at: Node) -> Operation:
    parameters = []
    for found in parameters_of(description, item, at):
        if found.text("in") in ("path", "query", "header", "cookie"):
            parameters.append(_parameter(description, found))
        else:
            description.notes.add(found.place, "a parameter of OpenAPI 3 is not sent there; it is left out")
    if isinstance(at.value.get("callbacks"), dict) and at.value["callbacks"]:
        description.notes.add(at.get("callbacks").place, "callbacks are calls that the API makes; they are left out")
    servers = at.get("servers") if isinstance(at.value.get("servers"), list) else item.get("servers")
    return Operation(
        method=method.upper(),
        path=path,
        at=at,
        id=at.text("operationId"),
        summary=at.text("summary") or item.text("summary"),
        description=at.text("description") or item.text("description"),
        deprecated=at.value.get("deprecated") is True,
        parameters=tuple(parameters),
        body=_body(description, at),
        answers=tuple(_answers(description, at)),
        servers=tuple(_servers(servers)),
    )


def _parameter(description: Description, found: Node) -> Parameter:
    written = found.value
    where: Any = written["in"]
    schema = found.get("schema") if "schema" in written else None
    as_json = False
    if schema is None and isinstance(written.get("content"), dict):
        media, content = next(found.get("content").items(), ("", found.get("content")))
        as_json = is_json(media)
        inner = description.follow(content)
        schema = inner.get("schema") if as_json and inner is not None and isinstance(inner.value, dict) else None
    style = written.get("style") if isinstance(written.get("style"), str) else None
    unfit = None
    if style is not None and style not in STYLES:
        unfit = f"`style: {style}` has no spelling in a contract"
    return Parameter(
        name=written["name"],
        where=where,
        required=written.get("required") is True,
        description=found.text("description"),
        schema=schema,
        at=found,
        style=style,
        explode=written["explode"] if isinstance(written.get("explode"), bool) else None,
        reserved=written.get("allowReserved") is True,
        blank=written.get("allowEmptyValue") is True,
        as_json=as_json,
        unfit=unfit,
        deprecated=written.get("deprecated") is True,
    )


def _body(description: Description, at: Node) -> Body | None:
    if "requestBody" not in at.value:
        return None
    found = description.follow(at.get("requestBody"))
    if found is None or not isinstance(found.value, dict):
        return None
    content = dict(found.get("content").items())
    media = _preferred(content)
    if media is None:
        return None
    kind: Any = "json" if is_json(media) else _FORMS.get(_plain(media), "raw")
    inner = description.follow(content[media]) or content[media]
    return Body(
        kind=kind,
        media=media,
        required=found.value.get("required") is True,
        name="body",
        description=found.text("description"),
        at=found,
        schema=inner.get("schema") if isinstance(inner.value, dict) and "schema" in inner.value else None,
        encoding=dict(_encodings(inner.get("encoding"))),
    )


def _preferred(content: dict[str, Node]) -> str | None:
    """JSON before a form before several parts before anything else; a media type by its name before a pattern."""

    def rank(media: str) -> tuple[int, int]:
        if is_json(media):
            return 0, "*" in media
        return {"form": 1, "multipart": 2}.get(_FORMS.get(_plain(media), ""), 3), 0

    return min(content, key=rank, default=None)


def _encodings(encoding: Node) -> Iterable[tuple[str, Encoding]]:
    for name, each in encoding.items():
        explode = each.get("explode").value
        yield (
            name,
            Encoding(
                each.text("style"),
                explode if isinstance(explode, bool) else None,
                each.get("allowReserved").value is True,
                each.text("contentType"),
            ),
        )


def _answers(description: Description, at: Node) -> Iterable[Answer]:
    for status, written in at.get("responses").items():
        if status.startswith("x-"):
            continue
        found = description.follow(written)
        if found is None or not isinstance(found.value, dict):
            continue
        content = dict(found.get("content").items())
        media = _preferred(content)
        said = found.text("description")
        if media is None:
            yield Answer(status, "nothing", "", None, said, found)
            continue
        inner = description.follow(content[media]) or content[media]
        schema = inner.get("schema") if isinstance(inner.value, dict) and "schema" in inner.value else None
        kind: Literal["json", "file", "stream"] = "json" if is_json(media) else "file"
        if _plain(media) == "text/event-stream":
            kind = "stream"
        if kind == "json" and "*" in media and schema is not None and schema.text("format") == "binary":
            kind = "file"
        yield Answer(status, kind, media, schema if kind == "json" else None, said, found)


def _credentials(description: Description, schemes: Node) -> Iterable[Credential]:
    for name, written in schemes.items():
        scheme = description.follow(written)
        if scheme is None or not isinstance(scheme.value, dict):
            continue
        kind, wire, where = scheme.text("type"), scheme.text("name"), scheme.text("in")
        place: Any = where
        if kind == "apiKey" and wire and where in ("header", "query"):
            auth: dict[str, object] = {where: {"name": wire, "value": "${API_KEY}"}}
            yield Credential(name, f"a key in the {where} `{wire}`", auth, (place, wire))
        elif kind == "apiKey" and wire and where == "cookie":
            yield Credential(name, f"a key in the cookie `{wire}`", None, (place, wire))
        elif kind == "http" and (scheme.text("scheme") or "").lower() == "basic":
            yield Credential(name, "HTTP Basic", {"basic": {"username": "${USERNAME}", "password": "${PASSWORD}"}})
        elif kind == "http" and (scheme.text("scheme") or "").lower() == "bearer":
            yield Credential(name, "a bearer token", {"bearer": "${ACCESS_TOKEN}"})
        elif kind in ("oauth2", "openIdConnect"):
            flows = [flow for flow, _ in scheme.get("flows").items()]
            token_url = scheme.get("flows", "clientCredentials").text("tokenUrl")
            said = "OpenID Connect" if kind == "openIdConnect" else f"OAuth 2, flow {', '.join(flows) or '?'}"
            known = token_url is not None and urlsplit(token_url).scheme in ("http", "https")
            yield Credential(
                name, said, client_credentials(token_url) if token_url and known else {"bearer": "${ACCESS_TOKEN}"}
            )
        else:
            yield Credential(name, f"of the type `{kind}`", None)


def _plain(media: str) -> str:
    return media.partition(";")[0].strip().lower()
