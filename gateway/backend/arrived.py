"""A small body that came with its head, taken from aiohttp's stream in one step. Knows no message."""

from __future__ import annotations

from collections import deque
from typing import Final

from aiohttp.streams import StreamReader

#: Bytes below which a stream never asks its connection to wait, so that nobody has to be told to go on.
_SMALL: Final = 65536


def arrived(stream: StreamReader, limit: int) -> bytes | None:
    """The whole body where it is there to its end and nothing of it was read; None where it is to be read in parts.

    Most bodies are so, and the bookkeeping of reading on costs more than all else that is done to receive them.
    """
    size = stream.total_bytes
    if size > limit or not stream.is_eof():
        return None
    if not size:
        return b""
    pieces: deque[bytes] | None = getattr(stream, "_buffer", None)  # aiohttp's own; another version may have another
    if pieces is None or size > _SMALL or stream.exception() is not None:
        return stream.read_nowait()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
