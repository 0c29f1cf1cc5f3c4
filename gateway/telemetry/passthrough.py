"""Counts what the relay tells, and logs it where asked; knows no contract and no registry of metrics."""

from __future__ import annotations

import logging

from gateway.processes.tally import Cells, Tally

log = logging.getLogger("toolview.passthrough")

#: The metrics of the pass-through, as rows of a tally: labels are `backend`, and those named.
REQUESTS = "toolview_passthrough_requests"  # method, status_class
BYTES = "toolview_passthrough_bytes"  # direction
CONNECTIONS = "toolview_passthrough_connections"
OPAQUE = "toolview_passthrough_opaque"


class PassthroughMetrics:
    """The series of all pass-through listeners of a process; `observer` gives one backend's."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def observer(self, backend: str) -> _BackendObserver:
        """One that also writes a line for each exchange, where the log asks for that."""
        kind = _LoggingObserver if log.isEnabledFor(logging.DEBUG) else _BackendObserver
        return kind(self._tally, backend)


class _BackendObserver:
    """What the relay calls, with every row looked up once."""

    def __init__(self, tally: Tally, backend: str) -> None:
        self._backend = backend
        self._tally = tally
        self._requests: dict[tuple[str, int], Cells] = {}
        self._in = tally.cells((BYTES, backend, "in"))
        self._out = tally.cells((BYTES, backend, "out"))
        self._connections = tally.cells((CONNECTIONS, backend), state=True)
        self._opaque = tally.cells((OPAQUE, backend))

    def connection_opened(self) -> None:
        self._connections[0] += 1

    def connection_closed(self) -> None:
        self._connections[0] -= 1

    def relayed(self, direction: str, count: int) -> None:
        (self._in if direction == "in" else self._out)[0] += count

    def exchange(self, method: str, status: int, target: bytes, sizes: tuple[int, int], seconds: float) -> None:
        key = (method, status)
        cells = self._requests.get(key)
        if cells is None:
            status_class = f"{status // 100}xx" if 1 <= status // 100 <= 5 else "none"
            cells = self._requests[key] = self._tally.cells((REQUESTS, self._backend, method, status_class))
        cells[0] += 1

    def cut(self, method: str, status: int) -> None:
        """A broken exchange was counted by its `exchange`."""

    def opaque(self) -> None:
        self._opaque[0] += 1


class _LoggingObserver(_BackendObserver):
    """The access log. A query may hold what is secret, so it is left out; headers and bodies are not known here."""

    def exchange(self, method: str, status: int, target: bytes, sizes: tuple[int, int], seconds: float) -> None:
        super().exchange(method, status, target, sizes, seconds)
        facts = {
            "backend": self._backend,
            "method": method,
            "path": _path(target.decode("latin-1")),
            "status": status,
            "request_bytes": sizes[0],
            "answer_bytes": sizes[1],
            "seconds": round(seconds, 6),
        }
        log.debug("exchange", extra=facts)

    def cut(self, method: str, status: int) -> None:
        log.debug("cut", extra={"backend": self._backend, "method": method, "status": status})

    def opaque(self) -> None:
        super().opaque()
        log.debug("no longer followed", extra={"backend": self._backend})


def _path(target: str) -> str:
    """Of an absolute form only the path as well, since what stands before it may hold a password."""
    path = target.partition("?")[0]
    return path if path.startswith("/") else "/" + path.partition("://")[2].partition("/")[2]
