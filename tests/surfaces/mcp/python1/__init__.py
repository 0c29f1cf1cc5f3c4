"""The Python SDK 1.x, which cannot live beside 2.x: installed once into a folder of its own, from pinned versions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests import apart

HERE = Path(__file__).parent


def installed() -> Path:
    """The folder with the SDK in it."""
    return apart.installed(HERE)


async def run(url: str, *named: str) -> tuple[int, str, str]:
    """How the client ended, and what it printed; it sees no package but those of its folder."""
    folder = await asyncio.to_thread(installed)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", HERE / "client.py", folder, url, *named,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(), 120)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(), err.decode(errors="replace")
