"""The Python SDK 1.x, which cannot live beside 2.x: installed once into a folder of its own, from pinned versions."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@cache
def installed() -> Path:
    """The folder with the SDK in it, of this version of Python."""
    folder = HERE / ".site-packages" / f"{sys.version_info[0]}.{sys.version_info[1]}"
    stamp = folder / ".installed"
    pinned = (HERE / "requirements.txt").read_text()
    if not stamp.exists() or stamp.read_text() != pinned:
        shutil.rmtree(folder, ignore_errors=True)
        pip = ["-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--only-binary", ":all:"]
        ran = subprocess.run(
            [sys.executable, *pip, "--target", folder, "--requirement", HERE / "requirements.txt"],
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            pytest.fail(f"pip could not fetch the packages of {HERE}: {ran.stderr[-300:]}")
        stamp.write_text(pinned)
    return folder


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
