"""The demo API alone, for a container beside the gateway: `python -m gateway.demo HOST:PORT`. Knows no gateway."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence

from gateway.demo.backend import start


def main(argv: Sequence[str]) -> int:
    """Serve the directory on the address that is given until SIGINT or SIGTERM; answers the exit code."""
    host, _, port = (argv[0] if len(argv) == 1 else "").rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        print("usage: python -m gateway.demo HOST:PORT", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(host.strip("[]"), int(port)))
    except OSError as fault:
        print(f"{argv[0]} cannot be had: {fault.strerror}", file=sys.stderr)
        return 1
    return 0


async def _serve(host: str, port: int) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    runner, bound = await start(host, port)
    print(f"the demo API listens on {host}:{bound}", flush=True)
    await stopping.wait()
    await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
