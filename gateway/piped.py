"""One contract served as MCP at two file descriptors, without a listener, and down again without a leaked process."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from gateway.contract.model import Contract
from gateway.gateway import Observer
from gateway.generation import index
from gateway.surfaces.mcp.stdio import StdioSession
from gateway.telemetry.log import DriftLog
from gateway.unlistened import unlistened


async def serve_stdio(contract: Contract, source: int, sink: int, *observers: Observer) -> None:
    """Serve until the client is gone or has no more to ask, or until SIGINT, SIGTERM or SIGHUP.

    Nothing is reloaded: the client has read the list, and starts the process anew for another one (decision 0094).
    """
    generation = index(contract)
    trace = contract.gateway.log.level == "debug"
    async with unlistened(generation, DriftLog().observe, *observers, trace=trace) as gateway:
        session = asyncio.create_task(StdioSession(gateway, source, sink).run(contract.gateway.shutdown))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
            loop.add_signal_handler(number, session.cancel)
        with suppress(asyncio.CancelledError):
            await session
