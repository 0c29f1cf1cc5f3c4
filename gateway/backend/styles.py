"""How one JSON value is spelled in a path, a query, a form, a header or a cookie; knows no endpoint and no I/O."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, quote_plus

from gateway import json_text
from gateway.record import record


@record
class NoForm:
    """This value cannot be written here; `reason` completes the sentence "`name` …" and never shows the value."""

    reason: str


#: Text for the wire; None where the value leaves nothing there; NoForm where it may not go.
Writer = Callable[[Any], str | NoForm | None]

STYLES: Final = ("form", "spaceDelimited", "pipeDelimited", "deepObject")

#: What `empty` may say besides a literal text.
OMIT, BLANK = "omit", "blank"

_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]*\Z").match
_TRAILING_ZERO_OR_EXPONENT: Final = re.compile(rb"[0-9](?:\.0(?![0-9])|e)").search
#: RFC 9110 section 5.5: what a field value may not hold.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search
#: RFC 6265 section 4.1.1 cookie-octet, less `%`, which is our own escape.
_COOKIE_SAFE: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"
#: What `reserved: true` leaves as it is. `&`, `+`, `#`, `[`, `]` and `%` stay encoded: they would change the query.
_RESERVED_SAFE: Final = ":/?@!$'()*,;=~"
#: What the operator may write in a wire name and find again on the wire.
_NAME_SAFE: Final = "$:@!*(),/?'~"

_NO_OBJECT = "is an object, which has no form here; declare `encode: json` for it"
_NO_PLAIN_OBJECT = "is an object, which has no form here; declare `style: deepObject` or `encode: json` for it"
_NESTED = "holds a list or an object inside, which has no form here; declare `encode: json` for it"
_NULL_INSIDE = "holds a null inside, which has no form here"
_NO_TEXT = "holds text that is not valid Unicode, or a number with too many digits"


def scalar(value: Any) -> str | None:
    """The plain text of a string, boolean or number, every digit kept; None for anything else.

    `30.0` is `30`: in JSON Schema it is an integer, and a backend that parses integers refuses `30.0` and `3e1`.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # `kind is str` proves it, but not to mypy
    if kind is bool:
        return "true" if value else "false"
    try:
        if kind is int:
            return str(value)
        if kind is float and math.isfinite(value):
            return str(int(value)) if value.is_integer() else repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return None
    return None


def json_bytes(value: Any) -> bytes:
    """A value as compact JSON, whole numbers spelled as integers (`30.0` as `30`); raises ValueError like `encode`."""
    text = json_text.encode(value)
    if _TRAILING_ZERO_OR_EXPONENT(text) is not None:
        return json_text.encode(_whole(value))
    return text


def json_scalar(value: Any) -> str | NoForm | None:
    """JSON text in one parameter. A bare null is still left out: there is no null outside a JSON body."""
    if value is None:
        return None
    try:
        return json_bytes(value).decode()
    except ValueError:
        return NoForm(_NO_TEXT)


def segment(value: Any) -> str | NoForm | None:
    """A value as exactly one path segment, or a part of one; lists are joined with commas (OpenAPI `simple`)."""
    text = _joined(value, ",", _percent) if type(value) is list else _prefixed("", _path_text(value), _percent)
    if text == "":
        return NoForm("is empty, and an empty path segment would name another resource")
    # `.` and `..` alone are resolved away by whoever reads the target (RFC 3986 section 5.2.4)
    return text.replace(".", "%2E") if isinstance(text, str) and not text.strip(".") else text


def json_segment(value: Any) -> str | NoForm | None:
    """A value's JSON text as one path segment."""
    return _prefixed("", json_scalar(value) or _path_text(value), _percent)


def pairs(
    name: str, style: str, explode: bool, reserved: bool, empty: str | None, as_json: bool, form: bool = False
) -> Writer:
    """A writer of `name=value` pairs for a query, or for a form body where `form` says so."""
    encode = _form_percent if form else _percent
    if reserved:
        encode = _form_reserved_percent if form else _reserved_percent
    wire = quote(name, safe=_NAME_SAFE)
    prefix = wire + "="
    blank = _when_empty(prefix, empty, encode)
    if as_json:
        return lambda value: blank if value == [] and empty else _prefixed(prefix, json_scalar(value), encode)
    if style == "deepObject":
        return lambda value: _deep(wire, value, encode, blank)
    delimiter, forbidden = _DELIMITERS[style]

    def write(value: Any) -> str | NoForm | None:
        kind = type(value)
        if kind is str:
            text = value if _UNRESERVED(value) else encode(value)
            return NoForm(_NO_TEXT) if text is None else prefix + text
        if value is None:
            return None
        if kind is list:
            if not value:
                return blank
            if explode:
                return _joined(value, "&", encode, prefix)
            if forbidden and any(type(item) is str and forbidden in item for item in value):
                return NoForm(
                    f"holds {forbidden!r} inside an item, which `style: {style}` cannot tell from its delimiter"
                )
            joined = _joined(value, delimiter, _comma_safe(encode))
            return joined if isinstance(joined, NoForm) else prefix + joined
        plain = scalar(value)
        if plain is None:
            return NoForm(_NO_PLAIN_OBJECT if kind is dict else _why_not(value))
        return prefix + plain

    return write


def header(empty: str | None, as_json: bool) -> Writer:
    """A writer of one field value; what could end the line, or would not arrive as it is, has no form."""

    def write(value: Any) -> str | NoForm | None:
        if value is None:
            return None
        if as_json:
            text = json_scalar(value)
        elif type(value) is list:
            text = _header_list(value, empty)
        else:
            text = scalar(value) or (NoForm(_why_not(value)) if value != "" else "")
        if text is None or isinstance(text, NoForm):
            return text
        if _CONTROL(text) or text != text.strip(" \t"):
            return NoForm("holds a control character, or a space at either end, which a header cannot carry")
        return NoForm(_NO_TEXT) if _percent(text) is None else text

    return write


def cookie(name: str, as_json: bool) -> Writer:
    """A writer of one `name=value` of a Cookie header, percent-encoded outside RFC 6265's cookie-octet."""

    def write(value: Any) -> str | NoForm | None:
        if value is None:
            return None
        text = json_scalar(value) if as_json else scalar(value)
        if isinstance(text, NoForm):
            return text
        if text is None:
            return NoForm("is a list or an object, which has no form in a cookie; declare `encode: json` for it")
        try:
            return f"{name}={quote(text, safe=_COOKIE_SAFE)}"
        except UnicodeEncodeError:
            return NoForm(_NO_TEXT)

    return write


_Encode = Callable[[str], str | None]


def _percent(text: str) -> str | None:
    if _UNRESERVED(text):
        return text
    try:
        return quote(text, safe="~")
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8
        return None


def _reserved_percent(text: str) -> str | None:
    try:
        return quote(text, safe=_RESERVED_SAFE)
    except UnicodeEncodeError:
        return None


def _form_percent(text: str) -> str | None:
    try:
        return quote_plus(text, safe="~")
    except UnicodeEncodeError:
        return None


def _form_reserved_percent(text: str) -> str | None:
    try:
        return quote_plus(text, safe=_RESERVED_SAFE)
    except UnicodeEncodeError:
        return None


# OpenAPI's delimiters as they travel, and the character no item may hold because nothing would tell them apart.
_DELIMITERS: Final = {"form": (",", ""), "spaceDelimited": ("%20", " "), "pipeDelimited": ("%7C", "|")}


def _comma_safe(encode: _Encode) -> _Encode:
    if encode in (_percent, _form_percent):
        return encode

    def without_comma(text: str) -> str | None:
        encoded = encode(text)
        return None if encoded is None else encoded.replace(",", "%2C")

    return without_comma


def _joined(items: list[Any], delimiter: str, encode: _Encode, prefix: str = "") -> str | NoForm:
    written = []
    for item in items:
        plain = scalar(item)
        if plain is None:
            return NoForm(_NULL_INSIDE if item is None else _NESTED if isinstance(item, (list, dict)) else _NO_TEXT)
        encoded = encode(plain)
        if encoded is None:
            return NoForm(_NO_TEXT)
        written.append(prefix + encoded)
    return delimiter.join(written)


def _path_text(value: Any) -> str | NoForm:
    if value is None:
        return NoForm("is null, which has no form in a path")
    plain = scalar(value)
    return NoForm(_why_not(value)) if plain is None else plain


def _header_list(items: list[Any], empty: str | None) -> str | NoForm | None:
    if not items:
        return None if empty == OMIT else "" if empty == BLANK else empty
    if any(type(item) is str and "," in item for item in items):
        return NoForm("holds a comma inside an item, which a header cannot tell from its delimiter")
    return _joined(items, ",", lambda item: item)


def _prefixed(prefix: str, text: str | NoForm | None, encode: _Encode) -> str | NoForm | None:
    if text is None or isinstance(text, NoForm):
        return text
    encoded = encode(text)
    return NoForm(_NO_TEXT) if encoded is None else prefix + encoded


def _deep(wire: str, value: Any, encode: _Encode, blank: str | None) -> str | NoForm | None:
    if value is None:
        return None
    if type(value) is not dict:
        return NoForm("is not an object, and `style: deepObject` writes objects only")
    if not value:
        return blank
    written = []
    for key, item in value.items():
        if item is None:
            continue
        plain = scalar(item)
        key_text, text = encode(key), None if plain is None else encode(plain)
        if text is None or key_text is None:
            return NoForm(_NESTED if isinstance(item, (list, dict)) else _NO_TEXT)
        written.append(f"{wire}%5B{key_text}%5D={text}")
    return "&".join(written) or blank


def _when_empty(prefix: str, empty: str | None, encode: _Encode) -> str | None:
    if empty is None or empty == OMIT:
        return None
    return prefix if empty == BLANK else prefix + (encode(empty) or "")


def _why_not(value: Any) -> str:
    return _NO_OBJECT if isinstance(value, dict) else _NESTED if isinstance(value, list) else _NO_TEXT


def _whole(value: Any) -> Any:
    if type(value) is float:
        # beyond 1e21 no backend's integer type holds it, and an exponent reads better than a hundred zeros
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if type(value) is dict:
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if type(value) is list else value
