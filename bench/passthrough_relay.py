"""The relay alone in a process, as `bench.passthrough` measures it; arguments: its port and the backend's."""

from __future__ import annotations

import asyncio
import signal
import sys

import uvloop

from gateway.relay import Relay, Route


async def _serve(port: int, backend_port: int) -> None:
    relay = Relay(Route("bench", "127.0.0.1", port, "127.0.0.1", backend_port))
    await relay.start()
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await stopping.wait()
    await relay.stop(1)


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1]), int(sys.argv[2])))


if __name__ == "__main__":
    main()
