"""Watches the files of a contract, and asks for one reload when some have changed. Knows nothing of what is in them."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

from gateway.contract.model import Contract

log = logging.getLogger("toolview")

#: What a contract and its cards are written in, and Kubernetes' link to the mounted version, which changes all at once.
_SUFFIXES = (".yaml", ".yml", ".json", ".py", ".html")
_MOUNTED = "..data"
_NOT_OURS = {"__pycache__", "node_modules", "site-packages", ".git", ".venv"}


async def watch_files(contract: Callable[[], Contract], reload: Callable[[], Awaitable[Any]]) -> None:
    """For ever: after a change (and the short rest of whoever is writing), ask for a reload."""
    from watchfiles import awatch  # only where it is asked for

    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # which files changed is said here, by name

    known = _Known()
    while True:
        folders, files = _watched(contract())
        known.include(files)
        late = asyncio.create_task(_catch_up(known, reload))
        try:
            async with aclosing(awatch(*folders, watch_filter=partial(_matters, files), step=_REST)) as seen:
                async for changes in seen:
                    if not (changed := known.changed(path for _, path in changes)):
                        continue  # one edit is often told of twice: as it is renamed, and as it is written
                    log.info("files of the contract changed", extra={"files": changed[:5]})
                    await reload()
                    if _watched(contract()) != (folders, files):
                        break
        finally:
            late.cancel()


async def _catch_up(known: _Known, reload: Callable[[], Awaitable[Any]]) -> None:
    """Nobody says when watching has begun: what was written until then is looked for once."""
    await asyncio.sleep(_TO_BEGIN)
    if changed := known.changed():
        log.info("files of the contract changed", extra={"files": changed[:5]})
        await reload()
    log.info("the files of the contract are watched")


#: Seconds in which watching has begun.
_TO_BEGIN = 0.5
#: Milliseconds without a change after which whoever writes has done so.
_REST = 100

#: What tells one state of a file from another; None where there is none.
_State = tuple[int, int, int] | None


class _Known:
    """How files stood when a reload was last asked for."""

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}

    def include(self, names: Iterable[str]) -> None:
        """Look at these as well from now on."""
        for name in names:
            self._states.setdefault(name, _state(name))

    def changed(self, names: Iterable[str] = ()) -> list[str]:
        """The names of those that stand otherwise than before, or are new here; they are known as they are now."""
        now = {name: _state(name) for name in {*self._states, *names}}
        changed = {name for name, state in now.items() if name not in self._states or self._states[name] != state}
        self._states = now
        return sorted({Path(name).name for name in changed})


def _state(name: str) -> _State:
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _watched(contract: Contract) -> tuple[tuple[str, ...], frozenset[str]]:
    """The folders to look at, with all that is below them; and files that matter whatever their name is."""
    gateway = contract.gateway
    tls = [each.tls for each in (gateway.tools, gateway.admin) if each.tls is not None]
    for backend in contract.backends.values():
        if backend.passthrough is not None and backend.passthrough.tls is not None:
            tls.append(backend.passthrough.tls)
    named = [*contract.files, *(name for each in tls for name in (each.cert, each.key))]
    for backend in contract.backends.values():
        named += [name for name in (backend.tls.ca, backend.tls.cert, backend.tls.key) if name is not None]
    folders = {Path(contract.folder), *(Path(name).absolute().parent for name in named)}
    if gateway.projections is not None:
        folders.add(Path(gateway.projections))
    there = sorted(str(folder) for folder in folders if folder.is_dir())
    return tuple(there), frozenset(str(Path(name).absolute()) for name in named)


def _matters(files: frozenset[str], _: object, path: str) -> bool:
    place = Path(path)
    if not _NOT_OURS.isdisjoint(place.parts):
        return False
    return path in files or place.name == _MOUNTED or (place.suffix in _SUFFIXES and not place.name.startswith("."))
