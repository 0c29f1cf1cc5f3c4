"""One contract served as MCP at two file descriptors, without a listener, and down again without a leaked process."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from gateway.backend.client import BackendClient
from gateway.contract.model import Contract
from gateway.gateway import Gateway, Observer
from gateway.generation import index
from gateway.projection.runner import ProjectionRunner
from gateway.surfaces.mcp.stdio import StdioSession
from gateway.telemetry.log import DriftLog


async def serve_stdio(contract: Contract, source: int, sink: int, *observers: Observer) -> None:
    """Serve until the client is gone or has no more to ask, or until SIGINT, SIGTERM or SIGHUP.

    Nothing is reloaded: the client has read the list, and starts the process anew for another one (decision 0094).
    """
    generation = index(contract)
    client = BackendClient(contract.backends.values())
    projections = ProjectionRunner(contract.gateway.limits.projection)
    await client.start()
    await projections.start(generation.projections())
    try:
        told = (DriftLog().observe, *observers)
        trace = contract.gateway.log.level == "debug"
        gateway = Gateway(generation, client.send, projections, told, trace=trace)
        session = asyncio.create_task(StdioSession(gateway, source, sink).run(contract.gateway.shutdown))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
            loop.add_signal_handler(number, session.cancel)
        with suppress(asyncio.CancelledError):
            await session
    finally:
        await projections.close()
        await client.close()
