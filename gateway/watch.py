"""Watches the files of a contract, and asks for a reload when one has changed. Knows nothing of what is in them."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
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

    while True:
        folders, files = _watched(contract())
        late = asyncio.create_task(_catch_up(files, _state(files), reload))
        try:
            async with aclosing(awatch(*folders, watch_filter=partial(_matters, files))) as seen:
                async for changes in seen:
                    names = sorted({Path(path).name for _, path in changes})
                    log.info("files of the contract changed", extra={"files": names[:5]})
                    await reload()
                    if _watched(contract()) != (folders, files):
                        break
        finally:
            late.cancel()


async def _catch_up(files: frozenset[str], before: object, reload: Callable[[], Awaitable[Any]]) -> None:
    """Nobody says when watching has begun: what was written until then is looked for once."""
    await asyncio.sleep(_TO_BEGIN)
    if _state(files) != before:
        log.info("files of the contract changed", extra={"files": sorted(Path(name).name for name in files)[:5]})
        await reload()
    log.info("the files of the contract are watched")


#: Seconds in which watching has begun.
_TO_BEGIN = 0.5


def _state(files: frozenset[str]) -> object:
    found = {}
    for name in files:
        try:
            status = os.stat(name)
        except OSError:
            continue
        found[name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


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
