"""A file answer as content blocks: by kind, by charset, in parts, and what parts that lie come to."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest

from gateway import json_text
from gateway.surfaces.mcp.media import MOST_PARTS, blocks

Json = Any
PNG = b"\x89PNG\r\n\x1a\n\0--x\r\n\xff"


def data(body: bytes) -> str:
    return base64.b64encode(body).decode()


def shown(body: bytes, content_type: str) -> list[Json]:
    found = blocks(body, content_type, "toolview://t/c")
    json_text.encode(found)  # whatever it is, it is JSON
    return found


def parts(*pieces: bytes, boundary: str = "x") -> bytes:
    mark = b"--" + boundary.encode()
    return b"".join(mark + b"\r\n" + piece + b"\r\n" for piece in pieces) + mark + b"--\r\n"


@pytest.mark.parametrize(
    ("content_type", "block"),
    [
        ("image/png", {"type": "image", "mimeType": "image/png", "data": data(PNG)}),
        ("IMAGE/PNG; q=1", {"type": "image", "mimeType": "image/png", "data": data(PNG)}),
        ("audio/wav", {"type": "audio", "mimeType": "audio/wav", "data": data(PNG)}),
        (
            "application/pdf",
            {
                "type": "resource",
                "resource": {"uri": "toolview://t/c", "mimeType": "application/pdf", "blob": data(PNG)},
            },
        ),
        (
            "text/csv",  # says that it is text, and is not
            {"type": "resource", "resource": {"uri": "toolview://t/c", "mimeType": "text/csv", "blob": data(PNG)}},
        ),
    ],
)
def test_an_answer_is_a_block_of_its_kind(content_type: str, block: Json) -> None:
    assert shown(PNG, content_type) == [block]


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("é,😀".encode(), "text/csv", "é,😀"),
        (b"\xe9", "text/plain; charset=ISO-8859-1", "é"),
        (b"\xe9", 'text/plain; charset="latin1"', "é"),
        ("é".encode("utf-16"), "text/plain", "é"),  # its mark says so
        (b'{"a":1}', "application/json", '{"a":1}'),
        (b"<a/>", "application/atom+xml", "<a/>"),
        (b"{}", "application/geo+json", "{}"),
    ],
)
def test_what_is_text_is_shown_as_text_in_its_charset(body: bytes, content_type: str, text: str) -> None:
    (block,) = shown(body, content_type)
    assert block["resource"]["text"] == text
    assert "blob" not in block["resource"]


@pytest.mark.parametrize("charset", ["made-up", "idna", "unicode_escape", "hex", "\x00", "utf-8"])
def test_text_in_a_charset_that_is_none_or_does_not_fit_stays_bytes(charset: str) -> None:
    (block,) = shown(b"\\ud800\xff", f"text/plain; charset={charset}")
    assert block["resource"]["blob"] == data(b"\\ud800\xff")


def test_an_answer_in_parts_is_one_block_for_each_in_order() -> None:
    body = parts(
        b"Content-Type: text/plain; charset=utf-8\r\n\r\nTwo findings.",
        b"content-type: image/png\r\n\r\n" + PNG,
        b'Content-Type: application/json\r\nContent-Disposition: attachment; filename="a b/c.json"\r\n\r\n{"n":1}',
        b"Content-Type: audio/wav\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.encodebytes(PNG),
        b"\r\nno head is plain text",
    )
    assert shown(b"preamble\r\n" + body + b"epilogue", "multipart/mixed; boundary=x") == [
        {"type": "text", "text": "Two findings."},
        {"type": "image", "mimeType": "image/png", "data": data(PNG)},
        {
            "type": "resource",
            "resource": {"uri": "toolview://t/c/a%20b%2Fc.json", "mimeType": "application/json", "text": '{"n":1}'},
        },
        {"type": "audio", "mimeType": "audio/wav", "data": data(PNG)},
        {"type": "text", "text": "no head is plain text"},
    ]


def test_parts_within_parts_are_taken_apart_too() -> None:
    inner = parts(b"\r\none", b"\r\ntwo", boundary="y")
    body = parts(b"Content-Type: multipart/alternative; boundary=y\r\n\r\n" + inner, b"\r\nthree")
    assert [block["text"] for block in shown(body, "multipart/mixed; boundary=x")] == ["one", "two", "three"]


def test_line_feeds_alone_and_a_missing_end_are_forgiven() -> None:
    body = b"--x\nContent-Type: text/plain\n\none\n--x\n\ntwo"
    assert [block["text"] for block in shown(body, 'multipart/related; boundary="x"')] == ["one", "two"]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"anything", "multipart/mixed"),
        (b"anything", "multipart/mixed; boundary="),
        (b"anything", "multipart/mixed; boundary=x"),
        (b"a --x b", "multipart/mixed; boundary=x"),
        (b"--x--\r\n", "multipart/mixed; boundary=x"),
    ],
)
def test_parts_that_cannot_be_told_apart_are_one_file(body: bytes, content_type: str) -> None:
    (block,) = shown(body, content_type)
    assert block["resource"] == {"uri": "toolview://t/c", "mimeType": "multipart/mixed", "blob": data(body)}


def test_no_more_parts_are_shown_than_may_be() -> None:
    body = parts(*[b"\r\n%d" % number for number in range(3 * MOST_PARTS)])
    assert len(shown(body, "multipart/mixed; boundary=x")) == MOST_PARTS


def test_parts_nested_without_end_stop_somewhere() -> None:
    body = b"\r\nend"
    for _ in range(200):
        body = parts(b"Content-Type: multipart/mixed; boundary=x\r\n\r\n" + body)
    assert shown(body, "multipart/mixed; boundary=x")


def test_no_head_of_a_part_breaks_the_answer() -> None:
    heads = (
        b"Content-Type: \xff\xfe/\x80",
        b"Content-Type: image/\xff",
        b"\xff: \xff",
        b"Content-Type",
        b": x",
        os.urandom(60),
    )
    body = parts(
        *(head + b"\r\n\r\nx" for head in heads),
        b"Content-Type: text/plain\r\nContent-Disposition: attachment; filename*=utf-8''%ff%00\r\n\r\nx",
    )
    found = shown(body, "multipart/mixed; boundary=x")
    assert len(found) == 7
