"""The unit is read by systemd where it is installed, and by a strict reader of our own everywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.__main__ import main
from tests.deploy.conftest import ROOT

UNIT = ROOT / "deploy" / "systemd" / "toolview.service"
SYSTEMD = shutil.which("systemd-analyze")

#: What the unit may say, by section; a misspelt directive is one that systemd only warns of, in a log nobody reads.
DIRECTIVES = {
    "Unit": "Description Wants After",
    "Service": """
        Type ExecStartPre ExecStart ExecReload EnvironmentFile Restart RestartSec TimeoutStopSec KillMode LimitNOFILE
        MemoryHigh MemoryMax TasksMax DynamicUser UMask Environment NoNewPrivileges CapabilityBoundingSet
        AmbientCapabilities ProtectSystem ProtectHome PrivateTmp PrivateDevices PrivateUsers ProtectClock
        ProtectControlGroups ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc
        LockPersonality MemoryDenyWriteExecute RestrictNamespaces RestrictRealtime RestrictSUIDSGID RemoveIPC
        KeyringMode RestrictAddressFamilies SystemCallArchitectures SystemCallFilter SystemCallErrorNumber""",
    "Install": "WantedBy",
}


def directives() -> list[tuple[str, str, str]]:
    found, section = [], ""
    for line in UNIT.read_text().splitlines():
        if (head := re.fullmatch(r"\[(\w+)\]", line)) is not None:
            section = head[1]
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert equals, line
            found.append((section, name, value))
    return found


def test_every_directive_is_known_in_its_section() -> None:
    assert [(s, name) for s, name, _ in directives() if name not in DIRECTIVES[s].split()] == []


def test_what_it_starts_are_commands_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = [value.split() for _, name, value in directives() if name in ("ExecStartPre", "ExecStart")]
    assert [command[1] for command in started] == ["check", "serve"]
    for command in started:
        assert command[0] == "/opt/toolview/bin/toolview"
        with pytest.raises(SystemExit) as ended:
            main([*command[1:], "--help"])
        assert ended.value.code == 0
        assert command[1] in capsys.readouterr().out


def test_nothing_of_it_waits_for_a_notification_that_is_never_sent() -> None:
    assert ("Service", "Type", "exec") in directives()


@pytest.mark.skipif(SYSTEMD is None, reason="systemd is not installed here; the strict reader above has read the unit")
def test_systemd_accepts_it_and_finds_it_hardened(tmp_path: Path) -> None:
    here = tmp_path / "toolview.service"
    here.write_text(UNIT.read_text().replace("/opt/toolview/bin/toolview", sys.executable))
    assert SYSTEMD is not None
    done = subprocess.run([SYSTEMD, "verify", here], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    judged = subprocess.run([SYSTEMD, "security", "--offline=true", here], capture_output=True, text=True, timeout=60)
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", judged.stdout)
    assert exposure is not None, judged.stdout
    assert float(exposure[1]) <= 2.0
