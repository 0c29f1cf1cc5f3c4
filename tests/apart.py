"""Programs that cannot live beside the gateway: fetched once, in pinned versions, and run in processes of their own."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Ran:
    """How a program ended, and what it printed."""

    status: int
    out: str
    err: str


async def run(
    *command: str | Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    patience: float = 120,
) -> Ran:
    """Run a program to its end; `patience` is how many seconds it may take before it is taken for stuck."""
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd)
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), patience)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))


@cache
def installed(home: Path) -> Path:
    """The folder with the packages of `home/requirements.txt` in it, of this version of Python."""
    folder = home / ".site-packages" / f"{sys.version_info[0]}.{sys.version_info[1]}"
    pins = home / "requirements.txt"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--only-binary", ":all:"]

    def fetch() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*pip, "--target", folder, "--requirement", pins], capture_output=True, text=True, check=False
        )

    fetched(folder, pins, fetch)
    return folder


def fetched(folder: Path, pins: Path, fetch: Callable[[], subprocess.CompletedProcess[Any]]) -> None:
    """Fill a folder that is not there as pinned; threads and processes that ask at once wait for the first."""
    with pins.open() as pinned:
        fcntl.flock(pinned, fcntl.LOCK_EX)  # kept by the open file, so that it goes with whoever dies
        stamp, wanted = folder / ".installed", pinned.read()
        if stamp.exists() and stamp.read_text() == wanted:
            return
        shutil.rmtree(folder, ignore_errors=True)
        ran = fetch()
        if ran.returncode:
            pytest.fail(f"the packages of {pins} could not be fetched: {(ran.stderr or ran.stdout)[-300:]}")
        stamp.write_text(wanted)
