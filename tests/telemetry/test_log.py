"""One line a call, as JSON or text; drift said once a minute; no argument or control character in any of them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

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
