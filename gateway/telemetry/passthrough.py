"""Counts what the relay tells; methods and statuses come bounded. Knows no contract and no registry of metrics."""

from __future__ import annotations

from gateway.processes.tally import Cells, Tally

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
        return _BackendObserver(self._tally, backend)


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

    def exchange(self, method: str, status: int, target: str, sizes: tuple[int, int], seconds: float) -> None:
        key = (method, status // 100)
        cells = self._requests.get(key)
        if cells is None:
            status_class = f"{status // 100}xx" if 1 <= status // 100 <= 5 else "none"
            cells = self._requests[key] = self._tally.cells((REQUESTS, self._backend, method, status_class))
        cells[0] += 1

    def cut(self, method: str, status: int) -> None:
        """A broken exchange was counted by its `exchange`."""

    def opaque(self) -> None:
        self._opaque[0] += 1
