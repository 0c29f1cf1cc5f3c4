"""Schemathesis, which cannot live beside the gateway: it needs another version of the same validator."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests import apart

HERE = Path(__file__).parent
_MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from schemathesis.cli import schemathesis; schemathesis()"


async def scan(
    url: str, checks: str, phases: str, *, examples: int, seed: int | None, folder: Path, key: str = "", at: str = ""
) -> tuple[int, str]:
    """How a scan of an OpenAPI document ended, and what it printed; it leaves its files in `folder`.

    Every request carries the `key` where there is one, and goes `at` an address where the document is a file.
    """
    packages = await asyncio.to_thread(apart.installed, HERE)
    chance = ["--generation-deterministic"] if seed is None else ["--seed", str(seed), "--generation-database", "none"]
    options = [
        *("--checks", checks, "--phases", phases, "--max-examples", str(examples)),
        *("--request-timeout", "30", "--continue-on-failure", "--no-shrink", "--no-color", "--warnings", "off"),
        *(("--header", f"Authorization: Bearer {key}") if key else ()),
        *(("--url", f"http://{at}") if at else ()),
    ]
    program: list[str | Path] = [sys.executable, "-I", "-S", "-c", _MAIN, packages, "--config-file", HERE / "scan.toml"]
    ran = await apart.run(*program, "run", url, *options, *chance, cwd=folder, patience=540)
    return ran.status, ran.out + ran.err
