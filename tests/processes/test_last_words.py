"""What the supervisor says where no process is left that has a log: in the form that the contract asks for."""

from __future__ import annotations

import json

import pytest

from gateway.processes.supervisor import Supervisor


def nothing(*_: object) -> int:
    return 0


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_death_that_nobody_else_can_log_is_logged_in_the_contracts_form(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = Supervisor(1, nothing, nothing)
    alone._current = {"log": {"form": form, "level": "info"}}
    alone._say("error", "a process died and is replaced", {"pid": 7})
    alone._say("info", "not worth a line here", {})
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    if form == "text":
        assert said[0] == "toolview: a process died and is replaced pid=7"
        return
    line = json.loads(said[0])
    assert (line["level"], line["logger"], line["message"], line["pid"]) == (
        "error", "toolview", "a process died and is replaced", 7,
    )  # fmt: skip
    assert line["time"].endswith("Z")
