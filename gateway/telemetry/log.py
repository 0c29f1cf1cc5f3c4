"""Log lines: one per call, as JSON or readable text; never an argument, an answer, a header or a secret."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TextIO

from gateway import json_text
from gateway.call.outcome import Code, Outcome
from gateway.telemetry.lines import JsonLines, TextLines, pairs

log = logging.getLogger("toolview.calls")

#: The trace that the call under way belongs to, where calls are traced.
TRACE_ID: ContextVar[str | None] = ContextVar("toolview.trace_id", default=None)


def set_up(form: str, level: str, stream: TextIO | None = None) -> CallLog:
    """Write the process's log lines to a stream, stderr unless given: `json`, or `text` for people."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.addFilter(_without_refused_requests)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    call_log = CallLog(_line_of(form), root.level, stream)
    _in_use[:] = [call_log]
    return call_log


#: What `set_up` made last.
_in_use: list[CallLog] = []


def set_up_again(form: str, level: str) -> None:
    """Another form and level from now on, where the log was set up: a reload may bring them."""
    for call_log in _in_use:
        root = logging.getLogger()
        root.setLevel(level.upper())
        for handler in root.handlers:
            handler.setFormatter(JsonLines() if form == "json" else TextLines())
        call_log.turn(_line_of(form), root.level)


def form_of(written: str | None) -> str:
    """`text` on a terminal, else `json`, unless the contract says which."""
    return written or ("text" if sys.stderr.isatty() else "json")


def _line_of(form: str) -> Callable[[str, str, Mapping[str, Any]], str]:
    return _json_line if form == "json" else _text_line


class CallLog:
    """One line for one ended call, written here: passing a record through `logging` costs more than the call's checks.

    A fault inside the gateway or its contract is an error, with what it was.
    """

    def __init__(self, line: Callable[[str, str, Mapping[str, Any]], str], level: int, stream: TextIO) -> None:
        self._line = line
        self._level = level
        self._stream = stream
        self._second = (0, "")

    def turn(self, line: Callable[[str, str, Mapping[str, Any]], str], level: int) -> None:
        """Write in another way from now on."""
        self._line, self._level = line, level

    def observe(self, outcome: Outcome) -> None:
        """Write the line of one call, where its level is asked for."""
        failure = outcome.failure
        inside = failure is not None and failure.code == Code.INTERNAL_SERVER_ERROR.word
        if (logging.ERROR if inside else logging.INFO) < self._level:
            return
        facts: dict[str, Any] = {
            "tool": outcome.tool,
            "surface": outcome.call.surface,
            "call_id": outcome.call.call_id,
            "code": outcome.code,
            "full_bytes": outcome.full_bytes,
            "view_bytes": outcome.view_bytes,
            "seconds": round(outcome.duration, 6),
        }
        if outcome.call.caller is not None:
            facts["caller"] = outcome.call.caller
        if (trace_id := TRACE_ID.get()) is not None:
            facts["trace_id"] = trace_id
        if failure is not None:
            facts["retryable"] = failure.retryable
        if outcome.asked is not None:
            facts["consent"] = outcome.asked.consent.value
        if outcome.fault is not None:
            facts["fault"] = outcome.fault[:2000]
        if outcome.stripped:
            facts["stripped"] = list(outcome.stripped[:20])
        self._stream.write(self._line(self._now(), "error" if inside else "info", facts))
        self._stream.flush()

    def _now(self) -> str:
        now = time.time()
        second, text = self._second
        if second != int(now):
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
            self._second = (int(now), text)
        return f"{text}.{int(now % 1 * 1000):03d}Z"


def _without_refused_requests(record: logging.LogRecord) -> bool:
    """A request that aiohttp refuses to parse is a caller's fault: a warning, without the words it held.

    aiohttp logs it as an error whose traceback quotes the line at fault, and that may be a header with a key in it.
    """
    kinds = type(record.exc_info[1]).__mro__ if record.exc_info else ()
    if record.name != "aiohttp.server" or _REFUSALS.isdisjoint(kind.__name__ for kind in kinds):
        return True
    record.levelno = min(record.levelno, logging.WARNING)
    record.levelname = logging.getLevelName(record.levelno)
    record.msg, record.args = "a request was refused: it is no HTTP", ()
    record.exc_info = record.exc_text = None
    return logging.getLogger().isEnabledFor(record.levelno)


#: What aiohttp raises for the bytes of a request, before or while its handler reads it; by name, for logs know no HTTP.
_REFUSALS = frozenset({"HttpProcessingError", "RequestPayloadError", "PayloadAccessError"})


def _json_line(now: str, level: str, facts: Mapping[str, Any]) -> str:
    shown = {"time": now, "level": level, "logger": log.name, "message": "call", **facts}
    return json_text.encode(shown).decode() + "\n"


def _text_line(now: str, level: str, facts: Mapping[str, Any]) -> str:
    return f"{now} {level:7} call{pairs(facts)}\n"


class DriftLog:
    """Says where backends drift from their declared output: once for each tool and place, then again after a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, every: float = 60.0) -> None:
        self._clock = clock
        self._every = every
        #: Places are schema paths, so a backend cannot make this grow beyond the contract.
        self._told: dict[tuple[str, str], float] = {}

    def observe(self, outcome: Outcome) -> None:
        """Note the violations of one ended call."""
        for path in outcome.violations:
            now, key = self._clock(), (outcome.tool, path)
            if key not in self._told or now - self._told[key] >= self._every:
                self._told[key] = now
                log.warning("an answer breaks its declared output", extra={"tool": outcome.tool, "path": path})
