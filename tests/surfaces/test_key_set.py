"""Key sets: read once for many, again at a floor, kept where their source is gone, fetched over checked TLS only."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.surfaces import key_set as room
from gateway.surfaces.key_set import FLOOR, KeySet
from tests.rig import HANG, Received, backend, http
from tests.surfaces.tokens import key_set

_TLS = Path(__file__).parents[1] / "relay" / "data"


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def ids(keys: KeySet) -> list[str | None]:
    return [key.kid for key in keys.keys]


async def test_many_that_ask_at_once_cause_one_reading() -> None:
    async with backend(http(key_set("ec-1"))) as issuer:
        keys = KeySet(f"{issuer.url}/jwks", None)
        found = await asyncio.gather(*(keys.current() for _ in range(20)))
        assert {key.kid for each in found for key in each} == {"ec-1"}
    assert len(issuer.received) == 1
    assert issuer.received[0].header("Authorization") is None


async def test_it_is_asked_again_at_a_floor_whoever_wants_it() -> None:
    clock = Clock()
    async with backend(http(key_set("ec-1"))) as issuer:
        keys = KeySet(issuer.url, None, 600, clock)
        await keys.current()
        for _ in range(50):
            await keys.again()
        assert len(issuer.received) == 1
        clock.now += FLOOR
        for _ in range(50):
            await keys.again()
        assert len(issuer.received) == 2


async def test_ageing_keys_are_read_beside_the_caller_and_old_ones_before_it() -> None:
    clock, answers = Clock(), [http(key_set("ec-1")), http(key_set("ec-2")), http(key_set("ec-3"))]
    async with backend(lambda _: answers.pop(0)) as issuer:
        keys = KeySet(issuer.url, None, 600, clock)
        assert [key.kid for key in await keys.current()] == ["ec-1"]
        clock.now += 601
        assert [key.kid for key in await keys.current()] == ["ec-1"], "nobody waits for the new ones"
        await keys.again()
        assert ids(keys) == ["ec-2"]
        clock.now += 1201
        assert not keys.at_hand()
        assert [key.kid for key in await keys.current()] == ["ec-3"], "too old to be used unasked"


@pytest.mark.parametrize(
    "answer",
    [
        http(b"", status=500),
        http(b"<html>"),
        http({"keys": []}),
        http(b"", status=302, headers={"Location": "http://127.0.0.1:1/evil"}),
        http(b" " * 300_000),
        b"garbage",
        None,
    ],
)
async def test_a_source_that_breaks_keeps_the_known_keys(
    answer: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    clock, answers = Clock(), [http(key_set("ec-1")), answer]
    async with backend(lambda _: answers.pop(0)) as issuer:
        keys = KeySet(issuer.url, None, 600, clock)
        await keys.current()
        clock.now += 5000
        assert [key.kid for key in await keys.current()] == ["ec-1"]
        assert keys.at_hand(), "until the floor has passed nobody waits for a source that just failed"
        clock.now += FLOOR
    assert [key.kid for key in await keys.current()] == ["ec-1"], "nor does a server that is gone change anything"
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "the key set was not read"
    ] * 2


async def test_a_server_that_hangs_is_given_up_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_PATIENCE", 0.05)
    async with backend(HANG) as issuer:
        keys = KeySet(issuer.url, None)
        assert await keys.current() == ()
    assert not keys.at_hand()


async def test_who_asks_may_leave_without_ending_the_reading_for_the_others() -> None:
    gate = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await gate.wait()
        writer.write(http(key_set("ec-1")))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    keys = KeySet(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None)
    first, second = asyncio.create_task(keys.current()), asyncio.create_task(keys.current())
    await asyncio.wait([first, second], timeout=0.01)
    first.cancel()
    await asyncio.wait([first])
    gate.set()
    assert [key.kid for key in await second] == ["ec-1"]
    server.close()


async def test_a_reading_under_way_is_ended_at_once() -> None:
    async with backend(HANG) as issuer:
        keys = KeySet(issuer.url, None)
        waiting = asyncio.create_task(keys.current())
        await asyncio.wait([waiting], timeout=0.01)
        await keys.close()
        await asyncio.wait([waiting])
        assert waiting.cancelled()


async def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "jwks.json"
    file.write_bytes(key_set("ec-1"))
    keys = KeySet(str(file), None, 600, clock)
    await keys.current()
    file.write_bytes(key_set("ec-2"))
    clock.now += FLOOR
    await keys.again()
    assert ids(keys) == ["ec-2"]
    file.unlink()
    clock.now += FLOOR
    await keys.again()
    assert ids(keys) == ["ec-2"]


@asynccontextmanager
async def tls_issuer(answer: Callable[[Received], bytes]) -> AsyncIterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_TLS / "cert.pem", _TLS / "key.pem")
    async with backend(answer) as plain:
        server = await asyncio.start_server(plain.serve, "127.0.0.1", 0, ssl=context)
        try:
            yield f"https://localhost:{server.sockets[0].getsockname()[1]}/jwks"
        finally:
            server.close()


async def test_over_tls_the_server_must_prove_its_name() -> None:
    async with tls_issuer(lambda _: http(key_set("ec-1"))) as url:
        trusted = KeySet(url, str(_TLS / "cert.pem"))
        assert [key.kid for key in await trusted.current()] == ["ec-1"]
        assert await KeySet(url, None).current() == (), "an authority that nobody named"
