"""Runs projections so that no runaway one stops another call: small JMESPath here, the rest in worker processes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any

from gateway.json_text import NotJson, encode, parse
from gateway.projection import worker
from gateway.projection.expression import search
from gateway.projection.model import Projected, Projection, ProjectionFault, Reason, Sources
from gateway.projection.process import Lost, Reply, Settings, WorkerProcess, start_worker
from gateway.projection.sources import EMPTY

#: Bytes of the full answer times the expression's breadth, up to which JMESPath is evaluated in the gateway itself.
INLINE_WORK = 32 * 1024
#: An expression that once took more processor time than this goes to a worker for answers of that size and larger.
INLINE_SECONDS = 0.002
#: Values in the result of an expression, beyond which a worker builds it.
INLINE_NODES = 20_000

_REASONS = {
    worker.RAISED: Reason.RAISED,
    worker.AWAITABLE: Reason.AWAITABLE,
    worker.NOT_JSON: Reason.NOT_JSON,
    worker.TOO_LARGE: Reason.TOO_LARGE,
    worker.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
    worker.NOT_LOADED: Reason.NOT_LOADED,
}


class ProjectionRunner:
    """Owns the workers of one gateway process, across reloads; `run` never raises but for cancellation.

    Each worker runs one call at a time. A worker that outruns its limit, dies or fills its memory is replaced, and that
    call alone fails. One projection never holds every worker, and one that outran its limit holds at most one until
    it ends in time again.
    """

    def __init__(
        self,
        limit_seconds: float,
        *,
        memory_bytes: int = 512 * 1024 * 1024,
        output_bytes: int = 10 * 1024 * 1024,
        workers: int = 2,
        wait_seconds: float | None = None,
    ) -> None:
        self._settings = Settings(limit_seconds, memory_bytes, output_bytes)
        self._size = workers
        self._wait_seconds = 5 * limit_seconds if wait_seconds is None else wait_seconds
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._starting: list[Sources] = []
        self._settling: set[WorkerProcess] = set()
        self._waiting: deque[_Waiting] = deque()
        self._held: Counter[Projection] = Counter()
        self._outran: set[Projection] = set()
        self._sources: Sources | None = None
        self._inline_limits: dict[Projection, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def start(self, projections: Iterable[Projection] = ()) -> None:
        """Have workers ready for these; without python projections among them, none is started before it is needed.

        Again after a reload, with the new ones: workers with other code end as soon as they are idle.
        """
        python = [projection for projection in projections if projection.kind == "python" and projection.sources]
        if not python:
            return
        self._sources = python[0].sources
        assert self._sources is not None
        for old in [idle for idle in self._idle if idle.sources != self._sources]:
            self._end(old)
        known = set(python)
        self._outran &= known
        missing = self._size - self._count()
        await asyncio.gather(*[self._hire(self._sources, python) for _ in range(missing)])

    def limit(self, seconds: float) -> None:
        """How long a projection may run; workers that were told another limit end as soon as they are idle."""
        if seconds == self._settings.limit_seconds:
            return
        self._settings = replace(self._settings, limit_seconds=seconds)
        self._wait_seconds = 5 * seconds
        for old in list(self._idle):
            self._end(old)

    async def close(self) -> None:
        """End every worker and wait until the system has forgotten them. Calls in flight end with a fault."""
        self._closed = True
        for waiting in self._waiting:
            waiting.settle(ProjectionFault(Reason.DIED, "the gateway is closing"))
        self._waiting.clear()
        for process in [*self._idle, *self._busy, *self._settling]:
            self._end(process)
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def run(
        self, projection: Projection, full_text: bytes | None, full_value: Any, input: Any, source: Any
    ) -> Projected | ProjectionFault:
        """What the projection shows of the full answer.

        `full_text` is the JSON text of `full_value` in UTF-8; None where the caller has none at hand. The result is the
        caller's own: it shares nothing with the arguments.
        """
        text = encode(full_value) if full_text is None else full_text
        if projection.kind == "jmespath":
            shown = self._search_here(projection, len(text), {"full": full_value, "input": input, "source": source})
            if shown is not None:
                return shown
        context = encode({"input": input, "source": source})
        process = await self._take(projection)
        if isinstance(process, ProjectionFault):
            return process
        try:
            ended = await _converse(process, projection, context, text)
        except asyncio.CancelledError:
            self._spawn(self._outlast(process, projection))
            raise
        self._give_back(process, projection, ended)
        return self._told(ended)

    # -- JMESPath, here

    def _search_here(self, projection: Projection, size: int, root: Any) -> Projected | ProjectionFault | None:
        limit = self._inline_limits.get(projection)
        if size * projection.breadth > INLINE_WORK or (limit is not None and size >= limit):
            return None
        began = time.thread_time()
        shown = search(projection, root, INLINE_NODES)
        if shown is None or time.thread_time() - began > INLINE_SECONDS:
            self._inline_limits[projection] = size
        return shown

    # -- workers

    async def _take(self, projection: Projection) -> WorkerProcess | ProjectionFault:
        waiting = _Waiting(projection, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._pump()
        try:
            if not waiting.found.done():
                await asyncio.wait({waiting.found}, timeout=self._wait_seconds)
        except asyncio.CancelledError:
            self._forget(waiting)
            raise
        if not waiting.found.done():
            self._forget(waiting)
            return ProjectionFault(Reason.BUSY, f"no worker came free in {self._wait_seconds:g} seconds")
        return waiting.found.result()

    def _forget(self, waiting: _Waiting) -> None:
        if not waiting.found.done():
            self._waiting.remove(waiting)
        elif isinstance(process := waiting.found.result(), WorkerProcess):
            self._busy.discard(process)
            self._held[waiting.projection] -= 1
            self._idle.append(process)
            self._pump()

    def _pump(self) -> None:
        """Give idle workers to those who wait, in order, but for projections that hold their share already."""
        if self._closed:
            for waiting in self._waiting:
                waiting.settle(ProjectionFault(Reason.DIED, "the gateway is closing"))
            self._waiting.clear()
            return
        for dead in [idle for idle in self._idle if not idle.alive]:
            self._end(dead)
        coming = list(self._starting)
        for waiting in list(self._waiting):
            projection = waiting.projection
            if self._held[projection] >= self._share(projection):
                continue
            process = self._idle_for(projection)
            if process is not None and (len(self._idle) > 1 or not self._leaves_one(projection)):
                self._lend(process, waiting)
                continue
            sources = next((sources for sources in coming if _fits(sources, projection)), None)
            if sources is not None:
                coming.remove(sources)
            elif self._count() < self._size or (process is None and self._end_one_idle()):
                self._hire(projection.sources or self._sources or EMPTY, [projection])

    def _lend(self, process: WorkerProcess, waiting: _Waiting) -> None:
        self._idle.remove(process)
        self._busy.add(process)
        self._held[waiting.projection] += 1
        self._waiting.remove(waiting)
        waiting.settle(process)

    def _share(self, projection: Projection) -> int:
        return 1 if projection in self._outran else max(1, self._size - 1)

    def _leaves_one(self, projection: Projection) -> bool:
        """Whether others must find a worker ready while this one runs away and the last it had is being replaced."""
        return projection in self._outran and self._size > 1

    def _idle_for(self, projection: Projection) -> WorkerProcess | None:
        fitting = [process for process in self._idle if _fits(process.sources, projection)]
        # the one used last: its memory is warm, and spare ones stay cold
        return next((process for process in reversed(fitting) if projection in process.loaded), None) or (
            fitting[-1] if fitting else None
        )

    def _end_one_idle(self) -> bool:
        """None of the idle ones fits, so the one that was idle longest makes room."""
        if not self._idle:
            return False
        self._end(self._idle[0])
        return True

    def _count(self) -> int:
        return len(self._idle) + len(self._busy) + len(self._starting)

    def _hire(self, sources: Sources, projections: Iterable[Projection]) -> asyncio.Task[None]:
        self._starting.append(sources)
        return self._spawn(self._begin(sources, projections))

    async def _begin(self, sources: Sources, projections: Iterable[Projection]) -> None:
        """Start one worker and load what it is for; a projection that does not load says so when it is called."""
        try:
            process = await start_worker(self._settings, sources)
        except OSError as error:
            self._starting.remove(sources)
            self._refuse_one(sources, f"no worker can be started: {error.strerror}")
            self._pump()
            return
        self._settling.add(process)
        ready = await process.settle()
        for projection in projections:
            if not isinstance(ready, Lost):
                ready = await process.load(projection)
        self._starting.remove(sources)
        if isinstance(ready, Lost) or self._closed:
            self._end(process)
            self._refuse_one(sources, "its worker ended while it started")
        else:
            self._settling.discard(process)
            self._idle.append(process)
        self._pump()

    def _refuse_one(self, sources: Sources, text: str) -> None:
        """A start that failed fails one call, or the same start would be tried for ever."""
        for waiting in self._waiting:
            if _fits(sources, waiting.projection):
                self._waiting.remove(waiting)
                waiting.settle(ProjectionFault(Reason.DIED, text))
                return

    async def _outlast(self, process: WorkerProcess, projection: Projection) -> None:
        self._give_back(process, projection, await process.outlast())

    def _give_back(self, process: WorkerProcess, projection: Projection, ended: Reply | Lost) -> None:
        self._held[projection] -= 1
        if not self._held[projection]:
            del self._held[projection]
        if isinstance(ended, Lost):
            self._outran.add(projection)
            self._replace(process)
        elif ended[0] == worker.OUT_OF_MEMORY:
            self._replace(process)
        elif process.settings != self._settings or (self._sources is not None and process.sources != self._sources):
            self._end(process)
        else:
            self._outran.discard(projection)
            self._busy.discard(process)
            self._idle.append(process)
        self._pump()

    def _replace(self, process: WorkerProcess) -> None:
        self._end(process)
        if not self._closed:
            sources = self._sources or process.sources
            self._hire(sources, [known for known in process.loaded if _fits(sources, known)])

    def _end(self, process: WorkerProcess) -> None:
        if process in self._idle:
            self._idle.remove(process)
        elif process in self._busy or process in self._settling:
            self._busy.discard(process)
            self._settling.discard(process)
        else:  # ended already
            return
        process.kill()
        self._spawn(process.ended())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _told(self, ended: Reply | Lost) -> Projected | ProjectionFault:
        if ended is Lost.LATE:
            limit = self._settings.limit_seconds
            return ProjectionFault(Reason.TIMEOUT, f"it did not return within {limit:g} seconds")
        if isinstance(ended, Lost):
            return ProjectionFault(Reason.DIED, "its process ended")
        status, body = ended
        if status == worker.DONE:
            value = parse(body)
            return ProjectionFault(Reason.NOT_JSON, value.reason) if isinstance(value, NotJson) else Projected(value)
        return _fault(_REASONS.get(status, Reason.DIED), body.decode("utf-8", "replace"))


@dataclass(slots=True, eq=False)
class _Waiting:
    projection: Projection
    found: asyncio.Future[WorkerProcess | ProjectionFault]

    def settle(self, found: WorkerProcess | ProjectionFault) -> None:
        if not self.found.done():
            self.found.set_result(found)


async def _converse(process: WorkerProcess, projection: Projection, context: bytes, text: bytes) -> Reply | Lost:
    if projection not in process.loaded:
        loaded = await process.load(projection)
        if isinstance(loaded, Lost) or loaded[0] != worker.DONE:
            return loaded
    return await process.call(projection, context, text)


def _fits(sources: Sources, projection: Projection) -> bool:
    return projection.kind == "jmespath" or projection.sources == sources


def _fault(reason: Reason, told: str) -> ProjectionFault:
    text, _, trace = told.partition("\0")
    match reason:
        case Reason.AWAITABLE:
            return ProjectionFault(reason, f"it returned an awaitable ({text}); a projection is a plain `def`")
        case Reason.NOT_JSON:
            return ProjectionFault(reason, f"it returned what is not JSON: {text}")
        case Reason.TOO_LARGE:
            return ProjectionFault(reason, f"it returned {text} bytes of JSON, which is over the bound")
        case Reason.OUT_OF_MEMORY:
            return ProjectionFault(reason, "it ran out of memory")
        case _:
            return ProjectionFault(reason, text, trace)
