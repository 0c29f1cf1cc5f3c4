"""JSON Pointers (RFC 6901): written from a path, and followed into a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def pointer_of(path: Sequence[str | int]) -> str:
    """The pointer of a path of keys and indexes; the empty path is the root, ""."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def parts_of(pointer: str) -> list[str]:
    """The keys of a pointer, unescaped; [] for the root."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def follow(value: Any, pointer: str) -> Any:
    """What stands at a pointer, or None where nothing does."""
    for key in parts_of(pointer):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
