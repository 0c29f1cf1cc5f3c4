"""Exchanges as they go over the wire, by name; the ids are those of the cases of public bug reports they follow."""

from __future__ import annotations

import gzip

from tests.relay.rig import Step, client, server

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_END_SERVER: Step = ("server", "end")
_END_CLIENT: Step = ("client", "end")


def _get(target: bytes = b"/", *fields: bytes) -> bytes:
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: h", *fields]) + b"\r\n\r\n"


def _answer(*fields: bytes, body: bytes = b"", line: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"\r\n".join([line, *fields]) + b"\r\n\r\n" + body


def _asks(request: bytes, answer: bytes = _OK) -> list[Step]:
    return [client(request), server(answer), _END_CLIENT]


_ZIPPED = gzip.compress(b'{"people":[]}' * 20, mtime=0)

_RANGES = (
    b"".join(
        b"--B\r\nContent-Range: bytes %d-%d/9\r\n\r\n%c\r\n" % (at, at, letter) for at, letter in ((0, 97), (2, 99))
    )
    + b"--B--\r\n"
)

EXCHANGES: dict[str, list[Step]] = {
    "a plain GET": _asks(_get()),
    "two exchanges on one connection": [client(_get()), server(_OK), client(_get(b"/2")), server(_OK), _END_CLIENT],
    "a chunked answer with odd chunk sizes, an extension and trailers": _asks(
        _get(),
        _answer(
            b"Transfer-Encoding: chunked",
            b"Trailer: X-Sum",
            body=b"1\r\na\r\n0007;why=not\r\nbcdefgh\r\nA\r\n0123456789\r\n0\r\nX-Sum: 12\r\n\r\n",
        ),
    ),
    "a chunked request in uneven writes": [
        client(b"POST /in HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3"),
        client(b"\r\nab"),
        client(b"c\r\n5\r\nhello\r\n0\r\n\r"),
        client(b"\n"),
        server(_OK),
        _END_CLIENT,
    ],
    "HEAD with a length and no body (PRS-05)": [
        client(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"),
        server(_answer(b"Content-Length: 500")),
        client(_get()),
        server(_OK),
        _END_CLIENT,
    ],
    "204 then another": [
        client(_get()),
        server(b"HTTP/1.1 204 No Content\r\n\r\n"),
        client(_get()),
        server(_OK),
        _END_CLIENT,
    ],
    "204 with a length it must not have (PRS-04)": [
        client(_get()),
        server(_answer(b"Content-Length: 5", line=b"HTTP/1.1 204 No Content")),
        client(_get()),
        server(_OK),
        _END_CLIENT,
    ],
    "304 with the length of what it stands for (PRS-04)": [
        client(_get(b"/", b'If-None-Match: "x"')),
        server(_answer(b"Content-Length: 5", b'ETag: "x"', line=b"HTTP/1.1 304 Not Modified")),
        client(_get()),
        server(_OK),
        _END_CLIENT,
    ],
    "204 after a 200 on the same connection (PRS-04)": [
        client(_get()),
        server(_OK),
        client(b"DELETE /1 HTTP/1.1\r\nHost: h\r\n\r\n"),
        server(b"HTTP/1.1 204 No Content\r\n\r\n"),
        _END_CLIENT,
    ],
    "two Set-Cookie lines of different case (PRS-06)": _asks(
        _get(),
        _answer(b"set-cookie: a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", b"Set-Cookie: b=2", b"Content-Length: 0"),
    ),
    "header values that are not UTF-8, both ways (PRQ-03)": _asks(
        _get(b"/", b"X-N: caf\xe9"), _answer(b"X-N: caf\xe9", b"Content-Length: 0")
    ),
    "two header lines of one name and two cases (PRQ-02)": _asks(_get(b"/", b"X-lower: 1", b"x-LOWER: 2")),
    "header case and order": _asks(b"GET / HTTP/1.1\r\nzeta: 1\r\nHOST: h\r\nAlpha:2\r\nx:  spaced \t\r\n\r\n"),
    "only a Host header (PRQ-04)": _asks(b"DELETE /1 HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a forwarded-for of the caller's own (PRQ-12)": _asks(
        b"GET / HTTP/1.1\r\nHost: public.example\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n"
    ),
    "an escaped slash and an empty query": _asks(_get(b"/a%2Fb//c?")),
    "%3A and %2F stay (URL-01)": _asks(_get(b"/x/http%3A%2F%2Fa.b%2Fc.jpg")),
    "a signed URL stays (URL-02)": _asks(_get(b"/f?sig=a%3Ab%2Fc%27")),
    "%3B stays (URL-04)": _asks(_get(b"/c/%3B.txt")),
    "%28 stays (URL-05)": _asks(_get(b"/F(K='a%28b')")),
    "%25 stays (URL-06)": _asks(_get(b"/q?a=%25s3")),
    "double slashes stay (URL-08)": _asks(_get(b"//x///y")),
    "an empty query stays (URL-09)": _asks(_get(b"/p?")),
    "a query of every oddity (URL-12)": _asks(_get(b"/p?a=1;b=2&&c&d=&d=+&e=%2B")),
    "CONNECT (URL-14)": [
        client(b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n"),
        server(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"),
        _END_CLIENT,
    ],
    "CONNECT that is let through (URL-14)": [
        client(b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n"),
        server(b"HTTP/1.1 200 Connected\r\n\r\n"),
        client(b"\x16\x03\x01\x00\x05hello"),
        server(b"\x16\x03\x03\x00\x02hi"),
        _END_SERVER,
    ],
    "an authority as the target of GET (URL-14)": _asks(b"GET example.com:443 HTTP/1.1\r\nHost: h\r\n\r\n"),
    "OPTIONS * (URL-15)": _asks(b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"),
    "UTF-8 in the target (URL-16)": _asks(_get(b"/caf\xc3\xa9")),
    "Latin-1 in the target (URL-16)": _asks(_get(b"/caf\xe9")),
    "an absolute target": _asks(b"GET http://h/x HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a space in the target": _asks(b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"),
    "a very long target": _asks(_get(b"/" + b"x" * 30_000)),
    "a head longer than anybody reads": _asks(_get(b"/", *[b"X-%d: %s" % (i, b"y" * 990) for i in range(90)])),
    "101 and then anything at all": [
        client(_get(b"/ws", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: dGhlIHNhbXBsZQ==")),
        server(_answer(b"Upgrade: websocket", b"Connection: Upgrade", line=b"HTTP/1.1 101 Switching Protocols")),
        client(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
        server(b"\x81\x05Hello"),
        client(b"GET / HTTP/9.9\r\n\r\n"),
        server(b"\x88\x00"),
        _END_SERVER,
    ],
    "Expect: 100-continue with its 100 (PRQ-05)": [
        client(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1025\r\n\r\n"),
        server(b"HTTP/1.1 100 Continue\r\n\r\n"),
        client(b"x" * 1025),
        server(_OK),
        _END_CLIENT,
    ],
    "Expect: 100-continue refused (PRQ-05)": [
        client(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"),
        server(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        _END_SERVER,
    ],
    "an expectation nobody knows (PRQ-05)": _asks(_get(b"/", b"Expect: banana")),
    "Content-Length with Transfer-Encoding (PRQ-06)": [
        client(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"0\r\n\r\nGET /admin HTTP/1.1\r\nHost: h\r\n\r\n"
        ),
        server(_OK),
        _END_SERVER,
    ],
    "two different lengths (PRQ-06)": _asks(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    "a length with a sign (PRQ-06)": _asks(b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na"),
    "a list of lengths (PRQ-06)": _asks(b"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na"),
    "a length in hex (PRQ-06)": _asks(b"POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\na"),
    "LF in a chunk extension (PRQ-07)": _asks(
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n"
    ),
    "a bare CR in a header value (PRQ-07)": _asks(_get(b"/", b"X-A: \rTransfer-Encoding: chunked")),
    "two transfer codings (PRQ-08)": _asks(
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    ),
    "a request with a trailer (PRQ-08)": _asks(
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n"
    ),
    "a compressed request body (PRQ-09)": _asks(
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(_ZIPPED) + _ZIPPED
    ),
    "a broken compressed request body (PRQ-09)": _asks(
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nno!"
    ),
    "no Host (PRQ-11)": _asks(b"GET / HTTP/1.1\r\n\r\n"),
    "two Hosts (PRQ-11)": _asks(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    "HTTP/1.0 without a Host (PRQ-11)": [client(b"GET / HTTP/1.0\r\n\r\n"), server(_OK), _END_SERVER],
    "HTTP/1.0 and a body to the end of the connection (PRS-13)": [
        client(b"GET / HTTP/1.0\r\n\r\n"),
        server(b"HTTP/1.0 200 OK\r\n\r\nhalf a"),
        server(b" body"),
        _END_SERVER,
    ],
    "HTTP/1.0 with keep-alive": [
        client(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        server(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"),
        client(b"GET /2 HTTP/1.0\r\n\r\n"),
        server(b"HTTP/1.0 200 OK\r\n\r\nbye"),
        _END_SERVER,
    ],
    "three pipelined requests": [
        client(_get(b"/1") + _get(b"/2") + b"POST /3 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
        server(_OK),
        server(_OK + _OK),
        _END_CLIENT,
    ],
    "a gzip answer (PRS-02)": _asks(
        _get(b"/", b"Accept-Encoding: gzip"),
        _answer(b"Content-Encoding: gzip", b"Content-Length: %d" % len(_ZIPPED), body=_ZIPPED),
    ),
    "an answer with two codings and odd case (PRS-02)": _asks(
        _get(), _answer(b"Content-Encoding: GZIP, br", b"Content-Length: 3", body=b"\x00\xff\x01")
    ),
    "server-sent events, each at once": [
        client(_get(b"/events", b"Accept: text/event-stream")),
        server(_answer(b"Content-Type: text/event-stream", b"Cache-Control: no-cache")),
        server(b"data: 1\n\n"),
        server(b"da"),
        server(b"ta: 2\n\n"),
        server(b": ping\n\n"),
        _END_CLIENT,
    ],
    "an answer before the request is over": [
        client(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100),
        server(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        _END_SERVER,
    ],
    "an answer cut short by a clean end (PRS-09)": [
        client(_get()),
        server(_answer(b"Content-Length: 10", body=b"ab")),
        _END_SERVER,
    ],
    "an answer cut short by a reset (PRS-09)": [
        client(_get()),
        server(_answer(b"Content-Length: 10", body=b"ab")),
        ("server", "reset"),
    ],
    "a chunked answer that never ends properly (PRS-09)": [
        client(_get()),
        server(_answer(b"Transfer-Encoding: chunked", body=b"2\r\nok\r\n")),
        _END_SERVER,
    ],
    "half a JSON without a length (PRS-09)": [
        client(_get()),
        server(_answer(b"Content-Type: application/json", body=b'{"a":')),
        _END_SERVER,
    ],
    "a backend that closes without a word": [client(_get()), _END_SERVER],
    "a backend that resets without a word": [client(_get()), ("server", "reset")],
    "a backend that closes right after its answer (PRS-10)": [client(_get()), server(_OK), _END_SERVER],
    "a POST on a connection that the backend closes (PRS-10)": [
        client(_get()),
        server(_OK),
        client(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na"),
        _END_SERVER,
    ],
    "early hints, twice (PRS-11)": _asks(
        _get(),
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n" + _OK,
    ),
    "an unusual reason (PRS-13)": _asks(_get(), _answer(b"Content-Length: 0", line=b"HTTP/1.1 299 Weird Reason")),
    "an empty reason (PRS-13)": _asks(_get(), _answer(b"Content-Length: 0", line=b"HTTP/1.1 200 ")),
    "a reason that is not UTF-8 (PRS-13)": _asks(
        _get(), _answer(b"Content-Length: 0", line=b"HTTP/1.1 200 D\xe9j\xe0")
    ),
    "status 999 (PRS-13)": _asks(_get(), _answer(b"Content-Length: 0", line=b"HTTP/1.1 999 X")),
    "both lengths in an answer (PRS-14)": _asks(
        _get(), _answer(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")
    ),
    "two different lengths in an answer (PRS-14)": _asks(
        _get(), _answer(b"Content-Length: 2", b"Content-Length: 3", body=b"abc")
    ),
    "a space before a colon in an answer (PRS-14)": _asks(_get(), _answer(b"X-A : 1", b"Content-Length: 0")),
    "validators and digests stay (PRS-18)": _asks(
        _get(),
        _answer(b'ETag: "x"', b"Content-MD5: Q2hlY2s=", b"Accept-Ranges: bytes", b"Content-Length: 2", body=b"{}"),
    ),
    "a range (PRS-19)": _asks(
        _get(b"/", b"Range: bytes=0-3"),
        _answer(
            b"Content-Range: bytes 0-3/9", b"Content-Length: 4", body=b"abcd", line=b"HTTP/1.1 206 Partial Content"
        ),
    ),
    "several ranges (PRS-19)": _asks(
        _get(b"/", b"Range: bytes=0-0,2-2"),
        _answer(
            b"Content-Type: multipart/byteranges; boundary=B",
            b"Content-Length: %d" % len(_RANGES),
            body=_RANGES,
            line=b"HTTP/1.1 206 Partial Content",
        ),
    ),
    "a client that ends its side and still reads": [
        client(_get()),
        _END_CLIENT,
        server(_OK),
        _END_SERVER,
    ],
    "a client that resets in the middle of its body": [
        client(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"),
        ("client", "reset"),
    ],
    "line ends without CR": _asks(b"GET / HTTP/1.1\nHost: h\n\n", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    "empty lines before a request": _asks(b"\r\n\r\n" + _get()),
    "no HTTP at all": [
        client(b"\x00\x01\x02 hello"),
        server(b"\xff\xfe"),
        client(b"more"),
        server(b"bye"),
        _END_SERVER,
    ],
    "the preface of HTTP/2": [
        client(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
        server(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
        _END_CLIENT,
    ],
    "HTTP/0.9": [client(b"GET /\r\n"), server(b"<html>old</html>"), _END_SERVER],
    "an answer that nobody asked for": [
        client(_get()),
        server(_OK),
        server(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        _END_SERVER,
    ],
    "a large answer": _asks(_get(), _answer(b"Content-Length: 3000000", body=bytes(range(250)) * 12000)),
}
