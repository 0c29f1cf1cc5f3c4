"""What Prometheus scrapes: all that the processes have counted, and what is so now. Knows no call and no listener.

Loaded with the first scrape: a start need not wait for Prometheus's library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric, Sample
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from gateway.backend.guard import breaker_state
from gateway.generation import Generation, Reload
from gateway.processes.tally import Key, Tallies
from gateway.telemetry import passthrough
from gateway.telemetry.metrics import (
    BACKEND,
    CALLS,
    DURATION,
    FULL_BYTES,
    GUARD,
    HEALTH,
    PROJECTION,
    SECONDS,
    STRIPPED,
    VIEW_BYTES,
    VIOLATIONS,
)

#: Processor seconds of processes that are no more.
CPU_OF_THE_DEAD = "cpu_of_the_dead"

#: Values of `toolview_breaker_state`.
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}

#: Metrics that only grow, by name: what they say, and their labels.
_COUNTERS = {
    CALLS: ("Tool calls by how they ended.", ("tool", "surface", "code")),
    FULL_BYTES: ("Decoded JSON bytes of backend answers.", ("tool", "surface")),
    VIEW_BYTES: ("JSON bytes shown to callers.", ("tool", "surface")),
    VIOLATIONS: ("Places where observed answers broke their declared output.", ("tool", "path")),
    STRIPPED: ("Keys beyond a declared schema that were left out.", ("tool", "path")),
    passthrough.REQUESTS: (
        "Exchanges seen on the pass-through; status class `none` where no answer came.",
        ("backend", "method", "status_class"),
    ),
    passthrough.BYTES: ("Bytes relayed: `in` from clients, `out` from the backend.", ("backend", "direction")),
    passthrough.OPAQUE: ("Connections relayed without being followed, such as upgrades.", ("backend",)),
}
_HISTOGRAMS = {
    DURATION: "Whole tool calls.",
    BACKEND: "Waiting for the backend.",
    PROJECTION: "Running projections.",
}


def registry_of(tallies: Tallies, current: Callable[[], Generation], last: Callable[[], Reload]) -> CollectorRegistry:
    """All metrics of one gateway, whichever of its processes counted them."""
    registry = CollectorRegistry()
    PlatformCollector(registry=registry)
    Processes(registry, tallies)
    Counted(registry, tallies)
    BackendStates(registry, tallies, lambda: current().contract.backends)
    CatalogSizes(registry, current)
    LastReload(registry, last)
    return registry


class Counted(Collector):
    """What all processes have counted, added up."""

    def __init__(self, registry: CollectorRegistry, tallies: Tallies) -> None:
        self._tallies = tallies
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        for name, (about, labels) in _COUNTERS.items():
            counter = CounterMetricFamily(name, about, labels=labels)
            for values, (count,) in self._tallies.total(name).items():
                counter.add_metric(values, count)
            yield counter
        for name, about in _HISTOGRAMS.items():
            histogram = HistogramMetricFamily(name, about, labels=["tool"])
            for values, (total, *counts) in self._tallies.total(name).items():
                bounds = [*map(floatToGoString, SECONDS), "+Inf"]
                histogram.add_metric(values, list(zip(bounds, accumulate(counts), strict=True)), total)
            yield histogram
        connections = GaugeMetricFamily(passthrough.CONNECTIONS, "Open client connections.", labels=["backend"])
        for values, (count,) in self._tallies.total(passthrough.CONNECTIONS).items():
            connections.add_metric(values, count)
        yield connections


class Processes(Collector):
    """The usual `process_*` metrics, over all processes of the gateway: sums, and the start of the first."""

    def __init__(self, registry: CollectorRegistry, tallies: Tallies) -> None:
        self._tallies = tallies
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for pid in self._tallies.pids():
            for family in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                known = found.setdefault(family.name, family)
                if known is not family:
                    known.samples = [_joined(*pair) for pair in zip(known.samples, family.samples, strict=True)]
        dead = sum(seconds for (seconds,) in self._tallies.total(CPU_OF_THE_DEAD).values())
        for family in found.values():
            if family.name == "process_cpu_seconds":
                family.samples = [sample._replace(value=sample.value + dead) for sample in family.samples]
            yield family


def _joined(one: Sample, other: Sample) -> Sample:
    start = one.name == "process_start_time_seconds"
    return one._replace(value=min(one.value, other.value) if start else one.value + other.value)


class LastReload(Collector):
    """Which contract is served, and how the last load ended."""

    def __init__(self, registry: CollectorRegistry, last: Callable[[], Reload]) -> None:
        self._last = last
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        last = self._last()
        info = GaugeMetricFamily("toolview_contract_info", "The contract being served.", labels=["digest"])
        info.add_metric([last.digest], 1)
        yield info
        name = "toolview_config_last_reload_successful"
        yield GaugeMetricFamily(name, "Whether the last load was accepted.", value=float(last.ok))
        name = "toolview_config_last_reload_success_timestamp_seconds"
        yield GaugeMetricFamily(name, "When a load was last accepted.", value=last.accepted_at)


class CatalogSizes(Collector):
    """What listing each tool costs, in bytes of its descriptor."""

    def __init__(self, registry: CollectorRegistry, current: Callable[[], Generation]) -> None:
        self._current = current
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        sizes = GaugeMetricFamily("toolview_tool_catalog_bytes", "What listing a tool costs.", labels=["tool", "view"])
        for tool, texts in self._current().described("mcp").items():
            sizes.add_metric([tool, "standard"], len(texts.standard))
            sizes.add_metric([tool, "compact"], len(texts.compact))
        yield sizes


class BackendStates(Collector):
    """What is so now, of each backend that is served: what its last health check said in whichever process made it,
    calls under way in all, and the most closed breaker of any."""

    def __init__(self, registry: CollectorRegistry, tallies: Tallies, backends: Callable[[], Iterable[str]]) -> None:
        self._tallies = tallies
        self._backends = backends
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        ups = GaugeMetricFamily("toolview_backend_up", "1 where the last health check was well.", labels=["backend"])
        calls = GaugeMetricFamily("toolview_calls_in_flight", "Tool calls at the backend now.", labels=["backend"])
        states = GaugeMetricFamily(
            "toolview_breaker_state", "0: calls pass. 1: the next one tries. 2: none passes.", labels=["backend"]
        )
        for backend in self._backends():
            asked, well = max((tuple(cells) for _, cells in self._of(HEALTH, backend)), default=(0.0, 0.0))
            if asked:
                ups.add_metric([backend], well)
            guards = [tuple(cells) for _, cells in self._of(GUARD, backend)]
            calls.add_metric([backend], sum(in_flight for in_flight, _ in guards))
            now = time.monotonic()
            levels = (BREAKER_STATES[breaker_state(opens_at, now).value] for _, opens_at in guards)
            states.add_metric([backend], max(levels, default=0))
        yield from (ups, calls, states)

    def _of(self, name: str, backend: str) -> Iterator[tuple[Key, Sequence[float]]]:
        return ((key, cells) for key, cells in self._tallies.rows(name) if key[1] == backend)


def exposition(registry: CollectorRegistry) -> tuple[bytes, Mapping[str, str]]:
    """The text that Prometheus scrapes, and its headers."""
    return generate_latest(registry), {"Content-Type": CONTENT_TYPE_LATEST}
