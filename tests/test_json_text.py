"""JSON text in and out: the public parsing suite whole, every digit, no duplicate key, no value that is not JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jiter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.json_text import NotJson, canonical, digest, encode, parse, type_name

SUITE = sorted((Path(__file__).parent / "data/JSONTestSuite/test_parsing").glob("*.json"))

#: RFC 8259 section 4 leaves duplicate keys to the reader; the gateway refuses what two readers may read differently.
REFUSED_BY_DESIGN = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@pytest.mark.parametrize("path", SUITE, ids=lambda path: path.stem)
def test_the_parsing_suite(path: Path) -> None:
    text = path.read_bytes()
    value: Any = parse(text)
    if path.name.startswith("n_") or path.name in REFUSED_BY_DESIGN:
        assert isinstance(value, NotJson)
    elif path.name.startswith("y_"):
        assert not isinstance(value, NotJson)
        assert value == json.loads(text)
    else:  # `i_`: either is right, a crash is not
        assert isinstance(value, NotJson) or parse(encode(value)) == value


@given(json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    try:
        text = encode(value)
    except ValueError:
        assert (
            "surrogate" in repr(value)
            or any(0xD800 <= ord(char) < 0xE000 for char in repr(value))
            or "\\ud" in repr(value)
        )
        return
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    ["1915883588174806058", "12345678901234567890123", "-9223372036854775809", "18446744073709551616", "9" * 200],
)
def test_an_integer_keeps_every_digit(text: str) -> None:
    value = parse(f'{{"id":[{text}]}}'.encode())
    assert value == {"id": [int(text)]}
    assert encode(value) == f'{{"id":[{text}]}}'.encode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(b'{"role":"user","role":"admin"}', "same key twice", id="JSN-04"),
        pytest.param(b'{"avg":NaN}', "expected value", id="JSN-05-nan"),
        pytest.param(b"[Infinity]", "expected value", id="JSN-05-infinity"),
        pytest.param(b"[-Infinity]", "", id="JSN-05-minus-infinity"),
        pytest.param(b'{"n":1e400}', "too large for a double", id="JSN-06"),
        pytest.param(b'{"n":-1E+400}', "too large for a double", id="JSN-06-negative"),
        pytest.param(b"[" + b"1" * 400 + b".5]", "too large for a double", id="JSN-06-digits"),
        pytest.param(b'"\xe9"', "", id="JSN-08-latin-1-without-charset"),
        pytest.param(b"", "the body is empty", id="JSN-13-empty"),
        pytest.param(b" ", "the body is empty", id="JSN-13-blank"),
        pytest.param(b'{"a":1}\n{"b":2}\n', "trailing", id="JSN-14-ndjson"),
        pytest.param(b'{"a":1}{"b":2}', "trailing", id="JSN-14-two-documents"),
        pytest.param(b'callback({"a":1});', "expected value", id="JSN-14-jsonp"),
        pytest.param(b')]}\',\n{"a":1}', "expected value", id="JSN-14-prefix"),
        pytest.param(b'"\\ud800"', "", id="lone-surrogate"),
        pytest.param(b"[" * 100_000, "recursion", id="too-deep"),
    ],
)
def test_what_is_not_json_is_a_value_that_says_why(text: bytes, why: str) -> None:
    value = parse(text)
    assert isinstance(value, NotJson)
    assert why in value.reason
    assert "role" not in value.reason, "the body is never shown"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        pytest.param('{"a":"é"}'.encode("utf-16"), "utf-16", id="JSN-08-utf-16"),
        pytest.param('{"a":"é"}'.encode("utf-16-le"), "utf-16-le", id="utf-16-le-without-mark"),
        pytest.param('{"a":"é"}'.encode("latin-1"), "iso-8859-1", id="JSN-08-latin-1"),
        pytest.param(b"\xef\xbb\xbf" + '{"a":"é"}'.encode(), None, id="byte-order-mark"),
        pytest.param('{"a":"é"}'.encode(), "UTF8", id="JSN-11-charset-spelled-loosely"),
    ],
)
def test_the_charset_of_the_header_is_used(text: bytes, charset: str | None) -> None:
    assert parse(text, charset) == {"a": "é"}


@pytest.mark.parametrize("charset", ["klingon", "utf-7x", "base64", "rot13", "\x00"])
def test_an_unknown_charset_is_said(charset: str) -> None:
    assert isinstance(parse(b"{}", charset), NotJson)


@pytest.mark.parametrize(
    "text",
    [b'{"v":0.40}', b'{"v":1.0e-5}', b'{"v":1E2}', b'{"x":30.008880299999999}', b'{"v":-0.0}'],
)
def test_a_number_keeps_its_double_value_through_both_ways(text: bytes) -> None:
    """JSN-03: the value is kept; the spelling is not, and decision 0001 says so."""
    assert json.loads(encode(parse(text))) == json.loads(text)


def test_hashes_are_no_numbers() -> None:
    rows = [{"hash": "1e123" * 8, "text": "1e999, [2e999", "n": 1e22}]
    assert parse(encode(rows)) == rows
    assert isinstance(parse(b'{"hash": "1e123", "n": 1.5E+0400}'), NotJson)


def test_key_order_is_the_backends_and_escapes_are_values() -> None:
    """JSN-15."""
    value: Any = parse(rb'{"u":"http:\/\/a\/b","z":1,"a":"\u00e9","n":"\u0000"}')
    assert isinstance(value, dict)
    assert list(value) == ["u", "z", "a", "n"]
    assert encode(value) == '{"u":"http://a/b","z":1,"a":"é","n":"\\u0000"}'.encode()


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [float("inf")],
        {"a": {"b": -float("inf")}},
        {1: 2},
        pytest.param([object()], id="an-object"),
        {"a": {1, 2}},
        "\ud800",
        b"x",
        {"a": 2**70, "b": {1}},
    ],
    ids=repr,
)
def test_what_is_no_json_value_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        encode(value)


def test_nothing_is_refused_for_a_null_beside_numbers() -> None:
    assert encode([None, 1.5, "null"]) == b'[null,1.5,"null"]'


def test_canonical_text_sorts_keys_by_utf_16_code_unit_at_every_depth() -> None:
    # U+1F600 is a surrogate pair in UTF-16, so it sorts before U+FFFD, unlike by code point
    assert canonical({"\ufffd": 1, "\U0001f600": {"b": [2, 1], "a": None}}) == (
        '{"\U0001f600":{"a":null,"b":[2,1]},"\ufffd":1}'.encode()
    )


def test_a_digest_is_16_hex_of_sha_256_and_ignores_key_order() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) == hashlib.sha256(b'{"a":1,"b":2}').hexdigest()[:16]


def test_types_are_named_as_json_schema_names_them() -> None:
    values: list[Any] = [None, True, 1, 1.5, "", [], {}]
    assert [type_name(value) for value in values] == [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]  # fmt: skip


@given(json_values)
def test_a_text_spelled_as_we_would_spell_it_reads_as_the_exact_parser_reads_it(value: Any) -> None:
    text = encode(value) if _encodable(value) else b"1"
    assert _same(parse(text), jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True))


@pytest.mark.parametrize("text", [
    b'{"a":1,"a":2}', b'{"a":{"b":1,"b":1}}', b"[12345678901234567890123]", b"[1e400]", b"[-1e400]", b'{"a":1}x',
    b'["\xff"]',
    b"[" * 201 + b"]" * 201, b"[0.40]", b"[1E5]", b'["\\u0041"]', b"[ 1]", b'{"a": 1}',
])  # fmt: skip
def test_what_is_spelled_otherwise_is_for_the_exact_parser(text: bytes) -> None:
    try:
        expected = jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError:
        expected = None
    found = parse(text)
    if expected is None or b"e400" in text:
        assert isinstance(found, NotJson)
    else:
        assert _same(found, expected)


def _encodable(value: Any) -> bool:
    try:
        encode(value)
    except ValueError:  # a lone surrogate
        return False
    return True


def _same(one: Any, other: Any) -> bool:
    """Equal in type too: 1 is not 1.0 here, and -0.0 is not 0.0."""
    return repr(one) == repr(other)
