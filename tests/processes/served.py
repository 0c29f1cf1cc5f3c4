"""`toolview serve` as real processes: started, asked, killed; its addresses are read off its own log."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from gateway.contract.values import Address
from tests.test_serve import samples

PATIENCE = 30
#: Exchanges that the pass-through of `api` answered well.
RELAYED = ("toolview_passthrough_requests_total", "api", "GET", "2xx")


async def counted(admin: Address, exchanges: int) -> dict[tuple[str, ...], float]:
    """The metrics, once the relay has read what it passed on: it does so after the client has its answer (0064)."""
    async with asyncio.timeout(PATIENCE):
        while (found := await samples(admin)).get(RELAYED, 0) < exchanges:
            pass
    return found


@dataclass
class Served:
    process: asyncio.subprocess.Process
    addresses: dict[str, Address] = field(default_factory=dict)
    #: Every line of its log.
    lines: list[dict[str, Any]] = field(default_factory=list)
    _new: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            with suppress(json.JSONDecodeError):
                said = json.loads(line)
                if said["message"] == "listening":
                    host, _, port = said["address"].rpartition(":")
                    self.addresses[said["listener"]] = Address(host, int(port))
                async with self._new:
                    self.lines.append(said)
                    self._new.notify_all()
                continue
            async with self._new:
                self.lines.append({"message": line.decode().rstrip()})
                self._new.notify_all()

    async def said(self, message: str, count: int = 1) -> dict[str, Any]:
        """Wait until it has said that so many times."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines if line["message"].startswith(message)]

        async with asyncio.timeout(PATIENCE), self._new:
            await self._new.wait_for(lambda: len(found()) >= count)
        return found()[count - 1]

    def children(self) -> list[psutil.Process]:
        """Those forked by the supervisor, oldest first."""
        return sorted(psutil.Process(self.process.pid).children(), key=lambda child: (child.create_time(), child.pid))

    def of(self, listener: str) -> list[psutil.Process]:
        """The processes that stand at a listener's door."""
        port = self.addresses[listener].port
        found = []
        for child in self.children():
            with suppress(psutil.Error):
                if any(each.status == "LISTEN" and each.laddr.port == port for each in child.net_connections("tcp4")):
                    found.append(child)
        return found

    async def until(self, listener: str, count: int, *, without: psutil.Process | None = None) -> list[psutil.Process]:
        """Wait until so many processes stand at a door, a certain one not among them."""
        async with asyncio.timeout(PATIENCE):
            while True:  # nobody tells of it: only the system knows
                found = [each for each in await asyncio.to_thread(self.of, listener) if each != without]
                if len(found) == count:
                    return found
                await asyncio.sleep(0.05)

    async def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def served(config: Path, *options: str, ready: int = 3) -> AsyncIterator[Served]:
    """Serve a contract whose listeners are `ready` in number, until the block ends; then nothing of it is left."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "serve", str(config), *options),
        stderr=asyncio.subprocess.PIPE,
        process_group=0,  # one of its own, as a shell gives it
    )
    found = Served(process)
    reading = asyncio.create_task(found.read())
    try:
        if ready:
            await found.said("listening", ready)
        yield found
    finally:
        if process.returncode is None:
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(PATIENCE):
                    await process.wait()
            except TimeoutError:
                for each in children:
                    with suppress(psutil.Error):
                        each.kill()
                process.kill()
                await process.wait()
                raise
        await reading
