"""The command line: flags to arguments, card on stdout, envelope on stderr, exit codes, and refusals that repair."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.model import Contract
from gateway.once import Streams, Unsent, call_once
from gateway.surfaces.cli import output_of, tell_waiting
from gateway.surfaces.command_line import Line, Misused, contract_of, read_line
from gateway.surfaces.switches import CALL
from tests.rig import Received, accepted, backend, http

PROPERTIES = {
    "team": {"type": "string"},
    "limit": {"type": "integer"},
    "score": {"type": "number"},
    "loud": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "ids": {"type": "array", "items": {"type": "integer"}},
    "filter": {"type": "object"},
    "sort_by": {"enum": ["name", "age"]},
    "note": {"type": ["string", "null"]},
    "level": {"enum": [1, 2]},
    "free": {},
}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], {}),
        (["--team", "core", "--limit", "5"], {"team": "core", "limit": 5}),
        (["--limit=5", "--score=1.5"], {"limit": 5, "score": 1.5}),
        (["--limit", "12345678901234567890123"], {"limit": 12345678901234567890123}),
        (["--team", "--odd"], {"team": "--odd"}),
        (["--team=a=b"], {"team": "a=b"}),
        (["--team", "007"], {"team": "007"}),
        (["--loud"], {"loud": True}),
        (["--loud", "--team", "x"], {"loud": True, "team": "x"}),
        (["--loud", "no"], {"loud": False}),
        (["--loud", "perhaps"], {"loud": "perhaps"}),
        (["--tags", "a", "--tags", "b"], {"tags": ["a", "b"]}),
        (["--ids", "1", "--ids", "2"], {"ids": [1, 2]}),
        (["--ids", "[1,2]"], {"ids": [1, 2]}),
        (["--filter", '{"a":1}'], {"filter": {"a": 1}}),
        (["--sort-by", "name"], {"sort_by": "name"}),
        (["--level", "2"], {"level": 2}),
        (["--note", "null"], {"note": "null"}),
        (["--free", "12"], {"free": "12"}),
        (["--limit", "many"], {"limit": "many"}),
        (["--json", '{"team":"core","limit":1}'], {"team": "core", "limit": 1}),
        (["--json", '{"team":"core"}', "--limit", "1"], {"team": "core", "limit": 1}),
        (["--unknown", "x"], {"unknown": "x"}),
    ],
)
def test_flags_are_read_by_their_argument_s_type(words: list[str], arguments: dict[str, Any]) -> None:
    line = read_line(words, PROPERTIES, io.StringIO(), CALL)
    assert line == Line(arguments, {}, any_given=bool(words))


def test_a_dash_reads_json_from_stdin() -> None:
    line = read_line(["-"], PROPERTIES, io.StringIO('{"team": "é"}'), CALL)
    assert line == Line({"team": "é"}, {}, any_given=True, from_stdin=True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["team", "core"], "`team` is no flag"),
        (["--team"], "--team needs a value"),
        (["--limit", "1", "--limit", "2"], "--limit is given twice"),
        (["--json", "{"], "not JSON"),
        (["--json", "[1]"], "one JSON object"),
        (["--"], "`--` is no flag"),
    ],
)
def test_what_is_no_argument_is_said_in_a_sentence(words: list[str], why: str) -> None:
    told = read_line(words, PROPERTIES, io.StringIO(), CALL)
    assert isinstance(told, Misused)
    assert why in told.message


CONTRACT = """
    version: 1
    gateway: {{tools: {{listen: 127.0.0.1:0}}, admin: {{listen: 127.0.0.1:0}}}}
    backends: {{api: {{url: {url}, headers: {{X-Key: "${{PLANTED_KEY}}"}}}}}}
    endpoints:
      read:
        request: GET /read/{{id}}
        description: Reads.
        expose: [mcp, cli]
        input: {{type: object, required: [id], properties: {{id: {{type: string}}}}}}
        output: {{type: object, required: [id], properties: {{id: {{type: integer}}, ssn: {{type: string}}}}}}
        tool: {{view: {{output: {{type: object, properties: {{id: {{type: integer}}}}}}}}}}
      hidden:
        request: GET /hidden
        description: Hidden from the command line.
        output: {{type: object}}
"""
SECRET = "planted-secret-7f3a"


def toolview(
    *words: str, cwd: Path, stdin: str = "", streams: str = "", encoding: str = "utf-8"
) -> subprocess.CompletedProcess[str]:
    """Run the command; `streams` is what a shell does to its standard streams first."""
    root = str(Path(__file__).parent.parent.parent)
    environment = {**os.environ, "PLANTED_KEY": SECRET, "PYTHONPATH": root, "PYTHONIOENCODING": encoding}
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", "gateway", *words],
        cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, timeout=60, check=False,
        encoding="utf-8",
    )  # fmt: skip


def written(folder: Path, text: str) -> Path:
    (folder / "config").mkdir(exist_ok=True)
    path = folder / "config/gateway.yaml"
    path.write_text(textwrap.dedent(text))
    return path


@pytest.mark.requirement("s12-73-cli-streams", "s12-74-cli-explicit", "196-5-tool-surfaces-apply-it")
async def test_a_call_prints_the_card_or_the_envelope_and_exits_by_its_code(tmp_path: Path) -> None:
    def answer(request: Any) -> bytes:
        return http({"id": 1915883588174806058, "ssn": "1"}) if request.target == "/read/a" else http({}, status=404)

    async with backend(answer) as api:
        written(tmp_path, CONTRACT.format(url=api.url))

        async def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
            return await asyncio.to_thread(toolview, *words, cwd=tmp_path, stdin=stdin)

        card = await run("call", "read", "--id", "a")
        from_stdin = await run("call", "read", "-", stdin='{"id": "a"}')
        missing = await run("call", "read", "--id", "b")
        refused = await run("call", "read")
        unknown = await run("call", "hidden")
        misused = await run("call", "read", "id")
    assert (card.returncode, card.stdout, card.stderr) == (0, '{"id":1915883588174806058}\n', "")
    assert from_stdin.stdout == card.stdout
    assert (missing.returncode, missing.stdout) == (4, "")
    assert json.loads(missing.stderr)["code"] == "NOT_FOUND"
    assert (refused.returncode, json.loads(refused.stderr)["code"]) == (1, "VALIDATION_ERROR")
    assert (unknown.returncode, json.loads(unknown.stderr)["code"]) == (1, "UNKNOWN_TOOL")
    assert "exposed on mcp and agent only; add `cli` to its `expose`" in json.loads(unknown.stderr)["_hint"]
    assert (misused.returncode, misused.stdout) == (2, "")
    assert len(api.received) == 3
    for ended in (card, missing, refused, unknown, misused):
        assert SECRET not in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr


def test_check_prints_every_refusal_with_its_line_and_a_repair(tmp_path: Path) -> None:
    text = """\
        version: 1
        backends: {api: {ulr: http://127.0.0.1:1}}
        endpoints:
          one:
            request: GET /one
            description: " "
            output: {type: object}
            tool:
              view: {}
          two:
            request: GET /two/{id}
            description: Two.
            output: {type: objekt}
    """
    path = written(tmp_path, text)
    ended = toolview("check", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert lines[-1] == "config/gateway.yaml: refused, 6 faults"
    at = {int(line.split(":")[1]) for line in lines[:-1]}
    assert at == {2, 6, 9, 11, 13}
    assert any("did you mean `url`" in line or "`url`" in line for line in lines)
    told = json.loads(toolview("check", "--format", "json", cwd=tmp_path).stdout)
    assert told["accepted"] is False
    assert {fault["line"] for fault in told["refusals"]} == at
    assert all(fault["message"] and fault["path"] and fault["file"].endswith(path.name) for fault in told["refusals"])


@pytest.mark.parametrize("command", ["check", "serve", "tools", "demo"])
def test_a_missing_contract_is_said_without_a_traceback(tmp_path: Path, command: str) -> None:
    ended = toolview(command, cwd=tmp_path)
    assert ended.returncode == 1
    assert "config/gateway.yaml" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


async def test_tools_lists_names_surfaces_and_descriptions(tmp_path: Path) -> None:
    written(tmp_path, CONTRACT.format(url="http://127.0.0.1:1"))
    ended = toolview("tools", cwd=tmp_path)
    assert ended.stdout.splitlines() == [
        "hidden  mcp,agent      Hidden from the command line.",
        "read    mcp,cli        Reads.",
    ]
    listed = json.loads(toolview("tools", "--format", "json", cwd=tmp_path).stdout)
    assert [tool["name"] for tool in listed] == ["hidden", "read"]
    assert list(listed[1]["outputSchema"]["properties"]) == ["id"]


FILE = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
    backends: {api: {url: URL}}
    endpoints:
      file: {request: POST /file, description: A file., expose: [cli], kind: media}
      text: {request: POST /text, description: No file., expose: [cli], output: {type: object}}
      named:
        request: POST /named
        description: Has an argument of that name.
        expose: [cli]
        kind: media
        input: {type: object, properties: {output: {type: string}}}
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_a_file_goes_to_stdout_or_where_it_is_told_and_never_onto_a_terminal(tmp_path: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n\0\xff"
    (tmp_path / "sub").mkdir()

    def answer(request: Received) -> bytes:
        return http({"a": 1}) if request.target == "/text" else http(png, content_type="image/png")

    async with backend(answer) as api:
        written(tmp_path, FILE.replace("URL", api.url))

        async def run(*words: str, streams: str = "") -> subprocess.CompletedProcess[str]:
            return await asyncio.to_thread(toolview, "call", *words, cwd=tmp_path, streams=streams)

        assert (await run("file", streams="> piped.png")).returncode == 0
        assert (await run("file", "--output", "told.png")).stdout == ""
        assert (await run("file", "--output=-", streams="> dashed.png")).returncode == 0
        assert (await run("text", "--output", "told.json")).stdout == ""
        assert (await run("named", "--output", "kept.png", streams="> named.png")).returncode == 0
        for name in ("piped.png", "told.png", "dashed.png", "named.png"):
            assert (tmp_path / name).read_bytes() == png
        assert (tmp_path / "told.json").read_text() == '{"a":1}'
        assert not (tmp_path / "kept.png").exists()
        assert api.received[-1].body == b'{"output":"kept.png"}'
        sent = len(api.received)
        for refused in (("--output", "sub"), ("--output", "no/such/place"), ("--output", "x" * 300), ("--output",)):
            ended = await run("file", *refused)
            assert (ended.returncode, ended.stdout) == (2, "")
            assert "Traceback" not in ended.stderr
        assert len(api.received) == sent
    misused = output_of(None, Terminal(), file=True)
    assert isinstance(misused, Misused)
    assert "--output" in misused.message
    assert output_of("-", Terminal(), file=True) is None
    assert output_of(None, Terminal(), file=False) is None


PLAIN = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
    backends: {api: {url: URL}}
    endpoints:
      read:
        request: GET /read
        description: Reads “é” and 😀.
        expose: [cli]
        input: {type: object, properties: {c: {type: string}, h: {type: string}, conf: {type: string}}}
        output: {type: object, properties: {name: {type: string}}}
"""


async def test_a_closed_standard_stream_is_an_empty_one(tmp_path: Path) -> None:
    async with backend(lambda _: http({"name": "a"})) as api:
        written(tmp_path, PLAIN.replace("URL", api.url))
        for streams in (">&-", "<&-", "2>&-", "<&- >&- 2>&-"):
            ended = await asyncio.to_thread(toolview, "call", "read", cwd=tmp_path, streams=streams)
            assert (ended.returncode, ended.stderr) == (0, ""), streams
            assert ended.stdout == ("" if ">&-" in streams.replace("2>&-", "") else '{"name":"a"}\n'), streams
        failed = await asyncio.to_thread(toolview, "call", "nothing", cwd=tmp_path, streams="2>&-")
        assert (failed.returncode, failed.stdout) == (1, "")
        nothing = await asyncio.to_thread(toolview, "call", "read", "-", cwd=tmp_path, streams="<&-")
        assert nothing.returncode == 2


@pytest.mark.parametrize("streams", [">&-", "<&- >&-"])
def test_a_projection_is_imported_where_a_standard_stream_is_closed(tmp_path: Path, streams: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "cards.py").write_text("def of(full, ctx):\n    return {'name': full['name']}\n")
    view = "        tool: {safety_tier: read, view: {output: {type: object}, project: {python: 'cards:of'}}}\n"
    written(tmp_path, PLAIN.replace("URL", "http://127.0.0.1:1") + view)
    ended = toolview("check", cwd=tmp_path, streams=streams)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("words", [("tools",), ("tools", "--format", "json"), ("check",), ("schema",)])
def test_a_full_disk_is_one_line_and_a_failure(tmp_path: Path, words: tuple[str, ...]) -> None:
    written(tmp_path, PLAIN.replace("URL", "http://127.0.0.1:1"))
    ended = toolview(*words, cwd=tmp_path, streams=">/dev/full")
    assert ended.returncode == 1
    assert ended.stderr == "toolview: the output cannot be written: No space left on device\n"
    assert toolview(*words, cwd=tmp_path, streams=">/dev/full 2>&1").returncode == 1


async def test_what_an_output_s_encoding_lacks_is_escaped_and_json_stays_json(tmp_path: Path) -> None:
    async with backend(lambda _: http({"name": "é😀"})) as api:
        written(tmp_path, PLAIN.replace("URL", api.url))
        listed = await asyncio.to_thread(toolview, "tools", "--format", "json", cwd=tmp_path, encoding="ascii")
        assert json.loads(listed.stdout)[0]["description"] == "Reads “é” and 😀."
        listed = await asyncio.to_thread(toolview, "tools", cwd=tmp_path, encoding="ascii")
        assert "\\u201c\\u00e9\\u201d and \\ud83d\\ude00" in listed.stdout
        told = await asyncio.to_thread(
            toolview, "call", "read", "-", cwd=tmp_path, stdin='{"c": "é"}', encoding="ascii"
        )
    assert api.received[0].target == "/read?c=%C3%A9"
    assert told.stdout.isascii()
    assert json.loads(told.stdout) == {"name": "é😀"}


def test_stdin_that_is_no_utf_8_is_said_in_a_sentence(tmp_path: Path) -> None:
    written(tmp_path, PLAIN.replace("URL", "http://127.0.0.1:1"))
    (tmp_path / "bad").write_bytes(b'{"c": "\xff"}')
    ended = toolview("call", "read", "-", cwd=tmp_path, streams="<bad")
    assert ended.returncode == 2
    assert ended.stderr.startswith("toolview: the arguments are not JSON")


async def test_an_argument_is_no_abbreviation_of_a_flag_of_ours(tmp_path: Path) -> None:
    async with backend(lambda _: http({"name": "a"})) as api:
        written(tmp_path, PLAIN.replace("URL", api.url))
        for name in ("c", "h", "conf"):
            ended = await asyncio.to_thread(toolview, "call", "read", f"--{name}", "chocolate", cwd=tmp_path)
            assert (ended.returncode, ended.stdout) == (0, '{"name":"a"}\n'), ended.stderr
        assert [received.target for received in api.received] == [
            f"/read?{name}=chocolate" for name in ("c", "h", "conf")
        ]
    assert toolview("tools", "--for", "json", cwd=tmp_path).returncode == 2


async def test_a_dry_run_shows_the_request_without_its_secrets_and_sends_nothing(tmp_path: Path) -> None:
    async with backend(lambda _: http({})) as api:
        written(tmp_path, CONTRACT.format(url=api.url + "/base").replace("X-Key:", "X-Other: plain-7f, X-Key:"))
        shown = await asyncio.to_thread(toolview, "call", "read", "--dry-run", "--id", "a/b", cwd=tmp_path)
        refused = await asyncio.to_thread(toolview, "call", "read", "--dry-run", cwd=tmp_path)
        unknown = await asyncio.to_thread(toolview, "call", "nothing", "--dry-run", cwd=tmp_path)
    assert api.received == []
    head = shown.stdout.splitlines()
    assert (shown.returncode, head[0], shown.stderr) == (0, "GET /base/read/a%2Fb HTTP/1.1", "")
    assert {"X-Key: ***", "X-Other: ***", f"Host: {api.url.removeprefix('http://')}"} <= set(head)
    assert SECRET not in shown.stdout
    assert (refused.returncode, json.loads(refused.stderr)["code"]) == (1, "VALIDATION_ERROR")
    assert (unknown.returncode, json.loads(unknown.stderr)["code"]) == (1, "UNKNOWN_TOOL")


def test_a_dry_run_whose_before_hook_fails_ends_in_the_envelope(tmp_path: Path) -> None:
    contract = CONTRACT.format(url="http://127.0.0.1:9").replace(
        "gateway: {", "gateway: {hooks: {before: 'hooks:before'}, ", 1
    )
    written(tmp_path, contract)
    (tmp_path / "config/hooks.py").write_text("def before(call):\n    call['arguments']\n")
    failed = toolview("call", "--dry-run", "read", "--id", "a", cwd=tmp_path)
    assert (failed.returncode, failed.stdout, json.loads(failed.stderr)["code"]) == (1, "", "INTERNAL_SERVER_ERROR")


@pytest.mark.parametrize("command", ["call", "preview"])
def test_what_is_missing_is_called_as_the_usage_calls_it(tmp_path: Path, command: str) -> None:
    refused = toolview(command, cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.endswith("the following arguments are required: tool\n")


#: Of every name that is a switch of the command, too.
ODD = {name: {"type": "string"} for name in ("json", "output", "config", "help")} | {"dry_run": {"type": "boolean"}}


@pytest.mark.parametrize(
    ("words", "properties", "line"),
    [
        (["--dry-run", "--output", "f"], {}, Line({}, {"dry-run": "", "output": "f"})),
        (["--config=c"], {}, Line({}, {"config": "c"})),
        (["--team", "--dry-run"], PROPERTIES, Line({"team": "--dry-run"}, {}, True)),
        (["--team", "--config=evil"], PROPERTIES, Line({"team": "--config=evil"}, {}, True)),
        (["--team", "-h"], PROPERTIES, Line({"team": "-h"}, {}, True)),
        (["--loud", "--dry-run"], PROPERTIES, Line({"loud": True}, {"dry-run": ""}, True)),
        (["--loud", "-h"], PROPERTIES, Line({"loud": True}, {"help": ""}, True)),
        (["-h", "and what", "follows"], PROPERTIES, Line({}, {"help": ""})),
        (["--help"], PROPERTIES, Line({}, {"help": ""})),
        (["--json", "a", "--output", "b", "--config", "c", "--help", "d"], ODD,
         Line({"json": "a", "output": "b", "config": "c", "help": "d"}, {}, True)),
        (["--dry-run", "-h"], ODD, Line({"dry_run": True}, {"help": ""}, True)),
    ],
)  # fmt: skip
def test_a_switch_behind_the_tool_s_name_gives_way_to_an_argument_of_that_name(
    words: list[str], properties: dict[str, Any], line: Line
) -> None:
    assert read_line(words, properties, io.StringIO(), CALL) == line


def test_a_switch_before_the_tool_s_name_is_the_command_s_whatever_the_tool_declares() -> None:
    before = {"dry-run": "", "output": "f", "json": '{"help": "d"}'}
    line = read_line(["--json", "a", "--dry-run", "no", "--output", "b"], ODD, io.StringIO(), CALL, before)
    assert line == Line({"help": "d", "json": "a", "dry_run": False, "output": "b"}, before, any_given=True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--output"], "--output needs FILE"),
        (["--dry-run=yes"], "--dry-run takes no value"),
        (["--output", "a", "--output", "b"], "--output is given twice"),
        (["-", "--team", "x"], "`-` reads all arguments from stdin"),
    ],
)
def test_a_switch_that_is_misused_is_said(words: list[str], told: str) -> None:
    misused = read_line(words, PROPERTIES, io.StringIO("{}"), CALL)
    assert isinstance(misused, Misused)
    assert misused.message.startswith(told)


def test_the_contract_may_be_named_behind_the_tool_s_name_unless_that_is_the_tool_s_word(tmp_path: Path) -> None:
    text = PLAIN.replace("URL", "http://127.0.0.1:1")
    plain = accepted(tmp_path / "plain", text)
    own = accepted(tmp_path / "own", text.replace("conf:", "config:"))

    def chosen(words: list[str], default: Contract | None, other: Contract | None) -> str | Misused | None:
        return contract_of("read", words, CALL, lambda path: default if path is None else other, "cli")

    assert chosen(["--c", "x"], None, None) is None
    assert chosen(["--c", "x", "--config", "o"], None, plain) == "o"
    assert chosen(["--config=o"], plain, plain) == "o"
    assert chosen(["--config", "o"], own, plain) is None, "the default contract's tool has it"
    assert chosen(["--c", "--config=o"], plain, own) is None, "it is a flag's value"
    told = chosen(["--config", "o"], None, own)
    assert isinstance(told, Misused)
    assert "before the tool's name" in told.message


async def test_help_tells_which_switches_stand_before_the_tool_s_name_alone(tmp_path: Path) -> None:
    text = PLAIN.replace("URL", "http://127.0.0.1:1").replace("conf:", "output:")
    contract = accepted(tmp_path, text)
    streams = Streams(io.StringIO(), io.StringIO(), io.StringIO())
    told = await call_once(contract, "read", ["-h"], streams)
    assert isinstance(told, str)
    both, _, alone = told.partition("and before `read` alone")
    assert "--output FILE" not in both
    assert "--dry-run" in both
    assert [line.split()[0] for line in alone.splitlines()[1:]] == ["--output"]


SECRETIVE = """
    version: 1
    backends: {api: {url: URL}}
    endpoints:
      join:
        request: POST /join
        description: Joins.
        expose: [cli]
        input:
          type: object
          properties:
            name: {type: string}
            pin: {type: integer, writeOnly: true}
            word: {type: string, format: password}
            keys: {type: array, items: {type: string, writeOnly: true}}
            who: {anyOf: [{$ref: '#/$defs/who'}, {type: 'null'}]}
            code: {type: string, writeOnly: true}
            crumb: {type: string, writeOnly: true}
            head: {type: string, writeOnly: true}
          $defs: {who: {type: object, properties: {user: {type: string}, pass: {type: string, writeOnly: true}}}}
        send: {code: {in: query}, crumb: {in: cookie}, head: {in: header, name: X-Head}}
        output: {type: object}
      form:
        request: POST /form
        description: Joins by a form.
        expose: [cli]
        input: {type: object, properties: {name: {type: string}, pin: {type: string, writeOnly: true}}}
        send: {body: {type: form}}
        output: {type: object}
"""


async def dry(contract: Contract, tool: str, arguments: dict[str, Any]) -> str:
    """What a dry run of a call shows."""
    streams = Streams(io.StringIO(json.dumps(arguments)), io.StringIO(), io.StringIO())
    unsent = await call_once(contract, tool, ["--dry-run", "-"], streams)
    assert isinstance(unsent, Unsent), unsent
    return (unsent.head + (unsent.body or b"")).decode()


async def test_a_dry_run_hides_what_is_for_writing_only_wherever_it_travels(tmp_path: Path) -> None:
    contract = accepted(tmp_path, SECRETIVE.replace("URL", "http://127.0.0.1:1"))
    given = {
        "name": "Ann", "pin": 987123, "word": "s3same", "keys": ["s3key"], "who": {"user": "ann", "pass": "s3pass"},
        "code": "s3code", "crumb": "s3crumb", "head": "s3head",
    }  # fmt: skip
    shown = await dry(contract, "join", given)
    lines = shown.splitlines()
    assert lines[0] == "POST /join?code=*** HTTP/1.1"
    assert {"X-Head: ***", "Cookie: crumb=***"} <= set(lines)
    hidden = {"name": "Ann", "pin": "***", "word": "***", "keys": ["***"], "who": {"user": "ann", "pass": "***"}}
    assert json.loads(lines[-1]) == hidden
    assert "s3" not in shown
    assert "987123" not in shown
    assert (await dry(contract, "form", {"name": "Ann", "pin": "s3pin"})).splitlines()[-1] == "name=Ann&pin=***"


async def test_what_a_dry_run_shows_is_what_a_call_sends(tmp_path: Path) -> None:
    async with backend(lambda _: http({"made": 1})) as api:
        text = """
            version: 1
            backends: {api: {url: URL, auth: {query: {name: key, value: "${PLANTED_KEY}"}}}}
            endpoints:
              make:
                request: POST /make
                description: Makes.
                expose: [cli]
                input: {type: object, properties: {n: {type: integer}, dry: {type: boolean}}}
                output: {type: object}
        """
        written(tmp_path, text.replace("URL", api.url))
        words = ("call", "make", "--n", "12345678901234567890123", "--dry")
        shown = await asyncio.to_thread(toolview, *words, "--dry-run", cwd=tmp_path)
        await asyncio.to_thread(toolview, *words, cwd=tmp_path)
    (sent,) = api.received

    def without_id(raw: str) -> list[str]:
        return [line for line in raw.splitlines() if not line.startswith("X-Tool-Call-Id")]

    assert without_id(shown.stdout) == without_id(sent.raw.decode().replace(SECRET, "***"))


async def test_help_tells_the_flags_of_a_tool_and_a_value_may_look_like_it(tmp_path: Path) -> None:
    async with backend(lambda _: http({"id": 1})) as api:
        written(tmp_path, CONTRACT.format(url=api.url))
        told = await asyncio.to_thread(toolview, "call", "read", "--help", cwd=tmp_path)
        called = await asyncio.to_thread(toolview, "call", "read", "--id", "-h", cwd=tmp_path)
        misused = await asyncio.to_thread(toolview, "call", "read", "-h", "x", "y", cwd=tmp_path)
    assert told.returncode == misused.returncode == 0
    assert "--id string" in told.stdout
    assert "required." in told.stdout
    assert (called.returncode, called.stdout) == (0, '{"id":1}\n')
    assert [received.target for received in api.received] == ["/read/-h"]


class Screen(io.StringIO):
    """A terminal, or not; `said` is set once something is written to it."""

    def __init__(self, tty: bool) -> None:
        super().__init__()
        self.tty = tty
        self.said = asyncio.Event()

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> int:
        self.said.set()
        return super().write(text)


async def test_a_terminal_is_told_that_a_call_is_under_way_and_the_line_goes_again() -> None:
    screen = Screen(tty=True)
    telling = asyncio.create_task(tell_waiting("re\x1b[2Jad", screen, first=0, every=0.001))
    await screen.said.wait()
    telling.cancel()
    await asyncio.wait([telling])
    assert "waiting for re" in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")


async def test_a_pipe_is_told_nothing_while_a_call_is_under_way() -> None:
    screen = Screen(tty=False)
    await tell_waiting("read", screen, first=0, every=0.001)
    assert screen.getvalue() == ""
