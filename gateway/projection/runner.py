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
#: Processor seconds of one call after which its worker gives way to everything else; twice what ended well counts too.
PATIENCE_SECONDS = 0.05
#: How long a projection that ran away runs aside, in times its limit; then it is tried again among the others.
PEN_LIMITS = 30
#: How long a call waits for its pen at least; a pen starts when processors have nothing else to do.
LEAST_PEN_SECONDS = 1.0
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
    call alone fails. One projection never holds every worker. One that ran away runs in a pen for a while: a process
    besides the workers, started for one call, which runs only where a processor has nothing else to do.
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
        #: What ran away, and until when it runs in a pen.
        self._penned: dict[Projection, float] = {}
        self._pens: set[WorkerProcess] = set()
        self._pens_taken = 0
        #: What was found slow and good, and how much processor time it may take.
        self._patience: dict[Projection, float] = {}
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
        for told in (self._penned, self._patience):
            for gone in told.keys() - known:
                del told[gone]
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
        for process in [*self._idle, *self._busy, *self._settling, *self._pens]:
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
            patience = self._patience.get(projection, PATIENCE_SECONDS)
            ended = await _converse(process, projection, context, text, patience)
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
        # what ran away is not waited for long: it ends at about its limit, however busy the machine is
        limit = self._wait_seconds
        if self._is_penned(projection):
            limit = min(limit, max(self._settings.limit_seconds, LEAST_PEN_SECONDS))
        try:
            if not waiting.found.done():
                await asyncio.wait({waiting.found}, timeout=limit)
        except asyncio.CancelledError:
            self._forget(waiting)
            raise
        if not waiting.found.done():
            self._forget(waiting)
            return ProjectionFault(Reason.BUSY, f"no worker came free in {limit:g} seconds")
        return waiting.found.result()

    def _forget(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
        elif not waiting.found.done():
            waiting.found.cancel()  # its pen is being made
        elif isinstance(process := waiting.found.result(), WorkerProcess):
            self._release(process, waiting.projection)
            if process in self._pens:
                self._end(process)
            else:
                self._busy.discard(process)
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
            if self._is_penned(projection):
                if not self._held[projection] and self._pens_taken < self._size:
                    self._pen(waiting)
                continue
            if self._held[projection] >= max(1, self._size - 1):
                continue
            process = self._idle_for(projection)
            if process is not None:
                self._lend(process, waiting)
                continue
            sources = next((sources for sources in coming if _fits(sources, projection)), None)
            if sources is not None:
                coming.remove(sources)
            elif self._count() < self._size or self._end_one_idle():
                self._hire(projection.sources or self._sources or EMPTY, [projection])

    def _lend(self, process: WorkerProcess, waiting: _Waiting) -> None:
        self._idle.remove(process)
        self._busy.add(process)
        self._held[waiting.projection] += 1
        self._waiting.remove(waiting)
        waiting.settle(process)

    def _is_penned(self, projection: Projection) -> bool:
        until = self._penned.get(projection)
        if until is None:
            return False
        if time.monotonic() < until:
            return True
        del self._penned[projection]
        return False

    def _pen(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        self._held[waiting.projection] += 1
        self._pens_taken += 1
        self._spawn(self._begin_pen(waiting))

    async def _begin_pen(self, waiting: _Waiting) -> None:
        projection = waiting.projection
        process = await self._started(projection.sources or self._sources or EMPTY, [projection], aside=True)
        if waiting.found.done():  # its call is over; the next one of the same projection need not begin again
            waiting = next((other for other in self._waiting if other.projection == projection), waiting)
            if waiting in self._waiting:
                self._waiting.remove(waiting)
        if isinstance(process, WorkerProcess) and not waiting.found.done():
            self._pens.add(process)
            waiting.settle(process)
            return
        if isinstance(process, WorkerProcess):  # the call is over
            self._settling.add(process)
            self._end(process)
        else:
            waiting.settle(ProjectionFault(Reason.DIED, process))
        self._pens_taken -= 1
        self._hold_less(projection)
        self._pump()

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
        process = await self._started(sources, projections)
        self._starting.remove(sources)
        if isinstance(process, WorkerProcess):
            self._idle.append(process)
        else:
            self._refuse_one(sources, process)
        self._pump()

    async def _started(
        self, sources: Sources, projections: Iterable[Projection], *, aside: bool = False
    ) -> WorkerProcess | str:
        try:
            process = await start_worker(self._settings, sources, aside=aside)
        except OSError as error:
            return f"no worker can be started: {error.strerror}"
        self._settling.add(process)
        ready = await process.settle()
        for projection in projections:
            if not isinstance(ready, Lost):
                ready = await process.load(projection)
        if isinstance(ready, Lost) or self._closed:
            self._end(process)
            return "its worker ended while it started"
        self._settling.discard(process)
        return process

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
        self._release(process, projection)
        ran_away = isinstance(ended, Lost) or ended[0] == worker.OUT_OF_MEMORY
        if ran_away:
            self._penned[projection] = time.monotonic() + PEN_LIMITS * self._settings.limit_seconds
        else:
            self._penned.pop(projection, None)
        if process.aside and not ran_away:
            self._patience[projection] = max(2 * process.used, PATIENCE_SECONDS)
        if process in self._pens:
            self._end(process)
        elif ran_away or process.aside:
            self._replace(process)
        elif process.settings != self._settings or (self._sources is not None and process.sources != self._sources):
            self._end(process)
        else:
            self._busy.discard(process)
            self._idle.append(process)
        self._pump()

    def _release(self, process: WorkerProcess, projection: Projection) -> None:
        if process in self._pens:
            self._pens_taken -= 1
        self._hold_less(projection)

    def _hold_less(self, projection: Projection) -> None:
        self._held[projection] -= 1
        if not self._held[projection]:
            del self._held[projection]

    def _replace(self, process: WorkerProcess) -> None:
        self._end(process)
        if not self._closed:
            sources = self._sources or process.sources
            self._hire(sources, [known for known in process.loaded if _fits(sources, known)])

    def _end(self, process: WorkerProcess) -> None:
        if process in self._idle:
            self._idle.remove(process)
        elif process in self._busy or process in self._settling or process in self._pens:
            for where in (self._busy, self._settling, self._pens):
                where.discard(process)
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


async def _converse(
    process: WorkerProcess, projection: Projection, context: bytes, text: bytes, patience: float
) -> Reply | Lost:
    if projection not in process.loaded:
        loaded = await process.load(projection)
        if isinstance(loaded, Lost) or loaded[0] != worker.DONE:
            return loaded
    return await process.call(projection, context, text, patience)


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
