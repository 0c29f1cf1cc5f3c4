"""What a load asks of the disk, and what it was told: so that the same load can be done again after the files changed.

Each question is asked once. What was told fits into an anonymous file, from which another process answers the same
questions; what nobody asked before is asked of the disk. Knows no contract.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from gateway.projection import Sources, read_sources

Kind = Literal["file", "folder", "other", ""]


class Disk:
    """One load's view of the disk; `told` is what an earlier load of the same contract was told."""

    def __init__(self, told: dict[tuple[str, ...], Any] | None = None) -> None:
        self._told: dict[tuple[str, ...], Any] = {} if told is None else told

    @classmethod
    def kept(cls, number: int) -> Disk:
        """As it was when this anonymous file was written; the descriptor stays the caller's."""
        text = os.pread(number, os.fstat(number).st_size, 0)
        return cls(marshal.loads(text))  # noqa: S302 - written by a process of this gateway, where nobody else can write

    def keep(self) -> int | None:
        """Put what was told into an anonymous file, and forget it; None where there can be no such file."""
        told, self._told = self._told, {}
        try:
            number = os.memfd_create("toolview-contract")
        except (AttributeError, OSError):  # another system than Linux; no descriptor is left
            return None
        with open(number, "wb", closefd=False) as opened:
            opened.write(marshal.dumps(told))
        return number

    def kind(self, path: Path) -> Kind:
        """What stands there; "" for nothing. Raises `OSError` or `ValueError` as `Path` does."""
        found: Kind = self._ask("kind", path, lambda: _kind(path))
        return found

    def read(self, path: Path, limit: int) -> bytes:
        """The beginning of a file, up to a limit."""

        def read() -> bytes:
            with path.open("rb") as opened:
                return opened.read(limit)

        text: bytes = self._ask("read", path, read)
        return text

    def readable(self, path: Path) -> bool:
        """Whether it is a file that this process may read."""
        may: bool = self._ask("readable", path, lambda: path.is_file() and os.access(path, os.R_OK))
        return may

    def resolved(self, path: Path) -> Path:
        """Where it leads once links are followed."""
        return Path(self._ask("resolved", path, lambda: str(path.resolve())))

    def matching(self, folder: Path, pattern: str) -> Iterable[Path]:
        """What is below a folder and fits a pattern, but folders; sorted."""
        found = self._ask(
            "matching", folder, lambda: [str(item) for item in folder.glob(pattern) if not item.is_dir()], pattern
        )
        return sorted(map(Path, found))

    def sources(self, folder: Path) -> Sources | str:
        """The Python files of a folder; or why they cannot be read."""
        found = self._ask("sources", folder, lambda: _plain(read_sources(folder)))
        return found if isinstance(found, str) else Sources(*found)

    def _ask(self, what: str, path: Path, ask: Callable[[], Any], *more: str) -> Any:
        key = (what, os.fspath(path), *more)
        if key not in self._told:
            self._told[key] = ask()
        return self._told[key]


def _plain(sources: Sources | str) -> tuple[str, dict[str, bytes], str] | str:
    return sources if isinstance(sources, str) else (sources.folder, dict(sources.files), sources.digest)


def _kind(path: Path) -> Kind:
    if path.is_dir():
        return "folder"
    if path.is_file():
        return "file"
    return "other" if path.exists() else ""
