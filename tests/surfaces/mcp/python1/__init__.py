"""The Python SDK 1.x, which cannot live beside 2.x: installed once into a folder of its own, from pinned versions."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests import apart

HERE = Path(__file__).parent


async def run(url: str, *named: str) -> apart.Ran:
    """Run the client against an address; it sees no package but those of its folder."""
    folder = await asyncio.to_thread(apart.installed, HERE)
    return await apart.run(sys.executable, "-I", "-S", HERE / "client.py", folder, url, *named)
