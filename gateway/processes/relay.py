"""The process of the pass-through: no tool call delays it. Knows routes as plain values, and no contract."""

from __future__ import annotations

import asyncio
import logging
import signal

from gateway.processes.channel import Channel, Message
from gateway.processes.tally import Tallies
from gateway.relay.relays import Relays
from gateway.relay.route import route_of
from gateway.telemetry.lines import JsonLines, TextLines
from gateway.telemetry.passthrough import PassthroughMetrics


async def relay_until_told(channel: Channel, tallies: Tallies, part: int) -> int:
    """Relay what the supervisor says, until SIGTERM or until it is gone."""
    root, handler = logging.getLogger(), logging.StreamHandler()
    root.handlers[:] = [handler]
    relays = Relays(PassthroughMetrics(tallies.own(part)).observer)
    messages: asyncio.Queue[Message | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    grace = 0.0

    def hear() -> None:
        heard = channel.receive()
        for message in [None] if heard is None else heard:
            messages.put_nowait(message)
        if heard is None:
            loop.remove_reader(channel.fileno())

    def told_to_end() -> None:
        channel.send({"is": "leaving"})
        messages.put_nowait(None)

    loop.add_reader(channel.fileno(), hear)
    loop.add_signal_handler(signal.SIGTERM, told_to_end)
    while (message := await messages.get()) is not None:
        grace = message["shutdown"]
        handler.setFormatter(JsonLines() if message["log"]["form"] == "json" else TextLines())
        root.setLevel(message["log"]["level"].upper())
        doors = message["doors"]
        await relays.adopt({name: route_of(plain) for name, plain in message["routes"].items()}, doors)
        for door in (door for sockets in doors.values() for door in sockets):
            door.close()  # each relay has its own duplicate
        channel.send({"is": "adopted"})
    loop.remove_reader(channel.fileno())
    await relays.stop(grace)
    return 0
