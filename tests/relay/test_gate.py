"""`only: declared`: what may pass goes on byte for byte, and of anything else no byte reaches the backend."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.relay.flow import LITTLE, MORE, Flow, GatedFlow
from gateway.relay.gate import Gate, Refused, Routes
from gateway.relay.observe import Piece
from tests.relay.exchanges import EXCHANGES
from tests.relay.rig import Door, Step, calls_of, connect, play, relay_to, until

_DECLARED = (
    ("GET", "/people/{team}"),
    ("POST", "/people/{team}"),
    ("GET", "/people/{team}/{id}.json"),
    ("DELETE", "/v1/a%20b"),
    ("OPTIONS", "*"),
)


def _head(line: str, *fields: str) -> bytes:
    return "\r\n".join([line, *(fields or ("Host: h",))]).encode("latin-1") + b"\r\n\r\n"


def _take(*parts: bytes) -> tuple[bytes, Refused | None]:
    gate = Gate(Routes(_DECLARED))
    passed = b""
    for part in parts:
        some, refused = gate.take(memoryview(part))
        passed += some
        if refused is not None:
            return passed, refused
    return passed, None


@pytest.mark.parametrize(
    "request_bytes",
    [
        _head("GET /people/red HTTP/1.1"),
        _head("GET /people/red? HTTP/1.1"),
        _head("GET /people/red?a=/../x HTTP/1.1"),
        _head("GET /people/a%2Fb%20c HTTP/1.1"),
        _head("GET /people/..a HTTP/1.1"),
        _head("GET /people/red/7.json HTTP/1.1"),
        _head("GET http://h/people/red HTTP/1.1"),
        _head("GET /people/red HTTP/1.0", "Connection: keep-alive"),
        _head("DELETE /v1/a%20b HTTP/1.1"),
        _head("OPTIONS * HTTP/1.1"),
        _head("GET /people/red HTTP/1.1", "Host: h", "X-N: caf\xe9", "zeta:1", "ZETA:  2 \t", "X:"),
        _head("POST /people/red HTTP/1.1", "Host: h", "Content-Length: 5") + b"hello",
        _head("POST /people/red HTTP/1.1", "Host: h", "Content-Length: 0"),
        _head("POST /people/red HTTP/1.1", "Host: h", "Transfer-Encoding: Chunked")
        + b"3;a=b\r\nabc\r\n00a\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n",
    ],
)
def test_a_declared_request_passes_byte_for_byte_however_it_is_cut_and_the_gate_re_arms(request_bytes: bytes) -> None:
    twice = request_bytes * 2
    assert _take(twice) == (twice, None)
    assert _take(*(bytes([byte]) for byte in twice)) == (twice, None)
    assert _take(twice + _head("GET /secret HTTP/1.1"))[0] == twice


@pytest.mark.parametrize(
    "line",
    [
        "GET / HTTP/1.1",
        "GET /people HTTP/1.1",
        "GET /people/ HTTP/1.1",
        "GET //people/red HTTP/1.1",
        "GET /people/red/ HTTP/1.1",
        "GET /People/red HTTP/1.1",
        "GET /%70eople/red HTTP/1.1",  # percent-encoding is not touched
        "GET /people/.. HTTP/1.1",
        "GET /people/. HTTP/1.1",
        "GET /people/%2e%2E HTTP/1.1",
        "GET /people/%252e%252e HTTP/1.1",
        "GET /people/..%2fadmin HTTP/1.1",
        "GET /people/a%2f..%2f..%2fadmin HTTP/1.1",
        "GET /people/..%5cadmin HTTP/1.1",
        "GET /people/..\\admin HTTP/1.1",
        "GET /people/..;x HTTP/1.1",
        "GET /people/red/../../admin.json HTTP/1.1",
        "DELETE /v1/a+b HTTP/1.1",
        "GET http://h/ HTTP/1.1",
    ],
)
def test_a_path_that_is_not_declared_is_a_404(line: str) -> None:
    passed, refused = _take(_head(line))
    assert passed == b""
    assert refused is not None
    assert refused.status == 404


@pytest.mark.parametrize("method", ["PUT", "HEAD", "get", "OPTIONS"])
def test_a_method_that_is_not_declared_for_the_path_is_a_405_that_names_those_that_are(method: str) -> None:
    passed, refused = _take(_head(f"{method} /people/red HTTP/1.1"))
    assert passed == b""
    assert refused is not None
    assert (refused.status, refused.allow) == (405, "GET, POST")


_POST = "POST /people/red HTTP/1.1"
_AMBIGUOUS = {
    "two lengths (PRQ-06)": _head(_POST, "Host: h", "Content-Length: 1", "Content-Length: 2"),
    "two equal lengths": _head(_POST, "Host: h", "Content-Length: 1", "content-length: 1"),
    "a list of lengths (PRQ-06)": _head(_POST, "Host: h", "Content-Length: 1, 1"),
    "a signed length (PRQ-06)": _head(_POST, "Host: h", "Content-Length: +1"),
    "a length in hex (PRQ-06)": _head(_POST, "Host: h", "Content-Length: 0x1"),
    "an empty length": _head(_POST, "Host: h", "Content-Length:"),
    "an enormous length": _head(_POST, "Host: h", "Content-Length: " + "9" * 30),
    "a length of other digits": _head(_POST, "Host: h", "Content-Length: \xb2"),
    "length and chunked (PRQ-06)": _head(_POST, "Host: h", "Content-Length: 4", "Transfer-Encoding: chunked"),
    "two codings (PRQ-08)": _head(_POST, "Host: h", "Transfer-Encoding: gzip, chunked"),
    "chunked twice": _head(_POST, "Host: h", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    "a coding with a vertical tab": _head(_POST, "Host: h", "Transfer-Encoding: \x0bchunked"),
    "identity": _head(_POST, "Host: h", "Transfer-Encoding: identity"),
    "chunked in HTTP/1.0": _head("POST /people/red HTTP/1.0", "Transfer-Encoding: chunked"),
    "a space before a colon": _head(_POST, "Host: h", "Content-Length : 4"),
    "a folded line": _head(_POST, "Host: h", "X: a", " b"),
    "a bare CR (PRQ-07)": _head(_POST, "Host: h", "X-A: \rTransfer-Encoding: chunked"),
    "a bare LF": _head(_POST, "Host: h", "X-A: a\nTransfer-Encoding: chunked"),
    "NUL": _head(_POST, "Host: h", "X-A: a\x00b"),
    "a line without a colon": _head(_POST, "Host: h", "X-A"),
    "a header without a name": _head(_POST, "Host: h", ": a"),
    "no Host (PRQ-11)": _head(_POST, "A: b"),
    "two Hosts (PRQ-11)": _head(_POST, "Host: a", "Host: a"),
    "CONNECT (URL-14)": _head("CONNECT h:443 HTTP/1.1"),
    "an authority as the target (URL-14)": _head("GET example.com:443 HTTP/1.1"),
    "an absolute target of another host": _head("GET http://other/people/red HTTP/1.1"),
    "an absolute target and no Host": _head("GET http://h/people/red HTTP/1.0", "A: b"),
    "a star for GET": _head("GET * HTTP/1.1"),
    "UTF-8 in the target (URL-16)": b"GET /people/caf\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n",
    "Latin-1 in the target (URL-16)": b"GET /people/caf\xe9 HTTP/1.1\r\nHost: h\r\n\r\n",
    "a fragment": _head("GET /people/red#x HTTP/1.1"),
    "two spaces": _head("GET  /people/red HTTP/1.1"),
    "a space in the target": _head("GET /people/red HTTP/1.1 HTTP/1.1"),
    "a tab": _head("GET\t/people/red HTTP/1.1"),
    "another version": _head("GET /people/red HTTP/1.2"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /people/red\r\n",
    "lines without CR": b"GET /people/red HTTP/1.1\nHost: h\n\n",
    "one line without CR": b"GET /people/red HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
    "an empty line first": b"\r\n" + _head("GET /people/red HTTP/1.1"),
    "an upgrade to HTTP/2": _head("GET /people/red HTTP/1.1", "Host: h", "Upgrade: h2c", "HTTP2-Settings: AA"),
    "an upgrade with a body": _head(_POST, "Host: h", "Upgrade: websocket", "Content-Length: 1"),
    "a head without end": _head("GET /people/red HTTP/1.1", "Host: h", "X: " + "y" * 70_000)[:-4],
}


@pytest.mark.parametrize("name", _AMBIGUOUS)
def test_a_head_that_two_readers_may_read_differently_is_a_400_and_nothing_passes(name: str) -> None:
    text = _AMBIGUOUS[name]
    step = 1 if len(text) < 1000 else 5000
    for parts in ([text + b"\r\n\r\n"], [text[at : at + step] for at in range(0, len(text), step)] + [b"\r\n\r\n"]):
        passed, refused = _take(*parts)
        assert passed == b""
        assert refused is not None
        assert refused.status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"1;a\nb\r\nx\r\n0\r\n\r\n",  # PRQ-07
        b"1\nx\r\n0\r\n\r\n",
        b"1\r\nxy\r\n0\r\n\r\n",
        b"1\r\nx\n0\r\n\r\n",
        b"-1\r\n",
        b"0x1\r\nx\r\n",
        b" 1\r\nx\r\n",
        b"\r\n",
        b"11111111111111111\r\n",
        b"0\r\nContent-Length: 5\r\n\r\n",
        b"0\r\nX-T : 1\r\n\r\n",
        b"0\r\n folded\r\n\r\n",
        b"1" * 9000,
    ],
)
def test_a_chunked_body_that_two_readers_may_read_differently_is_stopped_at_the_fault(body: bytes) -> None:
    head = _head(_POST, "Host: h", "Transfer-Encoding: chunked")
    passed, refused = _take(head + body)
    assert refused is not None
    assert (refused.status, refused.in_body) == (400, True)
    assert (head + body).startswith(passed)


_CHUNKED = _head(_POST, "Host: h", "Transfer-Encoding: chunked")
_SMALL = b"".join(b"%x\r\n%s\r\n" % (size, b"\n" * size) for size in range(1, 16))


def _judged(*parts: bytes) -> tuple[bytes, int | None, str | None]:
    passed, refused = _take(*parts)
    return passed, refused.status if refused else None, refused.sentence if refused else None


@pytest.mark.parametrize(
    "body",
    [
        _SMALL + b"0\r\n\r\n",
        b"1\r\nx\r\n20\r\n" + b"1" * 32 + b"\r\n2\r\n\r\n\r\n011\r\n" + b"\r" * 17 + b"\r\n0\r\n\r\n",
        b"1;a=b\r\nx\r\n0002\t;\r\nxx\r\n3 \r\nxxx\r\n10 ;y\r\n" + b"z" * 16 + b"\r\n0;q\r\n\r\n",
        b"0\r\nA: b\r\nc:\r\nd: \xe9\t\r\n\r\n",
        b"1\r\nx\r\n1\r\nxy\r\n",
        b"1\r\nx\r\n10\r\n0123456789abcdefg\r\n",
        b"1\r\nx\r\n1;\x01\r\nx\r\n",
        b"1\r\nx\r\n1\nx\r\n",
        b"1\r\nx\r\n1 1\r\nx\r\n",
        b"1\r\nx\r\n00000000000000001\r\nx\r\n",
        b"1\r\nx\r\n\r\n",
        b"0\r\nA: b\r\nTransfer-ENCODING: x\r\n\r\n",
        b"0\r\nA: b\r\nHost:h\r\n\r\n",
        b"0\r\nA: b\r\nHosts: h\r\nConnection-: h\r\n\r\n",
        b"0\r\nA: b\r\nC: \x7f\r\n\r\n",
        b"0\r\nA: b\r\n c\r\n\r\n",
        b"0\r\nA: b\nC: d\r\n\r\n",
    ],
)
def test_chunks_are_judged_the_same_in_few_steps_and_byte_by_byte(body: bytes) -> None:
    text = _CHUNKED + body + _head("GET /secret HTTP/1.1")
    slowly = _judged(*(bytes([byte]) for byte in text))
    for at in range(len(text)):
        assert _judged(text[:at], text[at:]) == slowly, at


_CHUNK_GRAINS = st.sampled_from(
    [b"1\r\nx\r\n", b"a\r\n0123456789\r\n", b"1;x\r\nx\r\n", b"12\r\n", b"0" * 18 + b"\r\n", b"0\r\n", b"\r\n", b"\n",
     b"\r", b"f", b"A: b\r\n", b" ", b"\t", b";", b"1" * 8, b"Content-Length: 1\r\n", b"host:x\r\n", b"a b: c\r\n",
     b"a:\x00\r\n"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(_CHUNK_GRAINS, max_size=30), st.integers(1, 60))
def test_chunks_in_any_order_and_pieces_are_judged_as_byte_by_byte(grains: list[bytes], size: int) -> None:
    text = _CHUNKED + b"".join(grains)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert _judged(text) == _judged(*pieces) == _judged(*(bytes([byte]) for byte in text))


@pytest.mark.parametrize(
    "many",
    [b"1\r\nx\r\n" * 50_000, b"01;a=b\r\nx\r\n" * 50_000, _SMALL * 2_000, b"0\r\n" + b"A: b\r\n" * 10_000],
    ids=["one byte each", "with extensions", "every small size", "a trailer"],
)
def test_many_small_chunks_are_judged_in_few_steps(many: bytes) -> None:
    gate = Gate(Routes(_DECLARED))
    gate.take(_CHUNKED)
    taken: list[object] = []
    assert calls_of(lambda: taken.append(gate.take(many))) < 100
    assert taken == [(many, None)]
    assert (gate.tiny, gate.at_boundary) == (True, False)
    gate.take(b"\r\n" if many.startswith(b"0\r\n") else b"0\r\n\r\n")
    gate.take(_head(_POST, "Host: h", "Content-Length: 4000") + b"x" * 4000)
    assert (gate.tiny, gate.at_boundary) == (False, True)


#: A trailer with its empty line may be as long as a head.
_LAST = b"0\r\n"
_TRAILER = b"A: " + b"b" * 1019 + b"\r\n"


@pytest.mark.parametrize("step", [1, 7, 1000, 5000, 200_000])
@pytest.mark.parametrize("more", [0, 1])
def test_a_trailer_may_be_as_long_as_a_head_and_no_longer(step: int, more: int) -> None:
    fits = _TRAILER * 63 + b"A: " + b"b" * 1017 + b"\r\n"
    assert len(fits + b"\r\n") == 65536
    fits = fits.replace(b": b", b": " + b"b" * (more + 1), 1)
    text = _CHUNKED + _LAST + fits + b"\r\n"
    passed, refused = _take(*(text[at : at + step] for at in range(0, len(text), step)))
    if more:
        assert refused == Refused(400, "The trailer is too long.", in_body=True)
        assert passed == text[:-2]  # its end, which would make the request look whole, stays here
    else:
        assert (passed, refused) == (text, None)


async def test_a_trailer_that_is_too_long_is_told_so_and_its_backend_sees_a_reset() -> None:
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (_, port, notes):
        near = await connect(port)
        await near.send(_CHUNKED)
        far = await door.accept()
        await far.read_until(len(_CHUNKED))
        await near.send(_LAST + _TRAILER * 100 + b"\r\n")
        answer = await near.read_to_end()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"The trailer is too long." in answer
        await far.read_to_end()
        assert (far.saw, far.received.endswith(b"\r\n\r\n" + _LAST + b"\r\n")) == ("reset", False)
        assert notes.exchanges == [("POST", 400)]
        near.close()
        far.close()
    door.close()


async def test_a_trailer_that_is_too_long_behind_an_answer_that_has_begun_resets_both_ends() -> None:
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (_, port, _notes):
        near = await connect(port)
        await near.send(_CHUNKED)
        far = await door.accept()
        await far.send(_OK[:-1])
        await near.read_until(len(_OK) - 1)
        await near.send(_LAST + _TRAILER * 100 + b"\r\n")
        await near.read_to_end()
        await far.read_to_end()
        assert (near.saw, far.saw) == ("reset", "reset")
        near.close()
        far.close()
    door.close()


async def test_the_plain_relay_passes_a_trailer_of_any_length() -> None:
    text = _CHUNKED + _LAST + _TRAILER * 100 + b"\r\n"
    door = Door()
    async with relay_to(door) as (_, port, notes):
        near = await connect(port)
        await near.send(text)
        far = await door.accept()
        await far.read_until(len(text))
        await far.send(_OK)
        await near.read_until(len(_OK))
        assert (far.received, near.received) == (text, _OK)
        assert notes.exchanges == [("POST", 200)]
        near.close()
        far.close()
    door.close()


def _noted(accept: Callable[[Any, Piece], None], sizes: list[int]) -> Callable[[Any, Piece], None]:
    def noting(flow: Any, data: Piece) -> None:
        sizes.append(len(data))
        accept(flow, data)

    return noting


@pytest.mark.parametrize("declared", [None, _DECLARED])
async def test_of_small_chunks_little_is_taken_at_once_and_of_others_much(
    declared: tuple[tuple[str, str], ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever floods has one turn after another, each of them short, with everybody else in between."""
    sizes: list[int] = []
    for kind in (Flow, GatedFlow):
        monkeypatch.setattr(kind, "accept", _noted(kind.accept, sizes))
    small, large = b"1\r\nx\r\n" * 100_000, b"100000\r\n" + b"x" * (1 << 20) + b"\r\n0\r\n\r\n"
    door = Door()
    async with relay_to(door, declared=declared) as (_, port, _notes):
        near = await connect(port)
        await near.send(_CHUNKED)
        far = await door.accept()
        sending = asyncio.create_task(near.send(small))
        await far.read_until(len(_CHUNKED + small))
        await sending
        assert max(sizes) <= MORE
        assert max(sizes[3:]) <= LITTLE
        sending = asyncio.create_task(near.send(large))
        await far.read_until(len(_CHUNKED + small + large))
        await sending
        assert max(sizes) > MORE
        assert far.received == _CHUNKED + small + large
        near.close()
        far.close()
    door.close()


_GET = _head("GET /people/red HTTP/1.1")
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_a_refused_request_gets_its_answer_and_the_backend_is_not_even_connected_to() -> None:
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (_, port, notes):
        for request, status in ((_head("GET /secret HTTP/1.1"), 404), (_head("PUT /people/red HTTP/1.1"), 405),
                                (_AMBIGUOUS["length and chunked (PRQ-06)"], 400)):  # fmt: skip
            near = await connect(port)
            await near.send(request)
            assert (await near.read_to_end()).startswith(b"HTTP/1.1 %d " % status)
            assert near.saw == "end"
            near.close()
        with pytest.raises(BlockingIOError):
            door.sock.accept()
        assert notes.exchanges == [("GET", 404), ("PUT", 405), ("other", 400)]
    door.close()


async def test_a_refusal_waits_for_the_answers_to_the_requests_before_it() -> None:
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (_, port, notes):
        near = await connect(port)
        await near.send(_GET + _GET + _head("GET /secret HTTP/1.1") + _GET)
        far = await door.accept()
        await far.read_until(len(_GET) * 2)
        await far.send(_OK)
        await near.read_until(len(_OK))
        await far.send(_OK)
        await near.read_to_end()
        await far.read_to_end()
        assert near.received.startswith(_OK + _OK + b"HTTP/1.1 404 ")
        assert far.received == _GET + _GET
        assert notes.exchanges == [("GET", 200), ("GET", 200), ("GET", 404)]
        near.close()
        far.close()
    door.close()


async def test_a_head_that_comes_in_pieces_reaches_the_backend_only_when_it_is_whole() -> None:
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (relay, port, _):
        near = await connect(port)
        await near.send(_GET[:-1])
        await until(lambda: relay.connections == 1)
        with pytest.raises(BlockingIOError):
            door.sock.accept()
        await near.send(_GET[-1:])
        far = await door.accept()
        await far.read_until(len(_GET))
        assert far.received == _GET
        near.close()
        far.close()
    door.close()


async def test_a_fault_in_a_body_ends_both_connections_and_the_backend_sees_a_reset() -> None:
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (_, port, _notes):
        near = await connect(port)
        head = _head(_POST, "Host: h", "Transfer-Encoding: chunked")
        await near.send(head)
        far = await door.accept()
        await near.send(b"1\r\nx\r\n1\nGET /admin")
        assert (await near.read_to_end()).startswith(b"HTTP/1.1 400 ")
        await far.read_to_end()
        assert far.received in (head, head + b"1\r\nx\r\n")  # the kernel may drop what a reset overtakes
        assert far.saw == "reset"
        near.close()
        far.close()
    door.close()


_UPGRADE = _head("GET /people/red HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket")


async def test_after_a_101_everything_passes() -> None:
    steps: list[Step] = [
        ("client", _UPGRADE),
        ("server", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
        ("client", b"\x81\x85GET /secret HTTP/1.1\r\n\r\n"),
        ("server", b"\x81\x05Hello"),
        ("server", "end"),
    ]
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (_, port, _notes):
        assert await play(steps, door, port) == await play(steps, door, door.port)
    door.close()


async def test_what_follows_a_request_to_upgrade_is_held_until_its_answer_says_what_it_is() -> None:
    door = Door()
    async with relay_to(door, declared=_DECLARED) as (_, port, _notes):
        near = await connect(port)
        await near.send(_UPGRADE + _GET + _head("GET /secret HTTP/1.1"))
        far = await door.accept()
        await far.read_until(len(_UPGRADE))
        assert far.received == _UPGRADE
        await far.send(_OK)  # no upgrade after all: requests are read again
        await far.read_until(len(_UPGRADE + _GET))
        assert far.received == _UPGRADE + _GET
        await far.send(_OK)
        assert (await near.read_to_end()).startswith(_OK + _OK + b"HTTP/1.1 404 ")
        near.close()
        far.close()
    door.close()


@pytest.mark.parametrize(
    "name", ["a plain GET", "a chunked request in uneven writes", "three pipelined requests", "a large answer"]
)
async def test_declared_exchanges_are_the_same_bytes_as_without_the_gate(name: str) -> None:
    everything = (("GET", "/"), ("POST", "/in"), ("GET", "/1"), ("GET", "/2"), ("POST", "/3"))
    steps: list[Step] = []
    for who, what in EXCHANGES[name]:
        whole = (
            what.replace(b"POST /3 HTTP/1.1\r\n", b"POST /3 HTTP/1.1\r\nHost: h\r\n")
            if who == "client" and isinstance(what, bytes)
            else what
        )
        steps.append((who, whole))
    if name == "a chunked request in uneven writes":
        steps = [("client", b"".join(what for who, what in steps if who == "client" and isinstance(what, bytes))),
                 *(step for step in steps if step[0] == "server" or step[1] == "end")]  # fmt: skip
    door = Door()
    async with relay_to(door, declared=everything) as (_, port, notes):
        assert await play(steps, door, port) == await play(steps, door, door.port)
        assert notes.opaques == 0
    door.close()


#: Exchanges of the table that the strict gate stops at their first head; all others it lets through unchanged.
_STOPPED = {
    "CONNECT (URL-14)",
    "CONNECT that is let through (URL-14)",
    "an authority as the target of GET (URL-14)",
    "UTF-8 in the target (URL-16)",
    "Latin-1 in the target (URL-16)",
    "a space in the target",
    "a head longer than anybody reads",
    "Content-Length with Transfer-Encoding (PRQ-06)",
    "two different lengths (PRQ-06)",
    "a length with a sign (PRQ-06)",
    "a list of lengths (PRQ-06)",
    "a length in hex (PRQ-06)",
    "a bare CR in a header value (PRQ-07)",
    "two transfer codings (PRQ-08)",
    "no Host (PRQ-11)",
    "two Hosts (PRQ-11)",
    "line ends without CR",
    "empty lines before a request",
    "no HTTP at all",
    "the preface of HTTP/2",
    "HTTP/0.9",
}
#: Exchanges that the gate lets begin and treats in a way of its own, each with a test of its own above.
_APART = {"a chunked request in uneven writes", "three pipelined requests", "LF in a chunk extension (PRQ-07)"}
_REQUEST_LINE = re.compile(rb"(?:^|\n)([A-Z]+) (?:http://h)?([^ ?]+)\S* HTTP/1")


def _said_by_client(name: str) -> bytes:
    return b"".join(what for who, what in EXCHANGES[name] if who == "client" and isinstance(what, bytes))


def _all_it_asks_for(name: str) -> tuple[tuple[str, str], ...]:
    lines = _REQUEST_LINE.findall(_said_by_client(name))
    return tuple({(method.decode(), path.decode("latin-1")) for method, path in lines})


def test_the_table_knows_the_exchanges_that_are_stopped() -> None:
    assert not (_STOPPED | _APART) - set(EXCHANGES)


@pytest.mark.parametrize("name", [name for name in EXCHANGES if name not in _STOPPED | _APART])
async def test_an_exchange_whose_requests_are_declared_is_the_same_through_the_gate(name: str) -> None:
    door = Door()
    async with relay_to(door, declared=_all_it_asks_for(name)) as (_, port, _notes):
        assert await play(EXCHANGES[name], door, port) == await play(EXCHANGES[name], door, door.port)
    door.close()


@pytest.mark.parametrize("name", sorted(_STOPPED))
async def test_an_exchange_that_may_be_read_in_two_ways_is_stopped_before_the_backend(name: str) -> None:
    door = Door()
    async with relay_to(door, declared=_all_it_asks_for(name)) as (_, port, notes):
        near = await connect(port)
        await near.send(_said_by_client(name))
        near.end()
        await near.read_to_end()
        # A client that ends in the middle of its first head has left; nobody waits for an answer.
        left = name in ("HTTP/0.9", "no HTTP at all")
        assert (near.received[:13], near.saw) == (b"" if left else b"HTTP/1.1 400 ", "end")
        near.close()
        assert [status for _, status in notes.exchanges] == ([] if left else [400])
    with pytest.raises(BlockingIOError):
        door.sock.accept()
    door.close()
