"""An answer in one write: what a client sees is what aiohttp itself would have written, whatever HTTP it speaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gateway.surfaces.ready import Kind, Ready

KIND = Kind({"Content-Type": "application/json", "Toolview-Catalog": "0123456789abcdef"})


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[int]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return Ready(KIND, body)

    server = web.Server(handle)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1]
    listening.close()
    server.pre_shutdown()
    await server.shutdown(1)


async def exchanged(port: int, *heads: bytes) -> bytes:
    """All that comes back for requests on one connection, of which the last asks for its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(heads))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


KEPT = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def test_answers_follow_each_other_on_a_kept_connection_and_the_last_says_that_it_closes() -> None:
    async with answering(b'{"a":1}') as port:
        answer = await exchanged(port, KEPT, KEPT, LAST)
    first, second, last = answer.split(b"HTTP/1.1 200 OK\r\n")[1:]
    for kept in (first, second):
        assert kept.startswith(b"Content-Type: application/json\r\nToolview-Catalog: 0123456789abcdef\r\nDate: ")
        assert kept.endswith(b" GMT\r\nContent-Length: 7\r\n\r\n" + b'{"a":1}')
    assert b"\r\nConnection: close\r\n" in last
    assert last.endswith(b'\r\n\r\n{"a":1}')


@pytest.mark.parametrize("line", [b"", b"Connection: keep-alive\r\n"])
async def test_a_client_of_http_1_0_is_answered_in_its_own_version(line: bytes) -> None:
    async with answering(b"{}") as port:
        answer = await exchanged(port, b"GET / HTTP/1.0\r\n" + line + b"\r\n", b"" if not line else LAST)
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert (b"keep-alive" in answer) == bool(line)


async def test_a_large_answer_arrives_whole() -> None:
    body = b"[" + b"1," * 4_000_000 + b"1]"
    async with answering(body) as port:
        answer = await exchanged(port, KEPT, LAST)
    assert answer.count(body) == 2


async def test_a_client_that_leaves_before_its_answer_disturbs_nobody() -> None:
    async with answering(b"x" * 10_000_000) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(KEPT * 3)
        writer.transport.abort()
        assert (await exchanged(port, LAST)).startswith(b"HTTP/1.1 200 OK\r\n")
