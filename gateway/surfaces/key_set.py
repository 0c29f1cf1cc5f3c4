"""Where the keys come from that tokens are checked with: a file or a URL, kept, and read again as it grows old.

A source that cannot be read changes nothing: what is known stays. Knows no token and no principal.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp

from gateway.surfaces.signing import SigningKey, read_key_set

log = logging.getLogger("toolview.auth")

#: Seconds between two readings, whoever asks: a stranger's key id cannot make the gateway hammer its issuer.
FLOOR: Final = 10.0
#: Seconds for one reading.
_PATIENCE: Final = 5.0
#: Bytes of a key set; those in use are under 20 KiB.
_LIMIT: Final = 262144


class KeySet:
    """The keys of one source. Many that ask at once cause one reading, and nobody's reading is cut short by another."""

    def __init__(
        self, source: str, ca: str | None, refresh: float = 600, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.keys: tuple[SigningKey, ...] = ()
        #: Seconds after which keys are read again.
        self.refresh = refresh
        self._source, self._ca, self._clock = source, ca, clock
        self._read_at: float | None = None
        self._asked_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    def at_hand(self) -> bool:
        """Whether the keys may be used without waiting; where they are ageing, a reading begins beside the caller."""
        if self._read_at is None:
            return False
        age = self._clock() - self._read_at
        # Old keys are better than none: where a reading has just failed, they go on until the next.
        return age <= self.refresh or self._begin() is None or age <= 2 * self.refresh

    async def current(self) -> tuple[SigningKey, ...]:
        """The keys; read first where there are none or they are old."""
        if not self.at_hand():
            await self.again()
        return self.keys

    async def again(self) -> None:
        """Read the source once more, unless that was done within the last `FLOOR` seconds."""
        reading = self._begin()
        if reading is not None:
            await asyncio.shield(reading)

    async def renew(self) -> None:
        """Read the source now: whoever runs the gateway says that it may have changed."""
        if self._reading is not None:  # it may have begun before the change
            await asyncio.shield(self._reading)
        self._asked_at = None
        await self.again()

    async def close(self) -> None:
        """End a reading that is under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _begin(self) -> asyncio.Task[None] | None:
        """The reading under way, one that begins now, or None where it is too soon for another."""
        now = self._clock()
        if self._reading is None and (self._asked_at is None or now - self._asked_at >= FLOOR):
            self._asked_at = now
            self._reading = asyncio.create_task(self._read())
            self._reading.add_done_callback(self._ended)
        return self._reading

    def _ended(self, reading: asyncio.Task[None]) -> None:
        if self._reading is reading:
            self._reading = None

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                text = await (self._fetched() if "://" in self._source else asyncio.to_thread(self._from_file))
                keys = text if isinstance(text, str) else await asyncio.to_thread(read_key_set, text)
        except (aiohttp.ClientError, OSError, ValueError) as fault:  # a timeout is an OSError
            keys = f"it cannot be read ({type(fault).__name__})"
        if isinstance(keys, str):
            log.warning("the key set was not read", extra={"reason": keys, "keys_kept": len(self.keys)})
            return
        self.keys, self._read_at = keys, self._clock()

    async def _fetched(self) -> bytes | str:
        secure = self._source.startswith("https:")
        context = await asyncio.to_thread(ssl.create_default_context, cafile=self._ca) if secure else True
        connector = aiohttp.TCPConnector(ssl=context)
        async with (
            aiohttp.ClientSession(connector=connector, headers={"Accept": "application/json"}) as session,
            session.get(self._source, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                return f"its server answered {answer.status}"
            text = await answer.content.read(_LIMIT + 1)
            while len(text) <= _LIMIT and (more := await answer.content.read(_LIMIT + 1 - len(text))):
                text += more
            return text if len(text) <= _LIMIT else f"it has over {_LIMIT} bytes"

    def _from_file(self) -> bytes | str:
        with Path(self._source).open("rb") as opened:
            text = opened.read(_LIMIT + 1)
        return text if len(text) <= _LIMIT else f"it has over {_LIMIT} bytes"
