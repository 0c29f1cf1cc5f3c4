"""No answer of a listener says what made it, nor in which version: whatever is asked, and however badly."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.rig import accepted, backend, http
from tests.surfaces.openapi.test_http import KEYED, LISTENERS, described
from tests.test_serve import exchange, serving

KEY = "Authorization: Bearer k\r\n"
LAST = "Host: localhost\r\nConnection: close\r\n"
GARBAGE = {
    "another host": "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "another origin": f"GET / HTTP/1.1\r\n{LAST}Origin: http://evil.example\r\n\r\n",
    "what is not there": f"GET /nowhere HTTP/1.1\r\n{LAST}{KEY}\r\n",
    "no http": "\x16\x03\x01\x02\x00\r\n\r\n",
    "a line that is too long": f"GET /{'x' * 20_000} HTTP/1.1\r\n{LAST}\r\n",
    "a broken body": f"POST /mcp HTTP/1.1\r\n{LAST}{KEY}Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a method that nobody knows": f"BREW / HTTP/1.1\r\n{LAST}{KEY}\r\n",
    "an old version": f"GET / HTTP/1.0\r\n{LAST}\r\n",
    "what is to be continued": f"POST /mcp HTTP/1.1\r\n{LAST}Expect: what\r\nContent-Length: 1\r\n\r\n",
}


def told(answer: bytes) -> bytes:
    """Lines of heads, in lower case."""
    return b"\n" + answer.replace(b"\r\n", b"\n").lower()


@pytest.mark.parametrize("listener", LISTENERS)
async def test_neither_a_route_nor_a_refusal_tells_it(tmp_path: Path, listener: str) -> None:
    text = KEYED.replace("0" * 64, hashlib.sha256(b"k").hexdigest() + ", scopes: [ops]")
    async with backend(http({})) as api, serving(accepted(tmp_path, text.replace("http://127.0.0.1:9", api.url))) as it:
        address = it.addresses[listener]
        answers = {what: await exchange(address, sent.encode("latin-1")) for what, sent in GARBAGE.items()}
        for path, item in described(listener)["paths"].items():
            where = re.sub(r"{\w+}", "read", path)
            for method in ("DELETE", "OPTIONS", *(name.upper() for name in item)):
                for key in (KEY, ""):
                    sent = f"{method} {where} HTTP/1.1\r\n{LAST}{key}Content-Length: 0\r\n\r\n"
                    answers[f"{method} {where} {key}"] = await exchange(address, sent.encode())
    statuses = set()
    for what, answer in answers.items():
        assert answer.startswith(b"HTTP/1."), what
        assert b"\nserver:" not in told(answer), what
        assert not re.search(rb"aiohttp|python/", told(answer).partition(b"\n\n")[0]), what
        statuses.add(int(answer[9:12]))
    assert {200, 400, 401, 403, 404, 405, 421, 431} <= statuses, statuses
