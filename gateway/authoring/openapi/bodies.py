"""A request body to arguments, or to one; what no tool can write is left to the pass-through. Knows no parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gateway.authoring.openapi.making import Making, Stop, declare, described, schema_of, spelling, unfit
from gateway.authoring.openapi.normal import Body, Encoding, Parameter, is_json
from gateway.authoring.openapi.translate import Flat

Json = Any

_BODILESS = ("GET", "HEAD")


def add_body(making: Making) -> None:
    body, method = making.operation.body, making.operation.method
    if body is None:
        return
    if method in _BODILESS:
        flat = None if body.schema is None else making.translator.flat(body.schema)
        if flat is not None and not flat.properties:
            return  # a body of nothing
        if body.required:
            raise Stop(body.at, f"a {method} with a body is no request of a contract, and the body is required")
        making.note(body.at, f"a {method} with a body is no request of a contract; the body is left out")
        return
    if body.kind == "raw":
        if body.required:
            making.kind = "raw"
            making.note(
                body.at, f"the body is {body.media}, which no tool can write; the pass-through alone carries it"
            )
        else:
            making.note(body.at, f"the body is {body.media}, which no tool can write; it is left out")
        return
    if body.kind == "json":
        _json_body(making, body)
    else:
        _form_body(making, body)


def _json_body(making: Making, body: Body) -> None:
    if not body.media.lower().startswith(("application/json", "*/*", "application/*", "text/json")):
        making.note(body.at, f"the body is described as {body.media}, and is sent as application/json")
    flat = None if body.schema is None else making.translator.flat(body.schema)
    # Without its body a call is another one: where it may be left out, so must all of its fields.
    if flat is not None and (body.required or not flat.required):
        for name, node in flat.properties.items():
            schema = making.translator.schema(node, "input")
            field_ = Parameter(name, "field", name in flat.required, None, node, node)
            declare(making, field_, {}, {} if isinstance(schema, bool) else schema)
        return
    schema = {} if body.schema is None else making.translator.schema(body.schema, "input")
    name = body.name if re.fullmatch(r"[A-Za-z0-9_.-]{1,56}", body.name) else "body"
    if name in making.properties or name in making.placeholders:
        name = next(each for each in ("body", "whole_body", "request_body") if each not in making.properties)
    making.properties[name] = described({} if isinstance(schema, bool) else schema, body.description)
    if body.required:
        making.required.append(name)
    making.send["body"] = {"argument": name}


def _form_body(making: Making, body: Body) -> None:
    fields = _fields_of(making, body)
    files = [each for each in fields or () if each.is_file or making.translator.is_file(each.schema)]
    if fields is None or files:
        making.kind = "multipart"
        what = f"the file `{files[0].name}`" if files else f"the body ({body.media}), whose fields are not known,"
        at = files[0].at if files else body.at
        making.note(at, f"{what} is nothing that a tool can send; the pass-through alone carries it")
        return
    group = {"type": body.kind}
    for parameter in fields:
        if parameter.unfit is not None:
            unfit(making, parameter, parameter.unfit)
            continue
        rule = _field_rule(making, parameter, body)
        if rule is None:
            unfit(making, parameter, "`style: deepObject` is for objects alone")
        else:
            declare(making, parameter, rule, schema_of(making, parameter))
    making.send = {"body": group, **making.send}


def _fields_of(making: Making, body: Body) -> list[Parameter] | None:
    """The fields of a form; None where they are not known."""
    if body.fields or body.schema is None:
        return list(body.fields)
    flat = making.translator.flat(body.schema)
    return None if flat is None else list(_described_fields(body, flat))


def _described_fields(body: Body, flat: Flat) -> Iterator[Parameter]:
    for name, node in flat.properties.items():
        encoding = body.encoding.get(name, Encoding())
        as_json = encoding.content_type is not None and is_json(encoding.content_type)
        yield Parameter(
            name,
            "field",
            body.required and name in flat.required,
            None,
            node,
            node,
            style=encoding.style,
            explode=encoding.explode,
            reserved=encoding.reserved,
            as_json=as_json,
        )


def _field_rule(making: Making, parameter: Parameter, body: Body) -> dict[str, Json] | None:
    """How a field of a form is spelled; an object without a style is JSON text (OpenAPI 3, Encoding Object).

    None where it has no spelling."""
    types = making.translator.types(parameter.schema)
    if body.kind == "multipart":
        if types == {"array"} and (parameter.explode is False or parameter.style not in (None, "form")):
            making.note(parameter.at, f"the list `{parameter.name}` is sent as a part for each item")
        return {"encode": "json"} if parameter.as_json and types != {"object"} else {}
    if parameter.style == "deepObject":
        return {"style": "deepObject"} if not types or "object" in types else None
    inner = making.translator.types(making.translator.items(parameter.schema))
    nested = types == {"array"} and inner and inner <= {"object", "array"}
    if nested:
        making.note(parameter.at, f"the list `{parameter.name}` is sent as one JSON text")
    if parameter.as_json or types == {"object"} or nested:
        return {"encode": "json"}
    if types == {"array"}:
        return spelling(parameter)
    return {"reserved": True} if parameter.reserved else {}
