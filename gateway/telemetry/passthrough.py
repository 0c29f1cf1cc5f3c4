"""Prometheus metrics of the pass-through, fed by the relay's observer calls; methods and statuses come bounded."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge


class PassthroughMetrics:
    """The series of all pass-through listeners; `observer` gives one backend's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "toolview_passthrough_requests",
            "Exchanges seen on the pass-through; status class `none` where no answer came.",
            ["backend", "method", "status_class"],
            registry=registry,
        )
        self.bytes = Counter(
            "toolview_passthrough_bytes",
            "Bytes relayed: `in` from clients, `out` from the backend.",
            ["backend", "direction"],
            registry=registry,
        )
        self.connections = Gauge(
            "toolview_passthrough_connections", "Open client connections.", ["backend"], registry=registry
        )
        self.opaque = Counter(
            "toolview_passthrough_opaque",
            "Connections relayed without being followed, such as upgrades.",
            ["backend"],
            registry=registry,
        )

    def observer(self, backend: str) -> _BackendObserver:
        return _BackendObserver(self, backend)


class _BackendObserver:
    """What the relay calls, with every child looked up once."""

    def __init__(self, metrics: PassthroughMetrics, backend: str) -> None:
        self._backend = backend
        self._requests = metrics.requests
        self._children: dict[tuple[str, int], Any] = {}
        self._in = metrics.bytes.labels(backend, "in")
        self._out = metrics.bytes.labels(backend, "out")
        self._connections = metrics.connections.labels(backend)
        self._opaque = metrics.opaque.labels(backend)

    def connection_opened(self) -> None:
        self._connections.inc()

    def connection_closed(self) -> None:
        self._connections.dec()

    def relayed(self, direction: str, count: int) -> None:
        (self._in if direction == "in" else self._out).inc(count)

    def exchange(self, method: str, status: int, target: str, sizes: tuple[int, int], seconds: float) -> None:
        key = (method, status // 100)
        child = self._children.get(key)
        if child is None:
            status_class = f"{status // 100}xx" if 1 <= status // 100 <= 5 else "none"
            child = self._children[key] = self._requests.labels(self._backend, method, status_class)
        child.inc()

    def cut(self, method: str, status: int) -> None:
        """A broken exchange was counted by its `exchange`."""

    def opaque(self) -> None:
        self._opaque.inc()
