"""What a load read is kept, and the same load can be done again whatever stands on the disk by then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.contract.disk import Disk
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.serve import Plan, plan_of

CONTRACT = """
version: 1
include: ["more/*.yaml"]
gateway:
  projections: functions
  hooks: {before: "hooks:before", after: "inner.hooks:after"}
  auth: {jwt: {jwks: keys.json, issuer: "https://login.example", audience: api, algorithms: [RS256]}}
backends: {api: {url: "http://127.0.0.1:1", headers: {X-Key: "${file:SECRET}"}}}
endpoints:
  people.list:
    request: GET /people
    description: Lists people.
    output: {$ref: "schemas/people.json"}
    examples: [{title: one, answer_file: answers/people.json}]
    tool:
      name: list_people
      safety_tier: read
      ui: {resource: ui/card.html}
      view: {project: {python: "cards:card"}}
"""
FILES = {
    "gateway.yaml": CONTRACT,
    "more/teams.yaml": "endpoints: {teams.list: {request: GET /teams, description: Lists teams., tool:"
    " {safety_tier: read}, output: {type: object}}}",
    "schemas/people.json": '{"type": "object", "properties": {"people": {"type": "string"}}}',
    "answers/people.json": '{"people": "all"}',
    "ui/card.html": "<!doctype html><p>card</p>",
    "keys.json": '{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}',
    "functions/cards.py": "import shown\n\n\ndef card(full, ctx):\n    return shown.shown(full)\n",
    "functions/shown.py": "def shown(full):\n    return full\n",
    "functions/hooks.py": "import shown\n\n\ndef before(call):\n    return 'the first'\n",
    "functions/inner/__init__.py": "",
    "functions/inner/hooks.py": "def after(call):\n    return None\n",
    "secret": "s3cret",
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "contract" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("SECRET", str(tmp_path / "contract" / "secret")))
    return tmp_path / "contract" / "gateway.yaml"


def accepted(path: Path, disk: Disk) -> tuple[Contract, Plan]:
    found = load(path, disk=disk)
    assert isinstance(found, Contract), found
    plan = plan_of(found)
    assert isinstance(plan, Plan)
    return found, plan


def kept(disk: Disk) -> int:
    number = disk.keep()
    assert number is not None
    return number


def test_a_contract_is_loaded_again_from_what_was_kept_when_all_its_files_are_gone(written: Path) -> None:
    disk = Disk()
    first, plan = accepted(written, disk)
    number = kept(disk)
    shutil.rmtree(written.parent)
    again, its_plan = accepted(written, Disk.kept(number))
    # and from that again, as the one after the next will
    disk = Disk.kept(number)
    os.close(number)
    accepted(written, disk)
    number = kept(disk)
    third, _ = accepted(written, Disk.kept(number))
    os.close(number)
    for other in (again, third):
        assert (other.digest, other.files, other.folder) == (first.digest, first.files, first.folder)
        assert other.backends["api"].headers == first.backends["api"].headers
        assert other.endpoints["people.list"].examples == first.endpoints["people.list"].examples
        assert other.gateway.hooks.before is not None
        assert other.gateway.hooks.before(None) == "the first"
    assert its_plan.fingerprint == plan.fingerprint


def test_files_that_changed_are_read_as_they_were(written: Path) -> None:
    disk = Disk()
    first, plan = accepted(written, disk)
    number = kept(disk)
    for name in FILES:
        (written.parent / name).write_text("{no: [")
    again, its_plan = accepted(written, Disk.kept(number))
    os.close(number)
    assert (again.digest, its_plan.fingerprint) == (first.digest, plan.fingerprint)
    assert isinstance(load(written), tuple)


def test_a_link_that_leads_elsewhere_by_now_is_followed_as_it_led(written: Path, tmp_path: Path) -> None:
    """As a mounted ConfigMap changes: all at once, by one link."""
    shutil.move(written.parent, tmp_path / "first")
    current = tmp_path / "current"
    current.symlink_to("first")
    (tmp_path / "contract").symlink_to("first")
    disk = Disk()
    first, _ = accepted(current / "gateway.yaml", disk)
    number = kept(disk)
    (tmp_path / "second").mkdir()
    current.unlink()
    current.symlink_to("second")
    again, _ = accepted(current / "gateway.yaml", Disk.kept(number))
    os.close(number)
    assert (again.digest, again.folder) == (first.digest, first.folder)


def test_what_was_kept_is_in_memory_alone_and_once(written: Path, tmp_path: Path) -> None:
    disk = Disk()
    accepted(written, disk)
    before = set(tmp_path.rglob("*"))
    number = kept(disk)
    assert os.readlink(f"/proc/self/fd/{number}").startswith("/memfd:")
    assert b"s3cret" in os.pread(number, 1 << 20, 0)
    assert set(tmp_path.rglob("*")) == before
    os.close(number)
    number = kept(disk)
    assert b"s3cret" not in os.pread(number, 1 << 20, 0)
    assert not os.get_inheritable(number)
    os.close(number)


def test_a_system_without_anonymous_files_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    assert Disk().keep() is None


def test_a_hook_that_is_kept_runs_in_a_process_that_never_saw_its_file(written: Path) -> None:
    disk = Disk()
    accepted(written, disk)
    number = kept(disk)
    os.set_inheritable(number, True)
    (written.parent / "functions" / "hooks.py").write_text("raise SystemExit")
    program = (
        "import sys; from pathlib import Path; from gateway.contract.disk import Disk\n"
        "from gateway.contract.load import load\n"
        f"found = load(Path({str(written)!r}), disk=Disk.kept({number}))\n"
        "print(found.gateway.hooks.before(None))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, pass_fds=[number])
    os.close(number)
    assert (told.stdout, told.stderr) == ("the first\n", "")
