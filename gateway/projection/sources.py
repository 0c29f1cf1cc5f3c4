"""Reads the projections folder's Python files into a value, once per load; imports and runs none of them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from gateway.projection.model import Sources

MAX_FILES = 5_000
MAX_BYTES = 32 * 1024 * 1024
_NOT_OURS = {"__pycache__", "node_modules", "site-packages"}

EMPTY = Sources("", {}, "")


def read_sources(folder: Path) -> Sources | str:
    """Every `.py` file below the folder, or the sentence that says why not.

    Hidden folders, virtual environments and linked folders are left out: code in them is found on disk instead.
    """
    if not folder.is_dir():
        return f"the projections folder {str(folder)!r} does not exist"
    root = folder.resolve()
    files: dict[str, bytes] = {}
    size = 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if _ours(Path(place), name))
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            path = Path(place, name)
            try:
                text = path.read_bytes()
            except OSError as fault:
                return f"{str(path)!r} in the projections folder cannot be read: {fault.strerror}"
            files[path.relative_to(root).as_posix()] = text
            size += len(text)
            if len(files) > MAX_FILES or size > MAX_BYTES:
                return (
                    f"the projections folder {str(folder)!r} holds over {MAX_FILES} Python files "
                    f"or {MAX_BYTES >> 20} MiB of them; give projections a folder of their own"
                )
    return Sources(str(root), files, _digest(str(root), files))


def _ours(place: Path, name: str) -> bool:
    return not name.startswith(".") and name not in _NOT_OURS and not (place / name / "pyvenv.cfg").exists()


def _digest(folder: str, files: dict[str, bytes]) -> str:
    total = hashlib.sha256(folder.encode("utf-8", "surrogateescape"))
    for path, text in files.items():
        total.update(f"\0{path}\0{len(text)}\0".encode("utf-8", "surrogateescape"))
        total.update(text)
    return total.hexdigest()
