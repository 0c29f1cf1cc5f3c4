"""Every way a call can fail becomes the one envelope, with its code, status, `retryable`, and nothing undeclared."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from gateway.backend.exchange import NoAnswer, Silence
from gateway.backend.guard import BREAKER_OPEN
from gateway.call.consent import Consent
from gateway.call.failure import no_answer, plain_text
from gateway.call.outcome import Code, Outcome
from gateway.surfaces.cli import EXIT_CODES
from tests.rig import HANG, accepted, backend, http, running

CONTRACT = """
    version: 1
    backends: {{api: {{url: {url}, timeout: 5s{more}}}}}
    endpoints:
      read:
        request: GET /read
        description: Reads.
        expose: [http, mcp, agent, cli]
        input: {{type: object, properties: {{limit: {{type: integer}}}}}}
        output: {{type: object}}
        errors: {{QUOTA_EXCEEDED: {{status: 402, retryable: true, hint: Buy more.}}, STUCK: {{status: 503, retryable: false}}, LOST: {{status: 503}}}}
      write:
        request: POST /write
        description: Writes.
        timeout: 150ms
        output: {{type: object}}
      slow:
        request: GET /slow
        description: Waits.
        timeout: 150ms
        output: {{type: object}}
"""


async def ended(tmp_path: Path, answer: bytes | None, *, tool: str = "read", more: str = "") -> Outcome:
    """How one call ends against a backend with this one answer."""
    async with backend(lambda _: answer) as api:
        async with running(accepted(tmp_path, CONTRACT.format(url=api.url, more=more))) as gateway:
            outcome = await gateway.call(tool, surface="mcp", call_id="c1")
        assert gateway.outcomes == [outcome]
        assert len(api.received) == 1, "nothing is sent twice because it could be retried"
    assert outcome.failure is not None
    assert outcome.envelope()["details"]["call_id"] == "c1"
    return outcome


@pytest.mark.requirement("187-2-retryable-on-every-refusal", "187-2-derived-from-status", "187-2-never-replays")
@pytest.mark.parametrize(
    ("status", "code", "shown_status", "retryable"),
    [
        (400, "BAD_REQUEST", 400, False),
        (401, "UNAUTHORIZED", 401, False),
        (402, "BACKEND_ERROR", 502, False),
        (403, "FORBIDDEN", 403, False),
        (404, "NOT_FOUND", 404, False),
        (405, "METHOD_NOT_ALLOWED", 405, False),
        (408, "BACKEND_ERROR", 502, True),
        (409, "CONFLICT", 409, False),
        (410, "GONE", 410, False),
        (418, "BACKEND_ERROR", 502, False),
        (422, "VALIDATION_ERROR", 400, False),
        (429, "RATE_LIMITED", 429, True),
        (500, "BACKEND_ERROR", 502, False),
        (501, "BACKEND_ERROR", 502, False),
        (502, "BACKEND_ERROR", 502, True),
        (503, "BACKEND_ERROR", 502, True),
        (504, "BACKEND_ERROR", 502, True),
        (302, "BACKEND_ERROR", 502, False),
    ],
)
async def test_a_backends_status_gives_the_code(
    tmp_path: Path, status: int, code: str, shown_status: int, retryable: bool
) -> None:
    outcome = await ended(tmp_path, http({"secret": "x"}, status=status, headers={"Location": "/elsewhere"}))
    failure = outcome.failure
    assert failure is not None
    assert (failure.code, failure.status, failure.retryable) == (code, shown_status, retryable)
    assert failure.details["backend_status"] == status
    assert "secret" not in json.dumps(outcome.envelope())


@pytest.mark.requirement("187-2-declared-wins", "187-2-survives-the-hop")
@pytest.mark.parametrize(
    ("body", "code", "shown_status", "retryable", "hint"),
    [
        ({"error": {"code": "QUOTA_EXCEEDED", "message": "No more."}}, "QUOTA_EXCEEDED", 402, True, "Buy more."),
        ({"error": {"code": "STUCK"}}, "STUCK", 503, False, None),
        ({"error": {"code": "LOST"}}, "LOST", 503, True, None),
        ({"error": {"code": "LOST", "retryable": False, "hint": "Wait."}}, "LOST", 503, False, "Wait."),
        ({"error": {"code": "OTHER", "retryable": True}}, "NOT_FOUND", 404, True, None),
        ({"error": {"code": "OTHER", "retryable": "yes"}}, "NOT_FOUND", 404, False, None),
    ],
)
async def test_a_declared_code_wins_over_the_status(
    tmp_path: Path, body: Any, code: str, shown_status: int, retryable: bool, hint: str | None
) -> None:
    failure = (await ended(tmp_path, http(body, status=404))).failure
    assert failure is not None
    assert (failure.code, failure.status, failure.retryable) == (code, shown_status, retryable)
    assert failure.hint == hint


@pytest.mark.requirement("s12-61-legacy-errors-hidden")
async def test_of_a_legacy_body_only_what_is_declared_is_shown(tmp_path: Path) -> None:
    body = {"fault": {"no": "E-17", "text": "Disk full"}, "password": "hunter2", "message": "hidden"}
    more = ", errors: {code: /fault/no, message: /fault/text}"
    told = await ended(tmp_path, http(body, status=500), more=more)
    assert told.failure is not None
    assert told.failure.details["backend_code"] == "E-17"
    assert told.failure.error.endswith("It says: Disk full")
    untold = await ended(tmp_path, http(body, status=500))
    for outcome in (told, untold):
        assert "hunter2" not in json.dumps(outcome.envelope())
        assert "hidden" not in json.dumps(outcome.envelope())


@pytest.mark.parametrize(
    "answer",
    [
        http(b"<html><body>Traceback: hunter2</body></html>", status=500, content_type="text/html"),
        http({"error": {"code": "X", "message": "<b>hunter2</b>"}}, status=500),
        http({"error": "hunter2"}, status=500),
        http(b"hunter2", status=500, content_type="text/plain"),
        http(["hunter2"], status=500),
    ],
    ids=["html", "html-message", "plain-error", "text", "list"],
)
async def test_a_body_that_declares_nothing_shows_nothing(tmp_path: Path, answer: bytes) -> None:
    assert "hunter2" not in json.dumps((await ended(tmp_path, answer)).envelope())


async def test_problem_details_keep_title_and_detail(tmp_path: Path) -> None:
    """JSN-12."""
    problem = {"type": "about:blank", "title": "Out of credit", "status": 422, "detail": "Balance is 30.", "secret": 1}
    outcome = await ended(tmp_path, http(problem, status=422, content_type="application/problem+json"))
    assert outcome.failure is not None
    assert outcome.failure.code == "VALIDATION_ERROR"
    assert outcome.failure.error.endswith("It says: Balance is 30.")
    assert "secret" not in json.dumps(outcome.envelope())


@pytest.mark.parametrize(
    ("value", "kept"),
    [("120", 120), ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT"), ("soon", None)],
)
async def test_retry_after_is_reported_and_never_slept_on(tmp_path: Path, value: str, kept: Any) -> None:
    outcome = await ended(tmp_path, http({}, status=429, headers={"Retry-After": value}))
    assert outcome.failure is not None
    assert outcome.failure.details.get("retry_after") == kept


@pytest.mark.requirement("s12-63-unreachable")
async def test_a_refused_connection_is_retryable_since_nothing_was_sent(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with running(accepted(tmp_path, CONTRACT.format(url=url, more=""))) as gateway:
            outcome = await gateway.call("write")
    assert outcome.failure is not None
    assert (outcome.code, outcome.failure.retryable) == ("BACKEND_UNREACHABLE", True)


@pytest.mark.requirement("s12-62-deadline")
@pytest.mark.parametrize(("tool", "retryable"), [("slow", True), ("write", False)])
async def test_a_deadline_is_retryable_only_where_repeating_is_harmless(
    tmp_path: Path, tool: str, retryable: bool
) -> None:
    failure = (await ended(tmp_path, HANG, tool=tool)).failure
    assert failure is not None
    assert (failure.code, failure.status, failure.retryable) == ("BACKEND_TIMEOUT", 504, retryable)
    assert ("verify" in (failure.hint or "")) is not retryable


async def test_a_body_cut_short_is_a_closed_connection(tmp_path: Path) -> None:
    async with backend(lambda request: None if b"/cut" in request.raw else http({})) as api:
        contract = CONTRACT.replace("/read", "/cut").replace("/write", "/cut")
        async with running(accepted(tmp_path, contract.format(url=api.url, more=""))) as gateway:
            read = await gateway.call("read")
            write = await gateway.call("write")
    assert read.failure is not None
    assert write.failure is not None
    assert (read.code, read.failure.retryable) == ("BACKEND_CLOSED", True)
    assert (write.code, write.failure.retryable) == ("BACKEND_CLOSED", False)
    assert "verify" in (write.failure.hint or "")


@pytest.mark.requirement("s12-65-ceiling")
@pytest.mark.parametrize(("size", "fits"), [(1024, True), (1025, False)])
async def test_exactly_the_byte_ceiling_is_taken(tmp_path: Path, size: int, fits: bool) -> None:
    body = b'{"a":"' + b"x" * (size - 8) + b'"}'
    async with backend(http(body)) as api:
        contract = CONTRACT.format(url=api.url, more=", limits: {answer: 1KiB}")
        async with running(accepted(tmp_path, contract)) as gateway:
            outcome = await gateway.call("read")
    assert outcome.code == ("ok" if fits else "BACKEND_ANSWER_TOO_LARGE")


@pytest.mark.requirement("s12-64-caller-leaves")
async def test_a_caller_that_leaves_cancels_the_backend_call_and_is_counted(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    def hang(_: Any) -> bytes:
        arrived.set()
        return HANG

    async with backend(hang) as api, running(accepted(tmp_path, CONTRACT.format(url=api.url, more=""))) as gateway:
        task = asyncio.create_task(gateway.call("read"))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(api.left.wait(), 1)
    (outcome,) = gateway.outcomes
    assert outcome.code == "REQUEST_ABORTED"
    assert gateway.gateway.in_flight == 0


@pytest.mark.requirement("187-5-stub")
async def test_a_stubbed_backend_answers_not_implemented(tmp_path: Path) -> None:
    contract = """
        version: 1
        gateway: {missing_backend: stub}
        backends: {api: {timeout: 1s}}
        endpoints: {later: {request: GET /later, description: Comes later., output: {type: object}}}
    """
    async with running(accepted(tmp_path, contract)) as gateway:
        outcome = await gateway.call("later")
    assert outcome.failure is not None
    assert (outcome.code, outcome.failure.status, outcome.failure.retryable) == ("NOT_IMPLEMENTED", 501, False)


@pytest.mark.requirement("187-r-hint-keeps-its-name")
async def test_the_envelope_has_details_and_hint_only_where_there_is_something_to_say(tmp_path: Path) -> None:
    outcome = await ended(tmp_path, HANG, tool="write")
    assert list(outcome.envelope()) == ["ok", "code", "error", "retryable", "details", "_hint"]
    plain = await ended(tmp_path, HANG, tool="slow")
    assert list(plain.envelope()) == ["ok", "code", "error", "retryable", "details"]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("Disk full", "Disk full"),
        ("see https://admin:pw@host/x?token=1 now", "see (address left out) now"),
        ("Authorization: Bearer abcdef123456 refused", "Authorization: (credential left out) refused"),
        ("line\r\n\x1b[31mtwo\x00", "line [31mtwo"),
        ("cannot reach db1.internal:5432/people?user=a now", "cannot reach (address left out) now"),
        ("dial tcp 10.0.0.7:8080: refused", "dial tcp (address left out): refused"),
        ("cannot reach localhost:9200, or [::1]:80/x.", "cannot reach (address left out), or (address left out)"),
        ("no route to api:80/x", "no route to (address left out)"),
        ("row:15 of sha256:12345abc", "row:15 of sha256:12345abc"),
        ("root:pw@db:3306/main is away", "(address left out) is away"),
        ("at 12:30, ratio 3:20, line 7:12", "at 12:30, ratio 3:20, line 7:12"),
        ("page:2 of id:7", "page:2 of id:7"),
        ("sent Authorization: Token abc123 there", "sent Authorization: (credential left out) there"),
        ("bad api_key=abc&x=1", "bad api_key=(credential left out)&x=1"),
        ("token=abc, x", "token=(credential left out), x"),
        ('{"password": "a b", "n": 1}', '{"password": (credential left out), "n": 1}'),
        ("X-Api-Key: abc; client_secret=abc", "X-Api-Key: (credential left out); client_secret=(credential left out)"),
        ("unexpected token } at 7; the password is too short", "unexpected token } at 7; the password is too short"),
        ("Failed.\nTraceback (most recent call last):\n  File \"/srv/a.py\", line 3\nKeyError: 'x'", "Failed."),
        ("Traceback (most recent call last):\n  File", None),
        ("No row.\n\tat com.x.Y(Z.java:12)\n\tat com.x.Main.<init>(Unknown Source)", "No row."),
        ("TypeError: x\n    at async run (/srv/app.js:10:5)", "TypeError: x"),
        ("look at me (1:2)", "look at me (1:2)"),
        ("a\u202eb\u2066c\u200bd\ufeff e\u200d", "abcd e"),
        ("api_\u200bkey=abc", "api_key=(credential left out)"),
        ("\u200b", None),
        ("a <= 2 and c > d", "a <= 2 and c > d"),
        ("<!DOCTYPE html><p>x", None),
        ("oops </div>", None),
        ("   ", None),
        (17, None),
        (None, None),
        ("x" * 600, "x" * 499 + "…"),
    ],
)
def test_a_backends_words_are_shown_as_short_plain_text(told: Any, shown: str | None) -> None:
    assert plain_text(told) == shown


def test_codes_are_named_as_they_are_shown() -> None:
    assert [code.word for code in Code] == [code.name for code in Code]


async def test_a_backends_code_is_no_way_out_for_a_credential_nor_its_details_for_a_flood(tmp_path: Path) -> None:
    more = ", auth: {bearer: planted-secret-1}"
    said = {"code": "KEY-planted-secret-1", "message": "No.", "details": [["x" * 500] * 20] * 20}
    outcome = await ended(tmp_path, http({"error": said}, status=400), more=more)
    assert outcome.failure is not None
    assert set(outcome.failure.details) == {"backend_status"}
    assert "planted" not in json.dumps(outcome.envelope())


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        ("basic: {username: ann, password: pass word/1}", "YW5uOnBhc3Mgd29yZC8x"),
        ("basic: {username: ann, password: pass word/1}", "ann:pass word/1"),
        ("query: {name: k, value: a b/planted}", "a%20b%2Fplanted"),
        ("query: {name: k, value: a b/planted}", "a%20b/planted"),
        ("query: {name: k, value: a b/planted}", "a+b%2Fplanted"),
    ],
)
async def test_a_known_credential_is_left_out_in_the_forms_it_is_sent_in_too(
    tmp_path: Path, auth: str, said: str
) -> None:
    body = {"error": {"code": "NO", "message": f"You sent {said} to me."}}
    outcome = await ended(tmp_path, http(body, status=400), more=f", auth: {{{auth}}}")
    assert outcome.failure is not None
    assert outcome.failure.error.endswith("You sent (credential left out) to me.")


def test_the_page_of_failures_has_every_code_with_its_status() -> None:
    page = (Path(__file__).parent.parent.parent / "docs/failures.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \| (\d+) \| (\w+)", page, re.MULTILINE)
    assert [(code.word, str(code.status)) for code in Code] == [(word, status) for word, status, _, _ in rows]
    for code, (_, _, ends_with, told) in zip(Code, rows, strict=True):
        assert int(ends_with) == EXIT_CODES.get(code.word, 1)
        assert told in ("408", "where") or (told == "yes") is code.retryable


async def test_a_tool_that_wants_a_person_asked_is_refused_on_mcp_where_nobody_can_be(tmp_path: Path) -> None:
    contract = CONTRACT.replace(
        "description: Writes.", 'description: Writes.\n        tool: {{mcp: {{confirm: "Write?"}}}}'
    )
    async with backend(http({})) as api:
        loaded = accepted(tmp_path, contract.format(url=api.url, more=""))
        async with running(loaded) as gateway:
            refused = await gateway.call("write", surface="mcp")
            elsewhere = await gateway.call("write", surface="agent")
    assert (refused.code, elsewhere.code) == ("FORBIDDEN", "ok")
    assert refused.asked is not None
    assert refused.asked.consent is Consent.CANNOT_ASK
    assert len(api.received) == 1
    assert not any("confirm" in warning.path for warning in loaded.warnings)


@pytest.mark.parametrize(
    ("note", "told"),
    [
        (
            BREAKER_OPEN,
            "This backend failed the last calls and gets none for a while; nothing was sent. Call again later.",
        ),
        (
            "too many calls in flight",
            "Too many calls to this backend are under way; nothing was sent. Call again later.",
        ),
    ],
)
def test_what_stands_before_a_backend_is_told_by_its_reason(note: str, told: str) -> None:
    failed = no_answer(NoAnswer(Silence.OVERLOADED, note, sent=False), None)  # type: ignore[arg-type]  # not looked at
    assert (failed.code, failed.error, failed.retryable) == ("GATEWAY_OVERLOADED", told, True)
