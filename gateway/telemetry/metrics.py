"""Prometheus metrics of tool calls, read off an `Outcome`; base units, and no label value that a caller can make."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from gateway.call.outcome import OK, Outcome
from gateway.generation import Generation, Reload

#: The most different paths that one tool's series may name; all further ones are counted under "other".
PATHS_PER_TOOL = 100

#: Values of `toolview_breaker_state`.
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: Calls that are counted together.
_BATCH = 256
_INDEX = re.compile(r"\[\d+\]")


@dataclass(slots=True)
class _ToolSeries:
    """The children that one tool on one surface writes to, looked up once: `labels()` costs more than `inc()`."""

    full: Any
    view: Any
    duration: Any
    backend: Any
    projection: Any
    codes: dict[str, Any] = field(default_factory=dict)


class ToolMetrics(Collector):
    """Counts every outcome once. Bytes are those of successes only, as `surfaces.md` of the design settles it.

    `full_bytes`: the backend's JSON after its content coding; `view_bytes`: the JSON that the caller got. Both are
    counters of what was measured; savings are their difference, which may be negative, and are left to queries.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._noted: list[tuple[str, str, str, float, int, int, float | None, float | None]] = []
        registry.register(self)  # before the series below
        self._calls = Counter(
            "toolview_tool_calls", "Tool calls by how they ended.", ["tool", "surface", "code"], registry=registry
        )
        by_surface = ["tool", "surface"]
        self._full = Counter(
            "toolview_tool_full_bytes", "Decoded JSON bytes of backend answers.", by_surface, registry=registry
        )
        self._view = Counter("toolview_tool_view_bytes", "JSON bytes shown to callers.", by_surface, registry=registry)
        self._duration = self._histogram("toolview_tool_duration_seconds", "Whole tool calls.", registry)
        self._backend = self._histogram("toolview_backend_duration_seconds", "Waiting for the backend.", registry)
        self._projection = self._histogram("toolview_projection_duration_seconds", "Running projections.", registry)
        self._violations = Counter(
            "toolview_answer_violations",
            "Places where observed answers broke their declared output.",
            ["tool", "path"],
            registry=registry,
        )
        self._stripped = Counter(
            "toolview_stripped_keys",
            "Keys beyond a declared schema that were left out.",
            ["tool", "path"],
            registry=registry,
        )
        self._series: dict[tuple[str, str], _ToolSeries] = {}
        self._paths: dict[str, set[str]] = {}

    def observe(self, outcome: Outcome) -> None:
        """Note one ended call. It is counted in batches, which costs a third of counting each: before every scrape,
        and whenever enough have come together."""
        self._noted.append(
            (
                outcome.tool,
                outcome.call.surface,
                outcome.code,
                outcome.duration,
                outcome.full_bytes,
                outcome.view_bytes,
                outcome.backend_seconds,
                outcome.projection_seconds,
            )
        )
        if outcome.violations or outcome.stripped:
            self._count_paths(outcome)
        if len(self._noted) >= _BATCH:
            self.collect()

    def collect(self) -> Iterable[Metric]:
        """Count what was noted. The registry asks this collector first, so that what the others say is whole."""
        noted, self._noted = self._noted, []
        for tool, surface, code, duration, full, view, backend, projection in noted:
            series = self._series.get((tool, surface)) or self._new_series((tool, surface))
            child = series.codes.get(code)
            if child is None:
                child = series.codes[code] = self._calls.labels(tool, surface, code)
            child.inc()
            series.duration.observe(duration)
            if code == OK:
                series.full.inc(full)
                series.view.inc(view)
            if backend is not None:
                series.backend.observe(backend)
            if projection is not None:
                series.projection.observe(projection)
        return ()

    def _count_paths(self, outcome: Outcome) -> None:
        for path in outcome.violations:
            self._violations.labels(outcome.tool, self._bounded(outcome.tool, path)).inc()
        for path in outcome.stripped:
            self._stripped.labels(outcome.tool, self._bounded(outcome.tool, _INDEX.sub("[]", path))).inc()

    def _new_series(self, key: tuple[str, str]) -> _ToolSeries:
        tool = key[0]
        series = self._series[key] = _ToolSeries(
            self._full.labels(*key),
            self._view.labels(*key),
            self._duration.labels(tool),
            self._backend.labels(tool),
            self._projection.labels(tool),
        )
        return series

    def _bounded(self, tool: str, path: str) -> str:
        known = self._paths.setdefault(tool, set())
        if path not in known:
            if len(known) >= PATHS_PER_TOOL or len(path) > 200:
                return "other"
            known.add(path)
        return path

    @staticmethod
    def _histogram(name: str, about: str, registry: CollectorRegistry) -> Histogram:
        return Histogram(name, about, ["tool"], registry=registry, buckets=_SECONDS)


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
    """What is so now, asked at each scrape: calls under way and breakers, by backend."""

    def __init__(
        self,
        registry: CollectorRegistry,
        up: Callable[[], Mapping[str, bool | None]],
        in_flight: Callable[[], Mapping[str, int]],
        breakers: Callable[[], Mapping[str, str]],
    ) -> None:
        self._up = up
        self._in_flight = in_flight
        self._breakers = breakers
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        ups = GaugeMetricFamily("toolview_backend_up", "1 where the last health check was well.", labels=["backend"])
        for backend, up in self._up().items():
            if up is not None:
                ups.add_metric([backend], float(up))
        yield ups
        calls = GaugeMetricFamily("toolview_calls_in_flight", "Tool calls at the backend now.", labels=["backend"])
        for backend, count in self._in_flight().items():
            calls.add_metric([backend], count)
        yield calls
        states = GaugeMetricFamily(
            "toolview_breaker_state", "0: calls pass. 1: the next one tries. 2: none passes.", labels=["backend"]
        )
        for backend, state in self._breakers().items():
            states.add_metric([backend], BREAKER_STATES[state])
        yield states


def exposition(registry: CollectorRegistry) -> tuple[bytes, Mapping[str, str]]:
    """The text that Prometheus scrapes, and its headers."""
    return generate_latest(registry), {"Content-Type": CONTENT_TYPE_LATEST}
