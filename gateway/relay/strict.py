"""Reads a request head that may be read in one way only, or says what is wrong with it; pure, and lenient in nothing.

Only the strict gate asks it. The plain relay lets every byte pass, and its observer reads like a lenient peer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: RFC 9110 §5.6.2
_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
#: RFC 9112 §3: one space between the parts, nothing but visible ASCII in the target, and a version that is ours.
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x22\x24-\x7e]+) HTTP/1\.([01])")
_NAME = re.compile(_TOKEN)
#: RFC 9110 §5.5: no control character but a tab; bytes above ASCII are opaque data.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
#: A run of whole chunks that one digit sizes, and the size line of a larger one: `_CHUNK_LINE` many times in one step.
CHUNKS = re.compile(
    rb"(?:0{0,15}+(?:"
    + b"|".join(
        rb"[%x%X][ \t]{0,256}+(?:;[\t\x20-\x7e\x80-\xff]{0,1024}+)?+\r\n(?s:.{%d})\r\n" % (size, size, size)
        for size in range(1, 16)
    )
    + rb"))*+(?:([0-9A-Fa-f]{1,16}+)[ \t]{0,256}+\r\n)?"
)
#: Fields that a trailer may not carry, for they would change how the message is read (RFC 9110 §6.5.1).
_NEVER_IN_TRAILERS = {b"content-length", b"transfer-encoding", b"host", b"upgrade", b"connection"}
#: A run of lines that may stand in a trailer: what `is_trailer` allows, in one step.
TRAILER_LINES = re.compile(
    rb"(?:(?!(?i:" + b"|".join(sorted(_NEVER_IN_TRAILERS)) + rb"):)"
    + _TOKEN[:-1] + rb"{1,1024}+:[\t\x20-\x7e\x80-\xff]{0,1024}+\r\n)*+"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Head:
    """A head that is beyond doubt. `path` is raw: what stands before the query, percent-encoding untouched."""

    method: bytes
    target: bytes
    path: bytes
    #: Bytes of body; None where it is chunked.
    length: int | None
    upgrades: bool


def read_head(text: bytes) -> Head | str:
    """Read a head, its last empty line included; a string is the sentence that says why it is refused."""
    lines = text[:-4].split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(lines[0])
    if line is None:
        return "The request line is not method, target and HTTP/1.1 with one space between them."
    method, target, minor = line.groups()
    fields: dict[bytes, list[bytes]] = {}
    for field_line in lines[1:]:
        field = _field(field_line)
        if field is None:
            return "A header line is folded, malformed or holds a control character."
        fields.setdefault(field[0], []).append(field[1])
    length = _length(fields, old=minor == b"0")
    if isinstance(length, str):
        return length
    hosts = fields.get(b"host", [])
    if len(hosts) > 1 or (not hosts and minor == b"1"):
        return "A request has one Host header."  # RFC 9112 §3.2
    path = _path(method, target, hosts)
    if path is None:
        return "The request target is not a path of this host."
    upgrades = fields.get(b"upgrade", [])
    if any(b"h2c" in value.lower() for value in upgrades):
        return "HTTP/2 is not spoken here."  # through it, requests would pass that nobody reads
    return Head(method, target, path, length, bool(upgrades))


def read_chunk_line(line: bytes) -> int | None:
    """The size a chunk line (without its CRLF) states; None where it may be read in two ways."""
    found = _CHUNK_LINE.fullmatch(line)
    return int(found[1], 16) if found else None


def is_trailer(line: bytes) -> bool:
    """Whether this line (without its CRLF) may stand after the last chunk."""
    field = _field(line)
    return field is not None and field[0] not in _NEVER_IN_TRAILERS


def _field(line: bytes) -> tuple[bytes, bytes] | None:
    """Name in lower case and value of one field line."""
    name, colon, value = line.partition(b":")
    if not colon or not _NAME.fullmatch(name) or _CONTROL.search(value):
        return None
    return name.lower(), value.strip(b" \t")


def _length(fields: dict[bytes, list[bytes]], *, old: bool) -> int | str | None:
    lengths, codings = fields.get(b"content-length", []), fields.get(b"transfer-encoding", [])
    if codings:
        if lengths:
            return "Both Content-Length and Transfer-Encoding are given."  # RFC 9112 §6.3, point 3
        if old or len(codings) > 1 or codings[0].lower() != b"chunked":
            return "The only transfer coding is one chunked, in HTTP/1.1."
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > 18:
        return "Content-Length is not one number of digits."
    return int(lengths[0])


def _path(method: bytes, target: bytes, hosts: list[bytes]) -> bytes | None:
    if method == b"CONNECT":
        return None
    if target.startswith(b"/"):
        return target.partition(b"?")[0]
    if target == b"*":
        return target if method == b"OPTIONS" else None  # RFC 9112 §3.2.4
    scheme, _, rest = target.partition(b"://")
    authority, slash, path = rest.partition(b"/")
    if scheme.lower() not in (b"http", b"https") or not slash or b"?" in authority or [authority] != hosts:
        return None  # an absolute form must name the same host as the Host header
    return b"/" + path.partition(b"?")[0]
