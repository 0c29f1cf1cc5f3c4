"""Numbers that processes count side by side: added up exactly, kept when their writer is killed, never falling."""

from __future__ import annotations

import os
import signal

import pytest

from gateway.processes import tally as room
from gateway.processes.tally import Tallies


def fork(work: object) -> int:
    """A child that does the work and is then killed, as hard as can be."""
    pid = os.fork()
    if pid == 0:
        try:
            work()  # type: ignore[operator]  # a closure of a test
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    return pid


def test_what_killed_processes_counted_adds_up() -> None:
    tallies = Tallies(3)
    for part in range(3):

        def work(part: int = part) -> None:
            tally = tallies.own(part)
            for _ in range(1000):
                tally.cells(("calls", "a"))[0] += 1
            tally.cells(("calls", f"only {part}"), 2)[1] += 0.5

        fork(work)
    assert tallies.total("calls") == {
        ("a",): [3000.0],
        **{(f"only {part}",): [0.0, 0.5] for part in range(3)},
    }


def test_whoever_takes_a_part_over_goes_on_from_its_numbers_but_not_from_its_state() -> None:
    tallies = Tallies(2)
    first = tallies.own(1)
    first.cells(("calls",))[0] += 7
    first.cells(("open",), state=True)[0] += 3
    assert tallies.total("open") == {(): [3.0]}
    second = tallies.own(1)
    second.cells(("calls",))[0] += 1
    assert (tallies.total("calls"), tallies.total("open")) == ({(): [8.0]}, {(): [0.0]})


def test_a_buried_process_has_no_state_and_no_number() -> None:
    tallies = Tallies(2)
    mine = tallies.own(0)
    tallies.own(1, 12345).cells(("open",), state=True)[0] = 1
    assert tallies.pids() == [os.getpid(), 12345]
    tallies.bury(1)
    assert (tallies.pids(), tallies.is_free(1), tallies.is_free(0)) == ([os.getpid()], True, False)
    assert tallies.total("open") == {(): [0.0]}
    mine.cells(("open",), state=True)[0] = 2
    assert tallies.total("open") == {(): [2.0]}


def test_rows_that_come_after_a_look_are_seen_by_the_next() -> None:
    tallies = Tallies(1)
    tally = tallies.own(0)
    assert tallies.total("calls") == {}
    tally.cells(("calls", "é"))[0] = 1
    assert tallies.total("calls") == {("é",): [1.0]}
    tally.cells(("calls", ""))[0] = 2
    assert tallies.total("calls") == {("é",): [1.0], ("",): [2.0]}
    assert dict(tallies.rows("other")) == {}


def test_a_full_part_counts_no_more_and_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_PART_BYTES", 4096)
    tallies = Tallies(2)
    neighbour = tallies.own(1).cells(("calls", "neighbour"))
    neighbour[0] = 1
    tally = tallies.own(0)
    for number in range(1000):
        tally.cells(("calls", f"tool {number}"))[0] += 1
    found = tallies.total("calls")
    assert found.pop(("neighbour",)) == [1.0]
    assert 10 < len(found) < 1000
    assert set(map(tuple, found.values())) == {(1.0,)}
