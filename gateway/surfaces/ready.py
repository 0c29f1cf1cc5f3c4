"""An answer as one write: its head is spelled once for all answers of a kind. Knows no route and no call."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter


class Kind:
    """The headers that many answers with status 200 share, and the bytes that they make."""

    __slots__ = ("headers", "lines")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


class Ready(web.StreamResponse):
    """A whole answer of a kind; aiohttp would compose, check and copy the same few headers for each anew.

    To a client of HTTP/1.0, or one that wants its connection closed, aiohttp writes it as it writes any other.
    """

    def __init__(self, kind: Kind, body: bytes) -> None:
        # What StreamResponse keeps of itself would serve only to compose a head.
        self._kind = kind
        self._whole = body
        self._asked: web.BaseRequest | None = None
        self._plain: web.Response | None = None

    @property
    def status(self) -> int:
        return 200

    @property
    def headers(self) -> Any:
        return web.Response(headers=self._kind.headers).headers

    @property
    def keep_alive(self) -> bool | None:
        return True if self._plain is None else self._plain.keep_alive

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Nothing is written before the body is."""
        self._asked = request
        if request.version == HttpVersion11 and request.keep_alive:
            return None
        self._plain = web.Response(body=self._whole, headers=self._kind.headers)
        return await self._plain.prepare(request)

    async def write_eof(self, data: bytes = b"") -> None:
        """Write it all; a reader that is slower than that is waited for."""
        if self._plain is not None:
            return await self._plain.write_eof(data)
        assert self._asked is not None
        transport = self._asked.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the caller has left")
        transport.write(
            b"HTTP/1.1 200 OK\r\n%bDate: %b\r\nContent-Length: %d\r\n\r\n%b"
            % (self._kind.lines, _date(), len(self._whole), self._whole)
        )
        if transport.get_write_buffer_size():
            await self._asked.writer.drain()
        return None


class _Clock:
    second = 0
    date = b""


def _date() -> bytes:
    """The time as HTTP spells it (RFC 9110 section 5.6.7), made anew each second."""
    now = int(time.time())
    if now != _Clock.second:
        _Clock.second, _Clock.date = now, formatdate(now, usegmt=True).encode()
    return _Clock.date
