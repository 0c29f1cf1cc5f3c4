"""The gateway's end of one worker process: start it, ask it one thing at a time, kill it; decides nothing."""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import socket
import time
from contextlib import suppress
from enum import Enum
from typing import Any

from gateway.projection import worker
from gateway.projection.model import Projection, Sources
from gateway.projection.reference import IMPORT_SECONDS, command
from gateway.record import record

#: A worker that nobody stops (its gateway died) stops itself this long after its limit.
_GRACE_SECONDS = 1.0
#: The gateway itself and its other calls come first where processors are short.
_NICE = 5
#: Of Linux: the clock of a process is named by its number and this (include/linux/posix-timers.h).
_PROCESS_CLOCK = 2
#: How soon a worker is looked at again that has not run for as long as the clock has.
_LOOK_SECONDS = 0.005


@record
class Settings:
    """What every worker of a runner is told when it starts."""

    limit_seconds: float
    memory_bytes: int
    output_bytes: int


class Lost(Enum):
    """There is no reply, and the process is of no further use."""

    LATE = "late"
    GONE = "gone"


Reply = tuple[int, bytes]


class WorkerProcess:
    """One process and the link to it; `ask` is for one caller at a time."""

    def __init__(self, process: asyncio.subprocess.Process, link: _Link, settings: Settings, sources: Sources) -> None:
        self.sources = sources
        self.loaded: dict[Projection, int] = {}
        self._process = process
        self._link = link
        self.settings = settings
        #: Runs only where a processor has nothing else to do, and for good: raising it again takes privileges.
        self.aside = False
        #: Processor seconds of the call during which it was put aside.
        self.used = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._link.closed

    async def settle(self) -> Reply | Lost:
        """The first thing to ask."""
        told = {
            "limit": self.settings.limit_seconds + _GRACE_SECONDS,
            "import_limit": IMPORT_SECONDS + _GRACE_SECONDS,
            "memory": self.settings.memory_bytes,
            "output": self.settings.output_bytes,
            "folder": self.sources.folder,
            "files": dict(self.sources.files),
        }
        return await self._ask(worker.SETTINGS, marshal.dumps(told), IMPORT_SECONDS)

    async def load(self, projection: Projection) -> Reply | Lost:
        number = len(self.loaded)
        told = {"number": number, "kind": projection.kind, "reference": projection.reference}
        reply = await self._ask(worker.LOAD, marshal.dumps(told), IMPORT_SECONDS)
        if not isinstance(reply, Lost) and reply[0] == worker.DONE:
            self.loaded[projection] = number
        return reply

    async def call(self, projection: Projection, context: bytes, full_text: bytes, patience: float) -> Reply | Lost:
        """Put it aside once the call has taken `patience` seconds of processor time."""
        head = worker.CALL_HEAD.pack(self.loaded[projection], len(context))
        began = self._processor_seconds()
        self._watch = asyncio.get_running_loop().call_later(patience, self._look, began, patience)
        try:
            return await self._ask(worker.CALL, b"".join((head, context, full_text)), self.settings.limit_seconds)
        finally:
            self._watch.cancel()
            if self.aside:
                self.used = self._processor_seconds() - began

    async def outlast(self) -> Reply | Lost:
        """Wait for what a cancelled caller asked, within the limit: most calls are shorter than a new process."""
        if self._link.answered:
            return worker.DONE, b""
        return await self._within(self._link.await_again(), self.settings.limit_seconds)

    def put_aside(self) -> None:
        self.aside = True
        with suppress(OSError):  # it ended, or the system forbids it: then niceness alone must do
            os.sched_setscheduler(self._process.pid, os.SCHED_IDLE, os.sched_param(0))

    def _look(self, began: float, patience: float) -> None:
        """Time of the processor counts, not of the clock: on a busy machine a good projection waits as well."""
        left = patience - (self._processor_seconds() - began)
        if left <= 0:
            self.put_aside()
        elif self.alive:
            again = max(left, _LOOK_SECONDS)
            self._watch = asyncio.get_running_loop().call_later(again, self._look, began, patience)

    def _processor_seconds(self) -> float:
        try:
            return time.clock_gettime((~self._process.pid << 3) | _PROCESS_CLOCK)
        except OSError:
            return 0.0

    def kill(self) -> None:
        """End it and whatever it started; `ended` waits for that."""
        self._link.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # it has not come so far as to make its group
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                self._process.kill()

    async def ended(self) -> None:
        await self._process.wait()

    async def _ask(self, kind: int, body: bytes, seconds: float) -> Reply | Lost:
        return await self._within(self._link.send(kind, body), seconds)

    async def _within(self, reply: asyncio.Future[Reply | Lost], seconds: float) -> Reply | Lost:
        timer = asyncio.get_running_loop().call_later(seconds, self._link.settle, Lost.LATE)
        try:
            return await reply
        finally:
            timer.cancel()


async def start_worker(settings: Settings, sources: Sources, *, aside: bool = False) -> WorkerProcess:
    """A new process, not yet settled, put aside from its start or not. Raises `OSError` where the system has none."""
    ours, theirs = socket.socketpair()
    try:
        ours.setblocking(False)
        with theirs:
            process = await asyncio.create_subprocess_exec(*command(), stdin=theirs.fileno())
        _be_nice(process.pid)
        loop = asyncio.get_running_loop()
        _, link = await loop.create_unix_connection(lambda: _Link(settings.output_bytes), sock=ours)
    except BaseException:
        ours.close()  # a process that did start reads the end of its input, and ends
        raise
    started = WorkerProcess(process, link, settings, sources)
    if aside:
        started.put_aside()
    return started


def _be_nice(pid: int) -> None:
    """Before its imports, which are most of the work of a start."""
    with suppress(OSError):  # it has ended
        os.setpriority(os.PRIO_PROCESS, pid, min(os.getpriority(os.PRIO_PROCESS, 0) + _NICE, 19))


class _Link(asyncio.Protocol):
    """Frames out, frames in; at most one reply is awaited. What no worker of ours would send ends the link."""

    def __init__(self, output_bytes: int) -> None:
        self._max_reply = output_bytes + 64 * 1024
        self._received = bytearray()
        self._reply: asyncio.Future[Reply | Lost] | None = None
        self._transport: Any = None
        self.closed = False

    @property
    def answered(self) -> bool:
        return self._reply is None

    def send(self, kind: int, body: bytes) -> asyncio.Future[Reply | Lost]:
        reply = self.await_again()
        if not self.closed:
            self._transport.write(worker.FRAME.pack(len(body), kind) + body)
        return reply

    def await_again(self) -> asyncio.Future[Reply | Lost]:
        reply: asyncio.Future[Reply | Lost] = asyncio.get_running_loop().create_future()
        self._reply = reply
        if self.closed:
            self.settle(Lost.GONE)
        return reply

    def settle(self, reply: Reply | Lost) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(reply)
        self._reply = None

    def close(self) -> None:
        self.closed = True
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < worker.FRAME.size:
            return
        size, status = worker.FRAME.unpack_from(self._received)
        missing = worker.FRAME.size + size - len(self._received)
        if self._reply is None or size > self._max_reply or missing < 0:
            self.close()
        elif missing == 0:
            body = bytes(memoryview(self._received)[worker.FRAME.size :])
            self._received = bytearray()
            self.settle((status, body))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.settle(Lost.GONE)
