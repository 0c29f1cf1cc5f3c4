"""A file answer as MCP content blocks: images, sounds, and resources for anything else. Pure, knows no message."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Any
from urllib.parse import quote

from gateway import json_text

Json = Any

#: The most parts of one answer that are shown, and how deep parts may hold parts.
MOST_PARTS = 100
_DEEPEST = 4

_TEXTUAL = frozenset(
    f"application/{name}" for name in ("json", "xml", "yaml", "javascript", "ecmascript", "sql", "graphql", "toml")
)


def blocks(body: bytes, content_type: str, uri: str) -> list[Json]:
    """The content blocks of an answer: one, or of a `multipart/*` answer one for each part, in order.

    `uri` names the answer; a resource is named by it, and by its file name or its number where the answer has parts.
    """
    whole = Message()
    whole["Content-Type"] = content_type
    parts = list(_parts(body, whole, _DEEPEST))
    if len(parts) == 1 and parts[0][0] is whole:
        return [_block(body, whole, uri, alone=True)]
    return [
        _block(content, head, f"{uri}/{_name(head) or number}", alone=False)
        for number, (head, content) in enumerate(parts, 1)
    ]


def _parts(body: bytes, head: Message, deepest: int) -> Iterator[tuple[Message, bytes]]:
    """The leaves of an answer; what cannot be taken apart is one leaf."""
    boundary = head.get_boundary() if head.get_content_maintype() == "multipart" and deepest else None
    pieces = _split(body, boundary) if boundary else None
    if not pieces:
        yield head, body
        return
    left = MOST_PARTS
    for piece in pieces:
        for leaf in _parts(*_headed(piece), deepest - 1):
            if not left:
                return
            left -= 1
            yield leaf


def _split(body: bytes, boundary: str) -> list[bytes]:
    """The parts between the delimiter lines of RFC 2046 section 5.1.1; a missing last one is forgiven."""
    mark = b"--" + boundary.encode("ascii", "ignore")
    pieces: list[bytes] = []
    began = None
    at = body.find(mark)
    while at >= 0:
        after = at + len(mark)
        closes = body.startswith(b"--", after)
        line = body.find(b"\n", after)
        rest = body[after + 2 if closes else after : len(body) if line < 0 else line].strip()
        if (at and body[at - 1 : at] != b"\n") or rest:
            at = body.find(mark, after)  # inside a line: part of a part
            continue
        if began is not None:
            pieces.append(_without_break(body[began:at]))
        began = len(body) if closes or line < 0 else line + 1
        if closes or len(pieces) > MOST_PARTS:
            return pieces
        at = body.find(mark, began)
    if began is not None and began < len(body):
        pieces.append(_without_break(body[began:]))
    return pieces


def _without_break(piece: bytes) -> bytes:
    """The line break before a delimiter belongs to the delimiter."""
    return piece[:-2] if piece.endswith(b"\r\n") else piece.removesuffix(b"\n")


def _headed(piece: bytes) -> tuple[bytes, Message]:
    """A part's content, out of its transfer encoding, and its head."""
    if piece.startswith((b"\r\n", b"\n")):
        top, content = b"", piece[2 if piece.startswith(b"\r\n") else 1 :]
    else:
        ends = [(at, width) for end in (b"\r\n\r\n", b"\n\n") for at, width in [(piece.find(end), len(end))] if at >= 0]
        at, width = min(ends, default=(len(piece), 0))
        top, content = piece[:at], piece[at + width :]
    head = BytesHeaderParser().parsebytes(top)
    encoding = str(head.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding in ("base64", "quoted-printable"):
        head.set_payload(content.decode("latin-1"))
        decoded = head.get_payload(decode=True)
        content = decoded if isinstance(decoded, bytes) else content
    return content, head


def _block(body: bytes, head: Message, uri: str, *, alone: bool) -> Json:
    plain = head.get_content_type()
    plain = plain if plain.isascii() else "application/octet-stream"
    kind = head.get_content_maintype()
    if kind in ("image", "audio"):
        return {"type": kind, "data": base64.b64encode(body).decode(), "mimeType": plain}
    text = _text(body, head) if kind == "text" or plain in _TEXTUAL or plain.endswith(("+json", "+xml")) else None
    # Words between pictures are words; a text file on its own, or one that has a name, is a file.
    if plain == "text/plain" and text is not None and not alone and not head.get_filename():
        return {"type": "text", "text": text}
    content = {"blob": base64.b64encode(body).decode()} if text is None else {"text": text}
    return {"type": "resource", "resource": {"uri": uri, "mimeType": plain, **content}}


def _name(head: Message) -> str:
    """The file name that a part gives itself, fit for a URI."""
    return quote(head.get_filename() or "", safe="", errors="replace")


def _text(body: bytes, head: Message) -> str | None:
    charset = head.get_param("charset")
    return json_text.text(body, charset if isinstance(charset, str) else None)
