"""One remark as a GitHub workflow command, which shows it at its line of a pull request. Knows no contract."""

from __future__ import annotations

from enum import Enum


class Level(Enum):
    """How grave a remark is."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


def annotation(level: Level, file: str, line: int | None, title: str, message: str) -> str:
    """`::error file=…,line=…,title=…::message`; nothing in it can end the command early or start another."""
    place = f"file={_property(file)}" + ("" if line is None else f",line={line}")
    return f"::{level.value} {place},title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
