"""The body of a request from its arguments: JSON, form or multipart; knows no path, no query and no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from gateway.backend.styles import NoForm, Writer, json_bytes, json_scalar, scalar
from gateway.record import record

BodyType = Literal["json", "form", "multipart"]


@record
class Payload:
    """A body and its Content-Type."""

    content_type: str
    content: bytes


@record
class Misfit:
    """An argument whose value has no form in this body."""

    argument: str
    reason: str


@record
class Field:
    """One argument that goes into the body, under its wire name."""

    argument: str
    name: str
    #: Writes the pairs of a form; unused for JSON and multipart.
    pairs: Writer
    as_json: bool
    empty: str | None


Fields = tuple[Field, ...]
Encoder = Callable[[Fields, Mapping[str, Any]], Payload | Misfit]


def encode_json(fields: Fields, accepted: Mapping[str, Any]) -> Payload | Misfit:
    """A JSON object of the arguments that were given; null is kept, absent is absent."""
    content: dict[str, Any] = {}
    for field in fields:
        if field.argument in accepted:
            value = accepted[field.argument]
            if field.as_json:
                text = json_scalar(value)
                if isinstance(text, NoForm):
                    return Misfit(field.argument, text.reason)
                value = text
            content[field.name] = value
    try:
        return Payload("application/json", json_bytes(content))
    except ValueError:
        return _culprit(fields, accepted)


def encode_whole(argument: str, value: Any) -> Payload | Misfit:
    """One value as the whole JSON body, whatever its type."""
    try:
        return Payload("application/json", json_bytes(value))
    except ValueError:
        return Misfit(argument, "cannot be written as JSON: it holds text that is not valid Unicode, or is too deep")


def encode_form(fields: Fields, accepted: Mapping[str, Any]) -> Payload | Misfit:
    """`application/x-www-form-urlencoded`; null is left out."""
    written = []
    for field in fields:
        if field.argument in accepted:
            text = field.pairs(accepted[field.argument])
            if isinstance(text, NoForm):
                return Misfit(field.argument, text.reason)
            if text is not None:
                written.append(text)
    return Payload("application/x-www-form-urlencoded", "&".join(written).encode())


def encode_multipart(fields: Fields, accepted: Mapping[str, Any]) -> Payload | Misfit:
    """`multipart/form-data` (RFC 7578): text parts; a list is repeated parts, an object an `application/json` part."""
    parts: list[bytes] = []
    for field in fields:
        if field.argument in accepted:
            try:
                parts += [_part(field.name, item, field.as_json) for item in _items(field, accepted[field.argument])]
            except ValueError:
                return Misfit(field.argument, "cannot be written: it holds text that is not valid Unicode")
    # Derived from the content, so that the same call is the same bytes and no content can hold its own boundary.
    boundary = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32].encode()
    lines = b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts)
    return Payload(f"multipart/form-data; boundary={boundary.decode()}", lines + b"--" + boundary + b"--\r\n")


ENCODERS: Mapping[BodyType, Encoder] = {"json": encode_json, "form": encode_form, "multipart": encode_multipart}


def _items(field: Field, value: Any) -> list[Any]:
    if value is None:
        return []
    if type(value) is list and not field.as_json:
        if value:
            return value
        return [] if field.empty in (None, "omit") else ["" if field.empty == "blank" else field.empty]
    return [value]


def _part(name: str, value: Any, as_json: bool) -> bytes:
    plain = None if as_json else scalar(value)
    content, kind = (plain.encode(), b"") if plain is not None else (json_bytes(value), b"application/json")
    # RFC 7578 section 4.2 leaves escaping open; browsers write these three so
    escaped = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").encode()
    head = b'Content-Disposition: form-data; name="' + escaped + b'"\r\n'
    return head + (b"Content-Type: " + kind + b"\r\n" if kind else b"") + b"\r\n" + content


def _culprit(fields: Fields, accepted: Mapping[str, Any]) -> Misfit:
    for field in fields:
        whole = encode_whole(field.argument, accepted.get(field.argument))
        if isinstance(whole, Misfit):
            return whole
    return Misfit(fields[0].argument, "makes the body too deep to be written as JSON")
