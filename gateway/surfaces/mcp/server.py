"""What an MCP message is answered with, whatever it came over: listings, calls, notes of their progress. Knows no HTTP.

Stateless: nothing is kept between messages but the encoded form of a catalog, and calls that outlive their callers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import assert_never

from gateway.call.consent import Ask, Asked, Consent
from gateway.call.outcome import Call, Code, Outcome
from gateway.gateway import Gateway
from gateway.generation import Generation
from gateway.record import record
from gateway.surfaces.mcp import answers, resources
from gateway.surfaces.mcp.answers import Listing
from gateway.surfaces.mcp.seal import Seal
from gateway.surfaces.mcp.wire import (
    CallTool,
    Discover,
    Id,
    Initialize,
    ListResources,
    ListTools,
    Notification,
    Ping,
    ReadResource,
    Refusal,
)

SURFACE = "mcp"

#: Takes one encoded note to the client while its call is under way.
Note = Callable[[bytes], Awaitable[None]]

#: The longest time between two notes, in seconds: nothing in between takes a connection for a dead one.
_RAREST_NOTE = 15.0
_KEPT_LISTINGS = 64
#: Where the protocol has a word of its own for how it stands with a person's yes.
_UNSETTLED = frozenset({Consent.CANNOT_ASK, Consent.UNASKED, Consent.EXPIRED, Consent.FOREIGN})


@record
class Answered:
    """One encoded JSON-RPC message; None where the message wanted no answer."""

    body: bytes | None
    #: What HTTP says of it.
    status: int = 200
    #: Whether it speaks of the catalog, whose digest then goes with it.
    stamped: bool = False


class McpServer:
    """Answers the messages of one gateway's clients."""

    def __init__(self, gateway: Gateway, state_secret: bytes | None = None) -> None:
        """`state_secret` signs questions where the contract names none; one of this process's own unless given."""
        self._gateway = gateway
        self._state_secret = state_secret or os.urandom(32)
        self._listings: dict[tuple[int, bool], Listing] = {}
        self._listings_of: Generation | None = None
        self._detached: set[asyncio.Task[Outcome]] = set()

    def listing(self, generation: Generation, scopes: frozenset[str] | None) -> Listing:
        """What a principal may see, encoded once."""
        if generation is not self._listings_of:  # a reload: what the contract before listed is kept no longer
            self._listings, self._listings_of = {}, generation
        catalog, private = generation.catalog(SURFACE, scopes), scopes is not None
        # Catalogs live as long as their generation; the listing holds its catalog, so an id is not used again.
        key = (id(catalog), private)
        listing = self._listings.get(key)
        if listing is None:
            if len(self._listings) >= _KEPT_LISTINGS:
                self._listings.clear()
            shown = generation.contract.gateway.mcp.output_schema
            listing = self._listings[key] = Listing(catalog, private, shown)
        return listing

    def answer(
        self,
        message: Discover | Initialize | Ping | ListTools | ListResources | ReadResource | Notification | Refusal,
        generation: Generation,
        listing: Listing,
    ) -> Answered:
        """The answer to anything but a call."""
        instructions = generation.contract.gateway.mcp.instructions
        match message:
            case Refusal():
                return Answered(answers.error(message), message.status)
            case Notification():
                return Answered(None, 202)
            case ListTools(request_id, modern):
                return Answered(answers.reply(request_id, listing.result(modern=modern)), stamped=True)
            case Initialize(request_id, version):
                result = answers.initialize_result(version, instructions, cards=bool(listing.cards))
                return Answered(answers.reply(request_id, result))
            case ListResources() | ReadResource():
                said = resources.answer(message, listing)
                if isinstance(said, Refusal):
                    return Answered(answers.error(said), said.status)
                return Answered(answers.reply(message.id, said), stamped=True)
            case Discover(request_id):
                result = answers.discover_result(instructions, private=listing.private, cards=bool(listing.cards))
                return Answered(answers.reply(request_id, result))
            case Ping(request_id):
                return Answered(answers.reply(request_id, b"{}"))
            case _:
                assert_never(message)

    def ask(self, message: CallTool, generation: Generation) -> Ask | None:
        """How a call finds out what its caller's person said; None where they cannot be asked."""
        if not message.asks:
            return None
        return lambda claim: self._seal(generation).said(claim, message.reply)

    async def call(
        self,
        call: Call,
        message: CallTool,
        generation: Generation,
        listing: Listing,
        note: Note | None = None,
        *,
        interruptible: bool,
    ) -> Answered:
        """The answer to a call, and on the way there notes of its progress where the client wants and can have them.

        When the caller leaves, this task is cancelled. That cancels an `interruptible` call, and any that only reads;
        one that may have effects is else brought to its end.
        """
        tool = listing.tools.get(call.tool)
        cancels = interruptible or tool is None or tool.annotations.get("readOnlyHint") is True
        running = self._gateway.run(call, generation)
        if note is not None and message.progress is not None:
            outcome = await self._noted(running, call, message.progress, generation, note, cancels=cancels)
        elif cancels:
            outcome = await running
        else:
            outcome = await asyncio.shield(self._detach(running))
        failure = outcome.failure
        if failure is not None and failure.code == Code.UNKNOWN_TOOL.word and tool is None:
            refusal = answers.unknown_tool(message.id, outcome, listing, modern=message.modern)
            return Answered(answers.error(refusal), refusal.status, stamped=True)
        if outcome.asked is not None and outcome.asked.consent in _UNSETTLED and message.modern:
            return self._unsettled(message, outcome, outcome.asked, generation, listing)
        text = generation.contract.gateway.mcp.text
        result = answers.call_result(outcome, listing, text, modern=message.modern)
        return Answered(answers.reply(message.id, result), stamped=True)

    def _unsettled(
        self, message: CallTool, outcome: Outcome, asked: Asked, generation: Generation, listing: Listing
    ) -> Answered:
        """A question for the client, or why its answer is none."""
        if asked.consent is not Consent.UNASKED:
            refusal = answers.unconfirmed(message.id, outcome, listing)
            return Answered(answers.error(refusal), refusal.status, stamped=True)
        state = self._seal(generation).state(asked.claim, generation.contract.gateway.mcp.confirm_within)
        return Answered(answers.reply(message.id, answers.question_result(outcome, state, listing)), stamped=True)

    def _seal(self, generation: Generation) -> Seal:
        written = generation.contract.gateway.mcp.state_secret
        return Seal(self._state_secret if written is None else written.encode())

    async def drain(self) -> None:
        """Wait for calls whose callers have left."""
        await asyncio.gather(*self._detached, return_exceptions=True)

    def _detach(self, running: Awaitable[Outcome]) -> asyncio.Task[Outcome]:
        task = asyncio.ensure_future(running)
        assert isinstance(task, asyncio.Task)
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)
        return task

    async def _noted(
        self,
        running: Awaitable[Outcome],
        call: Call,
        token: Id,
        generation: Generation,
        note: Note,
        *,
        cancels: bool,
    ) -> Outcome:
        """Run a call and send a note each time that it has taken a while longer."""
        every: float = generation.contract.gateway.mcp.progress
        loop = asyncio.get_running_loop()
        task = self._detach(running)
        began, told = loop.time(), 0.0
        try:
            while not task.done():
                # A call that takes long is told of more rarely, so that a long one is not all notes.
                await asyncio.wait({task}, timeout=max(every, min(told / 10, _RAREST_NOTE)))
                elapsed = loop.time() - began
                if not task.done() and elapsed >= told + 0.001:  # MCP: each value is larger than the one before
                    told = elapsed
                    await note(answers.progress(token, elapsed, _limit(call, generation)))
        except BaseException:
            if cancels:
                task.cancel()
                await asyncio.wait({task})
            raise
        return task.result()


def _limit(call: Call, generation: Generation) -> float | None:
    """The deadline of a call in seconds, where one deadline is all there is."""
    endpoint = generation.find(call.tool, SURFACE, call.scopes)
    return None if endpoint is None or endpoint.durable is not None else endpoint.timeout
