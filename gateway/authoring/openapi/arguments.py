"""The request line of an operation and its parameters, each to an argument and where it goes. Knows no body."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from gateway.authoring.openapi.making import Making, Stop, declare, schema_of, spelling, unfit
from gateway.authoring.openapi.normal import Parameter

Json = Any

#: Headers that a contract has no argument for: OpenAPI 3 ignores the first three, the others are the connection's.
_NO_ARGUMENT = frozenset(
    (
        "accept",
        "content-type",
        "authorization",
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
        "user-agent",
        "traceparent",
        "x-tool-call-id",
        "proxy-authorization",
        "if-none-match",
        "if-modified-since",
        "range",
        "cookie",
    )
)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def request_line(making: Making) -> str:
    operation = making.operation
    if operation.method == "TRACE":
        raise Stop(operation.at, "TRACE is no method of a contract")
    path, mark, query = _plain_path(operation.path).partition("?")
    if not path.startswith("/"):
        raise Stop(operation.at, "its path does not start with `/`")
    if any(part in (".", "..") for part in path.split("/")):
        raise Stop(operation.at, "its path has a `.` or `..` segment")
    if "{" in query:
        raise Stop(operation.at, "its path has a placeholder inside a value of the query")
    texts = _PLACEHOLDER.split(path)
    if any("{" in text or "}" in text for text in texts[::2]) or "" in texts[1::2]:
        raise Stop(operation.at, "its path has a `{` or `}` without a partner, or a placeholder without a name")
    texts[::2] = [quote(text, safe="/~!$&'()*+,;=:@%-._") for text in texts[::2]]
    spelled = "".join(f"{{{text}}}" if index % 2 else text for index, text in enumerate(texts))
    return f"{operation.method} {spelled}{mark}{quote(query, safe='/?~!$&()*+,;=:@%-._[]')}"


def _plain_path(path: str) -> str:
    """A path without the query that some write into it, as `?id={id}` or `{?page,size}`: arguments go there anyway."""
    path = re.sub(r"\{[?&][^{}]*\}", "", path.partition("#")[0])  # a fragment only tells two apart, and is never sent
    path, mark, query = path.partition("?")
    fixed = [pair for pair in query.split("&") if pair and not re.fullmatch(r"[^={}]+=\{[^{}]+\}", pair)]
    return path + mark + "&".join(fixed) if fixed else path


def _in_query(path: str) -> dict[str, tuple[str, bool]]:
    """Placeholders that a path has in its query: the name on the wire, and whether there is always one."""
    found = {name: (wire, True) for wire, name in re.findall(r"[?&]([^={}&]+)=\{([^{}]+)\}", path)}
    for names in re.findall(r"\{[?&]([^{}]*)\}", path):
        found |= {name.rstrip("*"): (name.rstrip("*"), False) for name in names.split(",") if name}
    return found


def add_parameters(making: Making) -> None:
    operation = making.operation
    making.placeholders = tuple(dict.fromkeys(_PLACEHOLDER.findall(_plain_path(operation.path))))
    in_query = _in_query(operation.path)
    parameters = [_moved(each, in_query) for each in operation.parameters]
    given = {each.name: each for each in parameters if each.where == "path"}
    for name in making.placeholders:
        parameter = given.pop(name, None)
        if parameter is None:
            making.note(operation.at, f"the path's `{{{name}}}` is not described; it is taken for a text")
            parameter = Parameter(name, "path", True, None, None, operation.at)
        _parameter(making, parameter)
    for parameter in given.values():
        making.note(parameter.at, f"the path has no `{{{parameter.name}}}`; the parameter is left out")
    for place in ("query", "header", "cookie"):
        for parameter in parameters:
            if parameter.where == place:
                _parameter(making, parameter)


def _moved(parameter: Parameter, in_query: dict[str, tuple[str, bool]]) -> Parameter:
    """A parameter for a placeholder in the query, where it goes."""
    if parameter.where not in ("path", "query") or parameter.name not in in_query:
        return parameter
    wire, always = in_query[parameter.name]
    required = always or (parameter.required and parameter.where == "query")
    return replace(parameter, name=wire, where="query", required=required)


def _parameter(making: Making, parameter: Parameter) -> None:
    """One argument; or several, for an object of which each key is a parameter of its own."""
    where, name = parameter.where, parameter.name
    carried = next((each for each in making.credentials if each.carried == (where, name)), None)
    if carried is not None:
        making.note(parameter.at, f"`{name}` is the credential `{carried.name}`, which the backend's `auth` sends")
        return
    if where == "header" and name.lower() in _NO_ARGUMENT:
        making.note(parameter.at, f"the header `{name}` is the gateway's own or a credential; it is no argument")
        return
    if where in ("header", "cookie") and not _TOKEN.fullmatch(name):
        unfit(making, parameter, f"`{name}` is no name for a {where}")
        return
    if parameter.unfit is not None:
        unfit(making, parameter, parameter.unfit)
        return
    types = making.translator.types(parameter.schema)
    rule: dict[str, Json] = {}
    if parameter.style == "deepObject" and types and "object" not in types:
        unfit(making, parameter, "`style: deepObject` is for objects alone")
        return
    if parameter.as_json:
        rule["encode"] = "json"
    elif types == {"object"}:
        if where == "query" and parameter.style == "deepObject":
            rule["style"] = "deepObject"
        elif where == "query" and parameter.explode is not False and parameter.style in (None, "form"):
            _exploded(making, parameter)
            return
        else:
            unfit(making, parameter, "an object has no spelling there")
            return
    elif types == {"array"}:
        if where == "cookie":
            unfit(making, parameter, "a list has no spelling in a cookie")
            return
        inner = making.translator.types(making.translator.items(parameter.schema))
        if inner and inner <= {"object", "array"}:
            unfit(making, parameter, "a list of lists or objects has no spelling there")
            return
        rule |= spelling(parameter)
        if parameter.blank and where == "query":
            rule["empty"] = "blank"
    elif parameter.style == "deepObject" and where == "query":
        rule["style"] = "deepObject"
        making.note(
            parameter.at, f"of `{parameter.name}` only an object can be sent, since `style: deepObject` has no other"
        )
    if parameter.reserved and where == "query" and "encode" not in rule:
        rule["reserved"] = True
    declare(making, parameter, rule, schema_of(making, parameter))


def _exploded(making: Making, parameter: Parameter) -> None:
    """OpenAPI 3, style `form` with `explode`: each key of an object is a pair of its own."""
    assert parameter.schema is not None
    flat = making.translator.flat(parameter.schema)
    if flat is None:
        unfit(making, parameter, "its keys are not known, and each would be a parameter of its own")
        return
    for name, node in flat.properties.items():
        required = parameter.required and name in flat.required
        _parameter(making, Parameter(name, "query", required, None, node, node))
