"""Watching: one edit is one reload, however often the system tells of it, and no edit is missed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from gateway import watch
from tests.rig import accepted

CONTRACT = """
version: 1
backends: {api: {url: "http://127.0.0.1:1"}}
endpoints: {a: {request: GET /a, description: A., output: {type: object}, tool: {safety_tier: read}}}
"""


class Told:
    """Stands for the system: tells of changes when the test says so."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder / "gateway.yaml"
        self._contract = accepted(folder, CONTRACT)
        self._batches: asyncio.Queue[list[Path]] = asyncio.Queue()
        self.reloads = 0
        self.meanwhile: list[Path] = []
        monkeypatch.setattr(watchfiles, "awatch", self._awatch)
        monkeypatch.setattr(watch, "_TO_BEGIN", 3600)  # what was written before is of the last test alone
        self.began, self.reloaded = asyncio.Event(), asyncio.Event()
        self._watching = asyncio.create_task(watch.watch_files(lambda: self._contract, self._reload))

    async def _awatch(self, *_: str, **__: Any) -> AsyncIterator[set[tuple[int, str]]]:
        self.began.set()
        while True:
            batch = await self._batches.get()
            yield {(2, str(path)) for path in batch}
            self._batches.task_done()

    async def _reload(self) -> None:
        self.reloads += 1
        self.reloaded.set()
        for path in self.meanwhile:
            path.write_text(path.read_text() + "# written while it is read\n")
        self.meanwhile = []

    async def of(self, *paths: Path) -> int:
        """Tell of these, and answer how many reloads were asked for since the last time."""
        before, self.reloads = self.reloads, 0
        assert before == 0
        self._batches.put_nowait(list(paths))
        await self._batches.join()
        found, self.reloads = self.reloads, 0
        return found

    async def end(self) -> None:
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)


async def test_one_edit_that_is_told_of_twice_is_one_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `sed -i` does: a new file is written beside the old one, and takes its name."""
    told = Told(tmp_path, monkeypatch)
    await told.began.wait()
    beside = tmp_path / "sedX1"
    beside.write_text(CONTRACT + "# edited\n")
    os.replace(beside, told.path)
    assert await told.of(told.path) == 1
    assert await told.of(told.path) == 0
    told.path.write_text(CONTRACT + "# edited again\n")
    assert await told.of(told.path) == 1
    await told.end()


async def test_what_is_written_while_the_files_are_read_is_read_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, monkeypatch)
    await told.began.wait()
    told.path.write_text(CONTRACT + "# edited\n")
    told.meanwhile = [told.path]
    assert await told.of(told.path) == 1
    assert await told.of(told.path) == 1
    assert await told.of(told.path) == 0
    await told.end()


async def test_a_file_that_the_contract_does_not_name_counts_as_well_also_when_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, monkeypatch)
    await told.began.wait()
    code = tmp_path / "cards.py"
    code.write_text("one = 1")
    assert await told.of(code) == 1
    assert await told.of(code) == 0
    code.unlink()
    assert await told.of(code) == 1
    assert await told.of(code) == 0
    never_seen = tmp_path / "gone.py"
    assert await told.of(never_seen) == 1
    await told.end()


async def test_a_mounted_version_that_is_swapped_is_one_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(tmp_path, monkeypatch)
    await told.began.wait()
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / "..new").symlink_to(version)
        os.replace(tmp_path / "..new", tmp_path / "..data")
        assert await told.of(tmp_path / "..data") == 1
        assert await told.of(tmp_path / "..data") == 0
    await told.end()


async def test_what_was_written_before_watching_began_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, monkeypatch)
    monkeypatch.setattr(watch, "_TO_BEGIN", 0)
    await told.began.wait()
    told.path.write_text(CONTRACT + "# edited\n")
    await told.reloaded.wait()
    told.reloads = 0
    assert await told.of(told.path) == 0
    await told.end()
