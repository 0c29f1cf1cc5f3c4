"""A gateway takes all descriptors that it may have, and says so where those are too few to begin with."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from pathlib import Path

from tests.processes.served import served
from tests.processes.test_serve_in_processes import answered, write
from tests.rig import backend
from tests.test_serve import agent


def test_too_few_to_serve_with_are_said_before_anything_is_started(tmp_path: Path) -> None:
    command = f"ulimit -n 64; exec {sys.executable} -m gateway serve {write(tmp_path, 'http://127.0.0.1:1')}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr == (
        "toolview: a process may hold 64 files open here, and a gateway needs 128 at least: raise it (`ulimit -n`)\n"
    )


async def test_every_process_may_hold_as_many_as_the_system_allows(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        async with backend(answered) as api, served(write(tmp_path, api.url)) as gateway:
            await gateway.until("tools", 1)
            assert (await agent(gateway.addresses["tools"], "list_people", {}))[0] == 200
            for child in gateway.children():
                limits = await asyncio.to_thread(Path(f"/proc/{child.pid}/limits").read_text)
                (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
                assert line.split()[3] == line.split()[4] == str(hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
