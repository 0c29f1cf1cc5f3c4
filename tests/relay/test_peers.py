"""Real clients and servers do not notice the relay: curl, a WebSocket with compression, events, many at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.relay.peers import program, relaying, run, serving
from tests.relay.rig import within

_DECLARED = tuple(
    (method, path)
    for path in ("/file", "/packed", "/echo", "/trailers", "/events", "/socket", "/item/{id}")
    for method in ("GET", "HEAD", "POST", "PUT")
)
_BOTH = pytest.mark.parametrize("declared", [None, _DECLARED], ids=["plain", "strict"])


async def _echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), headers={"X-Length": request.headers.get("Content-Length", "none")})


async def _packed(_: web.Request) -> web.Response:
    answer = web.Response(text='{"people": []}' * 500, content_type="application/json")
    answer.enable_compression(web.ContentCoding.gzip)
    return answer


async def _trailers(request: web.Request) -> web.StreamResponse:
    """aiohttp writes no trailers, so this answer is written to its transport as bytes."""
    assert request.transport is not None
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: close\r\n\r\n"
    request.transport.write(head + b"5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n")
    request.transport.close()
    return web.StreamResponse()


def _application(file: Path) -> web.Application:
    async def whole(_: web.Request) -> web.FileResponse:
        return web.FileResponse(file)

    async def item(request: web.Request) -> web.Response:
        return web.Response(text=f"item {request.match_info['id']}\n")

    app = web.Application(client_max_size=1 << 24)
    app.router.add_get("/file", whole)
    app.router.add_get("/packed", _packed)
    app.router.add_route("*", "/echo", _echo)
    app.router.add_get("/trailers", _trailers)
    app.router.add_get("/item/{id}", item)
    return app


_CURL: dict[str, tuple[list[str], str, bytes]] = {
    "HTTP/1.0": (["--http1.0"], "/file", b"HTTP/1.0 200 OK"),
    "HEAD": (["--head"], "/file", b"Content-Length: 200000"),
    "an expectation": (["-H", "Expect: 100-continue", "--data-binary", "@BODY"], "/echo", b"HTTP/1.1 100 Continue"),
    "an upload in chunks": (["-H", "Transfer-Encoding: chunked", "-T", "BODY"], "/echo", b"X-Length: none"),
    "a range": (["--range", "100-199"], "/file", b"Content-Range: bytes 100-199/200000"),
    "the last bytes": (["--range", "-10"], "/file", b"HTTP/1.1 206"),
    "a range beyond the end": (["--range", "900000-"], "/file", b"HTTP/1.1 416"),
    "compressed": (["--compressed"], "/packed", b"Content-Encoding: gzip"),
    "compressed, as it came": (["--raw", "-H", "Accept-Encoding: gzip"], "/packed", b"\x1f\x8b"),
    "trailers, as they came": (["--raw"], "/trailers", b"0\r\nX-Sum: 42\r\n\r\n"),
    "a query of its own": ([], "/file?x=1&x=%2F", b"200 OK"),
}


@_BOTH
async def test_curl_prints_the_same_through_the_relay(
    declared: tuple[tuple[str, str], ...] | None, tmp_path: Path
) -> None:
    curl, file = program("curl"), tmp_path / "BODY"
    file.write_bytes(bytes(range(250)) * 800)
    async with serving(_application(file)) as port, relaying(port, declared) as (through, notes):
        for name, (options, target, expected) in _CURL.items():
            arguments = [option.replace("BODY", str(file)) for option in options]
            direct, relayed = [
                await run(
                    curl, "--silent", "--include", "--max-time", "20", *arguments, f"http://127.0.0.1:{at}{target}"
                )
                for at in (port, through)
            ]
            assert relayed == direct, name
            assert expected in relayed, name
        assert len(notes.exchanges) == len(_CURL)


@_BOTH
async def test_three_hundred_small_requests_in_parallel_are_each_answered(
    declared: tuple[tuple[str, str], ...] | None, tmp_path: Path
) -> None:
    curl = program("curl")
    async with serving(_application(tmp_path)) as port, relaying(port, declared) as (through, notes):
        out = await run(
            curl, "--silent", "--parallel", "--parallel-max", "20", "--fail", f"http://127.0.0.1:{through}/item/[1-300]"
        )
        assert sorted(out.split(b"\n")) == sorted([b"item %d" % number for number in range(1, 301)] + [b""])
    assert notes.exchanges == [("GET", 200)] * 300
    assert notes.opaques == 0


@_BOTH
async def test_a_websocket_with_compression_echoes_text_bytes_and_a_long_message(
    declared: tuple[tuple[str, str], ...] | None,
) -> None:
    said_goodbye: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    async def echo(request: web.Request) -> web.WebSocketResponse:
        served = web.WebSocketResponse(compress=True)
        await served.prepare(request)
        async for message in served:
            if message.type is aiohttp.WSMsgType.TEXT:
                await served.send_str(message.data)
            else:
                await served.send_bytes(message.data)
        said_goodbye.set_result(served.close_code)
        return served

    app = web.Application()
    app.router.add_get("/socket", echo)
    async with (
        serving(app) as port,
        relaying(port, declared) as (through, notes),
        aiohttp.ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{through}/socket", compress=15) as socket,
    ):
        assert socket.compress == 15  # both sides agreed on permessage-deflate, so its frames have a reserved bit set
        for text in ("", "hello", "x" * 300_000):
            await socket.send_str(text)
            assert await socket.receive_str(timeout=10) == text
        await socket.send_bytes(bytes(range(256)) * 500)
        assert await socket.receive_bytes(timeout=10) == bytes(range(256)) * 500
        await socket.close(code=4001, message=b"enough")
        assert await within(said_goodbye) == 4001
    assert (notes.exchanges, notes.opaques) == ([("GET", 101)], 1)


@_BOTH
async def test_every_event_of_a_stream_arrives_before_the_next_is_sent(
    declared: tuple[tuple[str, str], ...] | None,
) -> None:
    seen = [asyncio.Event() for _ in range(100)]

    async def events(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        for number, arrived in enumerate(seen):
            await answer.write(f"data: {number}\n\n".encode())
            await arrived.wait()  # an event that the relay kept would keep the stream here for ever
        return answer

    app = web.Application()
    app.router.add_get("/events", events)
    async with (
        asyncio.timeout(20),
        serving(app) as port,
        relaying(port, declared) as (through, _),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{through}/events") as answer,
    ):
        for number, arrived in enumerate(seen):
            assert await answer.content.readuntil(b"\n\n") == f"data: {number}\n\n".encode()
            arrived.set()
        assert await answer.content.read() == b""
