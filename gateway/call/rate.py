"""How often one caller may call: a bucket for each, of which one number is kept. Knows no clock and no call."""

from __future__ import annotations

from typing import Final

from gateway.contract.values import Rate

#: Callers that are remembered at once. One that is forgotten starts with a full bucket.
MOST: Final = 10_000


class Rates:
    """`take` for each call. The rate comes with the call, so that a reload changes it at once.

    A bucket holds as many calls as the rate has in its unit and fills evenly. What is kept of it is the time at which
    it will be full again: a bucket that is full need not be kept at all.
    """

    def __init__(self) -> None:
        self._full_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, caller: str, rate: Rate, now: float) -> float:
        """Take one call out of a caller's bucket: 0, or the seconds until there is one to take."""
        each = rate.seconds / rate.count
        full_at = max(self._full_at.get(caller, now), now) + each
        # An emptied bucket is full again after the whole unit; a hair more than that is arithmetic's.
        wait = full_at - now - rate.seconds
        if wait > each * 1e-6:
            return wait
        if caller not in self._full_at and len(self._full_at) >= MOST:
            self._forget(now)
        self._full_at[caller] = full_at
        return 0.0

    def _forget(self, now: float) -> None:
        """Drop every full bucket, and of the others the fuller half where all are in use."""
        kept = {caller: full_at for caller, full_at in self._full_at.items() if full_at > now}
        if len(kept) >= MOST:
            emptiest = sorted(kept.items(), key=lambda bucket: bucket[1])[MOST // 2 :]
            kept = dict(emptiest)
        self._full_at = kept
