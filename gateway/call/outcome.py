"""How a call ends: the codes, their status and whether a retry can help, and the one Outcome that everybody reads."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any, NamedTuple

from gateway.call.consent import Ask, Asked
from gateway.record import record


class CodeFacts(NamedTuple):
    """HTTP status of a code on the agent surface, and whether repeating the call can help."""

    status: int
    retryable: bool


class Code(Enum):
    """The failure table. A contract's declared `errors` add their own codes beside these."""

    VALIDATION_ERROR = CodeFacts(400, False), "VALIDATION_ERROR"
    BAD_REQUEST = CodeFacts(400, False), "BAD_REQUEST"
    UNAUTHORIZED = CodeFacts(401, False), "UNAUTHORIZED"
    FORBIDDEN = CodeFacts(403, False), "FORBIDDEN"
    NOT_FOUND = CodeFacts(404, False), "NOT_FOUND"
    METHOD_NOT_ALLOWED = CodeFacts(405, False), "METHOD_NOT_ALLOWED"
    CONFLICT = CodeFacts(409, False), "CONFLICT"
    GONE = CodeFacts(410, False), "GONE"
    RATE_LIMITED = CodeFacts(429, True), "RATE_LIMITED"
    BACKEND_ERROR = CodeFacts(502, False), "BACKEND_ERROR"
    BACKEND_UNREACHABLE = CodeFacts(502, True), "BACKEND_UNREACHABLE"
    BACKEND_CLOSED = CodeFacts(502, False), "BACKEND_CLOSED"
    BACKEND_TIMEOUT = CodeFacts(504, False), "BACKEND_TIMEOUT"
    BACKEND_ANSWER_INVALID = CodeFacts(502, False), "BACKEND_ANSWER_INVALID"
    BACKEND_ANSWER_TOO_LARGE = CodeFacts(502, False), "BACKEND_ANSWER_TOO_LARGE"
    ANSWER_OVER_BUDGET = CodeFacts(422, False), "ANSWER_OVER_BUDGET"
    GATEWAY_OVERLOADED = CodeFacts(503, True), "GATEWAY_OVERLOADED"
    NOT_IMPLEMENTED = CodeFacts(501, False), "NOT_IMPLEMENTED"
    INPUT_REQUIRED = CodeFacts(428, False), "INPUT_REQUIRED"
    REQUEST_ABORTED = CodeFacts(499, False), "REQUEST_ABORTED"
    UNKNOWN_TOOL = CodeFacts(404, False), "UNKNOWN_TOOL"
    INTERNAL_SERVER_ERROR = CodeFacts(500, False), "INTERNAL_SERVER_ERROR"

    def __init__(self, facts: CodeFacts, word: str) -> None:
        self.status = facts.status
        self.retryable = facts.retryable
        self.word = word


#: What `code` says of a success in metrics and logs.
OK = "ok"


@record
class Failure:
    """Why a call failed, as the caller is told; `Outcome.envelope` is what each surface shows of it."""

    code: str
    status: int
    error: str
    retryable: bool
    details: Mapping[str, Any] = field(default_factory=dict)
    hint: str | None = None

    def envelope(self) -> dict[str, Any]:
        """`details` and `_hint` only where there is something to say."""
        shown: dict[str, Any] = {"ok": False, "code": self.code, "error": self.error, "retryable": self.retryable}
        if self.details:
            shown["details"] = dict(self.details)
        if self.hint:
            shown["_hint"] = self.hint
        return shown


@record
class Call:
    """One tool call as a surface hands it over; `arguments` is what the caller sent, never changed by anyone."""

    tool: str
    arguments: dict[str, Any]
    surface: str
    call_id: str
    #: Headers of the caller by lower-case name; only those a backend's `forward_headers` names go any further.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: What the caller's principal may do; None where the listener has no auth.
    scopes: frozenset[str] | None = None
    #: Whose calls this one is counted among (`limits.per_principal`); None for code in this process.
    caller: str | None = None
    #: Whether this surface applies views; the in-process `Gateway.invoke` does not unless asked.
    view: bool = True
    #: Whether the outcome shall hold the full answer too, and the paths that were stripped of it.
    keep: bool = False
    #: What the caller's person said, where they can be asked at all.
    ask: Ask | None = None
    #: Whether a person is to be asked first where the contract says so: code in this process is its own client.
    asks: bool = True
    #: When it began, on the monotonic clock.
    began: float = field(default_factory=time.perf_counter)


@record
class Outcome:
    """How one call ended. Every surface, metric, log line and hook reads this value and nothing else."""

    call: Call
    #: The tool's name, or "unknown": a caller can never make a label value.
    tool: str
    #: None on success.
    failure: Failure | None
    #: The answer, encoded once as compact JSON; None on a failure, or where the endpoint declares no output.
    body: bytes | None = None
    #: The same answer as a value.
    value: Any = None
    #: A file (`kind: media`): its content type with what that says of it; `body` is then the raw bytes.
    media_type: str | None = None
    #: Bytes of the backend's decoded JSON; 0 where nothing was shown.
    full_bytes: int = 0
    #: JSON of the full answer as its declared output leaves it; only where the call asked to keep it.
    full: bytes | None = None
    #: What the call ran on, once a before hook replaced the arguments; else None.
    effective_arguments: dict[str, Any] | None = None
    #: The checked input with every default; None where it was refused.
    accepted: dict[str, Any] | None = None
    #: Paths that were stripped beyond a declared schema, as `rows[0].ssn`; full answer first, then projection.
    stripped: tuple[str, ...] = ()
    #: Schema paths that the full answer broke, each once; a success all the same may be one under `validate: observe`.
    violations: tuple[str, ...] = ()
    backend_seconds: float | None = None
    projection_seconds: float | None = None
    #: For the log and the error hook alone: what went wrong inside; never shown to a caller.
    fault: str | None = None
    #: How it stood with a person's yes, where the contract wants one.
    asked: Asked | None = None
    #: When it ended, on the monotonic clock.
    ended: float = field(default_factory=time.perf_counter)

    @property
    def duration(self) -> float:
        """Seconds of the whole call."""
        return self.ended - self.call.began

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def code(self) -> str:
        return OK if self.failure is None else self.failure.code

    def envelope(self) -> dict[str, Any]:
        """The failure envelope as every surface shows it, with the id under which the log has this call."""
        assert self.failure is not None
        shown = self.failure.envelope()
        hint = shown.pop("_hint", None)
        shown["details"] = {**self.failure.details, "call_id": self.call.call_id}
        return shown if hint is None else {**shown, "_hint": hint}

    @property
    def view_bytes(self) -> int:
        return len(self.body) if self.body is not None else 0
