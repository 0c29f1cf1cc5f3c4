"""Schemathesis, which cannot live beside the gateway: it needs another version of the same validator."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests import apart

HERE = Path(__file__).parent
_MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from schemathesis.cli import schemathesis; schemathesis()"


async def scan(url: str, checks: str, phases: str, *, examples: int, seed: int | None, folder: Path) -> tuple[int, str]:
    """How a scan of an OpenAPI document ended, and what it printed; it leaves its files in `folder`."""
    packages = await asyncio.to_thread(apart.installed, HERE)
    chance = ["--generation-deterministic"] if seed is None else ["--seed", str(seed), "--generation-database", "none"]
    options = [
        *("--checks", checks, "--phases", phases, "--max-examples", str(examples)),
        *("--request-timeout", "30", "--continue-on-failure", "--no-shrink", "--no-color", "--warnings", "off"),
        *chance,
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _MAIN, packages, "--config-file", HERE / "scan.toml", "run", url, *options,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
    )  # fmt: skip
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 540)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(errors="replace")
