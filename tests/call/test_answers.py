"""Full answer to shown answer: checked, stripped, sliced or projected, checked again, encoded once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gateway.call.outcome import Outcome
from tests.rig import accepted, backend, http, running

HEAD = """
    version: 1
    gateway: {{projections: projections}}
    backends: {{api: {{url: {url}{more}}}}}
"""
FULL = "{type: object, required: [rows], properties: {rows: {type: array, items: {type: object, required: [id, name], properties: {id: {type: integer}, name: {type: string}, note: {type: [string, 'null']}, tags: {type: array, items: {type: object, properties: {label: {type: string}}}}}}}, error: {type: string}}}"
ROWS = {
    "rows": [
        {"id": 1915883588174806058, "name": "a", "note": None, "tags": [{"label": "x", "hidden": 1}], "ssn": "secret"},
        {"id": 2, "name": "b", "note": "n", "tags": [], "ssn": "secret"},
    ],
    "leaked": "secret",
}


async def shown(
    tmp_path: Path,
    answer: bytes,
    *,
    tool: str = "",
    output: str = FULL,
    files: dict[str, str] | None = None,
    more: str = "",
    arguments: dict[str, Any] | None = None,
    endpoint: str = "",
    trace: bool = False,
    view: bool = True,
) -> Outcome:
    """One call of a tool `t` whose endpoint is built from these YAML pieces."""
    output_line = f"\n        output: {output}" if output else ""
    tool_line = f"\n        tool: {{name: t, {tool}}}" if tool else "\n        tool: {name: t}"
    async with backend(answer) as api:
        head = HEAD.format(url=api.url, more=more)
        text = (
            head
            + "    endpoints:\n      one:\n        request: GET /one\n        description: One.\n"
            + "        expose: [http, mcp, agent, cli]\n"
            + "        input: {type: object, properties: {limit: {type: integer}}}"
            + f"{endpoint}{output_line}{tool_line}\n"
        )
        contract = accepted(tmp_path, text, files)
        async with running(contract, trace=trace) as gateway:
            outcome = await gateway.call("t", arguments, view=view)
        assert gateway.outcomes == [outcome], "every ending is told once"
    return outcome


@pytest.mark.requirement("196-3-full-checked-first", "s12-80-bytes")
async def test_without_a_view_the_answer_is_the_checked_and_stripped_full_one(tmp_path: Path) -> None:
    outcome = await shown(tmp_path, http(ROWS))
    assert outcome.value == {
        "rows": [
            {"id": 1915883588174806058, "name": "a", "note": None, "tags": [{"label": "x"}]},
            {"id": 2, "name": "b", "note": "n", "tags": []},
        ]
    }
    assert outcome.body == json.dumps(outcome.value, separators=(",", ":")).encode()
    assert (outcome.full_bytes, outcome.view_bytes) == (len(json.dumps(ROWS)), len(outcome.body))


@pytest.mark.requirement("196-3-slice", "196-c-slice-strips-not-reported")
async def test_a_slice_keeps_rows_and_declared_keys_at_every_depth(tmp_path: Path) -> None:
    view = "view: {output: {type: object, required: [rows], properties: {rows: {type: array, items: {type: object, required: [id], properties: {id: {type: integer}, tags: {type: array, items: {type: object, properties: {label: {type: string}}}}}}}}}}"
    outcome = await shown(tmp_path, http(ROWS), tool=view)
    assert outcome.value == {
        "rows": [{"id": 1915883588174806058, "tags": [{"label": "x"}]}, {"id": 2, "tags": []}],
    }
    assert outcome.stripped == ()


@pytest.mark.requirement(
    "196-3-projected-is-checked", "196-3-project-sees-validated-full", "196-3-input-includes-defaults"
)
async def test_a_projection_sees_the_stripped_full_answer_the_accepted_input_and_the_source(tmp_path: Path) -> None:
    code = """
        def card(full, ctx):
            return {"full": full, "input": ctx.input, "source": ctx.source}
    """
    outcome = await shown(
        tmp_path,
        http(ROWS),
        tool="view: {defaults: {limit: 5}, output: {type: object, properties: {full: {}, input: {}, source: {}}}, project: {python: 'cards:card'}}",
        files={"projections/cards.py": code},
    )
    assert outcome.value["input"] == {"limit": 5}
    assert outcome.value["source"] == "mcp"
    assert "leaked" not in outcome.value["full"]
    assert "ssn" not in outcome.value["full"]["rows"][0]
    assert outcome.value["full"]["rows"][0]["id"] == 1915883588174806058
    assert outcome.projection_seconds is not None


@pytest.mark.requirement("196-3-project-only-keeps-full-schema")
async def test_a_projection_alone_keeps_the_full_schema(tmp_path: Path) -> None:
    kept = await shown(tmp_path, http(ROWS), tool="view: {project: {jmespath: '{rows: full.rows[:1]}'}}")
    assert kept.value == {"rows": [{"id": 1915883588174806058, "name": "a", "note": None, "tags": [{"label": "x"}]}]}
    broken = await shown(tmp_path, http(ROWS), tool="view: {project: {jmespath: '{rows: full.rows[].id}'}}")
    assert broken.code == "INTERNAL_SERVER_ERROR"


@pytest.mark.requirement("196-3-defaults-only")
async def test_a_view_of_defaults_alone_answers_the_full_answer(tmp_path: Path) -> None:
    outcome = await shown(tmp_path, http(ROWS), tool="view: {defaults: {limit: 3}}")
    assert len(outcome.value["rows"]) == 2
    assert outcome.accepted == {"limit": 3}


@pytest.mark.requirement("196-c-projection-strips-reported")
async def test_keys_that_a_projection_adds_beyond_its_schema_are_stripped_and_named(tmp_path: Path) -> None:
    view = "view: {output: {type: object, properties: {people: {type: array, items: {type: object, properties: {id: {type: integer}}}}}}, project: {jmespath: '{people: full.rows[].{id: id, ssn: name}, extra: `1`}'}}"
    outcome = await shown(tmp_path, http(ROWS), tool=view)
    assert outcome.value == {"people": [{"id": 1915883588174806058}, {"id": 2}]}
    assert sorted(outcome.stripped) == ["extra", "people[0].ssn", "people[1].ssn"]


@pytest.mark.requirement("196-c-full-strips-reported", "196-c-no-walk-unasked")
async def test_what_the_backend_sends_beyond_its_schema_is_named_when_asked(tmp_path: Path) -> None:
    asked = await shown(tmp_path, http(ROWS), trace=True)
    assert sorted(asked.stripped) == ["leaked", "rows[0].ssn", "rows[0].tags[0].hidden", "rows[1].ssn"]
    unasked = await shown(tmp_path, http(ROWS))
    assert unasked.stripped == ()


@pytest.mark.requirement("196-3-full-invalid-is-the-backends-fault")
async def test_a_full_answer_that_breaks_its_schema_is_the_backends_fault_and_not_shown(tmp_path: Path) -> None:
    wrong = {"rows": [{"id": "secret-text", "name": None}]}
    outcome = await shown(tmp_path, http(wrong), tool="view: {project: {jmespath: full}}")
    assert outcome.failure is not None
    assert (outcome.code, outcome.failure.status, outcome.failure.retryable) == ("BACKEND_ANSWER_INVALID", 502, False)
    found = {(fault["pointer"], fault["rule"], fault["found"]) for fault in outcome.failure.details["violations"]}
    assert found == {("/rows/0/id", "type", "string"), ("/rows/0/name", "type", "null")}
    assert "secret" not in json.dumps(outcome.envelope())
    assert outcome.projection_seconds is None, "the projection never ran"
    assert outcome.full_bytes == outcome.view_bytes == 0


@pytest.mark.parametrize(
    ("output", "answer", "fault"),
    [
        ("{type: object, properties: {name: {}}, minProperties: 2}", {"id": 1, "name": "a"}, "at least 2 keys"),
        ("{type: object, properties: {name: {}}, not: {maxProperties: 1}}", {"id": 1, "name": "a"}, "`not`"),
        (
            "{type: array, items: {type: object, properties: {name: {}}}, uniqueItems: true}",
            [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}],
            "items that all differ",
        ),
        (
            "{type: object, allOf: [{properties: {name: {}}, required: [id]}, {properties: {team: {}}}]}",
            {"id": 1, "name": "a"},
            "`id` is required and missing",
        ),
    ],
)
async def test_an_answer_that_breaks_its_schema_once_stripped_is_not_shown_and_told_in_the_log(
    tmp_path: Path, output: str, answer: Any, fault: str
) -> None:
    outcome = await shown(tmp_path, http(answer), output=output)
    assert outcome.code == "INTERNAL_SERVER_ERROR", outcome.value
    assert outcome.fault is not None
    assert outcome.fault.startswith("the answer breaks its declared output once what that does not declare is stripped")
    assert fault in outcome.fault


async def test_observe_counts_the_drift_and_answers_what_the_view_needs(tmp_path: Path) -> None:
    wrong = {"rows": [{"id": 1, "name": None}]}
    card = "view: {output: {type: object, required: [rows], properties: {rows: {type: array, items: {type: object, required: [id], properties: {id: {type: integer}}}}}}}"
    outcome = await shown(tmp_path, http(wrong), endpoint="\n        validate: observe", tool=card)
    assert outcome.ok
    assert outcome.value == {"rows": [{"id": 1}]}
    assert outcome.violations == ("/properties/rows/items/properties/name/type",)
    needed = await shown(
        tmp_path, http({"rows": [{"id": "x", "name": "n"}]}), endpoint="\n        validate: observe", tool=card
    )
    assert needed.code == "BACKEND_ANSWER_INVALID"
    whole = await shown(tmp_path, http(wrong), endpoint="\n        validate: observe")
    assert whole.code == "BACKEND_ANSWER_INVALID", "without a view the advertised schema is the full one"


@pytest.mark.requirement("s12-42-not-json")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(http(b""), "the body is empty", id="JSN-13-empty"),
        pytest.param(http(b"  "), "the body is empty", id="JSN-13-blank"),
        pytest.param(http(b"<html>secret</html>", content_type="text/html"), "expected value", id="html"),
        pytest.param(http(b'{"a":1}{"b":2}'), "trailing", id="JSN-14"),
        pytest.param(http(b'{"a":NaN}'), "expected value", id="JSN-05"),
        pytest.param(http(b'{"a":1,"a":2}'), "same key twice", id="JSN-04"),
    ],
)
async def test_a_2xx_answer_that_is_not_its_json_is_a_backend_fault(tmp_path: Path, answer: bytes, reason: str) -> None:
    outcome = await shown(tmp_path, answer)
    assert outcome.failure is not None
    assert outcome.code == "BACKEND_ANSWER_INVALID"
    assert reason in outcome.failure.details["reason"]
    assert "secret" not in json.dumps(outcome.envelope())


async def test_204_is_null_where_the_output_has_null_and_a_fault_elsewhere(tmp_path: Path) -> None:
    nothing = b"HTTP/1.1 204 No Content\r\n\r\n"
    fine = await shown(tmp_path, nothing, output="{type: [object, 'null']}")
    assert fine.body == b"null"
    fault = await shown(tmp_path, nothing)
    assert fault.code == "BACKEND_ANSWER_INVALID"


@pytest.mark.requirement("s12-56-no-output")
async def test_without_a_declared_output_the_tool_answers_empty(tmp_path: Path) -> None:
    outcome = await shown(tmp_path, http({"secret": 1}), output="")
    assert outcome.ok
    assert outcome.body is None
    assert (outcome.full_bytes, outcome.view_bytes) == (0, 0)


@pytest.mark.requirement("187-3-error-field-is-success")
async def test_an_answer_with_an_error_field_is_a_success(tmp_path: Path) -> None:
    outcome = await shown(tmp_path, http({"rows": [], "error": "none"}))
    assert outcome.ok
    assert outcome.value == {"rows": [], "error": "none"}


@pytest.mark.requirement("s12-55-roots-kept")
@pytest.mark.parametrize(
    ("output", "answer"),
    [("{type: array, items: {type: integer}}", [1, 2]), ("{type: integer}", 12345678901234567890123), ("{}", None)],
)
async def test_any_root_is_kept(tmp_path: Path, output: str, answer: Any) -> None:
    outcome = await shown(tmp_path, http(answer), output=output)
    assert outcome.body == json.dumps(answer, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "content_type",
    [
        "text/html; charset=utf-8",
        "text/plain",
        "json",
        "",
        "application/problem+json",
        "application/vnd.api+json",
        "text/json",
        "application/json;charset=UTF8",
    ],
)
async def test_json_is_json_whatever_its_content_type_says(tmp_path: Path, content_type: str) -> None:
    """JSN-11."""
    assert (await shown(tmp_path, http({"rows": []}, content_type=content_type))).value == {"rows": []}


async def test_the_output_of_the_answers_own_status_is_used(tmp_path: Path) -> None:
    output = "{'200': {type: object, required: [old]}, '201': {type: object, required: [new]}}"
    made = await shown(tmp_path, http({"new": 1}, status=201), output=output)
    assert made.ok
    wrong = await shown(tmp_path, http({"new": 1}, status=200), output=output)
    assert wrong.code == "BACKEND_ANSWER_INVALID"
    unknown = await shown(tmp_path, http({"new": 1}, status=202), output=output)
    assert unknown.code == "BACKEND_ANSWER_INVALID"


@pytest.mark.requirement("196-5-code-keeps-full", "196-5-told-by-the-runner")
async def test_a_call_by_code_keeps_the_full_answer_and_gets_no_view_default(tmp_path: Path) -> None:
    tool = "view: {defaults: {limit: 3}, project: {jmespath: '{rows: `[]`}'}}"
    plain = await shown(tmp_path, http(ROWS), tool=tool, view=False)
    assert len(plain.value["rows"]) == 2
    assert plain.accepted == {}
    assert (await shown(tmp_path, http(ROWS), tool=tool)).value == {"rows": []}


@pytest.mark.requirement("196-5-code-keeps-full")
async def test_code_in_this_process_invokes_a_tool_by_name_with_or_without_its_view(tmp_path: Path) -> None:
    text = """
        version: 1
        backends: {api: {url: URL}}
        endpoints:
          one:
            request: GET /one
            description: One.
            expose: [cli]
            output: {type: object, properties: {a: {type: integer}, b: {type: integer}}}
            tool: {name: t, view: {output: {type: object, properties: {a: {type: integer}}}}}
    """
    async with (
        backend(http({"a": 1, "b": 2})) as api,
        running(accepted(tmp_path, text.replace("URL", api.url))) as gateway,
    ):
        full = await gateway.gateway.invoke("t", {})
        card = await gateway.gateway.invoke("t", {}, view=True)
        unknown = await gateway.gateway.invoke("u", {})
    assert (full.value, card.value) == ({"a": 1, "b": 2}, {"a": 1})
    assert (full.call.surface, unknown.code) == ("cli", "UNKNOWN_TOOL")


class TestBudget:
    VIEW = "output: {type: object, required: [rows], properties: {rows: {type: array, items: {type: object, properties: {id: {type: integer}}}}, cut: {type: object, properties: {shown: {type: integer}, total: {type: integer}}}}}, project: {jmespath: '{rows: full.rows[].{id: id}}'}"
    MANY: ClassVar[dict[str, Any]] = {"rows": [{"id": number, "name": "x"} for number in range(1000, 1100)]}

    async def test_a_larger_answer_is_refused_with_the_arguments_that_narrow_it(self, tmp_path: Path) -> None:
        outcome = await shown(tmp_path, http(self.MANY), tool=f"view: {{{self.VIEW}, budget: 1KiB}}")
        assert outcome.failure is not None
        assert (outcome.code, outcome.failure.status) == ("ANSWER_OVER_BUDGET", 422)
        assert outcome.failure.details == {"bytes": 1210, "budget": 1024}
        assert outcome.failure.hint == "Narrow it with: limit."

    async def test_whole_rows_are_trimmed_until_it_fits_and_the_note_says_so(self, tmp_path: Path) -> None:
        tool = f"view: {{{self.VIEW}, budget: {{bytes: 1KiB, trim: /rows, note: /cut}}}}"
        outcome = await shown(tmp_path, http(self.MANY), tool=tool)
        assert outcome.ok
        kept = len(outcome.value["rows"])
        assert outcome.value["cut"] == {"shown": kept, "total": 100}
        assert outcome.value["rows"] == [{"id": number} for number in range(1000, 1000 + kept)]
        assert outcome.view_bytes <= 1024 < outcome.view_bytes + len('{"id":1000},')

    async def test_what_fits_is_left_alone(self, tmp_path: Path) -> None:
        tool = f"view: {{{self.VIEW}, budget: {{bytes: 1210, trim: /rows, note: /cut}}}}"
        outcome = await shown(tmp_path, http(self.MANY), tool=tool)
        assert "cut" not in outcome.value
        assert outcome.view_bytes == 1210
