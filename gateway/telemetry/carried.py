"""What calls carried, written to the log only where the contract asks for it, and never a secret."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from gateway import json_text
from gateway.call.failure import credentials
from gateway.call.outcome import Outcome
from gateway.generation import Generation

log = logging.getLogger("toolview.carried")

#: The most characters of one call's arguments, and of its answer.
CHARACTERS = 4000
_LEFT_OUT = "(left out)"


class CarriedLog:
    """A line of its own for each call, with the same `call_id`: it may have to be kept apart, and for less long."""

    def __init__(self, current: Callable[[], Generation]) -> None:
        self._current = current
        self._read: Generation | None = None
        #: Every credential of every contract since the start, longest first: a call may end on an earlier one.
        self._secrets: tuple[str, ...] = ()

    def observe(self, outcome: Outcome) -> None:
        """Write what one ended call carried, as far as it is asked for."""
        generation = self._current()
        asked = generation.contract.gateway.log
        if not asked.arguments and not asked.answers:
            return
        if generation is not self._read:
            self._read, self._secrets = generation, self._with_those_of(generation)
        facts: dict[str, Any] = {"tool": outcome.tool, "call_id": outcome.call.call_id}
        if asked.arguments:
            facts["arguments"] = self._shown(_told(outcome.call.arguments, outcome, generation))
            if outcome.effective_arguments is not None:
                facts["effective_arguments"] = self._shown(_told(outcome.effective_arguments, outcome, generation))
        if asked.answers:
            facts["answer"] = self._shown(_answer(outcome))
        log.info("carried", extra=facts)

    def _with_those_of(self, generation: Generation) -> tuple[str, ...]:
        spelled = {*self._secrets}
        for backend in generation.contract.backends.values():
            for secret in credentials(backend):
                spelled |= {secret, json_text.encode(secret).decode()[1:-1]}
        return tuple(sorted(spelled, key=len, reverse=True))

    def _shown(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _LEFT_OUT)
        return text if len(text) <= CHARACTERS else text[:CHARACTERS] + "…"


def _told(given: dict[str, Any], outcome: Outcome, generation: Generation) -> str:
    """Arguments as JSON, without those whose schema says that they are for writing only, or passwords."""
    endpoint = generation.find(outcome.call.tool, outcome.call.surface, None)
    shown = given if endpoint is None else endpoint.input.hidden(given, lambda _: _LEFT_OUT)
    return json_text.encode(shown).decode()


def _answer(outcome: Outcome) -> str:
    """As the caller got it: the card, or the failure."""
    if not outcome.ok:
        return json_text.encode(outcome.envelope()).decode()
    if outcome.media_type is not None:
        return f"({outcome.view_bytes} bytes of {outcome.media_type})"
    return "" if outcome.body is None else outcome.body.decode()
