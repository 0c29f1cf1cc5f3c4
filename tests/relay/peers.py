"""Real programs as peers: found on the path, installed where that is possible, and run to their end."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import pytest
from aiohttp import web

from gateway.relay.listen import Relay
from gateway.relay.route import Route
from tests.relay.rig import PATIENCE, Notes, started


@cache
def program(name: str) -> str:
    """Where this program is; the test is skipped where it is missing and cannot be installed."""
    if shutil.which(name) is None and shutil.which("apt-get") and os.geteuid() == 0:
        for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", name]):
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=150)
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed, and this user cannot install it")
    return found


async def run(*command: str, **environment: str) -> bytes:
    """What the program wrote to stdout; anything but success is an error with what it wrote to stderr."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment
    )
    try:
        async with asyncio.timeout(PATIENCE * 3):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, f"{command} ended with {process.returncode}: {err.decode(errors='replace')}"
    return out


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[int]:
    """The application on a port of its own, its answers the same at any time of day."""

    async def at_a_fixed_time(_: web.Request, answer: web.StreamResponse) -> None:
        answer.headers["Date"] = "Tue, 03 Mar 2026 09:00:00 GMT"

    app.on_response_prepare.append(at_a_fixed_time)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def relaying(port: int, declared: tuple[tuple[str, str], ...] | None = None) -> AsyncIterator[tuple[int, Notes]]:
    """A relay in front of a port, through the strict gate where endpoints are declared."""
    notes = Notes()
    relay = Relay(Route("legacy", "127.0.0.1", 0, "127.0.0.1", port, declared=declared), notes)
    listening = await started(relay)
    try:
        yield listening, notes
    finally:
        await relay.stop(PATIENCE)
        assert notes.opened == notes.closed
