"""A server process under measurement: start it, wait until it answers, read its CPU and memory, end it."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.driver import Connection

_START_DEADLINE = 60.0


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def own_python(folder: Path, peer: str) -> Path:
    """The interpreter of an environment of its own for a peer, made on first use, of the kind that this one is.

    Two builds of one version differ by a fifth in speed; a peer that runs on another one than we do is not compared.
    """
    kind = hashlib.sha256(f"{sys.base_prefix} {sys.version}".encode()).hexdigest()[:8]
    folder = folder.with_name(f"{folder.name}-{kind}")
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        print(f"Installing {peer} into {folder} (once) ...", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        # -I: nothing of this checkout may look installed there.
        subprocess.run([python, "-I", "-m", "pip", "install", "--quiet", peer], check=True)
        (folder / ".installed").touch()
    return python


def _environment() -> dict[str, str]:
    """This process's, but a server starts from bytecode, as an installed one does."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass
class Server:
    """One process and those it starts, alive inside a `with`; it serves once `probe` at `probe_port` answers 200."""

    name: str
    command: Sequence[str]
    probe_port: int
    probe: bytes
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Seconds from the start of the process to the first 200.
    ready_after: float = 0.0
    #: CPU seconds it needed for that, which a busy machine does not stretch as it does the wall clock.
    ready_cpu: float = 0.0

    def __enter__(self) -> Server:
        self._log = tempfile.NamedTemporaryFile(prefix=f"bench-{self.name}-", suffix=".log")
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            self.command,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**_environment(), **self.environment},
        )
        while not self._answers():
            self._give_up_if_dead(begin)
            time.sleep(0.002)
        self.ready_after = time.perf_counter() - begin
        self.ready_cpu = self.cpu_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def cpu_seconds(self) -> float:
        """User and system time of the process and its children so far."""
        times = [process.cpu_times() for process in self._tree()]
        return sum(time.user + time.system for time in times)

    def resident_bytes(self) -> int:
        """Resident memory of the process and its children, shared pages counted in each."""
        return sum(process.memory_info().rss for process in self._tree())

    def proportional_bytes(self) -> int:
        """The same, a page that several processes share counted once (Linux; 0 elsewhere)."""
        return sum(getattr(process.memory_full_info(), "pss", 0) for process in self._tree())

    def processes(self) -> int:
        return len(self._tree())

    def _tree(self) -> list[psutil.Process]:
        root = psutil.Process(self._process.pid)
        return [root, *root.children(recursive=True)]

    def _answers(self) -> bool:
        try:
            with Connection(self.probe_port, timeout=5.0) as connection:
                return connection.exchange(self.probe)[0] == 200
        except OSError:
            return False

    def _give_up_if_dead(self, begin: float) -> None:
        ended = self._process.poll()
        if ended is None and time.perf_counter() - begin < _START_DEADLINE:
            return
        said = Path(self._log.name).read_text(errors="replace")[-2000:]
        self._process.kill()
        raise RuntimeError(f"{self.name} does not serve (exit {ended}); it said:\n{said}")
