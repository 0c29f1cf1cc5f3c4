"""One line a call, as JSON or text; drift said once a minute; no argument or control character in any of them."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from gateway.call.failure import internal, unknown_tool
from gateway.call.outcome import Call, Outcome
from gateway.telemetry.log import DriftLog, set_up

CALL = Call("list_people", {"secret": "argument"}, "mcp", "id-1")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)


def test_a_json_line_has_the_facts_of_the_call_and_nothing_it_carried(written: io.StringIO) -> None:
    set_up("json", "info", written).observe(
        Outcome(CALL, "list_people", None, body=b'{"a":"secret"}', value={"a": "secret"}, full_bytes=99)
    )
    (line,) = written.getvalue().splitlines()
    told: dict[str, Any] = json.loads(line)
    assert told.pop("time").endswith("Z")
    assert told.pop("seconds") >= 0
    assert told == {
        "level": "info", "logger": "toolview.calls", "message": "call", "tool": "list_people", "surface": "mcp",
        "call_id": "id-1", "code": "ok", "full_bytes": 99, "view_bytes": 14,
    }  # fmt: skip


def test_a_text_line_is_one_line_whatever_stands_in_it(written: io.StringIO) -> None:
    log = set_up("text", "info", written)
    odd = Call("x", {}, "mcp", "id\n2026 error forged\x1b[31m")
    log.observe(Outcome(odd, "unknown", unknown_tool([])))
    (line,) = written.getvalue().splitlines()
    assert "\x1b" not in line
    assert 'call_id="id\\n2026 error forged\\x1b[31m"' in line
    assert " code=UNKNOWN_TOOL " in line
    assert line.endswith(" retryable=false")


def test_what_went_wrong_inside_is_an_error_line(written: io.StringIO) -> None:
    log = set_up("json", "error", written)
    log.observe(Outcome(CALL, "list_people", None))
    log.observe(Outcome(CALL, "list_people", internal("id-1"), fault="the projection failed (raised): KeyError: 'id'"))
    (line,) = written.getvalue().splitlines()
    assert json.loads(line)["level"] == "error"
    assert "KeyError" in json.loads(line)["fault"]


def test_drift_is_said_once_for_each_place_and_again_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    drift = DriftLog(lambda: now)
    one = Outcome(CALL, "list_people", None, violations=("/properties/name/type", "/required"))
    other = Outcome(CALL, "get_person", None, violations=("/properties/name/type",))
    drift.observe(one)
    drift.observe(one)
    drift.observe(other)
    now = 59.9
    drift.observe(one)
    assert len(caplog.records) == 3
    now = 60.0
    drift.observe(one)
    assert len(caplog.records) == 5
    assert {vars(record)["path"] for record in caplog.records} == {"/properties/name/type", "/required"}


@pytest.mark.parametrize(
    "refused",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Key sk-secret-1234567\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk-secret-1234567\x00\r\n\r\n",
        b"GET /sk-secret-1234567\r\n\r\n",
        b"\x16\x03\x01 sk-secret-1234567\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nsk-secret-1234567\r\n\r\n",
    ],
)
@pytest.mark.parametrize("form", ["json", "text"])
async def test_a_request_that_is_no_http_is_one_warning_without_its_words(
    written: io.StringIO, form: str, refused: bytes
) -> None:
    set_up(form, "info", written)
    await _spoken_to(web.Server(_hello, access_log=None), refused)
    lines = written.getvalue().splitlines()
    assert len(lines) <= 1
    assert all("warning" in line and "a request was refused: it is no HTTP" in line for line in lines)
    assert not any(word in written.getvalue() for word in ("secret", "Traceback", "Authorization"))


async def test_where_only_errors_are_asked_for_a_refused_request_is_none(written: io.StringIO) -> None:
    set_up("json", "error", written)
    await _spoken_to(web.Server(_hello, access_log=None), b"GET / HTTP/1.1\r\nHost: a\r\nX-Key sk-secret\r\n\r\n")
    assert written.getvalue() == ""


async def test_a_fault_of_the_server_itself_is_an_error_with_its_traceback(written: io.StringIO) -> None:
    async def fails(_: web.BaseRequest) -> web.StreamResponse:
        raise LookupError("of our own")

    set_up("json", "error", written)
    await _spoken_to(web.Server(fails, access_log=None), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    (line,) = written.getvalue().splitlines()
    assert json.loads(line)["level"] == "error"
    assert "LookupError: of our own" in json.loads(line)["traceback"]


async def _hello(request: web.BaseRequest) -> web.StreamResponse:
    await request.read()
    return web.Response(text="hello")


async def _spoken_to(server: web.Server, request: bytes) -> None:
    """Send one request to a server, and see its connection closed."""
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    writer.write(request)
    writer.write_eof()
    await reader.read()
    writer.close()
    listening.close()
    await server.shutdown(1)
