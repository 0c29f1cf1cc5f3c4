"""Folders of operators' functions, written for the tests; knows nothing of runners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.projection import Projection, import_python

CARDS = """
import asyncio, collections, datetime, enum, os, signal, sys, time
from pathlib import Path

STARTED = None

class Level(enum.IntEnum):
    HIGH = 3

Point = collections.namedtuple("Point", "x y")

def same(full, ctx):
    return full

def context(full, ctx):
    return {"input": ctx.input, "source": ctx.source}

def plus_one(full, ctx):
    return full + 1

def kinds(full, ctx):
    counted = collections.defaultdict(list, a=[1])
    return [collections.OrderedDict(b=2), counted, Point(1, 2), Level.HIGH, {"wide": (2 ** 70,)}]

def mutates(full, ctx):
    full["rows"].clear()
    ctx.input["limit"] = 0
    return full

def pid(full, ctx):
    return os.getpid()

def nothing(full, ctx):
    pass

def loops(full, ctx):
    Path(ctx.input["mark"]).write_text("started") if ctx.input else None
    while True:
        pass

def works(full, ctx):
    # 0.1 s of the processor, then how it is scheduled
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    return os.sched_getscheduler(0)

def blocks(full, ctx):
    signal.pause()

def eats_memory(full, ctx):
    return bytearray(1 << 40)

def dies(full, ctx):
    os._exit(3)

def crashes(full, ctx):
    os.kill(os.getpid(), signal.SIGSEGV)

def exits(full, ctx):
    sys.exit("bye")

def interrupts(full, ctx):
    raise KeyboardInterrupt

def raises(full, ctx):
    return full["id"]

def raises_unspeakable(full, ctx):
    class Silent(Exception):
        def __str__(self):
            raise ValueError
    raise Silent

def recurses(full, ctx):
    return recurses(full, ctx)

def a_coroutine(full, ctx):
    async def later():
        return {}
    return later()

def a_future(full, ctx):
    return asyncio.new_event_loop().create_future()

def a_set(full, ctx):
    return {"tags": {1}}

def a_date(full, ctx):
    return datetime.date(2024, 1, 1)

def a_nan(full, ctx):
    return [None, float("nan")]

def an_infinity(full, ctx):
    return float("inf")

def a_number_key(full, ctx):
    return {1: 2}

def a_generator(full, ctx):
    return (row for row in [])

def a_cycle(full, ctx):
    rows = []
    rows.append(rows)
    return rows

def a_lone_surrogate(full, ctx):
    return "\\ud800"

def deep(full, ctx):
    value = 1
    for _ in range(230):
        value = [value]
    return value

def too_large(full, ctx):
    return "x" * 200_000

def prints(full, ctx):
    print("to the log")
    os.write(1, b"\\0\\0\\0\\0\\0")
    return {"read": sys.stdin.read()}

def closes_everything(full, ctx):
    os.closerange(3, 100)
    return 1

def forges(full, ctx):
    for number in range(3, 20):
        try:
            os.write(number, b"\\xff" * 64)
        except OSError:
            pass
    return 1
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("projections")
    (path / "cards.py").write_text(CARDS)
    return path


@pytest.fixture(scope="session")
def card(folder: Path) -> Callable[[str], Projection]:
    def named(name: str) -> Projection:
        projection = import_python(f"cards:{name}", folder)
        assert isinstance(projection, Projection), projection
        return projection

    return named
