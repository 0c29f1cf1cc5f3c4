"""Packages that cannot live beside the gateway's own: fetched once, in pinned versions, into a folder of their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest


@cache
def installed(home: Path) -> Path:
    """The folder with the packages of `home/requirements.txt` in it, of this version of Python."""
    folder = home / ".site-packages" / f"{sys.version_info[0]}.{sys.version_info[1]}"
    stamp = folder / ".installed"
    pinned = (home / "requirements.txt").read_text()
    if not stamp.exists() or stamp.read_text() != pinned:
        shutil.rmtree(folder, ignore_errors=True)
        pip = ["-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--only-binary", ":all:"]
        ran = subprocess.run(
            [sys.executable, *pip, "--target", folder, "--requirement", home / "requirements.txt"],
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            pytest.fail(f"pip could not fetch the packages of {home}: {ran.stderr[-300:]}")
        stamp.write_text(pinned)
    return folder
