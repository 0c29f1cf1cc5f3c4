"""A state proves one question, for a while; whatever else comes in its place proves nothing."""

from __future__ import annotations

import base64
import random

import pytest

from gateway.call.consent import Consent
from gateway.surfaces.mcp.seal import Seal
from gateway.surfaces.mcp.wire import Reply

SECRET = b"s" * 32
NOW = 1_800_000_000.0


def seal(secret: bytes = SECRET, now: float = NOW) -> Seal:
    return Seal(secret, lambda: now)


STATE = seal().state(b"claim", 600)


@pytest.mark.parametrize(
    ("action", "consent"),
    [("accept", Consent.ACCEPTED), ("decline", Consent.DECLINED), ("cancel", Consent.CANCELLED)],
)
def test_what_the_person_did_is_believed_of_the_claim_that_was_asked_about(action: str, consent: Consent) -> None:
    assert seal().said(b"claim", Reply(STATE, action)) is consent
    assert seal().said(b"another", Reply(STATE, action)) is Consent.FOREIGN
    assert seal(b"t" * 32).said(b"claim", Reply(STATE, action)) is Consent.FOREIGN


@pytest.mark.parametrize("reply", [None, Reply(None, None), Reply(STATE, None), Reply(None, "accept")])
def test_a_state_without_an_answer_and_an_answer_without_a_state_are_nothing(reply: Reply | None) -> None:
    assert seal().said(b"claim", reply) is Consent.UNASKED


def test_a_state_ends() -> None:
    assert seal(now=NOW + 600).said(b"claim", Reply(STATE, "accept")) is Consent.ACCEPTED
    assert seal(now=NOW + 601).said(b"claim", Reply(STATE, "accept")) is Consent.EXPIRED
    assert seal(now=NOW + 601).said(b"other", Reply(STATE, "accept")) is Consent.FOREIGN


def test_its_end_cannot_be_put_off() -> None:
    raw = base64.urlsafe_b64decode(STATE + "==")
    later = base64.urlsafe_b64encode(int(NOW + 9999).to_bytes(8) + raw[8:]).rstrip(b"=").decode()
    assert seal(now=NOW + 601).said(b"claim", Reply(later, "accept")) is Consent.FOREIGN


def test_nothing_that_is_not_written_as_we_write_it_is_a_state() -> None:
    chance = random.Random(7)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    spoilt = ["", "x", STATE + "=", STATE + "A", STATE[:-1], f" {STATE}", STATE + "\n", STATE.replace(STATE[3], "é", 1)]
    spoilt += ["A" * len(STATE), "=" * len(STATE), "\0" * len(STATE), "é" * len(STATE), STATE[:-1] + "+", "A" * 10**6]
    for place in range(len(STATE)):
        other = chance.choice(letters.replace(STATE[place], ""))
        spoilt.append(STATE[:place] + other + STATE[place + 1 :])
    assert {seal().said(b"claim", Reply(state, "accept")) for state in spoilt} == {Consent.FOREIGN}
