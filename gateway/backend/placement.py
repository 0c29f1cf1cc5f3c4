"""Where each argument of an endpoint goes: checks `request` and `send` at load. Knows no contract and no values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

from gateway.backend.body import BodyType
from gateway.backend.styles import STYLES, NoForm, header
from gateway.record import record

Where = Literal["path", "query", "header", "cookie", "body"]
Style = Literal["form", "spaceDelimited", "pipeDelimited", "deepObject", "simple"]


@record
class SendRule:
    """`send.ARG`: what the operator wrote of where an argument goes; None is the default of its place."""

    where: Where | None = None  # YAML key `in`
    name: str | None = None
    style: Style | None = None
    explode: bool | None = None
    reserved: bool = False
    encode: Literal["json"] | None = None
    #: `omit`, `blank`, or the literal text that an empty list becomes.
    empty: str | None = None


@record
class Body:
    """`send.body`: the body's media type, and the one argument that is the whole of it."""

    type: BodyType = "json"
    argument: str | None = None


@record
class RequestFault:
    """Why a request cannot be compiled; `path` leads into the endpoint: `("send", "include", "style")`."""

    path: tuple[str | int, ...]
    message: str


class Draft:
    """An endpoint's `request` and `send` while they are checked; every fault is found, not only the first."""

    def __init__(
        self,
        method: str,
        path: str,
        sends: dict[str, SendRule],
        body: Body | None,
        arguments: Mapping[str, Any],
        required: Collection[str] | None,
        open_input: bool,
        credential: str | None = None,
    ) -> None:
        self.credential = credential
        self.method, self.path, self.sends, self.body = method, path, sends, body
        self.arguments, self.required, self.open_input = arguments, required, open_input
        self.default: Literal["query", "body"] = "query" if method in _IN_QUERY else "body"
        self.placeholders = list(dict.fromkeys(PLACEHOLDER.findall(path.partition("?")[0])))
        self.filled_by: dict[str, str] = {}
        self.places: dict[str, list[str]] = {place: [] for place in ("path", "query", "header", "cookie", "body")}
        self.found: list[RequestFault] = []
        #: Arguments that every call with a value for them will be refused for.
        self.warnings: list[RequestFault] = []

    def rule(self, argument: str) -> SendRule:
        return self.sends.get(argument, NO_RULE)

    def wire(self, argument: str) -> str:
        return self.rule(argument).name or argument

    def faults(self) -> list[RequestFault]:
        self._check_request_line()
        self._fill_placeholders()
        for argument in self.arguments:
            self._place(argument)
        for argument in self.sends:
            if argument not in self.arguments and not self.open_input:
                self._fault(("send", argument), f"`{argument}` is no argument of this endpoint's input")
        for argument in self.arguments:
            self._check_rule(argument, self.rule(argument))
        self._check_body()
        self._check_shared_names()
        return self.found

    def _fault(self, path: tuple[str | int, ...], message: str) -> None:
        self.found.append(RequestFault(path, message))

    def _check_request_line(self) -> None:
        at = ("request",)
        if self.method not in _METHODS:
            self._fault(at, f"the method must be one of {', '.join(_METHODS)}, in capitals")
        path, _, query = self.path.partition("?")
        if not path.startswith("/"):
            self._fault(at, "the path must start with `/`")
        if re.search(r"\s", self.path):
            self._fault(at, "the path holds a space; write `%20` where the backend's path really has one")
        elif "#" in self.path:
            self._fault(at, "a fragment (`#`) is never sent; write `%23` where the backend's path really has one")
        elif "{" in PLACEHOLDER.sub("", path) or "}" in PLACEHOLDER.sub("", path):
            self._fault(at, "a `{` or `}` of the path has no partner")
        elif not _PATH_TEXT(PLACEHOLDER.sub("", path)):
            self._fault(at, "the path holds a character that must be percent-encoded")
        elif "{" in query:
            self._fault(
                at, "a placeholder stands in the query; arguments go there by name, or with `send: {ARG: {in: query}}`"
            )
        elif not _QUERY_TEXT(query):
            self._fault(at, "the query of the path holds a character that must be percent-encoded")
        if any(part in (".", "..") for part in path.split("/")):
            self._fault(at, "the path holds a `.` or `..` segment; write the path it leads to")

    def _fill_placeholders(self) -> None:
        for argument, rule in self.sends.items():
            if rule.where == "path" and argument in self.arguments:
                name = rule.name or argument
                if name not in self.placeholders:
                    self._fault(("send", argument, "in"), f"the path has no placeholder `{{{name}}}` for `{argument}`")
                elif name in self.filled_by:
                    self._fault(("send", argument), f"`{{{name}}}` is already filled by `{self.filled_by[name]}`")
                else:
                    self.filled_by[name] = argument
        for name in self.placeholders:
            if name in self.filled_by:
                continue
            if not name:
                self._fault(("request",), "`{}` names no argument")
            elif name not in self.arguments:
                self._fault(
                    ("request",), f"the placeholder `{{{name}}}` has no argument; declare `{name}` in the input"
                )
            elif self.rule(name).where not in (None, "path"):
                place = self.rule(name).where
                self._fault(
                    ("send", name, "in"),
                    f"`{name}` is sent to two places, the path and the {place}; give each an argument of its own",
                )
            else:
                self.filled_by[name] = name
        for name, argument in self.filled_by.items():
            if self.required is not None and argument not in self.required and not self._has_default(argument):
                self._fault(
                    ("request",), f"`{{{name}}}` needs `{argument}` in every call; list it under the input's `required`"
                )

    def _has_default(self, argument: str) -> bool:
        schema = self.arguments[argument]
        return isinstance(schema, dict) and "default" in schema

    def _place(self, argument: str) -> None:
        where = self.rule(argument).where
        in_path = argument in self.filled_by.values()
        if self.body is not None and self.body.argument == argument:
            if in_path or where not in (None, "body"):
                other = "path" if in_path else where
                self._fault(
                    ("send", "body", "argument"), f"`{argument}` is sent to two places, the body and the {other}"
                )
            self.places["body"].append(argument)
        elif in_path:
            if where is None and self.rule(argument).name not in (None, argument):
                self._fault(
                    ("send", argument, "name"), f"`{argument}` fills `{{{argument}}}`; write the wire name in the path"
                )
            self.places["path"].append(argument)
        elif where != "path":
            self.places[where or self.default].append(argument)

    def _check_rule(self, argument: str, rule: SendRule) -> None:
        place = next((name for name, held in self.places.items() if argument in held), None)
        if place is None:
            return
        at = ("send", argument)
        spelled = place if place != "body" else f"{self.body.type if self.body else 'json'} body"
        styles = _STYLES_OF[spelled]
        if rule.style is not None and rule.style not in styles:
            known = f"only {' or '.join(f'`{style}`' for style in styles)}" if styles else "no style"
            self._fault((*at, "style"), f"`style: {rule.style}` has no meaning in a {spelled}, which knows {known}")
        if rule.explode is not None and not styles:
            self._fault((*at, "explode"), f"`explode` has no meaning in a {spelled}")
        if rule.style == "deepObject" and rule.explode is False:
            self._fault((*at, "explode"), "`style: deepObject` always writes one pair for each key")
        if rule.encode == "json" and rule.style not in (None, *styles[:1]):
            self._fault((*at, "encode"), f"`encode: json` writes one text, so `style: {rule.style}` has no meaning")
        if rule.reserved and spelled not in ("query", "form body"):
            self._fault(
                (*at, "reserved"), f"`reserved` has no meaning in a {spelled}; every value stays one part of it"
            )
        if rule.empty is not None and spelled not in ("query", "header", "form body", "multipart body"):
            self._fault((*at, "empty"), f"`empty` has no meaning in a {spelled}")
        if place == "query" and is_credential(self.wire(argument), self.credential):
            self._fault(
                at,
                f"`{argument}` would stand beside the credential of the backend's `auth.query`, which no argument may;"
                " take it out of `input`",
            )
        if place == "header":
            self._check_header(at, self.wire(argument), rule)
        if place == "cookie" and not _TOKEN(self.wire(argument)):
            self._fault((*at, "name"), f"`{self.wire(argument)}` is no name for a cookie")
        if self.body is not None and self.body.argument == argument and rule != SendRule(where=rule.where):
            self._fault(at, f"`{argument}` is the whole body, so nothing else can be said of how it is sent")
        self._check_schema(argument, rule, spelled)

    def _check_header(self, at: tuple[str, ...], name: str, rule: SendRule) -> None:
        if not _TOKEN(name):
            self._fault((*at, "name"), f"`{name}` is no name for a header")
        elif name.lower() in _RESERVED_HEADERS:
            self._fault((*at, "name"), f"the header `{name}` {_RESERVED_HEADERS[name.lower()]}")
        if rule.empty is not None and isinstance(header(rule.empty, False)([rule.empty]), NoForm):
            self._fault((*at, "empty"), "this text cannot stand in a header")

    def _check_schema(self, argument: str, rule: SendRule, spelled: str) -> None:
        """Warn of an argument no value of which has a form here, as far as its own `type` and its items' tell."""
        if spelled in ("json body", "multipart body") or rule.encode == "json":
            return
        if self.body is not None and self.body.argument == argument:
            return
        types = _types_of(self.arguments[argument])
        if rule.style == "deepObject":
            if types and "object" not in types:
                self._fault(
                    ("send", argument, "style"), f"`style: deepObject` writes objects, and `{argument}` is none"
                )
            return
        items = (
            _types_of(self.arguments[argument].get("items")) if "array" in types and spelled != "cookie" else _NESTED
        )
        if types and not types - _NESTED and items and not items - _NESTED:
            cure = "`style: deepObject` or `encode: json`" if "deepObject" in _STYLES_OF[spelled] else "`encode: json`"
            said = f"no value of `{argument}` has a form in a {spelled}; declare {cure} for it"
            self.warnings.append(RequestFault(("send", argument), said))

    def _check_body(self) -> None:
        in_body = self.places["body"]
        if in_body and self.method in _BODILESS:
            for argument in in_body:
                self._fault(("send", argument), f"`{argument}` would be a body of a {self.method}, which has none")
        elif self.body is not None and self.method in _BODILESS:
            self._fault(("send", "body"), f"a {self.method} has no body")
        if self.body is None or self.body.argument is None:
            return
        whole = self.body.argument
        if whole not in self.arguments:
            self._fault(("send", "body", "argument"), f"`{whole}` is no argument of this endpoint's input")
        for argument in in_body:
            if argument != whole:
                self._fault(
                    ("send", argument),
                    f"`{argument}` has no place: the body is `{whole}` as a whole; say where it goes with `in`",
                )

    def _check_shared_names(self) -> None:
        for place in ("query", "header", "cookie", "body"):
            seen: dict[str, str] = {}
            for argument in self.places[place]:
                name = self.wire(argument).lower() if place == "header" else self.wire(argument)
                if name in seen:
                    self._fault(("send", argument), f"`{argument}` and `{seen[name]}` are both `{name}` in the {place}")
                seen[name] = argument


def is_credential(name: str, credential: str | None) -> bool:
    """Whether a backend may read a query argument as the credential: some ignore case, or read `a[]` as `a`."""
    return credential is not None and name.partition("[")[0].casefold() == credential.partition("[")[0].casefold()


NO_RULE: Final = SendRule()
IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_METHODS: Final = (*sorted(IDEMPOTENT), "PATCH", "POST")
#: Types that no single piece of text can spell.
_NESTED: Final = {"array", "object", "null"}
_IN_QUERY: Final = frozenset({"GET", "HEAD", "DELETE"})
_BODILESS: Final = frozenset({"GET", "HEAD"})
PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_PATH_TEXT: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*\Z").match
_QUERY_TEXT: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]-]|%[0-9A-Fa-f]{2})*\Z").match
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z").match

#: Headers that are the gateway's, the connection's or the backend's `auth` to write, and why no argument may.
_RESERVED_HEADERS: Final = {
    **dict.fromkeys(
        (
            "host",
            "content-length",
            "transfer-encoding",
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "upgrade",
            "expect",
        ),
        "belongs to the connection",
    ),
    **dict.fromkeys(("accept", "accept-encoding", "content-type", "user-agent"), "is the gateway's own"),
    **dict.fromkeys(("traceparent", "x-tool-call-id"), "is the gateway's own"),
    **dict.fromkeys(
        ("authorization", "proxy-authorization"), "is a credential, which the backend's `auth` or `headers` adds"
    ),
    **dict.fromkeys(
        ("if-none-match", "if-modified-since", "range"), "would ask for less than an answer, which no tool can read"
    ),
    "cookie": "is written by `in: cookie`, one argument a cookie",
}

# The styles of each place; the first is its default. OpenAPI 3.1, "Style Values".
_STYLES_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("simple",),
    "query": STYLES,
    "header": ("simple",),
    "cookie": ("form",),
    "json body": (),
    "form body": STYLES,
    "multipart body": (),
}


def _types_of(schema: Any) -> set[str]:
    """What the schema's own `type` allows; empty where it does not say."""
    said = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(said, str):
        return {said}
    return {name for name in said if isinstance(name, str)} if isinstance(said, list) else set()
