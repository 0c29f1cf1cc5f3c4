"""The `requestState` of a question: proof that this gateway asked it and when, with nothing kept. Knows no message.

A state is the second at which it ends and a MAC over that and over the claim, which is made anew from the call that
comes back with it. It holds nothing else that could be read, and nothing of it is believed before the MAC is right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable

from gateway.call.consent import Consent
from gateway.surfaces.mcp.wire import Reply

#: What the MAC is of besides: the same secret signs nothing else that could pass for a state.
_PURPOSE = b"toolview tool.mcp.confirm 1\0"
_TIME_BYTES = 8
_MAC_BYTES = 32

_SAID = {"accept": Consent.ACCEPTED, "decline": Consent.DECLINED, "cancel": Consent.CANCELLED}

#: Seconds since the epoch: processes and replicas have no other clock in common.
Clock = Callable[[], float]


class Seal:
    """Makes and checks states with one secret."""

    def __init__(self, secret: bytes, clock: Clock = time.time) -> None:
        self._secret = secret
        self._clock = clock

    def state(self, claim: bytes, within: float) -> str:
        """What comes back with the answer to a question about this claim, for so many seconds."""
        until = int(self._clock() + within).to_bytes(_TIME_BYTES)
        return base64.urlsafe_b64encode(until + self._mac(until, claim)).rstrip(b"=").decode()

    def said(self, claim: bytes, reply: Reply | None) -> Consent:
        """What a person said to this claim; an answer that is not to it, or is too late, is none."""
        # Neither a state without an answer nor an answer without a state is worth anything: the person is asked.
        if reply is None or reply.state is None or reply.action is None:
            return Consent.UNASKED
        raw = _unwrapped(reply.state)
        if raw is None or not hmac.compare_digest(raw[_TIME_BYTES:], self._mac(raw[:_TIME_BYTES], claim)):
            return Consent.FOREIGN
        if int.from_bytes(raw[:_TIME_BYTES]) < self._clock():
            return Consent.EXPIRED
        return _SAID[reply.action]

    def _mac(self, until: bytes, claim: bytes) -> bytes:
        return hmac.digest(self._secret, _PURPOSE + until + claim, hashlib.sha256)


def _unwrapped(state: str) -> bytes | None:
    """The bytes of a state; None where it has another length, or is not written as we write it."""
    if len(state) != -(-(_TIME_BYTES + _MAC_BYTES) * 4 // 3):
        return None
    try:
        raw = base64.b64decode(state + "=" * (-len(state) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == state else None
