"""The pass-through beside nginx and haproxy before one backend, in interleaved rounds; alone where they are absent.

Every proxy has one worker, all on the first core; the backend and the client share the last. Ratios within one run are
the result: the absolute figures belong to the machine, and a machine with other work gives neither.
"""

from __future__ import annotations

import resource
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.load import client, press
from bench.proxies import Target, absent, pin_others, running, versions

SIZES = {"1 KB": 1024, "14 KB": 14 * 1024, "140 KB": 140 * 1024, "10 MB": 10 * 1024 * 1024}
_SETTLE = 1.0
_LONGEST_ROUND = 30
#: Seconds for which idle connections are watched; CPU time is counted in hundredths of one.
_WATCHED = 5.0


@dataclass(frozen=True)
class Effort:
    """How much to measure."""

    sizes: tuple[str, ...] = tuple(SIZES)
    callers: tuple[int, ...] = (1, 32, 128)
    rounds: int = 5
    seconds: int = 2
    idle: int = 5000
    busy: int = 50


QUICK = Effort(sizes=("1 KB", "140 KB"), callers=(1, 32), rounds=3, seconds=1, idle=200, busy=10)


@dataclass(frozen=True)
class Round:
    """What one target did in one round."""

    requests_per_second: float
    p50_us: float
    p99_us: float
    cpu_us_per_request: float


@dataclass(frozen=True)
class Figure:
    """The medians of all rounds of one target at one size and one number of callers."""

    target: str
    size: str
    callers: int
    medians: Round
    #: Requests per second as a multiple of the reference's: the median of the ratios of neighbouring rounds.
    of_reference: float
    #: Latency beyond that of the backend without a proxy.
    added_p50_us: float
    added_p99_us: float


def measure(effort: Effort) -> dict[str, Any]:
    """Run everything; plain values, ready to be written as JSON."""
    with (
        _many_descriptors(),
        tempfile.TemporaryDirectory() as name,
        running(Path(name), tuple(SIZES.values())) as targets,
    ):
        reference = "nginx" if "nginx" in targets else "direct"
        figures = [asdict(figure) for figure in _compare(list(targets.values()), reference, effort)]
        memory = {name: _memory(target, effort) for name, target in targets.items() if name != "direct"}
    return {
        "client": client(),
        "absent": absent(),
        "versions": versions(),
        "reference": reference,
        "idle_connections": effort.idle,
        "figures": figures,
        "memory": memory,
    }


def _memory(target: Target, effort: Effort) -> dict[str, float]:
    idle, share = _idle(target, effort.idle)
    return {
        "bytes_per_idle_connection": idle,
        "cpu_share_of_idle_connections": share,
        "bytes_per_busy_connection": _busy(target, effort.busy),
    }


def _compare(targets: Sequence[Target], reference: str, effort: Effort) -> Iterator[Figure]:
    for size in effort.sizes:
        for callers in effort.callers:
            rounds: dict[str, list[Round]] = {target.name: [] for target in targets}
            for _ in range(effort.rounds):
                for target in targets:
                    rounds[target.name].append(_round(target, SIZES[size], callers, effort.seconds))
            direct = _medians(rounds["direct"])
            for name, taken in rounds.items():
                middle = _medians(taken)
                pairs = zip(taken, rounds[reference], strict=True)
                yield Figure(
                    name,
                    size,
                    callers,
                    middle,
                    median(one.requests_per_second / other.requests_per_second for one, other in pairs),
                    middle.p50_us - direct.p50_us,
                    middle.p99_us - direct.p99_us,
                )


def _medians(rounds: Sequence[Round]) -> Round:
    return Round(*(median(values) for values in zip(*(vars(one).values() for one in rounds), strict=True)))


def _round(target: Target, size: int, callers: int, seconds: int) -> Round:
    before = target.cpu_seconds()
    load = press(target.port, size, callers, seconds, pin_others)
    spent = target.cpu_seconds() - before
    if not load.requests:  # 128 answers of 10 MB at once may take longer than a round
        if seconds > _LONGEST_ROUND:
            raise RuntimeError(f"{target.name} answered nothing in {seconds} seconds")
        return _round(target, size, callers, seconds * 4)
    return Round(load.requests_per_second, load.p50_us, load.p99_us, spent / load.requests * 1e6)


def _idle(target: Target, count: int) -> tuple[int, float]:
    """Memory of a connection that was used and lies idle, and the share of a core that all of them take."""
    before = target.resident_bytes()
    clients = [_asking(target.port, SIZES["1 KB"]) for _ in range(count)]
    for one in clients:
        if not one.recv(65536):
            raise ConnectionError(f"{target.name} closed an idle connection")
    each = (target.resident_bytes() - before) // count
    spent = target.cpu_seconds()
    time.sleep(_WATCHED)
    share = (target.cpu_seconds() - spent) / _WATCHED
    for one in clients:
        one.close()
    time.sleep(_SETTLE)
    return each, share


def _busy(target: Target, count: int) -> int:
    """Memory of a connection whose answer of 10 MB waits for a client that reads nothing."""
    before = target.resident_bytes()
    clients = [_asking(target.port, SIZES["10 MB"]) for _ in range(count)]
    time.sleep(_SETTLE)
    each = (target.resident_bytes() - before) // count
    for one in clients:
        one.close()
    time.sleep(_SETTLE)
    return each


def _asking(port: int, size: int) -> socket.socket:
    one = socket.create_connection(("127.0.0.1", port), 30)
    one.sendall(f"GET /{size} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
    return one


@contextmanager
def _many_descriptors() -> Iterator[None]:
    """Every process started from here may hold two descriptors for each of the idle connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 40_000)) if hard > 0 else 40_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def table(measured: dict[str, Any]) -> str:
    reference = measured["reference"]
    lines = []
    if measured["absent"]:
        lines.append(
            f"NOT INSTALLED: {', '.join(measured['absent'])}. Without nginx the backend is bench/blobs.py and ratios "
            "are to the direct connection; without wrk the client is bench/load.py, slower than what it measures."
        )
    lines.append("; ".join([f"pass-through, client {measured['client']}", *measured["versions"].values()]))
    lines.append(
        f"{'size':>7}{'callers':>9}  {'target':10}{'req/s':>9}{'of ' + reference:>11}{'p50 µs':>10}{'p99 µs':>10}"
        f"{'added p50':>11}{'added p99':>11}{'CPU µs/req':>12}"
    )
    for figure in measured["figures"]:
        middle = figure["medians"]
        lines.append(
            f"{figure['size']:>7}{figure['callers']:>9}  {figure['target']:10}{middle['requests_per_second']:>9,.0f}"
            f"{figure['of_reference']:>11.2f}{middle['p50_us']:>10,.0f}{middle['p99_us']:>10,.0f}"
            f"{figure['added_p50_us']:>11,.0f}{figure['added_p99_us']:>11,.0f}{middle['cpu_us_per_request']:>12,.0f}"
        )
    for name, cost in measured["memory"].items():
        lines.append(
            f"{name}: {cost['bytes_per_idle_connection']:,} bytes for each of {measured['idle_connections']:,} idle "
            f"connections, which take {cost['cpu_share_of_idle_connections']:.1%} of a core; "
            f"{cost['bytes_per_busy_connection']:,} bytes where the client does not read"
        )
    return "\n".join(lines)


_COLOURS = {"haproxy": "#8a8f98", "toolview": "#2b6cb0"}
_ROW, _UNIT, _LEFT = 18, 150, 230


def plot(measured: dict[str, Any]) -> str:
    """Requests per second as a multiple of the reference's: one bar for each proxy, size and number of callers."""
    reference = measured["reference"]
    bars = [figure for figure in measured["figures"] if figure["target"] in _COLOURS]
    height = 40 + _ROW * len(bars)
    widest = max(bar["of_reference"] for bar in bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + widest * _UNIT + 60:.0f}" height="{height}">',
        "<style>text { font: 12px sans-serif }</style>",
        f'<text x="10" y="18">requests per second, {reference} = 1 (the line)</text>',
    ]
    for row, bar in enumerate(bars):
        y, width = 30 + row * _ROW, bar["of_reference"] * _UNIT
        parts += [
            f'<text x="10" y="{y + 12}">{bar["size"]}, {bar["callers"]} callers, {bar["target"]}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{width:.0f}" height="14" fill="{_COLOURS[bar["target"]]}"/>',
            f'<text x="{_LEFT + 5 + width:.0f}" y="{y + 12}">{bar["of_reference"]:.2f}</text>',
        ]
    line = _LEFT + _UNIT
    return "\n".join([*parts, f'<line x1="{line}" x2="{line}" y1="26" y2="{height}" stroke="black"/></svg>']) + "\n"
