"""Projections in real worker processes: every way to end, and that no call ends another's."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from gateway.json_text import encode
from gateway.projection import Projected, Projection, ProjectionFault, Reason, compile_jmespath, import_python
from gateway.projection import runner as runner_module
from gateway.projection.process import start_worker
from gateway.projection.runner import ProjectionRunner

Card = Callable[[str], Projection]
#: Long enough for any call here that is meant to end, however slow the machine.
AMPLE = 30.0


Make = Callable[..., ProjectionRunner]

# One loop for all, so that most tests share one runner: a process takes a tenth of a second to start.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def make() -> AsyncIterator[Make]:
    made: list[ProjectionRunner] = []

    def one(limit_seconds: float, **settings: Any) -> ProjectionRunner:
        made.append(ProjectionRunner(limit_seconds, **settings))
        return made[-1]

    yield one
    for runner in made:
        await runner.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[ProjectionRunner]:
    runner = ProjectionRunner(AMPLE, output_bytes=100_000)
    yield runner
    await runner.close()


async def run(runner: ProjectionRunner, projection: Projection, full: Any = None, input: Any = None) -> Any:
    return await runner.run(projection, None, full, {} if input is None else input, "mcp")


async def shown(runner: ProjectionRunner, projection: Projection, full: Any = None) -> Any:
    ended = await run(runner, projection, full)
    assert isinstance(ended, Projected), ended
    return ended.value


# -- what is shown


@pytest.mark.parametrize(
    "value",
    [None, True, [], {}, "", "é\u0000😀", 2**200, -(2**63) - 1, 1.5, 1e300, {"z": 1, "a": [None]}, [[]]],
    ids=repr,
)
async def test_values_cross_to_a_worker_and_back_unchanged(runner: ProjectionRunner, card: Card, value: Any) -> None:
    back = await shown(runner, card("same"), value)
    assert encode(back) == encode(value)


async def test_the_text_at_hand_is_what_a_worker_reads(runner: ProjectionRunner, card: Card) -> None:
    assert await runner.run(card("same"), b'{"n":12345678901234567890123}', {}, {}, "mcp") == Projected(
        {"n": 12345678901234567890123}
    )


async def test_the_context_has_the_input_and_the_source(runner: ProjectionRunner, card: Card) -> None:
    ended = await run(runner, card("context"), {}, {"limit": 2**70})
    assert ended == Projected({"input": {"limit": 2**70}, "source": "mcp"})


async def test_integers_stay_exact_in_sums(runner: ProjectionRunner, card: Card) -> None:
    assert await shown(runner, card("plus_one"), 2**64) == 2**64 + 1


async def test_kinds_of_dict_list_and_number_are_shown_as_what_they_are_kinds_of(
    runner: ProjectionRunner, card: Card
) -> None:
    assert await shown(runner, card("kinds")) == [{"b": 2}, {"a": [1]}, [1, 2], 3, {"wide": [2**70]}]


async def test_a_projection_changes_its_own_copy_only(runner: ProjectionRunner, card: Card) -> None:
    full, input = {"rows": [1]}, {"limit": 5}
    assert await run(runner, card("mutates"), full, input) == Projected({"rows": []})
    assert (full, input) == ({"rows": [1]}, {"limit": 5})


async def test_returning_nothing_is_null(runner: ProjectionRunner, card: Card) -> None:
    assert await run(runner, card("nothing")) == Projected(None)


async def test_what_a_projection_prints_and_reads_is_not_the_gateways(
    make: Make, card: Card, capfd: pytest.CaptureFixture[str]
) -> None:
    runner = make(AMPLE)
    assert await shown(runner, card("prints")) == {"read": ""}
    assert await shown(runner, card("same"), 1) == 1
    await runner.close()
    out, error = capfd.readouterr()
    assert out == ""
    assert "to the log" in error


# -- faults are values

FAULTS = [
    ("raises", Reason.RAISED, "KeyError: 'id'"),
    ("raises_unspeakable", Reason.RAISED, "Silent, whose text cannot be made"),
    ("exits", Reason.RAISED, "SystemExit: bye"),
    ("interrupts", Reason.RAISED, "KeyboardInterrupt: "),
    ("recurses", Reason.RAISED, "RecursionError: maximum recursion depth exceeded"),
    ("a_coroutine", Reason.AWAITABLE, "it returned an awaitable (coroutine); a projection is a plain `def`"),
    ("a_future", Reason.AWAITABLE, "it returned an awaitable (Future); a projection is a plain `def`"),
    ("a_set", Reason.NOT_JSON, "it returned what is not JSON: Type is not JSON serializable: set"),
    ("a_date", Reason.NOT_JSON, "it returned what is not JSON: Type is not JSON serializable: datetime.date"),
    ("a_nan", Reason.NOT_JSON, "it returned what is not JSON: NaN and Infinity are not JSON"),
    ("an_infinity", Reason.NOT_JSON, "it returned what is not JSON: NaN and Infinity are not JSON"),
    ("a_number_key", Reason.NOT_JSON, "it returned what is not JSON: Dict key must be str"),
    ("a_generator", Reason.NOT_JSON, "it returned what is not JSON: Type is not JSON serializable: generator"),
    ("a_cycle", Reason.NOT_JSON, "it returned what is not JSON: it is nested too deeply or holds itself"),
    (
        "a_lone_surrogate",
        Reason.NOT_JSON,
        "it returned what is not JSON: str is not valid UTF-8: surrogates not allowed",
    ),
    ("too_large", Reason.TOO_LARGE, "it returned 200002 bytes of JSON, which is over the bound"),
]


@pytest.mark.parametrize(("name", "reason", "text"), FAULTS)
async def test_a_fault_is_a_value_and_its_worker_goes_on(
    runner: ProjectionRunner, card: Card, name: str, reason: Reason, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pid = await shown(runner, card("pid"))
    fault = await run(runner, card(name), {})
    assert isinstance(fault, ProjectionFault), fault
    assert (fault.reason, fault.text[: len(text)]) == (reason, text)
    assert await shown(runner, card("pid")) == pid
    assert "never awaited" not in capfd.readouterr().err


async def test_what_is_deeper_than_the_gateway_reads_is_a_fault(runner: ProjectionRunner, card: Card) -> None:
    fault = await run(runner, card("deep"))
    assert isinstance(fault, ProjectionFault)
    assert fault.reason is Reason.NOT_JSON


async def test_the_trace_of_what_was_raised_is_kept_for_the_log(runner: ProjectionRunner, card: Card) -> None:
    fault = await run(runner, card("raises"), {})
    assert isinstance(fault, ProjectionFault)
    assert "cards.py" in fault.trace
    assert "worker.py" not in fault.trace


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dies", Reason.DIED),
        ("crashes", Reason.DIED),
        ("closes_everything", Reason.DIED),
        ("forges", Reason.DIED),
        ("eats_memory", Reason.OUT_OF_MEMORY),
    ],
)
async def test_a_worker_that_is_lost_fails_one_call_and_is_replaced(
    runner: ProjectionRunner, card: Card, name: str, reason: Reason
) -> None:
    pid = await shown(runner, card("pid"))
    fault = await run(runner, card(name))
    assert isinstance(fault, ProjectionFault), fault
    assert fault.reason is reason
    assert await shown(runner, card("pid")) != pid


@pytest.mark.parametrize("name", ["loops", "blocks"])
async def test_a_projection_that_outruns_its_limit_is_ended(make: Make, card: Card, name: str) -> None:
    runner = make(0.2, wait_seconds=AMPLE)
    await runner.start([card(name)])
    fault = await run(runner, card(name))
    assert fault == ProjectionFault(Reason.TIMEOUT, "it did not return within 0.2 seconds")


async def test_a_module_that_no_longer_imports_is_a_fault(runner: ProjectionRunner, tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('used').mkdir()\ndef card(full, ctx): return 1\n"
    )
    projection = import_python("once:card", tmp_path)
    assert isinstance(projection, Projection)
    fault = await run(runner, projection)
    assert isinstance(fault, ProjectionFault)
    assert fault.reason is Reason.NOT_LOADED
    assert fault.text.startswith("FileExistsError")


async def test_no_worker_at_all_is_a_fault(make: Make, card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = make(AMPLE)
    same = card("same")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    fault = await run(runner, same)
    await runner.close()
    assert fault == ProjectionFault(Reason.DIED, "no worker can be started: No such file or directory")


# -- no call stops another


async def test_a_runaway_projection_stops_no_other_call(make: Make, card: Card, tmp_path: Path) -> None:
    runner = make(AMPLE)
    runaway = asyncio.create_task(run(runner, card("loops")))
    more = [asyncio.create_task(run(runner, card("loops"))) for _ in range(5)]
    names = compile_jmespath("full.rows[].name")
    assert isinstance(names, Projection)
    for number in range(50):
        assert await shown(runner, names, {"rows": [{"name": number}]}) == [number]
        assert await shown(runner, card("same"), number) == number
    assert not any(task.done() for task in [runaway, *more])
    await runner.close()
    assert {(await task).reason for task in [runaway, *more]} == {Reason.DIED}


async def test_more_calls_than_workers_wait_their_turn(runner: ProjectionRunner, card: Card) -> None:
    ended = await asyncio.gather(*(run(runner, card("same"), number) for number in range(40)))
    assert ended == [Projected(number) for number in range(40)]
    assert len(_workers(runner)) <= 2


async def test_a_call_that_waits_too_long_is_told_so(make: Make, card: Card) -> None:
    runner = make(AMPLE, workers=1, wait_seconds=0.05)
    await runner.start([card("loops")])
    runaway = asyncio.create_task(run(runner, card("loops")))
    await asyncio.sleep(0)  # it takes the worker
    fault = await run(runner, card("same"))
    assert fault == ProjectionFault(Reason.BUSY, "no worker came free in 0.05 seconds")
    await runner.close()
    assert (await runaway).reason is Reason.DIED


@pytest.fixture
def patient_pens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a pen however busy the machine of the tests is."""
    monkeypatch.setattr(runner_module, "LEAST_PEN_SECONDS", AMPLE)


@pytest.mark.usefixtures("patient_pens")
@pytest.mark.parametrize(("name", "reason"), [("loops", Reason.TIMEOUT), ("eats_memory", Reason.OUT_OF_MEMORY)])
async def test_what_ran_away_runs_in_one_pen_and_takes_no_worker(
    make: Make, card: Card, name: str, reason: Reason
) -> None:
    runner = make(0.2, wait_seconds=AMPLE)
    runaway = card(name)
    await runner.start([runaway, card("pid")])
    assert (await run(runner, runaway)).reason is reason
    pids = {await shown(runner, card("pid")) for _ in range(2)}
    calls = [asyncio.create_task(run(runner, runaway)) for _ in range(3)]
    while pending := [call for call in calls if not call.done()]:
        assert len(runner._pens) <= 1
        assert not runner._busy
        pids.add(await shown(runner, card("pid")))
        await asyncio.wait(pending, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
    assert {call.result().reason for call in calls} == {reason}
    assert len(pids) <= 2  # the worker that was there, and the one in place of that which was lost
    await runner.close()
    assert not runner._pens
    assert runner._pens_taken == 0


@pytest.mark.usefixtures("patient_pens")
async def test_what_ends_in_time_again_leaves_its_pen(make: Make, card: Card) -> None:
    runner = make(AMPLE)
    await runner.start([card("pid")])
    runner._penned[card("pid")] = float("inf")
    workers = {worker.pid for worker in _workers(runner)}
    assert await shown(runner, card("pid")) not in workers
    assert await shown(runner, card("pid")) in {worker.pid for worker in _workers(runner)}


async def test_what_ran_away_is_tried_among_the_others_after_a_while(make: Make, card: Card) -> None:
    runner = make(AMPLE)
    await runner.start([card("pid")])
    runner._penned[card("pid")] = 0.0
    assert await shown(runner, card("pid")) in {worker.pid for worker in _workers(runner)}


@pytest.mark.usefixtures("patient_pens")
async def test_a_pen_that_came_too_late_for_its_call_is_the_next_ones(
    make: Make, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    async def counted(*how: Any, **options: Any) -> Any:
        started.append(options)
        return await start_worker(*how, **options)

    monkeypatch.setattr(runner_module, "start_worker", counted)
    runner = make(AMPLE, wait_seconds=0.0)
    pid = card("pid")
    runner._penned[pid] = float("inf")
    assert (await run(runner, pid)).reason is Reason.BUSY
    runner._wait_seconds = AMPLE
    assert isinstance(await run(runner, pid), Projected)
    assert started == [{"aside": True}]
    assert not runner._pens
    assert runner._pens_taken == 0


@pytest.mark.usefixtures("patient_pens")
async def test_a_cancelled_call_leaves_no_pen(make: Make, card: Card) -> None:
    children = _children()
    runner = make(AMPLE)
    await runner.start([card("pid")])
    runner._penned[card("pid")] = float("inf")
    call = asyncio.create_task(run(runner, card("pid")))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    while runner._pens_taken:
        await asyncio.wait(set(runner._tasks))
    while len(_children() - children) > 2:
        await asyncio.wait(set(runner._tasks))
    assert not runner._held


@pytest.mark.skipif(sys.platform != "linux", reason="classes of scheduling and clocks of processes are Linux's")
async def test_a_long_run_gives_way_and_what_ends_well_is_allowed_as_much(
    make: Make, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make(AMPLE)
    works = card("works")
    await runner.start([works])
    monkeypatch.setattr(runner_module, "PATIENCE_SECONDS", 0.01)
    workers = {worker.pid for worker in _workers(runner)}
    assert await shown(runner, works) == os.SCHED_IDLE
    assert runner._patience[works] > 0.02
    assert await shown(runner, works) == os.SCHED_OTHER
    while len(runner._idle) < 2:
        await asyncio.wait(set(runner._tasks))
    assert {worker.pid for worker in _workers(runner)} != workers
    assert {os.sched_getscheduler(worker.pid) for worker in _workers(runner)} == {os.SCHED_OTHER}
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    assert all(worker.nice() > niceness for worker in _workers(runner))


async def test_a_cancelled_call_frees_its_worker(make: Make, card: Card, tmp_path: Path) -> None:
    runner = make(0.3, workers=1, wait_seconds=AMPLE)
    mark = tmp_path / "started"
    os.mkfifo(mark)
    await runner.start([card("loops")])
    call = asyncio.create_task(run(runner, card("loops"), {}, {"mark": str(mark)}))
    assert await asyncio.to_thread(mark.read_text) == "started"
    waiting = asyncio.create_task(run(runner, card("same"), 1))
    gone = asyncio.create_task(run(runner, card("same"), 2))
    await asyncio.sleep(0)
    call.cancel()
    gone.cancel()
    ended = await asyncio.gather(call, waiting, gone, return_exceptions=True)
    assert [type(end) for end in ended] == [asyncio.CancelledError, Projected, asyncio.CancelledError]
    assert not runner._waiting
    assert not runner._held
    await runner.close()


async def test_a_call_that_is_cancelled_when_it_has_just_ended_keeps_its_worker(
    runner: ProjectionRunner, card: Card
) -> None:
    pid = await shown(runner, card("pid"))
    for turns in range(12):  # the cancellation meets the call in each of its states
        call = asyncio.create_task(run(runner, card("same"), 1))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
    assert await shown(runner, card("pid")) == pid
    assert not runner._held


# -- JMESPath, here or in a worker


EXPRESSIONS = [
    ("full.rows[].{id: id, label: join('-', [name, source])}", [1, 2]),
    ("sort_by(full.rows, &id)[-1]", [1, 2]),
    ("sort_by(full.rows, &id)", [1, "x"]),
    ("[&full]", []),
    ("to_number('nan')", []),
    ("sum(full.rows[].id)", [2**70, 1]),
]


@pytest.mark.parametrize(("expression", "ids"), EXPRESSIONS)
async def test_jmespath_ends_alike_here_and_in_a_worker(
    runner: ProjectionRunner, expression: str, ids: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    projection = compile_jmespath(expression)
    assert isinstance(projection, Projection)
    full = {"rows": [{"id": id, "name": "a"} for id in ids]}
    here = await run(runner, projection, full)
    monkeypatch.setattr(runner_module, "INLINE_WORK", -1)
    there = await run(runner, projection, full)
    if isinstance(here, Projected):
        assert there == here
    else:
        assert there.reason is here.reason


async def test_an_expression_that_explodes_is_ended(make: Make, card: Card) -> None:
    runner = make(0.2, wait_seconds=AMPLE)
    projection = compile_jmespath("full" + " | [@, @][]" * 60)
    assert isinstance(projection, Projection)
    fault = await run(runner, projection, [1])
    await runner.close()
    assert isinstance(fault, ProjectionFault)
    assert fault.reason in (Reason.TIMEOUT, Reason.OUT_OF_MEMORY)


# -- processes


async def test_jmespath_alone_starts_no_process(make: Make) -> None:
    runner = make(AMPLE)
    projection = compile_jmespath("full.id")
    assert isinstance(projection, Projection)
    await runner.start([projection])
    assert await shown(runner, projection, {"id": 1}) == 1
    assert not _workers(runner)


async def test_calls_in_flight_finish_on_the_old_code(make: Make, tmp_path: Path) -> None:
    runner = make(AMPLE)
    (tmp_path / "words.py").write_text("WORD = 'old'")
    (tmp_path / "cards.py").write_text("def card(full, ctx):\n    import words\n    return words.WORD")
    old = import_python("cards:card", tmp_path)
    (tmp_path / "words.py").write_text("WORD = 'new'")
    new = import_python("cards:card", tmp_path)
    (tmp_path / "words.py").write_text("not Python")
    (tmp_path / "cards.py").unlink()
    assert isinstance(old, Projection)
    assert isinstance(new, Projection)
    await runner.start([old])
    ended = await asyncio.gather(*(shown(runner, projection) for projection in [old, new] * 4))
    assert ended == ["old", "new"] * 4
    await runner.start([new])
    assert await shown(runner, old) == "old"
    assert await shown(runner, new) == "new"
    assert len(_workers(runner)) <= 2


async def test_a_worker_killed_from_outside_is_replaced(make: Make, card: Card) -> None:
    runner = make(AMPLE)
    await runner.start([card("pid")])
    for worker in _workers(runner):
        worker.send_signal(signal.SIGKILL)
    ends = [await run(runner, card("pid")) for _ in range(3)]
    assert isinstance(ends[-1], Projected), ends


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.long)])
async def test_kills_leave_neither_processes_nor_files(make: Make, card: Card, kills: int) -> None:
    children = _children()
    runner = make(AMPLE)
    await runner.start([card("dies")])
    await shown(runner, card("pid"))
    before = _open_files()
    for _ in range(kills):
        assert (await run(runner, card("dies"))).reason is Reason.DIED
    while len(runner._idle) < 2 or runner._tasks:
        await asyncio.wait(set(runner._tasks))
    assert _open_files() <= before + 2
    assert len(_children() - children) == 2
    await runner.close()
    assert _children() <= children


async def test_closing_ends_workers_that_are_still_starting(make: Make, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    os.mkfifo(mark)
    (tmp_path / "slow.py").write_text(
        "import signal, sys\n"
        "def card(full, ctx): return 1\n"
        "if 'describe' not in sys.argv:\n"
        f"    open({str(mark)!r}, 'w').close()\n"
        "    signal.pause()\n"
    )
    projection = import_python("slow:card", tmp_path)
    assert isinstance(projection, Projection)
    children = _children()
    runner = make(AMPLE)
    call = asyncio.create_task(run(runner, projection))
    await asyncio.to_thread(mark.read_text)
    await runner.close()
    assert (await call).reason is Reason.DIED
    assert _children() <= children


async def test_a_closed_runner_answers_with_a_fault(make: Make, card: Card) -> None:
    runner = make(AMPLE)
    await runner.close()
    assert await run(runner, card("same")) == ProjectionFault(Reason.DIED, "the gateway is closing")


ORPHANS = """
import asyncio, os, signal, sys
from pathlib import Path
from gateway.projection import import_python
from gateway.projection.runner import ProjectionRunner

async def main():
    runner = ProjectionRunner(0.1)
    loops, pid = (import_python("cards:" + name, Path(sys.argv[1])) for name in ("loops", "pid"))
    await runner.start([loops, pid])
    mark = Path(sys.argv[2])
    os.mkfifo(mark)
    asyncio.ensure_future(runner.run(loops, None, {}, {"mark": str(mark)}, "mcp"))
    await asyncio.to_thread(mark.read_text)
    print(*[worker.pid for worker in [*runner._busy, *runner._idle]], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_workers_end_with_a_gateway_that_was_killed(folder: Path, tmp_path: Path) -> None:
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ORPHANS, str(folder), str(tmp_path / "mark"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await gateway.communicate()
    left = []
    for pid in map(int, out.split()):
        try:
            left.append(psutil.Process(pid))
        except psutil.NoSuchProcess:
            continue
    assert len(out.split()) == 2
    _, alive = await asyncio.to_thread(psutil.wait_procs, left, 20)
    assert not alive


def _workers(runner: ProjectionRunner) -> list[psutil.Process]:
    return [psutil.Process(worker.pid) for worker in [*runner._idle, *runner._busy]]


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
