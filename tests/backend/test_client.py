"""The client against a backend that misbehaves on a real socket: every end is a value, and nothing is left open."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import subprocess
import tempfile
import zlib
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.backend import kept
from gateway.backend.client import BackendClient
from gateway.backend.destination import destinations
from gateway.backend.exchange import Answer, NoAnswer, Request, Silence
from gateway.backend.guard import BreakerState
from gateway.contract.model import (
    BackendAuth,
    BackendLimits,
    BackendTls,
    BasicAuth,
    Breaker,
    ClientCredentials,
    HeaderAuth,
    QueryAuth,
    Retry,
)
from tests.backend.raw import OK, RawBackend, Script, client_of, declared, raw_backend, reset

GET = Request("b", "GET", "/x", timeout=5.0, idempotent=True)
POST = Request("b", "POST", "/x", (("Content-Type", "application/json"),), b'{"a":1}', timeout=5.0)


@pytest.fixture(autouse=True)
def _nothing_is_left_open() -> Iterator[None]:
    process = psutil.Process()
    before = process.num_fds()
    yield
    assert process.num_fds() <= before


async def sent(script: Script | bytes, request: Request = GET, **said: Any) -> Answer | NoAnswer:
    """One request to one backend; no task of ours may outlive it."""
    async with raw_backend(script) as backend:
        async with client_of(declared(backend.url, **said)) as client:
            tasks = asyncio.all_tasks()
            answer = await client.send(request)
            assert asyncio.all_tasks() - tasks <= backend.tasks
        return answer


def answering(*pieces: bytes, then: str = "close") -> Script:
    """Reads one request, writes the pieces each on its own, then closes, resets or hangs."""

    async def script(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        await backend.read_request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then == "reset":
            reset(writer)
        if then == "hang":
            await reader.read()

    return script


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode()


async def at_once(backend: RawBackend, reader: Reader, writer: Writer) -> None:
    """Closes without reading."""


async def endless(backend: RawBackend, reader: Reader, writer: Writer) -> None:
    await backend.read_request(reader)
    writer.write(head("Transfer-Encoding: chunked"))
    while True:
        writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
        await writer.drain()


async def closes_in_plain_text(backend: RawBackend, reader: Reader, writer: Writer) -> None:
    await reader.read(1)
    writer.write(head(status="400 Bad Request"))


BOTH = head("Content-Length: 2", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n"
LARGE = b"%x\r\n" % 900_000 + b"x" * 900_000 + b"\r\n"
CHUNKS = head("Transfer-Encoding: chunked")
INTERIM = head(status="102 Processing") * 100
BOMB = gzip.compress(b"\0" * (20 << 20))

FAULTS: list[tuple[str, Script, Silence]] = [
    ("closes at once", at_once, Silence.CLOSED),
    ("closes after reading", answering(), Silence.CLOSED),
    ("resets after reading", answering(then="reset"), Silence.CLOSED),
    ("closes inside the head", answering(b"HTTP/1.1 200 OK\r\nContent-"), Silence.CLOSED),
    ("closes after the head", answering(head("Content-Length: 5")), Silence.CLOSED),
    ("closes inside the body", answering(head("Content-Length: 5"), b"{}"), Silence.CLOSED),
    ("resets inside the body", answering(head("Content-Length: 5"), b"{}", then="reset"), Silence.CLOSED),
    ("closes inside a chunk", answering(head("Transfer-Encoding: chunked"), b"5\r\n{}"), Silence.CLOSED),
    ("closes between chunks", answering(head("Transfer-Encoding: chunked"), b"2\r\n{}\r\n"), Silence.CLOSED),
    ("hangs before the head", answering(then="hang"), Silence.TIMEOUT),
    ("hangs inside the head", answering(b"HTTP/1.1 200 OK\r\nA: ", then="hang"), Silence.TIMEOUT),
    ("hangs after the head", answering(head("Content-Length: 5"), then="hang"), Silence.TIMEOUT),
    ("hangs inside the body", answering(head("Content-Length: 5"), b"{}", then="hang"), Silence.TIMEOUT),
    ("speaks no HTTP", answering(b"SSH-2.0-OpenSSH_9.6\r\n", then="hang"), Silence.UNDECODABLE),
    ("breaks a chunk", answering(head("Transfer-Encoding: chunked"), b"zz\r\n{}"), Silence.UNDECODABLE),
    ("breaks a late chunk", answering(CHUNKS, LARGE, b"zz\r\n{}"), Silence.UNDECODABLE),
    ("hangs after a broken chunk", answering(CHUNKS, LARGE, b"zz\r\n", then="hang"), Silence.UNDECODABLE),
    ("closes late", answering(head("Content-Length: 900001"), b"x" * 900_000), Silence.CLOSED),
    ("resets late", answering(head("Content-Length: 900001"), b"x" * 900_000, then="reset"), Silence.CLOSED),
    ("sends two lengths", answering(head("Content-Length: 2", "Content-Length: 3"), b"{} "), Silence.UNDECODABLE),
    ("sends a length and chunks", answering(BOTH), Silence.UNDECODABLE),
    ("sends a space before a colon", answering(head("X-A : 1", "Content-Length: 0")), Silence.UNDECODABLE),
    ("sends a length that is none", answering(head("Content-Length: -2"), b"{}"), Silence.UNDECODABLE),
    ("sends an endless header", answering(b"HTTP/1.1 200 OK\r\nA: " + b"a" * 400_000), Silence.UNDECODABLE),
    (
        "switches protocols unasked",
        answering(head("Upgrade: x", "Connection: upgrade", status="101 Switching Protocols"), then="hang"),
        Silence.UNDECODABLE,
    ),
    ("sends a status that is none", answering(b"HTTP/1.1 000 X\r\n\r\n", then="hang"), Silence.UNDECODABLE),
    ("sends a status below 100", answering(b"HTTP/1.1 099 X\r\n\r\n", then="hang"), Silence.UNDECODABLE),
    ("sends interim answers only", answering(INTERIM, then="hang"), Silence.UNDECODABLE),
    ("sends a body for ever", endless, Silence.TOO_LARGE),
    ("announces too much", answering(head("Content-Length: 99999999999"), then="hang"), Silence.TOO_LARGE),
    (
        "announces more than any integer holds",
        answering(head("Content-Length: " + "9" * 18), then="hang"),
        Silence.TOO_LARGE,
    ),
    (
        "sends a bomb",
        answering(head("Content-Encoding: gzip", f"Content-Length: {len(BOMB)}"), BOMB),
        Silence.TOO_LARGE,
    ),
    (
        "sends a broken coding",
        answering(head("Content-Encoding: gzip", "Content-Length: 2"), b"{}"),
        Silence.UNDECODABLE,
    ),
    (
        "sends an unknown coding",
        answering(head("Content-Encoding: rot13", "Content-Length: 2"), b"{}"),
        Silence.UNDECODABLE,
    ),
    (
        "cuts a coding short",
        answering(head("Content-Encoding: gzip", "Content-Length: 20"), gzip.compress(b"{}" * 50)[:20]),
        Silence.UNDECODABLE,
    ),
]


@pytest.mark.parametrize(("script", "silence"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
async def test_a_backend_that(request_: Request, script: Script, silence: Silence) -> None:
    timeout = 0.05 if silence is Silence.TIMEOUT else 5.0
    asked = Request("b", request_.method, "/x", request_.headers, request_.body, timeout, request_.idempotent)
    answer = await sent(script, asked, limits=BackendLimits(answer=1 << 20))
    assert isinstance(answer, NoAnswer)
    assert (answer.silence, answer.sent) == (silence, True), answer.note
    assert "127.0.0.1" not in answer.note


BODIES: list[tuple[str, Script | bytes, bytes]] = [
    ("a length", OK, b"{}"),
    (
        "chunks",
        answering(head("Transfer-Encoding: chunked"), b"1;x=y\r\n{\r\n1\r\n", b"}\r\n0\r\nTrailer: 1\r\n\r\n"),
        b"{}",
    ),
    ("the end of the connection", answering(head("Content-Type: a/b"), b"{", b"}"), b"{}"),
    ("HTTP/1.0", answering(b"HTTP/1.0 200 OK\r\n\r\n{}"), b"{}"),
    ("byte by byte", answering(*(bytes([byte]) for byte in OK)), b"{}"),
    (
        "after interim answers",
        answering(head(status="100 Continue"), head("Link: </a>", status="103 Early Hints"), OK),
        b"{}",
    ),
    ("no content", answering(head(status="204 No Content")), b""),
    ("no reason phrase", answering(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}"), b"{}"),
    ("a header that is not UTF-8", answering(b"HTTP/1.1 200 OK\r\nX: \xe9\r\nContent-Length: 2\r\n\r\n{}"), b"{}"),
    ("nothing", answering(head("Content-Length: 0")), b""),
    ("gzip", answering(head("Content-Encoding: gzip", "Content-Length: 22"), gzip.compress(b"{}")), b"{}"),
    ("deflate", answering(head("Content-Encoding: deflate"), zlib.compress(b"{}")), b"{}"),
    ("a coding on nothing", answering(head("Content-Encoding: gzip", "Content-Length: 0")), b""),
    (
        "two codings in two lines",
        answering(head("Content-Encoding: deflate", "content-encoding: gzip"), gzip.compress(zlib.compress(b"{}"))),
        b"{}",
    ),
    ("more than one buffer", answering(head("Content-Length: 900000"), b"7" * 900_000), b"7" * 900_000),
]


@pytest.mark.parametrize(("script", "body"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_a_body_arrives_whole_with(script: Script | bytes, body: bytes) -> None:
    answer = await sent(script)
    assert isinstance(answer, Answer), answer
    assert answer.body == body


async def test_an_answer_has_names_in_any_case_first_values_and_its_size_on_the_wire() -> None:
    content = gzip.compress(b"x" * 1000)
    lines = ("Content-Encoding: gzip", f"CONTENT-LENGTH: {len(content)}", "X-A: 1", "x-a: 2", "Set-Cookie: a=b")
    answer = await sent(answering(head(*lines, status="404 Not Found"), content))
    assert isinstance(answer, Answer)
    assert (answer.status, len(answer.body), answer.wire_bytes) == (404, 1000, len(content))
    said = {name: answer.headers.get(name) for name in ("content-encoding", "Content-Length", "x-a", "X-A", "x-b")}
    assert said == {
        "content-encoding": "gzip",
        "Content-Length": str(len(content)),
        "x-a": "1",
        "X-A": "1",
        "x-b": None,
    }
    assert answer.duration > 0


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async with raw_backend(answering(head("Location: /y", "Content-Length: 0", status="302 Found"))) as backend:
        async with client_of(declared(backend.url)) as client:
            answer = await client.send(GET)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.headers["location"]) == (302, "/y")
        assert len(backend.received) == 1


async def test_a_head_has_no_body_whatever_its_length_says() -> None:
    answer = await sent(answering(head("Content-Length: 500000000")), Request("b", "HEAD", "/x"))
    assert isinstance(answer, Answer)
    assert answer.body == b""


async def test_an_exact_limit_is_within_it() -> None:
    for said in (head("Content-Length: 10"), head("Connection: close")):
        ten = BackendLimits(answer=10)
        assert isinstance(await sent(answering(said, b"0123456789"), limits=ten), Answer)
        over = await sent(answering(said.replace(b"10", b"11"), b"0123456789x"), limits=ten)
        assert isinstance(over, NoAnswer)
        assert over.silence is Silence.TOO_LARGE


async def test_nothing_was_sent_where_nobody_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        async with client_of(declared(f"http://127.0.0.1:{held.getsockname()[1]}")) as client:
            answer = await client.send(POST)
    assert isinstance(answer, NoAnswer)
    assert (answer.silence, answer.sent, answer.note) == (Silence.UNREACHABLE, False, "cannot connect (errno 111)")


async def test_nothing_was_sent_where_the_name_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    async with client_of(declared("http://directory.invalid")) as client:
        answer = await client.send(GET)
    assert isinstance(answer, NoAnswer)
    assert (answer.silence, answer.sent) == (Silence.UNREACHABLE, False)


async def test_connecting_has_its_own_limit() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(0)
        address = held.getsockname()
        # the queue is full, so another connection waits for ever
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        async with client_of(declared(f"http://127.0.0.1:{address[1]}", connect_timeout=0.05)) as client:
            answer = await client.send(GET)
        for one in waiting:
            one.close()
    assert isinstance(answer, NoAnswer)
    assert (answer.silence, answer.sent) == (Silence.UNREACHABLE, False)


async def test_a_backend_without_a_url_is_stubbed() -> None:
    async with client_of(declared(None)) as client:
        answer = await client.send(GET)
    assert answer == NoAnswer(Silence.STUBBED, "the backend has no url", sent=False)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Not under pytest's own folder: the path of a unix socket has room for a hundred characters."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


async def test_a_unix_socket_is_reached_and_its_host_is_the_url(short_folder: Path) -> None:
    async with raw_backend(OK, path=short_folder / "s") as backend:
        async with client_of(declared("http://directory.test", socket=str(short_folder / "s"))) as client:
            assert isinstance(await client.send(GET), Answer)
        assert b"\r\nHost: directory.test\r\n" in backend.received[0]
    async with client_of(declared(None, socket=str(short_folder / "s"))) as client:
        gone = await client.send(GET)
    assert isinstance(gone, NoAnswer)
    assert (gone.silence, gone.sent) == (Silence.UNREACHABLE, False)


@pytest.mark.parametrize(
    "said",
    [
        head("Content-Length: 5", status="304 Not Modified"),
        head(status="204 No Content"),
        head("Content-Length: 0"),
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_an_answer_without_a_body_leaves_its_connection_fit_for_another(said: bytes) -> None:
    async with raw_backend(said) as backend, client_of(declared(backend.url)) as client:
        for _ in range(2):
            answer = await client.send(GET)
            assert isinstance(answer, Answer)
            assert answer.body == b""
        assert backend.connections == 1


@pytest.mark.parametrize("target", ["/a%2Fb//c?x=", "/p?", "/F(K='a%28b')", "/%2e%2e/.;/", '/?a=[1]&b={x|y}^`"<>'])
async def test_a_target_goes_out_untouched(target: str) -> None:
    async with raw_backend(OK) as backend, client_of(declared(backend.url)) as client:
        assert isinstance(await client.send(Request("b", "GET", target)), Answer)
        assert backend.received[0].startswith(f"GET {target} HTTP/1.1\r\n".encode())


async def test_connections_are_kept() -> None:
    async with raw_backend(OK) as backend, client_of(declared(backend.url)) as client:
        for request in (GET, POST, GET):
            assert isinstance(await client.send(request), Answer)
        assert (backend.connections, len(backend.received)) == (1, 3)


async def closes_while_idle(backend: RawBackend, reader: Reader, writer: Writer) -> None:
    """Answers once as if it would stay, then closes."""
    await backend.read_request(reader)
    writer.write(OK)


@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
async def test_a_connection_that_was_closed_while_idle_fails_no_call_and_repeats_none(request_: Request) -> None:
    async with raw_backend(closes_while_idle) as backend, client_of(declared(backend.url)) as client:
        for _ in range(20):
            assert isinstance(await client.send(request_), Answer)
        assert len(backend.received) == 20


async def takes_a_second_and_closes(backend: RawBackend, reader: Reader, writer: Writer) -> None:
    """Answers once, reads another request on the same connection, and closes instead of answering."""
    await backend.read_request(reader)
    writer.write(OK)
    await backend.read_request(reader)


async def test_a_post_whose_bytes_have_left_is_never_sent_again() -> None:
    async with raw_backend(takes_a_second_and_closes) as backend, client_of(declared(backend.url)) as client:
        assert isinstance(await client.send(POST), Answer)
        answer = await client.send(POST)
        assert isinstance(answer, NoAnswer)
        assert (answer.silence, answer.sent) == (Silence.CLOSED, True)
        assert len(backend.received) == 2


async def test_what_may_be_repeated_is_sent_once_more_on_a_fresh_connection() -> None:
    put = Request("b", "POST", "/x", body=b"{}", timeout=5.0, idempotent=True)
    for request in (GET, put):
        async with raw_backend(takes_a_second_and_closes) as backend, client_of(declared(backend.url)) as client:
            assert isinstance(await client.send(request), Answer)
            assert isinstance(await client.send(request), Answer)
            assert (backend.connections, len(backend.received)) == (2, 3)


async def test_one_attempt_is_one_even_where_more_would_do_no_harm() -> None:
    async with raw_backend(answering()) as backend:
        async with client_of(declared(backend.url, retry=Retry(attempts=1))) as client:
            assert isinstance(await client.send(GET), NoAnswer)
        assert len(backend.received) == 1


async def test_attempts_are_as_many_as_declared() -> None:
    for request, times in ((GET, 3), (POST, 1)):
        async with raw_backend(answering()) as backend:
            async with client_of(declared(backend.url, retry=Retry(attempts=3))) as client:
                assert isinstance(await client.send(request), NoAnswer)
            assert len(backend.received) == times


async def test_a_backend_that_cannot_be_reached_at_first_is_tried_again_even_for_a_post() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = held.getsockname()
        async with client_of(declared(f"http://127.0.0.1:{address[1]}", retry=Retry(attempts=9))) as client:
            sending = asyncio.create_task(client.send(POST))
            await asyncio.wait({sending}, timeout=0)  # it meets a port where nobody listens
            held.listen()
            held.setblocking(False)
            loop = asyncio.get_running_loop()
            accepted, _ = await loop.sock_accept(held)
            with accepted:
                await loop.sock_recv(accepted, 1000)
                await loop.sock_sendall(accepted, OK)
                assert isinstance(await sending, Answer)


async def test_over_the_concurrency_limit_nothing_is_sent_and_the_call_ends_at_once() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def waits(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        await backend.read_request(reader)
        asked.set()
        await go.wait()
        writer.write(OK)

    async with raw_backend(waits) as backend:
        async with client_of(declared(backend.url, limits=BackendLimits(concurrency=1))) as client:
            first = asyncio.create_task(client.send(GET))
            await asked.wait()
            assert await client.send(GET) == NoAnswer(Silence.OVERLOADED, "too many calls in flight", sent=False)
            go.set()
            assert isinstance(await first, Answer)
            assert isinstance(await client.send(GET), Answer)
        assert len(backend.received) == 2


async def test_a_breaker_opens_after_failures_in_a_row_and_is_seen_to_be_open() -> None:
    breaker = Breaker.model_validate({"failures": 2, "reset": "60s"})
    async with raw_backend(answering()) as backend:
        async with client_of(declared(backend.url, breaker=breaker)) as client:
            for _ in range(2):
                assert client.breakers() == {"b": BreakerState.CLOSED}
                await client.send(POST)
            assert client.breakers() == {"b": BreakerState.OPEN}
            assert await client.send(POST) == NoAnswer(Silence.OVERLOADED, "the breaker is open", sent=False)
        assert len(backend.received) == 2


async def test_a_get_that_is_not_idempotent_is_not_repeated() -> None:
    once = Request("b", "GET", "/x", timeout=5.0, idempotent=False)
    async with raw_backend(takes_a_second_and_closes) as backend, client_of(declared(backend.url)) as client:
        assert isinstance(await client.send(once), Answer)
        assert isinstance(await client.send(once), NoAnswer)


async def answers_twice(backend: RawBackend, reader: Reader, writer: Writer) -> None:
    """Sends an answer that nobody asked for after each one that somebody did."""
    while True:
        request = await backend.read_request(reader)
        own = request.split(b" ")[1]
        said = head(f"Content-Length: {len(own)}") + own
        writer.write(said)
        await writer.drain()
        writer.write(said.replace(own, b"?" * len(own)))
        await writer.drain()


async def test_an_answer_nobody_asked_for_is_never_anothers_answer() -> None:
    async with raw_backend(answers_twice) as backend, client_of(declared(backend.url)) as client:
        for number in range(20):
            answer = await client.send(Request("b", "GET", f"/{number:03}", timeout=5.0))
            assert isinstance(answer, Answer)
            assert answer.body == b"/%03d" % number


async def test_an_answer_that_comes_while_the_connection_is_idle_is_never_anothers_answer() -> None:
    told, spoken = asyncio.Event(), asyncio.Event()

    async def speaks_unasked(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        await backend.read_request(reader)
        writer.write(OK)
        if backend.connections == 1:
            await told.wait()
            writer.write(head("Content-Length: 5") + b"other")
            await writer.drain()
            spoken.set()
        await reader.read()

    async with raw_backend(speaks_unasked) as backend, client_of(declared(backend.url)) as client:
        assert isinstance(await client.send(POST), Answer)
        told.set()
        await spoken.wait()
        answer = await client.send(POST)
        assert isinstance(answer, Answer)
        assert answer.body == b"{}"
        assert backend.connections == 2


async def test_an_early_refusal_of_a_large_body_is_the_answer_and_ends_the_connection() -> None:
    async def refuses(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head("Content-Length: 0", status="413 Content Too Large"))
        await writer.drain()
        await reader.read()

    large = Request("b", "POST", "/x", body=b"x" * (32 << 20), timeout=5.0)
    async with raw_backend(refuses) as backend, client_of(declared(backend.url)) as client:
        for request in (large, GET):
            answer = await client.send(request)
            assert isinstance(answer, Answer)
            assert answer.status == 413
        assert backend.connections == 2


async def test_after_close_nothing_is_sent_and_a_call_in_flight_ends_without_another_attempt() -> None:
    asked = asyncio.Event()

    async def hangs(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        await backend.read_request(reader)
        asked.set()
        await reader.read()

    async with raw_backend(hangs) as backend, client_of(declared(backend.url)) as client:
        flying = asyncio.create_task(client.send(GET))
        await asked.wait()
        await client.close()
        for answer in (await flying, await client.send(GET)):
            assert isinstance(answer, NoAnswer)
            assert answer.silence in (Silence.CLOSED, Silence.UNREACHABLE)
        assert len(backend.received) == 1


async def test_a_call_that_is_cancelled_closes_its_connection() -> None:
    closed = asyncio.Event()
    asked = asyncio.Event()

    async def hangs(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        await backend.read_request(reader)
        asked.set()
        await reader.read()
        closed.set()

    async with raw_backend(hangs) as backend, client_of(declared(backend.url)) as client:
        task = asyncio.create_task(client.send(GET))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await closed.wait()


async def test_credentials_are_added_here_and_win_over_a_calls_own_headers() -> None:
    headers = (("X-Api-Key", "callers"), ("accept", "image/png"), ("Host", "evil"), ("Content-Length", "99"))
    request = Request("b", "GET", "/x?a=1", headers, timeout=5.0)
    auth = BackendAuth(
        basic=BasicAuth(username="Aladdin", password="open sesame"),
        header=HeaderAuth(name="X-Api-Key", value="ours"),
        query=QueryAuth(name="key", value="s&t"),
    )
    async with raw_backend(OK) as backend:
        said = declared(backend.url, auth=auth, headers={"User-Agent": "legacy/1"})
        async with client_of(said) as client:
            assert isinstance(await client.send(request), Answer)
    lines = backend.received[0].decode().split("\r\n")
    assert lines[0] == "GET /x?a=1&key=s%26t HTTP/1.1"
    assert "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" in lines
    assert [line for line in lines if line.lower().startswith("x-api-key")] == ["X-Api-Key: ours"]
    assert [line for line in lines if line.lower().startswith("user-agent")] == ["User-Agent: legacy/1"]
    assert [line for line in lines if line.lower().startswith("accept:")] == ["accept: image/png"]
    assert f"Host: {backend.url.removeprefix('http://')}" in lines
    assert not [line for line in lines if line.startswith("Content-Length") or "evil" in line]


async def test_bytes_of_a_callers_header_that_are_no_utf8_leave_as_they_came() -> None:
    request = Request("b", "GET", "/x", (("traceparent", b"caf\xe9".decode(errors="surrogateescape")),), timeout=5.0)
    async with raw_backend(OK) as backend, client_of(declared(backend.url)) as client:
        assert isinstance(await client.send(request), Answer)
    assert b"\r\ntraceparent: caf\xe9\r\n" in backend.received[0]


class TokenServer:
    """Gives out numbered tokens; `last` is the only one the backend beside it accepts."""

    def __init__(self, lasts: int | None = 3600, answer: bytes | None = None) -> None:
        self.given, self.lasts, self.answer = 0, lasts, answer
        self.revoked = False

    async def tokens(self, backend: RawBackend, reader: Reader, writer: Writer) -> None:
        while True:
            await backend.read_request(reader)
            self.given, self.revoked = self.given + 1, False
            said = {"access_token": f"t{self.given}", "token_type": "Bearer"}
            body = self.answer or json.dumps(said | ({"expires_in": self.lasts} if self.lasts else {})).encode()
            writer.write(head(f"Content-Length: {len(body)}") + body)
            await writer.drain()

    async def guarded(self, backend: RawBackend, reader: Reader, writer: Writer) -> None:
        while True:
            request = await backend.read_request(reader)
            good = f"\r\nAuthorization: Bearer t{self.given}\r\n".encode() in request and not self.revoked
            writer.write(OK if good else head("Content-Length: 0", status="401 Unauthorized"))
            await writer.drain()


@asynccontextmanager
async def with_tokens(server: TokenServer) -> AsyncIterator[tuple[BackendClient, RawBackend, RawBackend]]:
    async with raw_backend(server.tokens) as tokens, raw_backend(server.guarded) as backend:
        credentials = ClientCredentials(
            token_url=f"{tokens.url}/oauth/token", client_id="toolview", client_secret="p w", scopes=("a", "b")
        )
        async with client_of(declared(backend.url, auth=BackendAuth(client_credentials=credentials))) as client:
            yield client, tokens, backend


async def test_a_token_is_fetched_once_for_many_calls_and_wins_over_a_callers() -> None:
    request = Request("b", "GET", "/x", (("Authorization", "Bearer callers"),), timeout=5.0)
    async with with_tokens(TokenServer()) as (client, tokens, backend):
        answers = await asyncio.gather(*(client.send(request) for _ in range(5)))
        assert [answer.status for answer in answers if isinstance(answer, Answer)] == [200] * 5
        assert len(tokens.received) == 1
        assert not any(b"callers" in request for request in backend.received)
    asked, _, body = tokens.received[0].partition(b"\r\n\r\n")
    assert asked.startswith(b"POST /oauth/token HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Basic dG9vbHZpZXc6cCt3\r\n" in asked
    assert body == b"grant_type=client_credentials&scope=a+b"


async def test_a_token_that_ended_or_was_refused_is_fetched_again() -> None:
    for lasts, calls, fetched in ((3600, 2, 1), (None, 2, 1), (5, 2, 2)):
        async with with_tokens(TokenServer(lasts)) as (client, tokens, _):
            for _ in range(calls):
                assert isinstance(await client.send(GET), Answer)
            assert len(tokens.received) == fetched
    server = TokenServer()
    async with with_tokens(server) as (client, tokens, _):
        statuses = []
        for revoked in (False, True, False):
            server.revoked = revoked
            answer = await client.send(GET)
            assert isinstance(answer, Answer)
            statuses.append(answer.status)
        assert (statuses, len(tokens.received)) == ([200, 401, 200], 2)


@pytest.mark.parametrize(
    ("server", "statuses"),
    [
        (TokenServer(lasts=5), [200] * 5),
        (TokenServer(lasts=10**400), [200] * 5),
        (TokenServer(answer=b"{}"), []),
    ],
    ids=["short-lived", "longer than a double", "none"],
)
async def test_many_that_wait_cause_one_request_also_where_its_answer_is_of_no_use_to_the_next(
    server: TokenServer, statuses: list[int]
) -> None:
    async with with_tokens(server) as (client, tokens, _):
        answers = await asyncio.gather(*(client.send(GET) for _ in range(5)))
        assert [answer.status for answer in answers if isinstance(answer, Answer)] == statuses
        assert len(tokens.received) == 1


async def test_a_call_that_leaves_takes_the_token_from_nobody() -> None:
    asked, given = asyncio.Event(), asyncio.Event()

    class Slow(TokenServer):
        async def tokens(self, backend: RawBackend, reader: Reader, writer: Writer) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            await given.wait()
            writer.write(head("Content-Length: 21") + b'{"access_token":"t0"}')

    async with with_tokens(Slow()) as (client, _, backend):
        first = asyncio.create_task(client.send(GET))
        second = asyncio.create_task(client.send(GET))
        await asked.wait()
        first.cancel()
        await asyncio.wait([first])
        given.set()
        answer = await second
        assert isinstance(answer, Answer)
        assert answer.status == 200
        assert len(backend.received) == 1


@pytest.mark.parametrize("said", [b"{}", b"[]", b"<html>", b'{"access_token": "a\\r\\nX: 1"}', b'{"access_token": 1}'])
async def test_without_a_token_nothing_is_sent(said: bytes) -> None:
    async with with_tokens(TokenServer(answer=said)) as (client, _, backend):
        answer = await client.send(POST)
        assert isinstance(answer, NoAnswer)
        assert (answer.silence, answer.sent) == (Silence.UNREACHABLE, False)
        assert backend.received == []


@pytest.mark.parametrize(
    "request_",
    [
        Request("b", "GET", "/x", (("X-Tool-Call-Id", "a\r\nX-Evil: 1"),)),
        Request("b", "GET", "/x", (("X\r\nEvil", "1"),)),
        Request("b", "GET", "/x", (("X", "\ud800"),)),
        Request("b", "GET", "/x HTTP/1.1\r\nX: 1"),
        Request("b", "GET", "x"),
    ],
)
async def test_what_would_end_its_line_is_not_sent(request_: Request) -> None:
    async with raw_backend(OK) as backend, client_of(declared(backend.url)) as client:
        answer = await client.send(request_)
        assert isinstance(answer, NoAnswer)
        assert (answer.silence, answer.sent) == (Silence.UNREACHABLE, False)
        assert backend.connections == 0


async def test_a_proxy_of_the_environment_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert isinstance(await sent(OK), Answer)


async def test_cookies_of_one_answer_are_not_sent_with_the_next_request() -> None:
    said = head("Content-Length: 0", "Set-Cookie: sid=secret; Path=/")
    async with raw_backend(said) as backend, client_of(declared(backend.url)) as client:
        await client.send(GET)
        await client.send(GET)
        assert b"secret" not in backend.received[1]


async def test_another_contracts_backends_are_served_without_a_restart() -> None:
    async with raw_backend(OK) as first, raw_backend(OK) as second, client_of(declared(first.url)) as client:
        await client.send(GET)
        client.use(destinations([declared(second.url)]))
        await client.send(GET)
        assert (len(first.received), len(second.received)) == (1, 1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run([*new, *subject, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


async def test_tls_is_verified_unless_that_is_switched_off(certificate: tuple[str, str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with raw_backend(OK, ssl=context) as backend:
        for tls in (BackendTls(ca=certificate[0]), BackendTls(verify=False)):
            async with client_of(declared(backend.url, tls=tls)) as client:
                assert isinstance(await client.send(GET), Answer)
        async with client_of(declared(backend.url)) as client:
            answer = await client.send(GET)
        assert isinstance(answer, NoAnswer)
        assert (answer.silence, answer.sent, answer.note) == (Silence.UNREACHABLE, False, "TLS failed")
        assert len(backend.received) == 2


async def test_a_client_certificate_is_shown(certificate: tuple[str, str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(certificate[0])
    context.verify_mode = ssl.CERT_REQUIRED
    async with raw_backend(OK, ssl=context) as backend:
        tls = BackendTls(ca=certificate[0], cert=certificate[0], key=certificate[1])
        async with client_of(declared(backend.url, tls=tls)) as client:
            assert isinstance(await client.send(GET), Answer)


async def test_https_to_a_backend_that_speaks_plain_http_is_unreachable() -> None:
    async with raw_backend(closes_in_plain_text) as backend:
        said = declared(backend.url.replace("http", "https"))
        async with client_of(said) as client:
            answer = await client.send(GET)
    assert isinstance(answer, NoAnswer)
    assert (answer.silence, answer.sent) == (Silence.UNREACHABLE, False)


async def until_closed(backend: RawBackend, reader: Reader, writer: Writer) -> None:
    """Answers every request, and notes when the connection ends."""
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            await backend.read_request(reader)
            writer.write(OK)
    backend.ended.set()


async def test_a_connection_that_waits_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_LONGEST_WAIT", 0.0)
    async with raw_backend(until_closed) as backend, client_of(declared(backend.url)) as client:
        assert isinstance(await client.send(GET), Answer)
        await backend.ended.wait()


async def test_what_waits_is_closed_when_another_contract_is_served_and_the_next_call_connects_anew() -> None:
    async with raw_backend(until_closed) as backend, client_of(declared(backend.url)) as client:
        assert isinstance(await client.send(GET), Answer)
        client.use(destinations([declared(backend.url)]))
        await backend.ended.wait()
        assert isinstance(await client.send(GET), Answer)
        assert backend.connections == 2


async def test_a_call_that_began_on_the_old_contract_does_not_keep_its_connection_for_the_new_one() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(backend: RawBackend, reader: Reader, writer: Writer) -> None:
        await backend.read_request(reader)
        asked.set()
        await go_on.wait()
        writer.write(OK)
        await reader.read()
        backend.ended.set()

    async with raw_backend(slow) as backend, client_of(declared(backend.url)) as client:
        call = asyncio.create_task(client.send(GET))
        await asked.wait()
        client.use(destinations([declared(backend.url)]))
        go_on.set()
        assert isinstance(await call, Answer)
        await backend.ended.wait()
