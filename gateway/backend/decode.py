"""Content codings of an answer, undone piece by piece within a limit of decoded bytes; knows no HTTP and no I/O."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Any, Final, Protocol

from gateway.backend.exchange import Silence

#: No honest backend stacks more than this.
_MOST_CODINGS: Final = 3


class Decoder:
    """Takes an answer's pieces as they come and stops at the first one that goes over the limit."""

    def __init__(self, layers: tuple[_Layer, ...], limit: int) -> None:
        self._layers, self._limit = layers, limit
        self._pieces: list[bytes] = []
        self._room = limit
        self._empty = True

    def feed(self, piece: bytes) -> Silence | None:
        """Decode one piece; a Silence says why there is no use in another."""
        self._empty = self._empty and not piece
        for layer in self._layers:
            # The limit holds between layers too: a bomb inside a bomb is no smaller for it.
            decoded = layer.feed(piece, self._limit + 1)
            if decoded is None:
                return Silence.UNDECODABLE
            piece = decoded
        self._room -= len(piece)
        if self._room < 0:
            return Silence.TOO_LARGE
        self._pieces.append(piece)
        return None

    def finish(self) -> bytes | Silence:
        """The whole decoded body; a coding that was cut short is broken. No bytes at all are an empty body."""
        if not self._empty and not all(layer.complete for layer in self._layers):
            return Silence.UNDECODABLE
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


def decoder(content_encoding: str, limit: int) -> Decoder | None:
    """A decoder for what a Content-Encoding header says; None where it names a coding that cannot be undone here."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > _MOST_CODINGS or any(name not in _LAYERS for name in names):
        return None
    # the header lists codings in the order in which they were applied (RFC 9110 section 8.4)
    return Decoder(tuple(_LAYERS[name]() for name in reversed(names)), limit)


class _Layer(Protocol):
    complete: bool

    def feed(self, piece: bytes, most: int) -> bytes | None:
        """At most about `most` decoded bytes; None where the piece is not of this coding."""


class _Zlib:
    """gzip (RFC 1952, several members allowed) and deflate, both as RFC 9110 has it and as raw as many send it."""

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._inflate: zlib._Decompress | None = zlib.decompressobj(31) if gzip else None
        self._held = b""
        self.complete = False

    def feed(self, piece: bytes, most: int) -> bytes | None:
        piece = self._held + piece
        self._held = b""
        if self._inflate is None:
            if len(piece) < 2:
                self._held = piece
                return b""
            # RFC 1950 section 2.2: what two bytes of a zlib header must say; raw deflate hardly ever does
            is_zlib = piece[0] & 0x0F == 8 and int.from_bytes(piece[:2], "big") % 31 == 0
            self._inflate = zlib.decompressobj(15 if is_zlib else -15)
        written: list[bytes] = []
        room = most
        while piece and room > 0:
            if self.complete:
                # some servers pad the end of gzip with zeros; anything else is another member or no gzip
                if not self._gzip or not (piece := piece.lstrip(b"\0")):
                    return b"".join(written) if self._gzip else None
                self._inflate, self.complete = zlib.decompressobj(31), False
            try:
                written.append(self._inflate.decompress(piece, room))
            except zlib.error:
                return None
            room -= len(written[-1])
            self.complete = self._inflate.eof
            piece = self._inflate.unused_data if self.complete else self._inflate.unconsumed_tail
        return written[0] if len(written) == 1 else b"".join(written)


class _Brotli:
    def __init__(self) -> None:
        self._inflate: Any = _brotli.Decompressor()
        self.complete = False

    def feed(self, piece: bytes, most: int) -> bytes | None:
        written = []
        room = most
        try:
            while room > 0 and (piece or not self._inflate.can_accept_more_data()):
                written.append(self._inflate.process(piece, output_buffer_limit=room))
                piece = b""
                room -= len(written[-1])
                if not written[-1]:
                    break
        except _brotli.error:
            return None
        self.complete = self._inflate.is_finished()
        return b"".join(written)


class _Zstandard:
    def __init__(self) -> None:
        self._inflate: Any = _zstandard.ZstdDecompressor()
        self.complete = False

    def feed(self, piece: bytes, most: int) -> bytes | None:
        written = []
        room = most
        try:
            while room > 0 and (piece or not (self._inflate.eof or self._inflate.needs_input)):
                if self._inflate.eof:
                    self._inflate = _zstandard.ZstdDecompressor()  # RFC 8878 section 3.1: frames may follow each other
                written.append(self._inflate.decompress(piece, room))
                room -= len(written[-1])
                piece = self._inflate.unused_data if self._inflate.eof else b""
        except _zstandard.ZstdError:
            return None
        self.complete = self._inflate.eof
        return b"".join(written)


def _optional(*names: str) -> Any:
    """The first of these modules that is installed; None where none is."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


_brotli: Final = _optional("brotli", "brotlicffi")
_zstandard: Final = _optional("compression.zstd", "backports.zstd")

_LAYERS: Final[dict[str, Any]] = {
    "gzip": lambda: _Zlib(gzip=True),
    "x-gzip": lambda: _Zlib(gzip=True),
    "deflate": lambda: _Zlib(gzip=False),
    # only versions that can stop at a limit: 1 KiB of brotli may be a gigabyte
    **({"br": _Brotli} if hasattr(getattr(_brotli, "Decompressor", None), "can_accept_more_data") else {}),
    **({"zstd": _Zstandard} if _zstandard is not None else {}),
}

#: What may be said in Accept-Encoding: exactly what can be undone here.
ACCEPT_ENCODING: Final = ", ".join(name for name in _LAYERS if name != "x-gzip")
