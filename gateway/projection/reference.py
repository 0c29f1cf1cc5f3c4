"""Checks a `module:function` reference at load, in a process of its own; no operator's module runs in the gateway."""

from __future__ import annotations

import functools
import marshal
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.json_text import NotJson, parse
from gateway.projection import worker
from gateway.projection.model import Projection, Sources
from gateway.projection.sources import EMPTY, read_sources

IMPORT_SECONDS = 20.0

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def import_python(
    reference: str, folder: Path | None, read: Callable[[Path], Sources | str] = read_sources
) -> Projection | str:
    """The projection that a reference names, or the sentence that refuses it.

    `folder` comes first on the import path. What `read` finds in it now, calls of this projection run for ever.
    """
    if not _REFERENCE.fullmatch(reference):
        return f"{reference!r} is not of the form module:function"
    sources = EMPTY if folder is None else read(folder)
    if isinstance(sources, str):
        return sources
    module, _, name = reference.partition(":")
    said = _describe(module, sources)
    if isinstance(said, str):
        return said
    if said["taken"]:
        return f"module {module!r} is one of Python's own here, and hides the file of that name; rename the file"
    if name not in said["names"]:
        near = _nearest(name, said["names"])
        return f"module {module!r} has no function {name!r}{near}"
    if said["names"][name] is not None:
        return f"{reference} {said['names'][name]}"
    return Projection("python", reference, sources)


def command(*arguments: str) -> list[str]:
    """How a worker is started: this Python, and no working directory on the import path."""
    return [sys.executable, "-P", str(Path(worker.__file__)), *arguments]


@functools.lru_cache(maxsize=1)
def _cache_of(digest: str) -> dict[str, Any]:
    """What was said of the modules of one state of the folder: one process per module, not per reference."""
    return {}


def _describe(module: str, sources: Sources) -> Any:
    file = module.replace(".", "/")
    if not {f"{file}.py", f"{file}/__init__.py"} & sources.files.keys():
        return _ask(module, sources)
    cache = _cache_of(sources.digest)
    if module not in cache:
        said = _ask(module, sources)
        if isinstance(said, str):  # the world outside the folder may mend it
            return said
        cache[module] = said
    return cache[module]


def _ask(module: str, sources: Sources) -> Any:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            process = subprocess.Popen(command("describe"), stdin=theirs.fileno())  # noqa: S603 - our own program
        except OSError as fault:
            return f"module {module!r} cannot be checked, as no process can be started: {fault.strerror}"
        theirs.close()
        try:
            return _conversation(ours, process, module, sources)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


def _conversation(link: socket.socket, process: subprocess.Popen[bytes], module: str, sources: Sources) -> Any:
    link.settimeout(IMPORT_SECONDS)
    received = bytearray()
    try:
        link.sendall(marshal.dumps({"folder": sources.folder, "files": dict(sources.files), "module": module}))
        link.shutdown(socket.SHUT_WR)
        while part := link.recv(65536):
            received += part
    except TimeoutError:
        return f"module {module!r} is not imported after {IMPORT_SECONDS:g} seconds"
    except OSError:
        received.clear()
    said = parse(bytes(received)) if received else None
    if said is None or isinstance(said, NotJson):
        return f"module {module!r} ends its process while it is imported ({_ending(process)})"
    return said.get("fault") or said


def _ending(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(5)
    except subprocess.TimeoutExpired:
        return "it closed the gateway's connection"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _nearest(name: str, names: dict[str, Any]) -> str:
    import difflib  # only where something is wrong

    near = difflib.get_close_matches(name, [known for known, fault in names.items() if fault is None], 1)
    return f'; did you mean "{near[0]}"?' if near else ""
