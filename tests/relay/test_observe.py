"""The reader sees the same exchanges however their bytes are cut; what it cannot follow is opaque, and no fault."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.relay.observe import Watch
from tests.relay.exchanges import EXCHANGES
from tests.relay.rig import Notes, Step, calls_of, client, server

_GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def _watch(steps: list[Step]) -> tuple[Watch, Notes]:
    notes = Notes()
    watch = Watch(notes)
    for who, what in steps:
        if isinstance(what, bytes):
            (watch.requests if who == "client" else watch.answers).take(memoryview(what))
        elif who == "server" and what == "end":
            watch.answers_ended()
    return watch, notes


_SEEN = [
    ([client(_GET), server(_OK)], [("GET", 200)]),
    ([client(b"BREW / HTTP/1.1\r\n\r\n"), server(_OK)], [("other", 200)]),
    ([client(_GET * 3), server(_OK * 3)], [("GET", 200)] * 3),
    ([client(_GET), server(b"HTTP/1.1 103 X\r\n\r\nHTTP/1.1 100 X\r\n\r\n" + _OK)], [("GET", 200)]),
    ([client(b"HEAD / HTTP/1.1\r\n\r\n" + _GET), server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + _OK)],
     [("HEAD", 200), ("GET", 200)]),
    ([client(_GET * 2), server(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n" + _OK)],
     [("GET", 304), ("GET", 200)]),
    ([client(_GET * 2), server(b"HTTP/1.1 200 OK\r\ntransfer-ENCODING:  Chunked\r\n\r\n2;x=\"\r\n"),
      server(b"ok\r\n0\r\nT: 1\r\n\r"), server(b"\n" + _OK)], [("GET", 200), ("GET", 200)]),
    ([client(_GET), server(b"HTTP/1.0 500 X\r\n\r\nsome"), ("server", "end")], [("GET", 500)]),
    ([client(b"GET / HTTP/1.1\n\n"), server(b"HTTP/1.1 204 X\n\n")], [("GET", 204)]),
    ([client(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" + _GET), server(_OK + _OK)],
     [("POST", 200), ("GET", 200)]),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "seen"), _SEEN)
def test_each_exchange_is_seen_once_with_its_method_and_status(steps: list[Step], seen: list[tuple[str, int]]) -> None:
    watch, notes = _watch(steps)
    assert notes.exchanges == seen
    assert watch.idle
    assert notes.opaques == 0


@pytest.mark.parametrize(("steps", "seen"), _SEEN)
def test_bytes_that_come_one_by_one_are_seen_the_same(steps: list[Step], seen: list[tuple[str, int]]) -> None:
    single: list[Step] = []
    for who, what in steps:
        single += [(who, bytes([byte])) for byte in what] if isinstance(what, bytes) else [(who, what)]
    assert _watch(single)[1].exchanges == seen


_OPAQUE = {
    "no HTTP": [client(b"hello world\r\n\r\n")],
    "HTTP/2": [client(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
    "both lengths": [client(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")],
    "two lengths": [client(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")],
    "a strange length": [client(b"POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n")],
    "a strange coding": [client(b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n")],
    "a strange chunk": [client(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")],
    "more requests than anybody waits for, in one piece": [client(b"GET / HTTP/1.1\r\n\r\n" * 1025)],
    "more requests than anybody waits for, piece by piece": [client(b"GET / HTTP/1.1\r\n\r\n")] * 1025,
    "a head without end": [client(b"GET /" + b"x" * 70_000)],
    "an answer nobody asked for": [client(_GET), server(_OK + _OK)],
    "an answer that is no HTTP": [client(_GET), server(b"\x00\x01\x02\x03 \r\n\r\n")],
}


@pytest.mark.parametrize("name", _OPAQUE)
def test_what_cannot_be_followed_is_opaque_once_and_never_idle(name: str) -> None:
    watch, notes = _watch([*_OPAQUE[name], client(_GET), server(_OK)])
    assert notes.opaques == 1
    assert not watch.idle


_READ_AT_ONCE = [
    ("a chunked answer whose length line comes first", b"Content-Length: 5\r\nTransfer-Encoding: chunked"),
    ("a chunked answer whose length line comes last", b"Transfer-Encoding: chunked\r\nContent-Length: 5"),
    ("a chunked answer whose size fits the length by chance", b"Content-Length: 17\r\nTransfer-Encoding: chunked"),
    ("two lengths", b"Content-Length: 5\r\nX: y\r\nContent-Length: 6"),
    ("a length that is no number", b"Content-Length: 5a"),
    ("a length beyond all numbers", b"Content-Length: 5000000000000000000"),
]


@pytest.mark.parametrize(("what", "fields"), _READ_AT_ONCE)
def test_an_answer_that_comes_in_one_piece_is_doubted_like_one_in_many(what: str, fields: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\nhello"
    _, notes = _watch([client(_GET), server(answer)])
    assert (notes.exchanges, notes.opaques) == ([], 1), what


_CUT = {
    "a target that holds a line end": [b"GET /a\nHost: HTTP/1.1\r\n\r\n"],
    "a length whose digits come later": [b"POST / HTTP/1.1\r\nContent-Length:", b" 5\r\n\r\nhello", _GET],
    "a head whose last line comes later": [b"GET / HTTP/1.1\r\nHost: h\r\n", b"\r\n", _GET],
}


@pytest.mark.parametrize("name", _CUT)
def test_pieces_that_look_whole_are_seen_as_their_bytes_one_by_one(name: str) -> None:
    pieces = [client(piece) for piece in _CUT[name]]
    single = [client(bytes([byte])) for piece in _CUT[name] for byte in piece]
    first, second = _watch(pieces), _watch(single)
    for watch, _ in (first, second):
        watch.closed()
    assert [fact[:2] for fact in first[1].facts] == [fact[:2] for fact in second[1].facts]
    assert first[1].opaques == second[1].opaques


def test_an_upgrade_is_an_exchange_and_then_opaque() -> None:
    watch, notes = _watch(EXCHANGES["101 and then anything at all"])
    assert notes.exchanges == [("GET", 101)]
    assert notes.opaques == 1
    assert not watch.idle


def test_a_connection_is_not_idle_from_the_first_byte_of_a_request_to_the_last_of_its_answer() -> None:
    notes = Notes()
    watch = Watch(notes)
    idle = [watch.idle]
    for byte in _GET:
        watch.requests.take(memoryview(bytes([byte])))
        idle.append(watch.idle)
    for byte in _OK:
        watch.answers.take(memoryview(bytes([byte])))
        idle.append(watch.idle)
    assert idle == [True] + [False] * (len(_GET + _OK) - 1) + [True]


def test_what_still_waits_when_the_connection_goes_is_cut() -> None:
    watch, notes = _watch([client(_GET * 2), server(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab")])
    watch.closed()
    assert notes.exchanges == [("GET", 200), ("GET", 0)]
    assert notes.cuts == [("GET", 200), ("GET", 0)]


def test_sizes_are_those_of_the_whole_messages() -> None:
    request = b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n"
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    for size in (1, 7, 1000):
        parts: list[Step] = [client(request[at : at + size]) for at in range(0, len(request), size)]
        parts += [server((interim + answer)[at : at + size]) for at in range(0, len(interim + answer), size)]
        _, notes = _watch(parts)
        target, sizes, _ = notes.facts[0]
        assert (target, sizes) == ("/x", (len(request), len(answer)))


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=60))))
def test_no_bytes_at_all_can_upset_the_reader(steps: list[tuple[bool, bytes]]) -> None:
    watch, _ = _watch([("client" if up else "server", data) for up, data in steps])
    watch.closed()


_GRAINS = st.sampled_from(
    [_GET, _OK, b"GET ", b"/ HTTP/1.1", b"\r\n", b"\n", b"\r", b"Content-Length: 3", b"Transfer-Encoding: chunked",
     b"0", b"3;", b"abc", b"HTTP/1.1 200 ", b"HTTP/1.1 101 X", b"HEAD / HTTP/1.1\r\n\r\n", b"HTTP/1.1 204 \r\n\r\n",
     b"GET /a HTTP/1.1\r\n", b"GET /b HTTP/1.0\r\nHost: h\r\nc: d", b"HTTP/1.0 404 X\r\n", b"\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nT: 1\r\ncontent-LENGTH:3 \r\n", b"\r\nTransfer-encoding:x", b"\ncontent-length:4"]
)  # fmt: skip


@given(st.lists(st.tuples(st.booleans(), _GRAINS), max_size=40))
def test_pieces_of_http_in_any_order_cannot_upset_it_and_cuts_do_not_matter(steps: list[tuple[bool, bytes]]) -> None:
    whole: list[Step] = [("client" if up else "server", data) for up, data in steps]
    single: list[Step] = [(who, bytes([byte])) for who, data in whole if isinstance(data, bytes) for byte in data]
    first, second = _watch(whole), _watch(single)
    for watch, _ in (first, second):
        watch.closed()
    assert first[1].exchanges == second[1].exchanges
    assert [fact[:2] for fact in first[1].facts] == [fact[:2] for fact in second[1].facts]
    assert first[1].opaques == second[1].opaques


_ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\r\n"])
_LINES = st.sampled_from(
    [b"Content-Length: 3", b"content-LENGTH:\t03 ", b"Content-Length : 3", b"Content-Length: +3", b"Content-Length:",
     b"Content-Language: de", b"Content-Lenght: 9", b"Connection: close", b"C", b"Cookie: a=b; c=d", b"T: 1",
     b"Transfer-Encoding: chunked", b"TRANSFER-ENCODING:x", b"Trailer: y", b"TE: trailers", b" Content-Length: 9",
     b"X: \rContent-Length: 9", b"X-Content-Length: 9", b"Host: h", b"", b"\x00", b"\xff: \xfe"]
)  # fmt: skip
_FIRSTS = {
    "client": st.sampled_from([b"GET /a", b"POST /a?b", b"HEAD *", b"get /", b"CONNECT h:1", b"GET  /", b"GET /a b"]),
    "server": st.sampled_from([b"200", b"204", b"304", b"404", b"101", b"100", b"2000", b"20", b"599", b"999"]),
}


@given(st.data())
def test_a_head_in_one_piece_is_read_as_its_bytes_one_by_one(data: st.DataObject) -> None:
    asked = data.draw(st.sampled_from([b"GET", b"HEAD", b"CONNECT", b"BREW"]))
    who = data.draw(st.sampled_from(["client", "server"]))
    version = data.draw(st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1"]))
    first = data.draw(_FIRSTS[who])
    lines = [b" ".join([first, version] if who == "client" else [version, first, b"X"])]
    lines += data.draw(st.lists(_LINES, max_size=6))
    piece = b"".join(line + data.draw(_ENDS) for line in [*lines, b""]) + data.draw(
        st.sampled_from([b"", b"abc", _GET])
    )
    step = client if who == "client" else server
    before = [] if who == "client" else [client(asked + b" /x HTTP/1.1\r\n\r\n")]
    whole, single = _watch([*before, step(piece)]), _watch([*before, *(step(bytes([byte])) for byte in piece)])
    for watch, _ in (whole, single):
        watch.closed()
    assert [fact[:2] for fact in whole[1].facts] == [fact[:2] for fact in single[1].facts]
    assert (whole[1].cuts, whole[1].opaques) == (single[1].cuts, single[1].opaques)


_CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
_SMALL = b"".join(b"%x\r\n%s\r\n" % (size, b"\n" * size) for size in range(1, 16))
#: Chunked bodies, to be read in one piece, in two, cut at every place, and byte by byte, which is never fast.
_BODIES = {
    "every small size": _SMALL + b"0\r\n\r\n",
    "small ones and large ones": b"1\r\nx\r\n20\r\n" + b"1" * 32 + b"\r\n2\r\n\r\n\r\n011\r\n" + b"\r" * 17
    + b"\r\n0\r\n\r\n",
    "extensions and spaces": b"1;a=b\r\nx\r\n 0002\t;\r\nxx\r\n3 \r\nxxx\r\n4;\rx\r\nxxxx\r\n 10 ;y\r\n"
    + b"z" * 16 + b"\r\n0;q\r\n\r\n",
    "lines that end with LF": b"1\nxyz2\nxxyz0\nA: b\n\n",
    "a line end that is none": b"1\r\nxyz1\r\nxyz0\r\n\r\n",
    "two CR": b"1\r\r\nx\r\n0\r\r\na\r\r\n\r\r\n",
    "a trailer": b"0\r\nA: b\r\nno colon\r\n\rC\r\n folded\r\n\r\n",
    "sixteen digits": b"0000000000000001\r\nx\r\n0000000000000000\r\n\r\n",
    "seventeen digits": b"00000000000000001\r\nx\r\n0\r\n\r\n",
    "a size that is none": b"1\r\nx\r\nx\r\n",
    "no size": b"1\r\nx\r\n\r\n0\r\n\r\n",
    "a sign": b"1\r\nx\r\n+1\r\nx\r\n0\r\n\r\n",
    "a body that stops": b"1\r\nx\r\nf\r\nx",
}  # fmt: skip


def _seen(pieces: list[bytes]) -> tuple[list[object], int, bool]:
    watch, notes = _watch([client(piece) for piece in pieces])
    idle, begun = watch.requests.at_boundary, watch.requests.size
    watch.closed()
    return [fact[:2] for fact in notes.facts], notes.opaques + begun * 10, idle


@pytest.mark.parametrize("name", _BODIES)
def test_chunks_are_read_the_same_in_few_steps_and_byte_by_byte(name: str) -> None:
    for text in (_CHUNKED + _BODIES[name] + _GET, _CHUNKED + _BODIES[name]):
        slowly = _seen([bytes([byte]) for byte in text])
        for at in range(len(text)):
            assert _seen([text[:at], text[at:]]) == slowly, at


_CHUNK_GRAINS = st.sampled_from(
    [b"1\r\nx\r\n", b"a\r\n0123456789\r\n", b"1;x\r\nx\r\n", b"12\r\n", b"0" * 18 + b"\r\n", b"0\r\n", b"\r\n", b"\n",
     b"\r", b"f", b"A: b\r\n", b" ", b"\t", b";", b"1" * 8, b"Content-Length: 1\r\n", b"host:x\r\n", b"a b: c\r\n",
     b"a:\x00\r\n", _GET]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(_CHUNK_GRAINS, max_size=30), st.integers(1, 60))
def test_chunks_in_any_order_and_pieces_are_read_as_byte_by_byte(grains: list[bytes], size: int) -> None:
    text = _CHUNKED + b"".join(grains)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert _seen([text]) == _seen(pieces) == _seen([bytes([byte]) for byte in text])


@pytest.mark.parametrize(
    "many",
    [b"1\r\nx\r\n" * 50_000, b"01;a=b\r\nx\r\n" * 50_000, _SMALL * 2_000, b"0\r\n" + b"A: b\r\n" * 50_000],
    ids=["one byte each", "with extensions", "every small size", "a trailer"],
)
def test_many_small_chunks_are_read_in_few_steps(many: bytes) -> None:
    watch, notes = _watch([client(_CHUNKED)])
    assert calls_of(lambda: watch.requests.take(memoryview(many))) < 100
    requests = watch.requests
    assert (requests.tiny, requests.at_boundary, requests.size) == (True, False, len(_CHUNKED) + len(many))
    requests.take(b"\r\n" if many.startswith(b"0\r\n") else b"0\r\n\r\n")
    requests.take(b"POST / HTTP/1.1\r\nContent-Length: 4000\r\n\r\n" + b"x" * 4000)
    assert (requests.tiny, requests.at_boundary, notes.opaques) == (False, True, 0)
