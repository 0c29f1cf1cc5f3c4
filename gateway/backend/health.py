"""Whether backends are well: each is asked at its `health.path`, once an interval at most, when it is wanted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gateway.backend.exchange import Answer, Request, Send

if TYPE_CHECKING:
    from gateway.contract.model import Backend

#: The longest wait for one answer, in seconds.
PATIENCE = 5.0


class Health:
    """What is known of each backend that declares `health`; None for one that does not."""

    def __init__(
        self,
        backends: Iterable[Backend],
        send: Send,
        clock: Callable[[], float] = time.monotonic,
        told: Callable[[str, float, bool], None] = lambda name, asked, well: None,
    ) -> None:
        self._told = told
        self._backends = tuple(backends)
        self._send = send
        self._clock = clock
        self._known: dict[str, tuple[float, bool]] = {}

    def use(self, backends: Iterable[Backend]) -> None:
        """Ask another contract's backends from now on; what is known of one that is declared as before stays."""
        before, self._backends = self._backends, tuple(backends)
        for other in (each for each in before if each not in self._backends):
            self._told(other.name, 0.0, False)
        self._known = {
            each.name: self._known[each.name] for each in self._backends if each in before and each.name in self._known
        }

    async def states(self) -> Mapping[str, bool | None]:
        """Ask those whose last answer is older than their interval, all at once; a 2xx answer is well."""
        await asyncio.gather(*(self._ask(backend) for backend in self._backends))
        return self.last()

    def last(self) -> Mapping[str, bool | None]:
        """What the last answers said, without asking."""
        return {
            backend.name: self._known[backend.name][1] if backend.name in self._known else None
            for backend in self._backends
        }

    async def _ask(self, backend: Backend) -> None:
        if backend.health is None:
            return
        asked, _ = self._known.get(backend.name, (None, False))
        if asked is not None and self._clock() - asked < backend.health.interval:
            return
        target = urlsplit(backend.url or "").path.rstrip("/") + "/" + backend.health.path.lstrip("/")
        answer = await self._send(
            Request(backend.name, "GET", target, timeout=min(PATIENCE, backend.timeout), idempotent=True)
        )
        well = isinstance(answer, Answer) and 200 <= answer.status < 300
        now = self._clock()
        self._known[backend.name] = (now, well)
        self._told(backend.name, now, well)
