"""Accepted input to HTTP request: compiled at load, run at every call. Pure: knows no contract, no schema, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from gateway.backend.body import ENCODERS, Encoder, Field, Misfit, Payload, encode_whole
from gateway.backend.exchange import Request
from gateway.backend.placement import (
    IDEMPOTENT,
    NO_RULE,
    PLACEHOLDER,
    Body,
    Draft,
    RequestFault,
    SendRule,
    Style,
    Where,
    is_credential,
)
from gateway.backend.styles import OMIT, NoForm, Writer, cookie, header, json_segment, pairs, segment
from gateway.record import record

__all__ = (
    "Body",
    "RequestBuilder",
    "RequestFault",
    "SendRule",
    "Style",
    "Unsendable",
    "Where",
    "compile_request",
)


@record
class Unsendable:
    """An argument whose value has no form in its place; nothing is sent. `reason` continues "`argument` …"."""

    argument: str
    reason: str


@record
class RequestBuilder:
    """One endpoint's request, ready to be filled; `build` is the call path, `lost` is for checks at load."""

    backend: str
    method: str
    #: The path up to its first placeholder, then for each one its argument and the text that follows it.
    start: str
    segments: tuple[tuple[str, Writer, str], ...]
    #: A query the operator wrote into the path, without its `?`.
    fixed_query: str
    query: tuple[tuple[str, Writer], ...]
    headers: tuple[tuple[str, str, Writer], ...]
    cookies: tuple[tuple[str, Writer], ...]
    fields: tuple[Field, ...]
    encoder: Encoder | None
    #: The argument that is the whole body.
    whole: str | None
    declared: frozenset[str]
    #: Where an argument goes that an open input allows and nothing declares.
    undeclared: Literal["query", "body"]
    timeout: float
    idempotent: bool
    fixed_headers: tuple[tuple[str, str], ...] = ()
    rules: Mapping[str, SendRule] = field(default_factory=dict)
    #: Arguments of which no value can be sent, though each call without them can: worth a warning at load.
    warnings: tuple[RequestFault, ...] = ()
    #: The name of the backend's credential in the query, which no undeclared argument may bear.
    credential: str | None = None

    @property
    def path_arguments(self) -> tuple[str, ...]:
        """The arguments that fill placeholders."""
        return tuple(argument for argument, _, _ in self.segments)

    def build(self, accepted: Mapping[str, Any], extra_headers: Iterable[tuple[str, str]] = ()) -> Request | Unsendable:
        """The request for a checked input, or the argument that has no form in its place."""
        extra = () if self.declared.issuperset(accepted) else [key for key in accepted if key not in self.declared]
        target = self._target(accepted, extra)
        if isinstance(target, Unsendable):
            return target
        headers = self._headers(accepted) if self.headers or self.cookies else self.fixed_headers
        if isinstance(headers, Unsendable):
            return headers
        body = self._body(accepted, extra) if self.encoder is not None else None
        if body is None:
            return Request(
                self.backend, self.method, target, (*headers, *extra_headers), None, self.timeout, self.idempotent
            )
        if isinstance(body, Misfit):
            return Unsendable(body.argument, body.reason)
        headers = (*headers, ("Content-Type", body.content_type), *extra_headers)
        return Request(self.backend, self.method, target, headers, body.content, self.timeout, self.idempotent)

    def lost(self, argument: str, value: Any) -> str | None:
        """Why this value would never reach the backend, as the end of a sentence; None where it arrives, or where
        `empty: omit` accepts that it does not. For an argument in a JSON body every value arrives."""
        writer = self._writer(argument)
        if writer is None:
            return None
        text = writer(value)
        if isinstance(text, NoForm):
            return text.reason
        if text is not None or self.rules.get(argument, NO_RULE).empty == OMIT:
            return None
        what = "null" if value is None else "an empty list" if value == [] else "an empty object"
        cure = "" if value is None else "`empty: blank` or a literal text gives it one, "
        return f"is {what}, which has no form there and would not be sent; {cure}`empty: omit` accepts that it is not"

    def _writer(self, argument: str) -> Writer | None:
        named = {name: writer for name, writer, _ in self.segments}
        named |= {name: writer for name, _, writer in self.headers}
        named |= dict((*self.query, *self.cookies))
        if argument in named:
            return named[argument]
        if self.encoder in (None, ENCODERS["json"]) or self.whole is not None:
            return None
        return next((field.pairs for field in self.fields if field.argument == argument), None)

    def _target(self, accepted: Mapping[str, Any], extra: Iterable[str]) -> str | Unsendable:
        target = self.start
        for argument, writer, text in self.segments:
            if argument not in accepted:
                return Unsendable(argument, "is needed in the path and was not given")
            piece = writer(accepted[argument])
            if not isinstance(piece, str):
                return Unsendable(argument, "has no form in a path" if piece is None else piece.reason)
            target += piece + text
        written = [self.fixed_query] if self.fixed_query else []
        for argument, writer in self.query:
            if argument in accepted:
                piece = writer(accepted[argument])
                if piece is None:
                    continue
                if isinstance(piece, NoForm):
                    return Unsendable(argument, piece.reason)
                written.append(piece)
        if extra and self.undeclared == "query":
            for argument in extra:
                if is_credential(argument, self.credential):
                    return Unsendable(argument, "is none of this tool's: the gateway itself writes what is named so")
                piece = _query_writer(argument, NO_RULE)(accepted[argument])
                if isinstance(piece, NoForm):
                    return Unsendable(argument, piece.reason)
                if piece is not None:
                    written.append(piece)
        return f"{target}?{'&'.join(written)}" if written else target

    def _headers(self, accepted: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | Unsendable:
        written = list(self.fixed_headers)
        for argument, name, writer in self.headers:
            if argument in accepted:
                text = writer(accepted[argument])
                if isinstance(text, NoForm):
                    return Unsendable(argument, text.reason)
                if text is not None:
                    written.append((name, text))
        crumbs = []
        for argument, writer in self.cookies:
            if argument in accepted:
                text = writer(accepted[argument])
                if isinstance(text, NoForm):
                    return Unsendable(argument, text.reason)
                if text is not None:
                    crumbs.append(text)
        if crumbs:
            written.append(("Cookie", "; ".join(crumbs)))
        return tuple(written)

    def _body(self, accepted: Mapping[str, Any], extra: Iterable[str]) -> Payload | Misfit | None:
        assert self.encoder is not None
        fields = self.fields
        if self.whole is None:
            if extra and self.undeclared == "body":
                fields += tuple(_body_field(argument, NO_RULE) for argument in extra)
            return self.encoder(fields, accepted)
        for argument in extra if self.undeclared == "body" else ():
            return Misfit(argument, f"has no place: the body is `{self.whole}` as a whole")
        if self.whole not in accepted:
            return None
        value = accepted[self.whole]
        if self.encoder is ENCODERS["json"]:
            return encode_whole(self.whole, value)
        if type(value) is not dict:
            return Misfit(self.whole, "is not an object, and only an object has a form in this body")
        answer = self.encoder(tuple(_body_field(key, NO_RULE) for key in value), value)
        return Misfit(self.whole, answer.reason) if isinstance(answer, Misfit) else answer


def compile_request(
    method: str,
    path: str,
    sends: Mapping[str, SendRule],
    body: Body | None,
    arguments: Mapping[str, Any],
    *,
    backend: str,
    base_path: str = "",
    timeout: float = 30.0,
    idempotent: bool | None = None,
    required: Collection[str] | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    open_input: bool = False,
    credential: str | None = None,
) -> RequestBuilder | tuple[RequestFault, ...]:
    """Compile `METHOD /path/{placeholder}` and its `send` group, or say everything that is wrong with it.

    `arguments` maps each input property to its schema document; `required` names those every accepted input holds (a
    placeholder's argument must be one); `base_path` is the path of the backend's URL; `headers` are fixed ones such as
    another `Accept`; `open_input` says that undeclared arguments may come;
    `credential` is the query name that the backend's `auth` writes, which no argument may bear.
    """
    draft = Draft(method, path, dict(sends), body, arguments, required, open_input, credential)
    faults = draft.faults()
    if faults:
        return tuple(faults)
    raw_path, _, fixed_query = path.partition("?")
    texts = PLACEHOLDER.split(raw_path)
    fillers = [draft.filled_by[name] for name in texts[1::2]]
    placed = draft.places
    whole = body.argument if body else None
    has_body = bool(placed["body"]) or (draft.default == "body" and (open_input or body is not None))
    return RequestBuilder(
        backend=backend,
        method=method,
        start=base_path.rstrip("/") + texts[0],
        segments=tuple(
            (name, _path_writer(draft.rule(name)), text) for name, text in zip(fillers, texts[2::2], strict=True)
        ),
        fixed_query=fixed_query,
        query=tuple((name, _query_writer(name, draft.rule(name))) for name in placed["query"]),
        headers=tuple((name, draft.wire(name), _header_writer(draft.rule(name))) for name in placed["header"]),
        cookies=tuple((name, cookie(draft.wire(name), draft.rule(name).encode == "json")) for name in placed["cookie"]),
        fields=tuple(_body_field(name, draft.rule(name)) for name in placed["body"] if name != whole),
        encoder=ENCODERS[body.type if body else "json"] if has_body else None,
        whole=whole,
        declared=frozenset(arguments),
        undeclared=draft.default,
        timeout=timeout,
        idempotent=method in IDEMPOTENT if idempotent is None else idempotent,
        fixed_headers=tuple(headers),
        rules=dict(sends),
        warnings=tuple(draft.warnings),
        credential=credential,
    )


def _path_writer(rule: SendRule) -> Writer:
    return json_segment if rule.encode == "json" else segment


def _query_writer(argument: str, rule: SendRule, form: bool = False) -> Writer:
    style = rule.style or "form"
    explode = style == "form" if rule.explode is None else rule.explode
    return pairs(rule.name or argument, style, explode, rule.reserved, rule.empty, rule.encode == "json", form)


def _header_writer(rule: SendRule) -> Writer:
    return header(rule.empty, rule.encode == "json")


def _body_field(argument: str, rule: SendRule) -> Field:
    writer = _query_writer(argument, rule, form=True)
    return Field(argument, rule.name or argument, writer, rule.encode == "json", rule.empty)
