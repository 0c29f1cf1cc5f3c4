"""MCP over a pipe: one message a line in, one a line out, calls side by side. Knows file descriptors and no HTTP.

The pipe's owner is the client: whoever may start this process may call every tool, and its end is the end of the pipe.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections import deque
from collections.abc import Coroutine, Iterable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from gateway.call.outcome import Call
from gateway.gateway import Gateway, new_call_id
from gateway.surfaces.mcp import answers, wire
from gateway.surfaces.mcp.server import SURFACE, McpServer
from gateway.surfaces.mcp.wire import CallTool, Id, Notification, Refusal

#: Bytes that are read at once, and bytes of answers that may wait to be read before another message is.
_PIECE = 65536
_WAITING = 1024 * 1024
#: Seconds in which a client may still read the last answers; whoever reads is faster.
_LAST = 2.0


class StdioSession:
    """One client at two file descriptors; `run` ends when the client is gone or is done asking."""

    def __init__(self, gateway: Gateway, source: int, sink: int) -> None:
        self._gateway = gateway
        self._server = McpServer(gateway)
        self._source = source
        self._sink = _Sink(sink)
        self._calls: dict[Id, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        #: Nobody can write to us any more; what was written may still wait to be read.
        self._hung_up = asyncio.Event()

    async def run(self, grace: float) -> None:
        """Answer until the input ends, then what is under way for up to `grace` seconds; at once where nobody reads."""
        loop = asyncio.get_running_loop()
        self._sink.start(loop)
        limit: int = self._gateway.generation.contract.gateway.limits.body
        # Threads, since what a shell hands over may be a file, a terminal or a pipe that others read too; none of
        # them keeps the process from ending.
        threading.Thread(target=self._read, args=(loop, limit), name="stdin", daemon=True).start()
        threading.Thread(target=self._look_out, args=(loop,), name="ends", daemon=True).start()
        broken = asyncio.create_task(_when(self._sink.broken))
        ended = asyncio.create_task(_when(self._ended))
        hung_up = asyncio.create_task(_when(self._hung_up))
        try:
            await asyncio.wait({broken, ended, hung_up}, return_when=asyncio.FIRST_COMPLETED)
            while not (broken.done() or ended.done()):
                written = self._sink.written
                await asyncio.wait({broken, ended}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
                if self._sink.full and self._sink.written == written:
                    break  # whoever left reads nothing either, so the rest of the input has no end
            if self._tasks and not broken.done():
                finished = asyncio.create_task(_all_of(list(self._tasks)))
                self._tasks.add(finished)
                await asyncio.wait({broken, finished}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left = [broken, ended, hung_up, *self._tasks]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._sink.close(_LAST)

    def _read(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        """In a thread of its own: the input as lines, each handed over before the next is looked at."""
        lines = _Lines(limit)
        try:
            while piece := os.read(self._source, _PIECE):
                for line in lines.feed(piece):
                    _hand_over(loop, self._take(line))
            for line in lines.end():
                _hand_over(loop, self._take(line))
        except (OSError, CancelledError):  # the other end broke it off, or all is over
            pass
        with suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(self._ended.set)

    def _look_out(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own: who leaves is seen at once, also where nothing is written just now."""
        if not hasattr(select, "poll"):
            return
        poll = select.poll()
        ends = {self._source: self._hung_up, self._sink.number: self._sink.broken}
        for number in ends:
            poll.register(number, 0)  # asks for nothing, and is told of hang-ups and errors all the same
        while ends:
            for number, _ in poll.poll():
                poll.unregister(number)
                _tell(loop, ends.pop(number).set)

    async def _take(self, line: bytes | None) -> None:
        """Begin one message; None is a line that is longer than may be."""
        await self._sink.room()
        if line is None:
            limit = self._gateway.generation.contract.gateway.limits.body
            self._say(answers.error(Refusal(None, 413, wire.INVALID_REQUEST, f"the message is over {limit} bytes")))
            return
        generation = self._gateway.generation
        listing = self._server.listing(generation, None)
        message = wire.read(line, None, listing.mirrored)
        if isinstance(message, Notification):
            if message.cancels is not None and (task := self._calls.get(message.cancels)) is not None:
                task.cancel()
            return
        if isinstance(message, Refusal) and message.unasked:
            return
        if not isinstance(message, CallTool):
            self._say(self._server.answer(message, generation, listing).body)
            return
        task = asyncio.create_task(self._call(message))
        self._tasks.add(task)
        self._calls[message.id] = task
        task.add_done_callback(self._tasks.discard)

    async def _call(self, message: CallTool) -> None:
        generation = self._gateway.generation
        listing = self._server.listing(generation, None)
        call_id = message.call_id or new_call_id()
        ask = self._server.ask(message, generation)
        call = Call(message.name, message.arguments, SURFACE, call_id, message.trace, ask=ask)
        try:
            answered = await self._server.call(call, message, generation, listing, self._note, interruptible=True)
            self._say(answered.body)  # a call that was taken back has no answer
        finally:
            if self._calls.get(message.id) is asyncio.current_task():
                del self._calls[message.id]

    async def _note(self, message: bytes) -> None:
        await self._sink.room()
        self._say(message)

    def _say(self, message: bytes | None) -> None:
        if message is not None:
            self._sink.put(message + b"\n")


class _Lines:
    """Pieces to lines; a line over the limit is None, and none of it is kept. Empty ones are nothing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun: list[bytes] = []
        self._size = 0
        self._too_long = False

    def feed(self, piece: bytes) -> list[bytes | None]:
        """The lines that a piece ends."""
        *ended, rest = piece.split(b"\n")
        lines: list[bytes | None] = []
        for part in ended:
            self._add(part)
            lines += self.end()
        self._add(rest)
        return lines

    def end(self) -> list[bytes | None]:
        """The line that is at its end, where there is one."""
        line = None if self._too_long else b"".join(self._begun).strip()
        self._begun, self._size, self._too_long = [], 0, False
        return [] if line == b"" else [line]

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._begun, self._too_long = [], True
        elif part:
            self._begun.append(part)


class _Sink:
    """What is written, in order and whole, by a thread: a client that does not read holds up nothing else."""

    def __init__(self, sink: int) -> None:
        self.broken = asyncio.Event()
        self.number = sink
        #: Bytes that the other end has taken.
        self.written = 0
        self._waiting: deque[bytes | None] = deque()
        self._some = threading.Semaphore(0)
        self._size = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._closed = asyncio.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        threading.Thread(target=self._write, args=(loop,), name="stdout", daemon=True).start()

    def put(self, message: bytes) -> None:
        """Write a message as soon as may be."""
        self._size += len(message)
        if self._size > _WAITING:
            self._has_room.clear()
        self._waiting.append(message)
        self._some.release()

    @property
    def full(self) -> bool:
        """Too much waits to be read."""
        return not self._has_room.is_set()

    async def room(self) -> None:
        """Wait until not too much waits to be read."""
        await self._has_room.wait()

    async def close(self, grace: float) -> None:
        """Write what is left, for so long as somebody reads it."""
        self._waiting.append(None)
        self._some.release()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._closed.wait()

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while self._some.acquire() and (message := self._waiting.popleft()) is not None:
                left = memoryview(message)
                while left:
                    taken = os.write(self.number, left[:_PIECE])
                    left = left[taken:]
                    self.written += taken
                _tell(loop, self._wrote, len(message))
        except OSError:
            _tell(loop, self.broken.set)
        _tell(loop, self._closed.set)

    def _wrote(self, size: int) -> None:
        self._size -= size
        if self._size <= _WAITING:
            self._has_room.set()


async def _when(event: asyncio.Event) -> None:
    await event.wait()


async def _all_of(tasks: Iterable[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _hand_over(loop: asyncio.AbstractEventLoop, taking: Coroutine[Any, Any, None]) -> None:
    """Run something in the loop and wait for it, from another thread; nothing once the loop is closed."""
    try:
        asyncio.run_coroutine_threadsafe(taking, loop).result()
    except RuntimeError:
        taking.close()


def _tell(loop: asyncio.AbstractEventLoop, what: Any, *arguments: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
        loop.call_soon_threadsafe(what, *arguments)
