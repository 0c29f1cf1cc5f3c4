"""A gateway without listeners, with its own client and projection workers, and down again; knows no surface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.backend.client import BackendClient
from gateway.gateway import Gateway, Observer
from gateway.generation import Generation
from gateway.projection.runner import ProjectionRunner


@asynccontextmanager
async def unlistened(
    generation: Generation, *observers: Observer, trace: bool = False, hire: bool = True
) -> AsyncIterator[Gateway]:
    """One that calls run on while the block lasts; unless `hire` is set, the first projection waits for its worker."""
    contract = generation.contract
    client = BackendClient(contract.backends.values())
    projections = ProjectionRunner(contract.gateway.limits.projection)
    await client.start()
    if hire:
        await projections.start(generation.projections())
    try:
        yield Gateway(generation, client.send, projections, observers, trace=trace)
    finally:
        await projections.close()
        await client.close()
