"""A process that serves tools: loads the contract by itself, and serves it when the supervisor says so."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

from gateway.contract.disk import Disk
from gateway.contract.model import Contract
from gateway.contract.refusal import Refusal
from gateway.gateway import Observer
from gateway.generation import Reload
from gateway.processes.channel import Channel, Message
from gateway.processes.supervisor import refused
from gateway.processes.tally import Tallies
from gateway.relay.route import plain_of
from gateway.serve import Plan, Serving, plan_aside
from gateway.telemetry.log import form_of
from gateway.watch import watch_files

log = logging.getLogger("toolview")

#: Reads the contract from this view of the disk: the contract, or everything that is wrong with it.
LoadFrom = Callable[[Disk], Contract | tuple[Refusal, ...]]


async def serve_tools_until_told(
    plan: Plan,
    channel: Channel,
    tallies: Tallies,
    part: int,
    load: LoadFrom,
    disk: Disk,
    *observers: Observer,
    state_secret: bytes | None = None,
) -> int:
    """Serve until SIGTERM, or until the supervisor is gone. The plan was read from this `disk`.

    `state_secret` is the same in all of a gateway's.
    """
    return await _Worker(plan, channel, tallies, part, load, disk, *observers, state_secret=state_secret).run()


class _Worker:
    def __init__(
        self,
        plan: Plan,
        channel: Channel,
        tallies: Tallies,
        part: int,
        load: LoadFrom,
        disk: Disk,
        *observers: Observer,
        state_secret: bytes | None,
    ) -> None:
        self._channel = channel
        self._plan = plan
        self._load = load
        self._disk = disk
        self._serving = Serving(
            plan.generation.contract,
            *observers,
            plan=plan,
            tallies=tallies,
            part=part,
            ask=self._ask,
            state_secret=state_secret,
        )
        self._started = False
        self._watching: asyncio.Task[None] | None = None
        self._tickets: dict[int, asyncio.Future[None]] = {}
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel.fileno(), self._hear)
        loop.add_signal_handler(signal.SIGTERM, self._told_to_end)
        self._tell_loaded(self._disk)
        while (message := await self._messages.get()) is not None:
            await getattr(self, f"_on_{message['is']}")(message)
        loop.remove_reader(self._channel.fileno())
        if self._watching is not None:
            self._watching.cancel()
        for ticket in self._tickets.values():
            ticket.cancel()
        if self._started:
            await self._serving.stop(self._plan.generation.contract.gateway.shutdown)
        return 0

    def _hear(self) -> None:
        heard = self._channel.receive()
        for message in [None] if heard is None else heard:
            self._messages.put_nowait(message)
        if heard is None:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())

    def _told_to_end(self) -> None:
        self._channel.send({"is": "leaving"})
        self._messages.put_nowait(None)

    def _tell_loaded(self, disk: Disk) -> None:
        kept = disk.keep()
        plan, settings = self._plan, self._plan.generation.contract.gateway
        self._channel.send(
            {
                "is": "loaded",
                "digest": plan.fingerprint,
                "contract": plan.generation.contract.digest,
                "places": plan.places,
                "routes": {name: plain_of(route) for name, route in plan.routes.items()},
                "shutdown": settings.shutdown,
                "log": {"form": form_of(settings.log.format), "level": settings.log.level},
            },
            kept=kept,
        )
        if kept is not None:
            os.close(kept)

    async def _ask(self) -> Reload:
        """Ask for a reload of all, and wait for its end."""
        number = max(self._tickets, default=0) + 1
        ticket = self._tickets[number] = asyncio.get_running_loop().create_future()
        self._channel.send({"is": "reload", "ticket": number})
        try:
            await ticket
        finally:
            del self._tickets[number]
        return self._serving.gateway.last_reload

    async def _on_load(self, _: Message) -> None:
        disk = Disk()
        found = await plan_aside(partial(self._load, disk))
        if isinstance(found, Plan):
            self._plan = found
            self._tell_loaded(disk)
        else:
            self._channel.send(refused(found))

    async def _on_adopt(self, message: Message) -> None:
        doors = message["doors"]
        if not self._started:
            await self._serving.open(doors)
            self._started = True
        else:
            await self._serving.adopt(self._plan, doors)
        for door in (door for sockets in doors.values() for door in sockets):
            door.close()  # each listener has its own duplicate
        self._note(message)
        if message["first"]:
            for name, (host, port) in message["addresses"].items():
                log.info("listening", extra={"listener": name, "address": f"{host}:{port}"})
        if message["watch"] and self._watching is None:
            contract: Callable[[], Contract] = lambda: self._serving.gateway.generation.contract  # noqa: E731 - it is short
            self._watching = asyncio.create_task(watch_files(contract, self._ask))
        self._channel.send({"is": "adopted"})

    async def _on_refuse(self, message: Message) -> None:
        self._note(message)

    async def _on_ended(self, message: Message) -> None:
        ticket = self._tickets.get(message["ticket"])
        if ticket is not None and not ticket.done():
            ticket.set_result(None)

    async def _on_log(self, message: Message) -> None:
        level = logging.getLevelNamesMapping().get(message["level"].upper(), logging.ERROR)
        log.log(level, message["message"], extra=message["facts"])

    def _note(self, message: Message) -> None:
        """How the load ended is the same in all processes."""
        told: dict[str, Any] = message["reload"]
        refusals = tuple(Refusal(**refusal) for refusal in told["refusals"])
        digest = self._serving.gateway.generation.contract.digest
        self._serving.gateway.last_reload = Reload(told["at"], told["ok"], digest, refusals, told["accepted_at"])
