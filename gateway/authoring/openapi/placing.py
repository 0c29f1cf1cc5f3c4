"""Where an imported contract is put: stdout, one file, or a folder with its schemas beside it. Reads no description."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from gateway.authoring.openapi.document import SCHEMAS_FILE
from gateway.authoring.openapi.importing import Imported
from gateway.contract.refusal import printable
from gateway.record import record


@record
class Place:
    """Where to write; None is stdout."""

    contract: Path | None
    schemas: Path | None = None

    @property
    def is_folder(self) -> bool:
        return self.schemas is not None


@record
class Unwritable:
    """Why it cannot be written there: one sentence."""

    message: str


def place(output: str | None, *, force: bool) -> Place | Unwritable:
    """What `--output` names: a folder where there is one or the path ends in `/`, else a file."""
    if output is None:
        return Place(None)
    path = Path(output)
    try:
        is_folder = output.endswith(("/", os.sep)) or path.is_dir()
        where = Place(path / "gateway.yaml", path / SCHEMAS_FILE) if is_folder else Place(path)
        there = [each for each in (where.contract, where.schemas) if each is not None and each.exists()]
    except (OSError, ValueError):
        return Unwritable(f"--output: {printable(output)} is no path")
    if there and not force:
        return Unwritable(f"--output: {printable(str(there[0]))} is there already; --force replaces it")
    return where


def put(imported: Imported, where: Place, stdout: TextIO) -> Unwritable | None:
    """Write it; a file is there whole, or as it was."""
    if where.contract is None:
        stdout.write(imported.contract)
        return None
    try:
        if where.schemas is not None:
            where.contract.parent.mkdir(parents=True, exist_ok=True)
            if imported.schemas is not None:
                _write(where.schemas, imported.schemas)
        _write(where.contract, imported.contract)
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "it is no path"
        return Unwritable(f"{printable(str(where.contract))} cannot be written: {reason}")
    return None


def _write(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
