"""Content codings undone: every common one, whole and in pieces, broken and enormous."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from gateway.backend.decode import ACCEPT_ENCODING, decoder
from gateway.backend.exchange import Silence

TEXT = b'{"rows": [' + b", ".join(b'"%d"' % n for n in range(2000)) + b"]}"


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


ENCODED = [
    ("gzip", gzip.compress(TEXT)),
    ("x-gzip", gzip.compress(TEXT)),
    ("GZip", gzip.compress(TEXT)),
    ("gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
    ("gzip", gzip.compress(TEXT) + b"\0" * 100),
    ("deflate", zlib.compress(TEXT)),
    ("deflate", raw_deflate(TEXT)),
    ("identity", TEXT),
    ("", TEXT),
    ("deflate, gzip", gzip.compress(zlib.compress(TEXT))),
    ("gzip, identity", gzip.compress(TEXT)),
]


ROWS = b'{"name": "Ada"}' * 40
OPTIONAL = {
    "br": bytes.fromhex("1b5702f81d07762c3cc0ee70d2b416096bdbdb3a416e7d1284ac2c1a0c011a70b58165"),
    "zstd": bytes.fromhex("28b52ffd605801b50000787b226e616d65223a2022416461227d010046a49a75"),
}


def decoded(coding: str, content: bytes, size: int, limit: int = 1 << 20) -> bytes | Silence:
    undo = decoder(coding, limit)
    assert undo is not None
    for start in range(0, len(content), size):
        trouble = undo.feed(content[start : start + size])
        if trouble is not None:
            return trouble
    return undo.finish()


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize(("coding", "content"), ENCODED)
def test_a_coding_is_undone_however_its_bytes_arrive(coding: str, content: bytes, size: int) -> None:
    assert decoded(coding, content, size) == TEXT


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("cut", [1, 2, 5, 11, -9, -4, -1])
@pytest.mark.parametrize(("coding", "content"), [*ENCODED[5:7], ENCODED[0]])
def test_a_coding_that_was_cut_short_is_not_decoded(coding: str, content: bytes, cut: int, size: int) -> None:
    assert decoded(coding, content[:cut], size) is Silence.UNDECODABLE


@pytest.mark.parametrize(
    ("coding", "content"),
    [
        ("gzip", b"no gzip at all"),
        ("gzip", b"{}"),
        ("gzip", gzip.compress(TEXT) + b"rest"),
        ("gzip", gzip.compress(TEXT)[:-8] + b"\0" * 8),
        ("deflate", b"\xff\xff\xff\xff"),
        ("deflate", zlib.compress(TEXT) + b"rest"),
        ("gzip, deflate", gzip.compress(zlib.compress(TEXT))),
    ],
)
def test_bytes_that_are_not_of_the_coding_are_not_decoded(coding: str, content: bytes) -> None:
    assert decoded(coding, content, 1 << 20) is Silence.UNDECODABLE


@pytest.mark.parametrize("coding", ["compress", "gzip, rot13", "gzip, gzip, gzip, gzip"])
def test_an_unknown_coding_has_no_decoder(coding: str) -> None:
    assert decoder(coding, 100) is None


def test_no_bytes_at_all_are_an_empty_body() -> None:
    assert decoded("gzip", b"", 1) == b""


def test_a_bomb_stops_at_the_limit_and_reads_no_further() -> None:
    content = gzip.compress(b"\0" * (8 << 20))
    undo = decoder("gzip", 1 << 17)
    assert undo is not None
    fed = 0
    while undo.feed(content[fed : fed + 64]) is None:
        fed += 64
    assert fed < len(content) / 10


def test_a_bomb_inside_a_bomb_stops_at_the_limit() -> None:
    content = gzip.compress(gzip.compress(b"\0" * (8 << 20)))
    assert decoded("gzip, gzip", content, 1 << 20, 1 << 17) is Silence.TOO_LARGE


def test_exactly_the_limit_is_allowed_and_one_more_is_not() -> None:
    content = gzip.compress(TEXT)
    assert decoded("gzip", content, 100, limit=len(TEXT)) == TEXT
    assert decoded("gzip", content, 100, limit=len(TEXT) - 1) is Silence.TOO_LARGE
    assert decoded("", TEXT, 100, limit=len(TEXT) - 1) is Silence.TOO_LARGE


def test_only_what_can_be_undone_is_asked_for() -> None:
    names = ACCEPT_ENCODING.split(", ")
    assert names[:2] == ["gzip", "deflate"]
    assert all(decoder(name, 1) is not None for name in names)


@pytest.mark.parametrize("coding", OPTIONAL)
def test_a_coding_of_an_optional_package_is_undone_where_that_is_installed(coding: str) -> None:
    content = OPTIONAL[coding]
    if coding not in ACCEPT_ENCODING.split(", "):
        assert decoder(coding, 100) is None
        return
    for size in (1, 7, 1 << 20):
        assert decoded(coding, content, size) == ROWS
        assert decoded(coding, content[:-1], size) is Silence.UNDECODABLE
        assert decoded(coding, content, size, limit=len(ROWS) - 1) is Silence.TOO_LARGE
    assert decoded(coding, b"no such coding", 100) is Silence.UNDECODABLE


def test_random_damage_never_raises() -> None:
    chance = random.Random(1)
    for coding, content in ENCODED[:7]:
        for _ in range(50):
            damaged = bytearray(content)
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            assert isinstance(decoded(coding, bytes(damaged), 100), bytes | Silence)
