"""docs/running.md keeps its word: the contract loads where its commands put it, with the files that they put there."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract
from tests.deploy.conftest import ROOT

BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "running.md").read_text(), re.DOTALL)
ETC = Path("etc", "toolview")


def block(command: str) -> str:
    (found,) = [text for text in BLOCKS if command in text]
    return str(found)


def _loads(root: Path, placed: Sequence[tuple[str, str]]) -> None:
    """`placed`: what of this checkout goes where, as paths of the machine."""
    assert placed
    for source, target in placed:
        where = root / target.strip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, where)
    loaded = load(root / ETC / "gateway.yaml")
    assert isinstance(loaded, Contract), "\n".join(str(refusal) for refusal in loaded)


def test_the_image_finds_what_is_mounted(tmp_path: Path) -> None:
    _loads(tmp_path, re.findall(r'-v "\$PWD/(\S+?):(\S+?):ro"', block("docker run")))


def test_the_service_finds_what_is_copied(tmp_path: Path) -> None:
    copied = re.findall(r"cp -r (\S+) (\S+)", block("systemctl enable"))
    _loads(tmp_path, [(source.removesuffix("/."), target) for source, target in copied])


def test_the_chart_is_given_every_file_that_the_contract_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in (ROOT / "deploy" / "kubernetes" / "toolview.env.example").read_text().splitlines():
        if not line.startswith("#"):
            name = line.partition("=")[0]
            monkeypatch.setenv(name, hashlib.sha256(name.encode()).hexdigest())
    files = re.findall(r"--set-file 'contract\.(\S+?)=(\S+?)'", block("helm install"))
    _loads(tmp_path, [(path, str(ETC / name.replace("\\.", "."))) for name, path in files])
