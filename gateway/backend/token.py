"""Tokens of an OAuth 2.0 client (RFC 6749 section 4.4), fetched when one is needed and kept while it lasts."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from gateway import json_text
from gateway.backend.exchange import Answer, NoAnswer, Request

if TYPE_CHECKING:
    from gateway.backend.destination import Destination

#: Sends a request to a place that is no backend of the contract.
Fetch = Callable[["Destination", Request], Awaitable[Answer | NoAnswer]]


class TokenSource:
    """The one token of a backend; many calls that need it at once cause one request."""

    def __init__(self, place: Destination, target: str, body: bytes) -> None:
        self._place = place
        self._request = Request(
            "", "POST", target, (("Content-Type", "application/x-www-form-urlencoded"),), body, idempotent=True
        )
        self._token: str | None = None
        self._until = 0.0
        self._asking: asyncio.Task[str | None] | None = None
        self._waiting = 0

    async def token(self, fetch: Fetch) -> str | None:
        """A token that is good now; None where none can be had. The caller sets the deadline."""
        if self._token is not None and time.monotonic() < self._until:
            return self._token
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(fetch))
        asking = self._asking
        self._waiting += 1
        try:
            return await asyncio.shield(asking)  # whoever leaves does not take it from the others
        finally:
            self._waiting -= 1
            if not self._waiting and not asking.done():
                asking.cancel()

    async def _ask(self, fetch: Fetch) -> str | None:
        self._token, self._until = _read(await fetch(self._place, self._request))
        return self._token

    def refused(self, token: str) -> None:
        """The backend answered 401: the next call asks for another one."""
        if token == self._token:
            self._token = None


#: Seconds before its end at which a token is not used any more.
_MARGIN: Final = 10.0
#: How long a token is kept whose end is not said.
_UNSAID: Final = 300.0
#: A longer life is not believed; a number that no double holds is none.
_LONGEST: Final = 86_400.0
#: RFC 6750 section 2.1
_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*\Z").match


def _read(answer: Answer | NoAnswer) -> tuple[str | None, float]:
    if isinstance(answer, NoAnswer) or answer.status != 200:
        return None, 0.0
    value = json_text.parse(answer.body)
    said = value if isinstance(value, dict) else {}
    token, lasts = said.get("access_token"), said.get("expires_in")
    if not isinstance(token, str) or not _BEARER(token):
        return None, 0.0
    seconds = min(max(lasts, 0), _LONGEST) - _MARGIN if isinstance(lasts, int | float) else _UNSAID
    return token, time.monotonic() + seconds
