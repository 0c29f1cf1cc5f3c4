"""Prometheus metrics of tool calls, read off an `Outcome`; base units, and no label value that a caller can make."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric, Sample
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from gateway.backend.guard import breaker_state
from gateway.call.outcome import OK, Outcome
from gateway.generation import Generation, Reload
from gateway.processes.tally import Cells, Key, Tallies, Tally
from gateway.telemetry import passthrough

#: The most different paths that one tool's series may name; all further ones are counted under "other".
PATHS_PER_TOOL = 100

#: Rows of a tally that are states of a backend: `in flight, when its breaker opens`, and `when it was asked, well`.
GUARD = "guard"
HEALTH = "health"
#: Processor seconds of processes that are no more.
CPU_OF_THE_DEAD = "cpu_of_the_dead"

#: Values of `toolview_breaker_state`.
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_INDEX = re.compile(r"\[\d+\]")

_CALLS = "toolview_tool_calls"
_VIOLATIONS = "toolview_answer_violations"
_STRIPPED = "toolview_stripped_keys"
_DURATION = "toolview_tool_duration_seconds"
_BACKEND = "toolview_backend_duration_seconds"
_PROJECTION = "toolview_projection_duration_seconds"

#: Metrics that only grow, by name: what they say, and their labels.
_COUNTERS = {
    _CALLS: ("Tool calls by how they ended.", ("tool", "surface", "code")),
    "toolview_tool_full_bytes": ("Decoded JSON bytes of backend answers.", ("tool", "surface")),
    "toolview_tool_view_bytes": ("JSON bytes shown to callers.", ("tool", "surface")),
    _VIOLATIONS: ("Places where observed answers broke their declared output.", ("tool", "path")),
    _STRIPPED: ("Keys beyond a declared schema that were left out.", ("tool", "path")),
    passthrough.REQUESTS: (
        "Exchanges seen on the pass-through; status class `none` where no answer came.",
        ("backend", "method", "status_class"),
    ),
    passthrough.BYTES: ("Bytes relayed: `in` from clients, `out` from the backend.", ("backend", "direction")),
    passthrough.OPAQUE: ("Connections relayed without being followed, such as upgrades.", ("backend",)),
}
#: The sum, a bucket for each bound, and one for what is beyond them.
_HISTOGRAM_CELLS = 2 + len(_SECONDS)
_HISTOGRAMS = {
    _DURATION: "Whole tool calls.",
    _BACKEND: "Waiting for the backend.",
    _PROJECTION: "Running projections.",
}


@dataclass(slots=True)
class _ToolSeries:
    """The rows that one tool on one surface writes to, looked up once. Of a duration: its sum, then its buckets."""

    full: Cells
    view: Cells
    duration: Cells
    backend: Cells
    projection: Cells
    codes: dict[str, Cells] = field(default_factory=dict)


class ToolMetrics:
    """Counts every outcome once. Bytes are those of successes only, as `surfaces.md` of the design settles it.

    `full_bytes`: the backend's JSON after its content coding; `view_bytes`: the JSON that the caller got. Both are
    counters of what was measured; savings are their difference, which may be negative, and are left to queries.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._series: dict[tuple[str, str], _ToolSeries] = {}
        self._paths: dict[str, set[str]] = {}

    def observe(self, outcome: Outcome) -> None:
        """Count one ended call, at once: whoever got its answer finds it counted, even if this process dies now."""
        key = (outcome.tool, outcome.call.surface)
        series = self._series.get(key) or self._new_series(key)
        code = outcome.code
        calls = series.codes.get(code)
        if calls is None:
            calls = series.codes[code] = self._tally.cells((_CALLS, *key, code))
        calls[0] += 1
        _note(series.duration, outcome.duration)
        if code == OK:
            series.full[0] += outcome.full_bytes
            series.view[0] += outcome.view_bytes
        if outcome.backend_seconds is not None:
            _note(series.backend, outcome.backend_seconds)
        if outcome.projection_seconds is not None:
            _note(series.projection, outcome.projection_seconds)
        if outcome.violations or outcome.stripped:
            self._count_paths(outcome)

    def _count_paths(self, outcome: Outcome) -> None:
        tool = outcome.tool
        for path in outcome.violations:
            self._tally.cells((_VIOLATIONS, tool, self._bounded(tool, path)))[0] += 1
        for path in outcome.stripped:
            self._tally.cells((_STRIPPED, tool, self._bounded(tool, _INDEX.sub("[]", path))))[0] += 1

    def _new_series(self, key: tuple[str, str]) -> _ToolSeries:
        cells, tool = self._tally.cells, key[0]
        series = self._series[key] = _ToolSeries(
            cells(("toolview_tool_full_bytes", *key)),
            cells(("toolview_tool_view_bytes", *key)),
            cells((_DURATION, tool), _HISTOGRAM_CELLS),
            cells((_BACKEND, tool), _HISTOGRAM_CELLS),
            cells((_PROJECTION, tool), _HISTOGRAM_CELLS),
        )
        return series

    def _bounded(self, tool: str, path: str) -> str:
        known = self._paths.setdefault(tool, set())
        if path not in known:
            if len(known) >= PATHS_PER_TOOL or len(path) > 200:
                return "other"
            known.add(path)
        return path


def _note(cells: Cells, seconds: float) -> None:
    cells[0] += seconds
    cells[1 + bisect_left(_SECONDS, seconds)] += 1


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
                bounds = [*map(floatToGoString, _SECONDS), "+Inf"]
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
