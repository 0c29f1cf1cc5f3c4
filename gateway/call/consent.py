"""A person's yes to one call: what they are asked, and what exactly a yes is to. Pure, knows no wire and no key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from gateway import json_text
from gateway.record import record

Json = Any

#: The most characters of one argument that a question shows; what is left out is said, and the yes is to the whole.
SHOWN_CHARACTERS = 500

_ARGUMENT = re.compile(r"\{([^{}]*)\}")


class Consent(Enum):
    """What is known of a person's yes, where the contract wants one (`tool.mcp.confirm`)."""

    #: Nothing between here and the person can ask.
    CANNOT_ASK = "cannot_ask"
    #: They are to be asked now.
    UNASKED = "unasked"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    #: They left without saying yes or no.
    CANCELLED = "cancelled"
    #: They said it too late.
    EXPIRED = "expired"
    #: What they said was said to something else, or to somebody else, or is made up.
    FOREIGN = "foreign"


#: Tells what a caller's person said to one claim; never `CANNOT_ASK`.
Ask = Callable[[bytes], Consent]


@record
class Asked:
    """How it stands with a person's yes to one call."""

    consent: Consent
    question: str = ""
    #: Everything that the yes is to, as bytes that come out the same whenever the same is asked again.
    claim: bytes = b""


def asked(
    template: str, ask: Ask | None, endpoint_id: str, tool: str, caller: str | None, accepted: Mapping[str, Json]
) -> Asked:
    """How it stands with a call on this accepted input, defaults included."""
    if ask is None:
        return Asked(Consent.CANNOT_ASK)
    question = filled(template, accepted)
    claim = json_text.canonical([endpoint_id, tool, caller, question, dict(accepted)])
    return Asked(ask(claim), question, claim)


def filled(template: str, accepted: Mapping[str, Json]) -> str:
    """The question with `{argument}` as the accepted input has it."""
    return _ARGUMENT.sub(lambda found: _shown(accepted[found[1]]) if found[1] in accepted else "(not given)", template)


def _shown(value: Json) -> str:
    """A value in one line that cannot pass for the question's own words on another line, or turn its direction."""
    text = value if isinstance(value, str) else json_text.encode(value).decode()
    if len(text) > SHOWN_CHARACTERS:
        text = f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
