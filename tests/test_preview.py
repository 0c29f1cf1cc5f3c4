"""`toolview preview`: what a tool makes of a saved answer, as it would of a backend's, with no backend there."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.call.outcome import Outcome
from gateway.preview import preview
from gateway.surfaces.command_line import Misused
from tests.rig import accepted

Json = Any
CONTRACT = """
    version: 1
    backends: {api: {url: http://127.0.0.1:9, limits: {answer: 1KiB}}}
    schemas:
      People: {type: object, required: [people], properties: {people: {type: array, items: {type: object, required: [id], properties: {id: {type: integer}, mail: {type: string}}}}}}
      Ids: {type: object, properties: {people: {type: array, items: {type: object, properties: {id: {type: integer}}}}}}
    endpoints:
      slice: {request: GET /people, description: A slice., output: {$ref: "#/schemas/People"}, tool: {view: {output: {$ref: "#/schemas/Ids"}}}}
      drift: {request: GET /people, description: Drifts., validate: observe, output: {$ref: "#/schemas/People"}, tool: {view: {output: {$ref: "#/schemas/Ids"}}}}
      words:
        request: GET /people
        description: A projection.
        input: {type: object, properties: {shout: {type: boolean, default: false}, status: {type: string, default: any}}}
        output: {$ref: "#/schemas/People"}
        tool: {view: {output: {type: object, required: [n], properties: {n: {type: integer}, who: {}, at: {}}}, project: {jmespath: "{n: length(full.people), who: input, at: source}"}}}
      python: {request: GET /people, description: Raises., output: {$ref: "#/schemas/People"}, tool: {view: {project: {python: "cards:raises"}}}}
      short: {request: GET /people, description: A budget., output: {$ref: "#/schemas/People"}, tool: {view: {output: {$ref: "#/schemas/Ids"}, budget: 12}}}
      made: {request: POST /people, description: Makes., output: {"201": {type: object, properties: {id: {type: integer}}}}, tool: {name: made}}
      told:
        request: GET /people/{team}
        description: Has an example.
        input: {type: object, required: [team], properties: {team: {type: string}}}
        output: {$ref: "#/schemas/People"}
        examples: [{arguments: {team: none}}, {arguments: {team: red}, answer: {people: [{id: 7}]}}]
      silent: {request: GET /none, description: Says nothing.}
      hidden: {request: GET /people, description: On MCP., expose: [mcp], output: {$ref: "#/schemas/People"}, tool: {mcp: {confirm: Sure?}}}
      picture: {request: GET /icon, description: A file., kind: media}
"""  # noqa: E501 - an endpoint a line
FULL = {"people": [{"id": 12345678901234567890123, "mail": "a@x", "ssn": 1}, {"id": 2}]}
CUT = {"people": [{"id": 12345678901234567890123, "mail": "a@x"}, {"id": 2}]}
IDS = {"people": [{"id": 12345678901234567890123}, {"id": 2}]}


async def shown(folder: Path, tool: str, *words: str, answer: Json = FULL) -> Json:
    """The report, or the envelope of a failure, or the sentence on a misuse."""
    (folder / "cards.py").write_text('def raises(full, ctx):\n    raise KeyError("s3cret-key")\n')
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    stdin = io.TextIOWrapper(io.BytesIO(body), encoding="utf-8")
    seen = await preview(accepted(folder, CONTRACT), tool, words, stdin)
    if isinstance(seen, Misused):
        return seen.message
    assert not isinstance(seen, str)
    return seen.value if seen.failure is None else seen.envelope()


async def test_a_slice_is_shown_with_the_full_answer_and_the_bytes_of_both(tmp_path: Path) -> None:
    assert await shown(tmp_path, "slice", "--answer", "-") == {
        "full": CUT,
        "view": IDS,
        "bytes": {"full": len(json.dumps(FULL)), "view": len(json.dumps(IDS, separators=(",", ":")))},
        "stripped": ["people[0].ssn"],
    }


async def test_a_projection_sees_the_accepted_arguments(tmp_path: Path) -> None:
    report = await shown(tmp_path, "words", "--shout", "--answer=-", "--status", "new")
    # `status` is an argument of this tool, and stays one.
    assert report["view"] == {"n": 2, "who": {"shout": True, "status": "new"}, "at": "console"}


async def test_a_file_is_read_as_well_as_stdin(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps({"people": []}))
    report = await shown(tmp_path, "slice", "--answer", str(tmp_path / "answer.json"))
    assert report["view"] == {"people": []}


async def test_without_a_file_or_arguments_the_example_stands_in(tmp_path: Path) -> None:
    assert (await shown(tmp_path, "told"))["view"] == {"people": [{"id": 7}]}
    assert (await shown(tmp_path, "told", "--answer", "-"))["view"] == CUT
    assert (await shown(tmp_path, "told", "--team", "x"))["view"] == {"people": [{"id": 7}]}
    for words, team in (([], "red"), (["--team", "x"], "x")):
        seen = await preview(accepted(tmp_path, CONTRACT), "told", words, io.TextIOWrapper(io.BytesIO()))
        assert not isinstance(seen, Misused | str)
        assert seen.accepted == {"team": team}


async def test_drift_that_is_observed_is_named(tmp_path: Path) -> None:
    report = await shown(tmp_path, "drift", "--answer", "-", answer={"people": [{"id": 1, "mail": 7}]})
    assert report["view"] == {"people": [{"id": 1}]}
    assert len(report["violations"]) == 1


async def test_a_status_chooses_the_schema_and_may_be_a_failure(tmp_path: Path) -> None:
    assert (await shown(tmp_path, "made", "--answer", "-", answer={"id": 1}))["view"] == {"id": 1}
    undeclared = await shown(tmp_path, "made", "--answer", "-", "--status", "200", answer={"id": 1})
    assert undeclared["code"] == "BACKEND_ANSWER_INVALID"
    assert (await shown(tmp_path, "slice", "--answer", "-", "--status", "404"))["code"] == "NOT_FOUND"


async def test_a_tool_that_answers_nothing_has_no_view(tmp_path: Path) -> None:
    report = await shown(tmp_path, "silent", "--answer", "-")
    assert report == {"full": None, "view": None, "bytes": {"full": 0, "view": 0}}


async def test_a_tool_of_any_surface_is_previewed_and_nobody_is_asked(tmp_path: Path) -> None:
    assert (await shown(tmp_path, "hidden", "--answer", "-"))["view"] == CUT


async def test_who_previews_is_told_why_a_projection_failed(tmp_path: Path) -> None:
    envelope = await shown(tmp_path, "python", "--answer", "-")
    assert envelope["code"] == "INTERNAL_SERVER_ERROR"
    assert "KeyError" in envelope["details"]["fault"]


async def test_who_previews_is_told_why_the_before_hook_failed(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def before(call):\n    call['arguments']\n")
    contract = CONTRACT.replace("version: 1", "version: 1\n    gateway: {hooks: {before: 'hooks:before'}}", 1)
    contract = contract.replace("      python:", "      # python:")
    stdin = io.TextIOWrapper(io.BytesIO(b"{}"))
    seen = await preview(accepted(tmp_path, contract), "told", ("--answer", "-"), stdin)
    assert isinstance(seen, Outcome)
    assert seen.code == "INTERNAL_SERVER_ERROR"
    assert "TypeError" in seen.envelope()["details"]["fault"]


@pytest.mark.parametrize(
    ("tool", "answer", "code"),
    [
        ("slice", b"<html>", "BACKEND_ANSWER_INVALID"),
        ("slice", b"", "BACKEND_ANSWER_INVALID"),
        ("slice", {"people": 1}, "BACKEND_ANSWER_INVALID"),
        ("slice", b" " * 1025, "BACKEND_ANSWER_TOO_LARGE"),
        ("short", FULL, "ANSWER_OVER_BUDGET"),
        ("nope", FULL, "UNKNOWN_TOOL"),
    ],
)
async def test_what_would_fail_in_a_call_fails_here(tmp_path: Path, tool: str, answer: Json, code: str) -> None:
    assert (await shown(tmp_path, tool, "--answer", "-", answer=answer))["code"] == code


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["picture", "--answer", "-"], "this tool answers with a file"),
        (["slice"], "write --answer FILE"),
        (["slice", "--answer"], "--answer needs FILE"),
        (["slice", "--answer", "/nowhere/at/all"], "--answer: the file cannot be read: No such file"),
        (["slice", "--answer", "/"], "--answer: the file cannot be read: Is a directory"),
        (["slice", "--answer", "a\0b"], "--answer: the file cannot be read: embedded null byte"),
        (["slice", "--answer", "-", "--status", "7"], "--status is an HTTP status"),
        (["slice", "--answer", "-", "--status", "9" * 5000], "--status is an HTTP status"),
        (["slice", "--answer", "-", "stray"], "`stray` is no flag"),
        (["slice", "--answer", "-", "-"], "stdin can be the arguments or the answer"),
    ],
    ids=lambda given: str(given)[:40],
)
async def test_what_cannot_be_previewed_is_said(tmp_path: Path, words: list[str], told: str) -> None:
    assert str(await shown(tmp_path, *words)).startswith(told)


def test_the_command_prints_the_report_or_the_envelope_with_its_exit_code(tmp_path: Path) -> None:
    accepted(tmp_path, CONTRACT.replace("      python:", "      # python:"))
    ends = {}
    for words in (["slice"], ["slice", "--status", "404"], ["nope"], ["picture"]):
        command = [sys.executable, "-m", "gateway", "preview", *words, "--answer", "-", "--config", "gateway.yaml"]
        ran = subprocess.run(command, cwd=tmp_path, input=json.dumps(FULL), capture_output=True, text=True, check=False)
        assert "Traceback" not in ran.stderr
        ends[" ".join(words)] = (ran.returncode, bool(ran.stdout), bool(ran.stderr))
        if ran.stdout:
            assert json.loads(ran.stdout)["view"] == IDS
    assert ends == {
        "slice": (0, True, False),
        "slice --status 404": (4, False, True),
        "nope": (1, False, True),
        "picture": (2, False, True),
    }
