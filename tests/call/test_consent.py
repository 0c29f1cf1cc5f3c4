"""What a person is asked, and what exactly their yes is to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.call.consent import SHOWN_CHARACTERS, Consent, asked, filled
from tests.rig import accepted, backend, http, running

Json = Any


@pytest.mark.parametrize(
    ("template", "accepted", "question"),
    [
        ("Delete {name}?", {"name": "Ada"}, "Delete Ada?"),
        ("{name} and {name}?", {"name": "Ada"}, "Ada and Ada?"),
        ("{a} {b} {c} {d}?", {"a": 12345678901234567890123, "b": False, "c": None, "d": 0.4}, "{} {} {} {}"),
        ("{rows}?", {"rows": [{"id": 1}]}, '[{"id":1}]?'),
        ("Delete {name}?", {}, "Delete (not given)?"),
        ("Delete {name}?", {"name": "{other}", "other": "x"}, "Delete {other}?"),
        ("Half { a brace, {name}}?", {"name": "x"}, "Half { a brace, x}?"),
        ("Delete {name}?", {"name": "a\n\nNothing is deleted.\u202e\x1b[2J"}, "{}"),
        ("{n}", {"n": "é 日本 😀"}, "é 日本 😀"),
    ],
)
def test_a_question_is_filled_in_one_line(template: str, accepted: Json, question: str) -> None:
    if question == "{} {} {} {}":
        question = "12345678901234567890123 false null 0.4?"
    if question == "{}":
        question = r"Delete a\u000a\u000aNothing is deleted.\u202e\u001b[2J?"
    assert filled(template, accepted) == question


def test_a_long_argument_is_cut_and_the_question_says_so() -> None:
    shown = filled("{text}", {"text": "x" * 100_000})
    assert shown == "x" * SHOWN_CHARACTERS + "… (100000 characters)"


def test_a_caller_that_cannot_ask_is_told_so_and_nothing_is_made_of_the_question() -> None:
    assert asked("Sure?", None, "e", "t", None, {}).consent is Consent.CANNOT_ASK


def test_a_claim_is_the_same_for_the_same_call_and_another_for_any_other() -> None:
    def claim(
        *, template: str = "{a}?", where: tuple[str, str, str | None] = ("e", "t", "me"), **accepted: Json
    ) -> bytes:
        found = asked(template, lambda _: Consent.UNASKED, *where, accepted)
        assert found.question == filled(template, accepted)
        return found.claim

    first = claim(a=1, b={"x": 1, "y": [2]})
    assert claim(b={"y": [2], "x": 1}, a=1) == first
    others = [
        claim(a=1, b={"x": 1, "y": [3]}),
        claim(a=1),
        claim(a="1", b={"x": 1, "y": [2]}),
        claim(a=1.5, b={"x": 1, "y": [2]}),
        claim(template="Really {a}?", a=1, b={"x": 1, "y": [2]}),
        claim(where=("f", "t", "me"), a=1, b={"x": 1, "y": [2]}),
        claim(where=("e", "u", "me"), a=1, b={"x": 1, "y": [2]}),
        claim(where=("e", "t", "you"), a=1, b={"x": 1, "y": [2]}),
        claim(where=("e", "t", None), a=1, b={"x": 1, "y": [2]}),
    ]
    assert len({first, *others}) == len(others) + 1
    # What a question no longer shows of a long argument is in the claim all the same.
    assert claim(a="x" * 600 + "a") != claim(a="x" * 600 + "b")


CONTRACT = """
    version: 1
    backends: {api: {url: URL}}
    endpoints:
      drop:
        request: DELETE /rows/{id}
        description: Drops a row.
        expose: [mcp, agent]
        input: {type: object, required: [id], properties: {id: {type: string}}}
        output: {type: object}
        tool: {safety_tier: write, mcp: {confirm: "Drop {id}?"}}
"""


async def test_a_person_is_asked_over_mcp_alone_and_not_by_code_in_this_process(tmp_path: Path) -> None:
    async with backend(http({})) as api, running(accepted(tmp_path, CONTRACT.replace("URL", api.url))) as gateway:
        over_mcp = await gateway.call("drop", {"id": "a"}, surface="mcp")
        assert (over_mcp.code, api.received) == ("FORBIDDEN", [])
        by_code = await gateway.gateway.invoke("drop", {"id": "b"})
        over_agent = await gateway.call("drop", {"id": "c"}, surface="agent")
    assert (by_code.code, by_code.call.surface, over_agent.code) == ("ok", "mcp", "ok")
    assert [received.target for received in api.received] == ["/rows/b", "/rows/c"]
