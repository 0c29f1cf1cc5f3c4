"""How a log line is written: as JSON, or as text for people. Knows logging's records, and nothing of what they tell."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and what the line was given."""

    def format(self, record: logging.LogRecord) -> str:
        shown: dict[str, Any] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        shown.update(_extra(record))
        if record.exc_info:
            shown["traceback"] = self.formatException(record.exc_info)
        return json.dumps(shown, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """A line for people: time, level, message, then `name=value` pairs; control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        said = _plain(record.getMessage(), quote=False)
        line = f"{_timestamp(record)} {record.levelname.lower():7} {said}{pairs(_extra(record))}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def pairs(facts: Mapping[str, Any]) -> str:
    return "".join(f" {name}={_plain(value)}" for name, value in facts.items())


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}


def _timestamp(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


def _plain(value: Any, *, quote: bool = True) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f'"{escaped}"' if quote and isinstance(value, str) and (" " in escaped or not escaped) else escaped
