"""JSON text to values and back, exact: no digit lost, no duplicate key, no NaN; knows nothing of schemas or calls."""

from __future__ import annotations

import codecs
import hashlib
import json
import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jiter
import orjson

_TYPE_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}

# Every digit becomes 0 and E becomes e, so that plain searches find where a number is that a double may not hold: an
# exponent of three digits, or so many digits in a row that four of those at every seventy-seventh place are digits too.
_SHAPE = bytes(ord("0") if chr(byte) in "0123456789" else ord("e") if chr(byte) == "E" else byte for byte in range(256))
_EXPONENTS = (b"e000", b"e+000")
_LONGEST = b"0" * 309

#: UTF-32 before UTF-16, whose mark is a prefix of it.
_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_BEFORE_A_VALUE = (b"", b":", b"[", b",", b" ", b"\t", b"\r", b"\n")
_FIRST_OF_BOM = frozenset({mark[:1] for mark, _ in _BOMS})

#: Python codecs that no Content-Type names; some take time that grows with the square of the text.
_NOT_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"})

_OPTIONS = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


_OTHERWISE = object()
# orjson writes 254 levels and reads more; within these lists it writes the 200 that the exact parser reads.
_MARGIN = 54
_WITHIN: list[Any] = [None]
_NESTED = reduce(lambda inner, _: [inner], range(_MARGIN - 1), _WITHIN)


@dataclass(frozen=True, slots=True)
class NotJson:
    """Why a text is not JSON: one sentence without any of the text itself."""

    reason: str


def parse(text: bytes, charset: str | None = None) -> Any | NotJson:
    """Read one JSON document of at most 200 levels.

    `charset` is what a Content-Type header said, else UTF-8; a byte order mark is allowed and wins. Integers keep every
    digit. Duplicate keys, NaN, Infinity, a number beyond a double, trailing data, an empty text: `NotJson`.
    """
    decoded = _utf8(text, charset)
    if isinstance(decoded, NotJson):
        return decoded
    known = _as_we_write_it(decoded)
    if known is not _OTHERWISE:
        return known
    try:
        value = jiter.from_json(decoded, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError as fault:
        bare = "there is nothing behind the byte order mark" if text.strip() and not decoded.strip() else None
        return NotJson(bare or _without_quotes(str(fault), decoded))
    if _may_be_huge(decoded.translate(_SHAPE)) and _holds_non_finite(value):
        return NotJson("a number is too large for a double")
    return value


def text(body: bytes, charset: str | None = None) -> str | None:
    """The text that bytes are, by the same rules as `parse`; None where they are none."""
    decoded = _utf8(body, charset)
    try:
        return None if isinstance(decoded, NotJson) else decoded.decode()
    except UnicodeDecodeError:
        return None


def encode(value: Any) -> bytes:
    """Write a value as compact UTF-8 JSON; integers of any size keep their digits.

    Raises `ValueError` where the value is not JSON: NaN, Infinity, a lone surrogate, another type, over 254 levels.
    """
    try:
        text = orjson.dumps(value, option=_OPTIONS)
    except TypeError as fault:
        if "64-bit" not in str(fault):
            raise ValueError(str(fault)) from fault
        text = _dumped_wide(value)
    # orjson writes NaN and Infinity as null
    if b"null" in text and _holds_non_finite(value):
        raise ValueError("NaN and Infinity are not JSON")
    return text


def canonical(value: Any) -> bytes:
    """The canonical text of a JSON value: keys sorted by UTF-16 code unit at every depth, compact, arrays in order."""
    return encode(_sorted(value))


def digest(value: Any) -> str:
    """16 hex digits of SHA-256 over the canonical JSON of a value."""
    return hashlib.sha256(canonical(value)).hexdigest()[:16]


def pretty(value: Any) -> str:
    """A value as indented JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def type_name(value: Any) -> str:
    """The JSON type of a value, in JSON Schema's words."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), type(value).__name__)


def _as_we_write_it(text: bytes) -> Any:
    """The value of a text that `encode` would write byte for byte, else `_OTHERWISE`.

    Where both are the same nothing was lost: no digit, no second key, no level too many. Of any other text the exact
    parser says what is true.
    """
    if text.find(b'": ', 0, 128) >= 0 or text[1:2].isspace():
        return _OTHERWISE  # it is laid out for people: there is no need to try
    try:
        _WITHIN[0] = value = orjson.loads(text)
        same = orjson.dumps(_NESTED)[_MARGIN:-_MARGIN] == text
    except (ValueError, TypeError, RecursionError):
        return _OTHERWISE
    finally:
        _WITHIN[0] = None
    return value if same else _OTHERWISE


def _utf8(text: bytes, charset: str | None) -> bytes | NotJson:
    if text[:1] in _FIRST_OF_BOM:
        for mark, name in _BOMS:
            if text.startswith(mark):
                return text[3:] if name == "utf-8" else _recode(text[len(mark) :], name)
    if charset is None or charset.lower() in ("utf-8", "utf8", "us-ascii"):
        return text
    return _recode(text, charset)


def _recode(text: bytes, charset: str) -> bytes | NotJson:
    try:
        known = codecs.lookup(charset).name
    except (LookupError, ValueError):
        known = None
    if known is None or known in _NOT_CHARSETS:
        return NotJson("the charset of the Content-Type header is not known")
    try:
        return text.decode(known).encode()
    except (LookupError, UnicodeError):  # a codec that is none for text raises LookupError
        return NotJson(f"the text is not valid {known}")


def _without_quotes(fault: str, text: bytes) -> str:
    if not text.strip():
        return "the body is empty"
    # jiter names a duplicate key in its message; a key is part of the body, and the body is never shown.
    if fault.startswith("Detected duplicate key"):
        return "an object has the same key twice" + fault[fault.rfind(" at line") :]
    return fault


def _may_be_huge(shape: bytes) -> bool:
    """Whether a number stands somewhere that a double may not hold; digits within strings are mostly told apart."""
    for mark in _EXPONENTS:
        at = shape.find(mark)
        while at >= 0:
            # a number is what reaches back to a place where a value can begin; a hash or a colour does not
            before = shape[max(0, at - 400) : at].rstrip(b"0.-")
            if before[-1:] in _BEFORE_A_VALUE:
                return True
            at = shape.find(mark, at + 4)
    return b"0000" in shape[::77] and _LONGEST in shape


def _holds_non_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(_holds_non_finite(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_holds_non_finite(item) for item in value)


def _dumped_wide(value: Any) -> bytes:
    try:
        return orjson.dumps(_with_wide_integers(value), option=_OPTIONS)
    except TypeError as fault:
        raise ValueError(str(fault)) from fault


def _with_wide_integers(value: Any) -> Any:
    if type(value) is int and not -(2**63) <= value < 2**64:
        return orjson.Fragment(str(value).encode())
    if isinstance(value, dict):
        return {key: _with_wide_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_wide_integers(item) for item in value]
    return value


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _sorted(value[key]) for key in keys}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
