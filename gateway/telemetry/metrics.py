"""Counts tool calls, read off an `Outcome`: base units, no label value that a caller can make. Knows no Prometheus."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field

from gateway.call.outcome import OK, Outcome
from gateway.processes.tally import Cells, Tally

#: The most different paths that one tool's series may name; all further ones are counted under "other".
PATHS_PER_TOOL = 100

#: Rows of a tally that are states of a backend: `in flight, when its breaker opens`, and `when it was asked, well`.
GUARD = "guard"
HEALTH = "health"

#: Upper bounds of the buckets of durations.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_INDEX = re.compile(r"\[\d+\]")

#: Names of what is counted; the exposition says what each is.
CALLS = "toolview_tool_calls"
FULL_BYTES = "toolview_tool_full_bytes"
VIEW_BYTES = "toolview_tool_view_bytes"
VIOLATIONS = "toolview_answer_violations"
STRIPPED = "toolview_stripped_keys"
DURATION = "toolview_tool_duration_seconds"
BACKEND = "toolview_backend_duration_seconds"
PROJECTION = "toolview_projection_duration_seconds"

#: Cells of a duration: the sum, one for each bound, and one for what is beyond them.
_HISTOGRAM_CELLS = 2 + len(SECONDS)


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
            calls = series.codes[code] = self._tally.cells((CALLS, *key, code))
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
            self._tally.cells((VIOLATIONS, tool, self._bounded(tool, path)))[0] += 1
        for path in outcome.stripped:
            self._tally.cells((STRIPPED, tool, self._bounded(tool, _INDEX.sub("[]", path))))[0] += 1

    def _new_series(self, key: tuple[str, str]) -> _ToolSeries:
        cells, tool = self._tally.cells, key[0]
        series = self._series[key] = _ToolSeries(
            cells((FULL_BYTES, *key)),
            cells((VIEW_BYTES, *key)),
            cells((DURATION, tool), _HISTOGRAM_CELLS),
            cells((BACKEND, tool), _HISTOGRAM_CELLS),
            cells((PROJECTION, tool), _HISTOGRAM_CELLS),
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
    cells[1 + bisect_left(SECONDS, seconds)] += 1
