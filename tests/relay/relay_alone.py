"""A relay in a process of its own, whose memory can be measured; told the backend's port, it prints its own."""

from __future__ import annotations

import asyncio
import sys

from gateway.relay.listen import Relay
from gateway.relay.route import Route
from tests.relay.rig import started


async def _serve(backend_port: int) -> None:
    relay = Relay(Route("legacy", "127.0.0.1", 0, "127.0.0.1", backend_port))
    port = await started(relay)
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # whoever started this says when it is over
    await relay.stop(1)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
