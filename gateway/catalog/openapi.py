"""The OpenAPI 3.1 description of the endpoints that expose http: the backend's own HTTP, so no view moves a byte of it.

Pure. It is written from what the contract declares of requests and full answers; `tool` is never read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from gateway import json_text
from gateway.backend.body import ENCODERS
from gateway.backend.placement import NO_RULE, PLACEHOLDER, SendRule
from gateway.catalog.positions import DEFINITIONS, rebuilt
from gateway.contract.model import Backend, Contract, Endpoint
from gateway.json_pointer import pointer_of
from gateway.schema.keywords import DIALECT
from gateway.schema.resolve import resolve
from gateway.schema.widen import widen

Json = Any

_MEDIA_TYPES = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "multipart": "multipart/form-data",
}
#: What is of no use in a document with other addresses.
_SILENT = DEFINITIONS | {"$id", "$schema", "$anchor", "$comment"}
#: Errors, redirects: the backend's own, of which a contract says nothing. They are no answers out of the blue for that.
_UNDECLARED = {"description": "Whatever else the backend answers."}
_WILDCARDS = ("0.0.0.0", "::", "*")  # noqa: S104  # compared with, never bound


def openapi(contract: Contract, endpoints: Iterable[Endpoint]) -> bytes:
    """The document of those of the endpoints that expose http."""
    shown = sorted(
        (each for each in endpoints if "http" in each.expose), key=lambda each: (each.path, each.method, each.id)
    )
    operations = [_Operation(endpoint, contract.backends[endpoint.backend]) for endpoint in shown]
    components = _Components(
        (operation.owner, document) for operation in operations for document in operation.documents()
    )
    paths = _paths(operations, components)
    return json_text.encode(
        {
            "openapi": "3.1.1",
            "info": {"title": "HTTP of the backends behind this gateway", "version": "1"},
            "jsonSchemaDialect": DIALECT,
            "paths": paths,
            "components": {"schemas": components.schemas()},
        }
    )


def _paths(operations: Sequence[_Operation], components: _Components) -> dict[str, Json]:
    """Path items; templates that differ in the names of placeholders alone are one path, which OpenAPI demands."""
    templates: dict[str, str] = {}
    paths: dict[str, dict[str, Json]] = {}
    for operation in operations:
        path = operation.endpoint.path.partition("?")[0]
        template = templates.setdefault(PLACEHOLDER.sub("{}", path), path)
        method = operation.endpoint.method.lower()
        if method in paths.get(template, ()):
            # One path and method twice: of two backends, or told apart by a fixed query. The fragment is never sent.
            template = f"{path}#{operation.owner}"
        names = PLACEHOLDER.findall(template.partition("#")[0])
        paths.setdefault(template, {})[method] = operation.written(names, components)
    return paths


class _Operation:
    """One endpoint on its way to being written."""

    def __init__(self, endpoint: Endpoint, backend: Backend) -> None:
        self.endpoint = endpoint
        self.owner = endpoint.id
        self._backend = backend
        self._request = endpoint.request
        given = endpoint.input
        self._arguments = {name: given.property_document(name) for name in given.property_names}
        self._required = given.required
        #: What only a branch of the input declares: no rule of `send` can name it, so it goes where all others go.
        self._branched = {
            name: schema for name, schema in widen(given.document)["properties"].items() if name not in self._arguments
        }

    def documents(self) -> Iterator[Json]:
        yield from self._arguments.values()
        yield from (schema.document for schema in self.endpoint.outputs.values())

    def written(self, placeholders: Sequence[str], components: _Components) -> dict[str, Json]:
        parameters = {(each["in"], each["name"]): each for each in self._parameters(placeholders, components)}
        body = self._body(components)
        operation: dict[str, Json] = {
            "operationId": self.endpoint.id,
            "summary": self.endpoint.title,
            "description": self.endpoint.description.strip(),
            "servers": _servers(self._backend),
            "parameters": list(parameters.values()) or None,
            "requestBody": body,
            "responses": self._responses(components),
        }
        return {key: value for key, value in operation.items() if value is not None}

    def _parameters(self, placeholders: Sequence[str], components: _Components) -> Iterator[dict[str, Json]]:
        request = self._request
        for (argument, _, _), name in zip(request.segments, placeholders, strict=True):
            yield self._parameter("path", argument, name, components)
        for name, value in parse_qsl(request.fixed_query, keep_blank_values=True):
            yield {"name": name, "in": "query", "required": True, "schema": {"const": value}}
        for argument, _ in request.query:
            yield self._parameter("query", argument, self._rule(argument).name or argument, components)
        for name, schema in self._branched.items() if request.undeclared == "query" else ():
            yield {"name": name, "in": "query", "schema": schema}
        for argument, name, _ in request.headers:
            yield self._parameter("header", argument, name, components)
        for argument, _ in request.cookies:
            yield self._parameter("cookie", argument, self._rule(argument).name or argument, components)

    def _parameter(self, place: str, argument: str, name: str, components: _Components) -> dict[str, Json]:
        rule = self._rule(argument)
        schema = self._schema(argument, components)
        parameter: dict[str, Json] = {"name": name, "in": place}
        if place == "path" or argument in self._required:
            parameter["required"] = True
        if isinstance(schema, dict) and "description" in schema:
            parameter["description"] = schema["description"]
        if rule.encode == "json":
            return {**parameter, "content": {"application/json": {"schema": schema}}}
        return {**parameter, **_style(rule), "schema": schema}

    def _body(self, components: _Components) -> dict[str, Json] | None:
        request = self._request
        if request.encoder is None:
            return None
        kind = next(name for name, encoder in ENCODERS.items() if encoder is request.encoder)
        if request.whole is not None:
            content: dict[str, Json] = {"schema": self._schema(request.whole, components)}
            required = request.whole in self._required
        else:
            names = {field.argument: field.name for field in request.fields}
            wanted = [name for argument, name in names.items() if argument in self._required]
            properties = {name: self._schema(argument, components) for argument, name in names.items()}
            if request.undeclared == "body":
                properties = {**self._branched, **properties}
            schema: dict[str, Json] = {"type": "object", "properties": properties}
            if wanted:
                schema["required"] = wanted
            content, required = {"schema": schema}, bool(wanted)
            encoding = {name: _encoding(self._rule(argument)) for argument, name in names.items() if kind != "json"}
            if any(encoding.values()):
                content["encoding"] = {name: said for name, said in encoding.items() if said}
        body: dict[str, Json] = {"content": {_MEDIA_TYPES[kind]: content}}
        return {**body, "required": True} if required else body

    def _responses(self, components: _Components) -> dict[str, Json]:
        return {**self._successes(components), "default": _UNDECLARED}

    def _successes(self, components: _Components) -> dict[str, Json]:
        if self.endpoint.kind != "json":
            return {"2XX": {"description": "The answer.", "content": {"*/*": {}}}}
        return {
            status: {
                "description": "The full answer.",
                "content": {"application/json": {"schema": components.shown(self.owner, schema.document)}},
            }
            for status, schema in sorted(self.endpoint.outputs.items())
        } or {"2XX": {"description": "The answer, of which nothing is declared."}}

    def _schema(self, argument: str, components: _Components) -> Json:
        return components.shown(self.owner, self._arguments.get(argument, True))

    def _rule(self, argument: str) -> SendRule:
        return self._request.rules.get(argument, NO_RULE)


class _Components:
    """The definitions of many self-contained schemas under one roof.

    One name that means one thing everywhere is shared. Where it means two things, the schemas that reach it keep their
    definitions under names of their own; so no comparison of cycles is needed.
    """

    def __init__(self, documents: Iterable[tuple[str, Json]]) -> None:
        texts: dict[str, set[bytes]] = {}
        read: dict[int, tuple[Json, bytes]] = {}  # by id; contracts share the nodes of their schemas
        for _, document in documents:
            for name, node in _definitions(document).items():
                if id(node) not in read:
                    read[id(node)] = (node, json_text.canonical(node))
                texts.setdefault(name, set()).add(read[id(node)][1])
        self._ambiguous = {name for name, meanings in texts.items() if len(meanings) > 1}
        self._written: dict[str, Json] = {}
        self._prefixes: dict[tuple[str, bytes], str] = {}

    def shown(self, owner: str, document: Json) -> Json:
        """A schema with its references into the components; what it refers to is written there."""
        definitions = _definitions(document)
        prefix = self._prefix(owner, document) if self._ambiguous & definitions.keys() or _at_root(document) else ""
        for name, node in definitions.items():
            if prefix + name not in self._written:
                self._written[prefix + name] = None  # holds the place while it refers to itself
                self._written[prefix + name] = self._rewritten(node, document, prefix)
        shown = self._rewritten(document, document, prefix)
        if _at_root(document):
            self._written[prefix + "root"] = shown
        return shown

    def schemas(self) -> dict[str, Json]:
        return dict(sorted(self._written.items()))

    def _prefix(self, owner: str, document: Json) -> str:
        """A name of its own for each schema of one endpoint, in the order in which they are met."""
        key = (owner, json_text.canonical(document))
        if key not in self._prefixes:
            number = sum(1 for known, _ in self._prefixes if known == owner) + 1
            self._prefixes[key] = f"{_named(owner)}.{number}."
        return self._prefixes[key]

    def _rewritten(self, node: Json, document: Json, prefix: str) -> Json:
        if not isinstance(node, dict):
            return node
        return {
            keyword: _moved(value, document, prefix)
            if keyword == "$ref"
            else rebuilt(keyword, value, lambda inner: self._rewritten(inner, document, prefix))
            for keyword, value in node.items()
            if keyword not in _SILENT
        }


def _moved(reference: str, document: Json, prefix: str) -> str:
    found = resolve(document, reference)
    assert not isinstance(found, str), "a document with such a reference is refused"
    path = found[0]
    if path[:1] and path[0] in DEFINITIONS:
        place = ("components", "schemas", prefix + _named(str(path[1])), *path[2:])
    else:
        place = ("components", "schemas", prefix + "root", *path)
    return "#" + quote(pointer_of(place), safe="/~!$&'()*+,;=:@")


def _definitions(document: Json) -> dict[str, Json]:
    held = document if isinstance(document, dict) else {}
    return {_named(name): node for word in sorted(DEFINITIONS) for name, node in held.get(word, {}).items()}


def _at_root(document: Json) -> bool:
    """Whether something refers to the schema itself, or to a part of it that is no definition."""
    waiting = [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                found = resolve(document, reference)
                if not isinstance(found, str) and not (found[0][:1] and found[0][0] in DEFINITIONS):
                    return True
            waiting += _inside(node)
    return False


def _inside(node: dict[str, Json]) -> list[Json]:
    found: list[Json] = []
    for keyword, value in node.items():
        rebuilt(keyword, value, found.append)
        if keyword in DEFINITIONS:
            found += value.values()
    return found


def _named(name: str) -> str:
    """A name that may stand under `components` (OpenAPI 3.1 section 4.8.7.1)."""
    plain = (letter.isascii() and (letter.isalnum() or letter in "._-") for letter in name)
    return "".join(letter if fits else f"_{ord(letter):x}_" for letter, fits in zip(name, plain, strict=True))


def _style(rule: SendRule) -> dict[str, Json]:
    said = {"style": rule.style, "explode": rule.explode, "allowReserved": rule.reserved or None}
    return {word: value for word, value in said.items() if value is not None}


def _encoding(rule: SendRule) -> dict[str, Json]:
    return {"contentType": "application/json"} if rule.encode == "json" else _style(rule)


def _servers(backend: Backend) -> list[Json] | None:
    """Where clients of the pass-through connect; a backend without one is not shown, nor is its own address."""
    if backend.passthrough is None or backend.url is None:
        return None
    listen = backend.passthrough.listen
    scheme = "http" if backend.passthrough.tls is None else "https"
    base = urlsplit(backend.url).path.rstrip("/")
    if listen.host in _WILDCARDS:
        variables = {"host": {"default": "localhost", "description": "A name of the gateway's machine."}}
        return [{"url": f"{scheme}://{{host}}:{listen.port}{base}", "variables": variables}]
    return [{"url": f"{scheme}://{listen}{base}"}]
