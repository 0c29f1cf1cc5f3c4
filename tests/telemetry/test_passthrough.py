"""The access log of the pass-through: one line for each exchange at debug, none otherwise, and never a query."""

from __future__ import annotations

import logging

import pytest

from gateway.processes.tally import Tallies
from gateway.telemetry.passthrough import PassthroughMetrics


def _facts(record: logging.LogRecord) -> dict[str, object]:
    names = ("backend", "method", "path", "status", "request_bytes", "answer_bytes", "seconds")
    return {name: getattr(record, name) for name in names}


def test_an_exchange_is_one_line_at_debug_with_what_the_relay_knows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "toolview.passthrough")
    observer = PassthroughMetrics(Tallies().own(0)).observer("legacy")
    observer.exchange("GET", 200, b"/people/7?token=hidden", (45, 300), 0.0123456789)
    observer.cut("GET", 200)
    observer.opaque()
    assert [record.message for record in caplog.records] == ["exchange", "cut", "no longer followed"]
    assert _facts(caplog.records[0]) == {
        "backend": "legacy",
        "method": "GET",
        "path": "/people/7",
        "status": 200,
        "request_bytes": 45,
        "answer_bytes": 300,
        "seconds": 0.012346,
    }


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/a%2Fb?x=1?y", "/a%2Fb"),
        ("http://user:secret@h/a?b", "/a"),
        ("http://h", "/"),
        ("user:secret@h:443", "/"),
        ("*", "/"),
        ("", "/"),
    ],
)
def test_only_the_path_of_a_target_is_written(target: str, path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "toolview.passthrough")
    PassthroughMetrics(Tallies().own(0)).observer("legacy").exchange("GET", 200, target.encode(), (1, 1), 1.0)
    assert _facts(caplog.records[0])["path"] == path


def test_above_debug_nothing_is_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolview.passthrough")
    observer = PassthroughMetrics(Tallies().own(0)).observer("legacy")
    observer.exchange("GET", 200, b"/", (1, 1), 1.0)
    observer.cut("GET", 200)
    observer.opaque()
    assert caplog.records == []
