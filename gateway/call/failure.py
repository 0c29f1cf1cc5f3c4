"""Every way a call can fail, as the one envelope: from arguments, from a silent backend, from a backend's error body.

Pure. Of a legacy error body only declared fields are shown, as short plain text.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, assert_never
from urllib.parse import quote, quote_plus

from gateway import json_text
from gateway.backend.exchange import Answer, NoAnswer, Silence
from gateway.backend.guard import BREAKER_OPEN
from gateway.call.consent import Consent
from gateway.call.outcome import Code, Failure
from gateway.contract.model import Backend, DeclaredError, Endpoint, Rate
from gateway.json_pointer import follow
from gateway.schema import Violation
from gateway.schema.keywords import TYPES

#: The most characters of a backend's own words that a caller is shown.
SHOWN_CHARACTERS = 500
#: The most bytes of a backend's structured details; larger ones are left out whole.
SHOWN_BYTES = 8192
#: A shorter text is no secret, and leaving it out of every sentence would only puzzle.
SHORTEST_SECRET = 6

_BY_STATUS = {
    400: Code.BAD_REQUEST,
    401: Code.UNAUTHORIZED,
    403: Code.FORBIDDEN,
    404: Code.NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    409: Code.CONFLICT,
    410: Code.GONE,
    422: Code.VALIDATION_ERROR,
    429: Code.RATE_LIMITED,
}
#: What an open breaker means to whoever calls.
_CLOSED_TO_CALLS = "This backend failed the last calls and gets none for a while"
_RETRYABLE_STATUSES = frozenset({408, 502, 503, 504})

_WORDS = {
    Code.BAD_REQUEST: "The backend refused the request as malformed.",
    Code.UNAUTHORIZED: "The backend did not accept the gateway's credentials; other arguments will not help.",
    Code.FORBIDDEN: "The backend does not permit this.",
    Code.NOT_FOUND: "The backend has nothing under these arguments.",
    Code.METHOD_NOT_ALLOWED: "The backend does not offer this operation.",
    Code.CONFLICT: "The backend's present state does not allow this; read it first.",
    Code.GONE: "The backend says that this is gone for good.",
    Code.VALIDATION_ERROR: "The backend refused the arguments.",
    Code.RATE_LIMITED: "The backend is limiting its callers; wait before you call again.",
}
_VERIFY_FIRST = "The effect may have happened all the same: verify it before you call again."

_LET_THEM = "Tell the person what you would have called, and let them do it."
_ASK_ANEW = "Call again without requestState, and the person is asked anew."
#: What is said to a call that a person did not agree to; by then nothing was sent.
_UNCONFIRMED: Mapping[Consent, tuple[Code, str, str | None]] = {
    Consent.CANNOT_ASK: (
        Code.FORBIDDEN,
        "This tool asks a person first, and your client cannot (MCP 2026-07-28, form elicitation); nothing was sent.",
        _LET_THEM,
    ),
    Consent.UNASKED: (Code.INPUT_REQUIRED, "A person is asked first; nothing was sent yet.", None),
    Consent.DECLINED: (
        Code.FORBIDDEN,
        "The person said no to this call; nothing was sent.",
        "Do not call it again unless they ask for it.",
    ),
    Consent.CANCELLED: (
        Code.REQUEST_ABORTED,
        "The person closed the question without an answer; nothing was sent.",
        "Ask them what they want before you call again.",
    ),
    Consent.EXPIRED: (Code.FORBIDDEN, "The person's answer came too late; nothing was sent.", _ASK_ANEW),
    Consent.FOREIGN: (
        Code.FORBIDDEN,
        "This requestState is of no question about this tool, these arguments and this caller; nothing was sent.",
        _ASK_ANEW,
    ),
}

_LEFT_OUT = "(credential left out)"
#: The name with which a sentence of a schema begins.
_NAMED = re.compile(r"`((?:[^`]|`(?! is ))*)`(?= is )")
#: Rules that speak of what a value holds, and rules that expect a bare JSON type.
_OF_PARTS = re.compile(r"(min|max)(Items|Properties|Length|Contains)|uniqueItems|unevaluatedItems|contains")
_BARE = frozenset(("anyOf", "oneOf", "type"))

_HTML = re.compile(r"<\s*(?:!doctype|/?[a-z][a-z0-9]*[\s>/])", re.IGNORECASE)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://\S+", re.IGNORECASE)
#: `db1:5432/people?x=1`, `10.0.0.7:8080`: an address that names no scheme. `12:30` and `row:15` are none.
_PLACE = re.compile(
    r"""(?<![\w.@/-])(?:[^\s/@"']{1,200}@[\w.-]+|\[[0-9a-f:.]+\]|localhost|\d{1,3}(?:\.\d{1,3}){3}"""
    r"""|(?=[\w.-]*[a-z])[\w-]+(?:\.[\w-]+)+|(?=[\w-]*[a-z])(?=[\w-]*[\d-])[\w-]+|[a-z]\w*(?=:\d{2,5}/))"""
    r""":\d{2,5}(?!\w|[.:]\d)(?:[/?#][^\s"']*)?""",
    re.IGNORECASE,
)
_CREDENTIAL = re.compile(r"\b(?:bearer|basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE)
#: `api_key=…`, `"token": "…"`, `Authorization: Token …`: a name that means a secret, and the value it is given.
_NAMED_CREDENTIAL = re.compile(
    r"""\b((?:proxy-)?authorization["']?\s*[:=]\s*)(?!\(credential)\S+(?:[ \t]+[^\s,;.]\S*)?"""
    r"""|((?<![\w-])[\w-]{0,100}(?:api[_-]?key|access[_-]?key|private[_-]?key|token|passw(?:or)?d|pwd|passphrase"""
    r"""|secret|credentials?|session[_-]?id|set-cookie|cookie)["']?\s*[:=]\s*)(?!\(credential)("[^"]*"|'[^']*'|[^\s,;&]+)""",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
#: What has no width, or turns the order of what stands beside it: nobody sees it, and a model reads it.
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
#: Where Python, Java, JavaScript or .NET begins to tell its own lines; what follows is nobody's business.
_TRACE = re.compile(
    r"""Traceback \(most recent call last\)|(?:^|\s)File "[^"\n]*", line \d+"""
    r"""|(?:^|\s)at\s+(?:(?:async|new)\s+)?[\w$.<>\[\]/]+\s?"""
    r"""\((?:[^()\n]*\.\w+(?::\d+)+|Native Method|Unknown Source)\)"""
    r"""|(?:^|\s)at\s+[\w.`<>]+\([^()\n]*\) in \S+:line \d+"""
)


def failure(
    code: Code, error: str, details: Mapping[str, Any] | None = None, hint: str | None = None, **facts: Any
) -> Failure:
    """A failure of the table; `facts` may set `status` and `retryable` where the table leaves them to the case."""
    return Failure(
        code.word, facts.get("status", code.status), error, facts.get("retryable", code.retryable), details or {}, hint
    )


def unknown_tool(nearest: Sequence[str]) -> Failure:
    """No tool of that name, as far as this caller may know."""
    return failure(
        Code.UNKNOWN_TOOL,
        "There is no tool of this name." + (f' Did you mean "{nearest[0]}"?' if nearest else " List the tools first."),
        {"nearest": list(nearest)} if nearest else None,
    )


def over_rate(seconds: float, rate: Rate) -> Failure:
    """This caller has had its calls for now (`limits.per_principal`)."""
    after = max(1, math.ceil(seconds))
    return failure(
        Code.RATE_LIMITED,
        f"You have made as many calls as you may ({rate}); nothing was sent. Call again in {after} s.",
        {"retry_after": after},
    )


def too_large(limit: int) -> Failure:
    """The body of a call is larger than the gateway reads."""
    return failure(
        Code.BAD_REQUEST,
        f"The arguments are larger than the {limit} bytes that the gateway reads; nothing was sent.",
        status=413,
    )


def not_confirmed(consent: Consent) -> Failure:
    """The contract wants a person's yes first (`tool.mcp.confirm`), and this call has none."""
    code, error, hint = _UNCONFIRMED[consent]
    return failure(code, error, {"consent": consent.value}, hint=hint)


def refused_arguments(violations: Sequence[Violation]) -> Failure:
    """The input breaks its schema: field, rule and repair of each fault, and nothing was sent."""
    first = violations[0]
    more = f" ({len(violations) - 1} more under details.)" if len(violations) > 1 else ""
    return failure(
        Code.VALIDATION_ERROR,
        f"The arguments were refused and nothing was sent: {told(first, 'input')}{more}",
        {"violations": [_shown_violation(violation) for violation in violations]},
    )


def unsendable_argument(argument: str, reason: str) -> Failure:
    """An argument has no form in the place where the contract sends it."""
    return failure(
        Code.VALIDATION_ERROR,
        f"The arguments were refused and nothing was sent: `{argument}` {reason}",
        {"violations": [{"pointer": "/" + argument, "rule": "send", "message": reason}]},
    )


def no_answer(silence: NoAnswer, endpoint: Endpoint) -> Failure:
    """The backend gave no answer."""
    match silence.silence:
        case Silence.UNREACHABLE:
            return failure(Code.BACKEND_UNREACHABLE, "The backend cannot be reached; nothing was sent.")
        case Silence.CLOSED:
            return failure(
                Code.BACKEND_CLOSED,
                "The backend broke the connection before its answer was whole.",
                hint=None if endpoint.idempotent else _VERIFY_FIRST,
                retryable=endpoint.idempotent,
            )
        case Silence.TIMEOUT:
            return failure(
                Code.BACKEND_TIMEOUT,
                f"The backend did not answer within {endpoint.timeout:g} s.",
                hint=None if endpoint.idempotent else _VERIFY_FIRST,
                retryable=endpoint.idempotent,
            )
        case Silence.TOO_LARGE:
            return failure(
                Code.BACKEND_ANSWER_TOO_LARGE,
                "The backend's answer is larger than the gateway takes.",
                hint=narrowing_hint(endpoint),
            )
        case Silence.UNDECODABLE:
            return failure(Code.BACKEND_ANSWER_INVALID, "The backend's answer cannot be decoded.")
        case Silence.OVERLOADED:
            why = _CLOSED_TO_CALLS if silence.note == BREAKER_OPEN else "Too many calls to this backend are under way"
            return failure(Code.GATEWAY_OVERLOADED, f"{why}; nothing was sent. Call again later.")
        case Silence.STUBBED:
            return failure(Code.NOT_IMPLEMENTED, "This tool is declared, and its backend does not exist yet.")
        case _:
            assert_never(silence.silence)


def answer_invalid(violations: Sequence[Violation]) -> Failure:
    """The backend's answer breaks its declared output; the caller's arguments are not to blame."""
    first = violations[0]
    return failure(
        Code.BACKEND_ANSWER_INVALID,
        f"The backend's answer breaks its declared output: {told(first, 'answer')}",
        {"violations": [{**_shown_violation(violation), "found": violation.found} for violation in violations[:5]]},
        "The arguments are not at fault; another record may be readable.",
    )


def answer_not_json(reason: str) -> Failure:
    """The backend's 2xx answer is not the JSON that an output was declared for."""
    return failure(Code.BACKEND_ANSWER_INVALID, "The backend's answer is not the JSON it declares.", {"reason": reason})


def over_budget(size: int, budget: int, endpoint: Endpoint) -> Failure:
    """The view is larger than its budget."""
    return failure(
        Code.ANSWER_OVER_BUDGET,
        f"The answer has {size} bytes, and this tool may show {budget}. Ask for less.",
        {"bytes": size, "budget": budget},
        narrowing_hint(endpoint),
    )


def internal(correlation: str) -> Failure:
    """A fault of the gateway or its contract; what it was is in the log under the same id, and only there."""
    return failure(
        Code.INTERNAL_SERVER_ERROR,
        "The gateway could not make this tool's answer. It is not the arguments' fault.",
        {"correlation_id": correlation},
    )


def projections_busy(endpoint: Endpoint) -> Failure:
    """The backend answered, and no worker came free in time to project its answer."""
    return failure(
        Code.GATEWAY_OVERLOADED,
        "The gateway is too busy to make this tool's answer.",
        hint=None if endpoint.idempotent else _VERIFY_FIRST,
        retryable=endpoint.idempotent,
    )


def narrowing_hint(endpoint: Endpoint) -> str | None:
    """Names the optional arguments that can make an answer smaller."""
    names = [name for name in endpoint.input.property_names if name not in endpoint.input.required]
    return f"Narrow it with: {', '.join(names)}." if names else None


def backend_error(answer: Answer, endpoint: Endpoint, backend: Backend) -> Failure:
    """A non-2xx answer: a declared code where the body has one, else the code of its status."""
    told = _told(answer, backend)
    declared = endpoint.errors.get(told.code) if told.code else None
    if told.code and declared is not None:
        return _declared_failure(told, declared, answer)
    code = _BY_STATUS.get(answer.status, Code.BACKEND_ERROR)
    details: dict[str, Any] = {"backend_status": answer.status}
    if told.code:
        details["backend_code"] = told.code
    if told.details:
        details["backend_details"] = told.details
    if (after := retry_after(answer)) is not None:
        details["retry_after"] = after
    words = _WORDS.get(code) or f"The backend failed with status {answer.status}."
    retryable = (
        told.retryable
        if told.retryable is not None
        else (code.retryable if code is not Code.BACKEND_ERROR else answer.status in _RETRYABLE_STATUSES)
    )
    return failure(
        code, f"{words} It says: {told.message}" if told.message else words, details, told.hint, retryable=retryable
    )


def retry_after(answer: Answer) -> int | str | None:
    """What `Retry-After` said: seconds, or an HTTP date as text. It is reported and never slept on."""
    value = answer.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if re.fullmatch(r"[A-Za-z]{3}, [0-9A-Za-z: ]{10,40}", value) else None


def told(violation: Violation, whole: str) -> str:
    """A violation as one sentence that names its place: `limit`, `people/0/name`, or the whole input or answer."""
    place, message = violation.pointer[1:], violation.message
    named = _NAMED.match(message)
    if violation.rule in ("required", "dependentRequired") and named:  # the name is not in the pointer
        return f"`{place}/{named[1]}`{message[named.end() :]}" if place else message
    if violation.rule in ("additionalProperties", "unevaluatedProperties") and named:
        return f"`{place}`{message[named.end() :]}"
    subject = f"`{place}`" if violation.pointer else f"the whole {whole}"
    if message.startswith("expected "):
        expected = message.removeprefix("expected ")
        return f"{subject} is expected {_verb(violation.rule, expected)}{expected}"
    return f"{subject} {message}" if message.startswith(("fits ", "breaks ")) else f"{subject}: {message}"


def _verb(rule: str, expected: str) -> str:
    """What stands before what is expected of a value, so that a sentence comes of it."""
    if expected.startswith("to "):
        return ""
    if _OF_PARTS.fullmatch(rule):
        return "to have "
    first = expected.split(",")[0].split(" ")[0]
    if rule in _BARE and first in TYPES and first != "null":
        return "to be an " if first[0] in "aio" else "to be a "
    return "to be "


class _Told:
    """What a backend's error body says, as far as it may be shown."""

    __slots__ = ("code", "details", "hint", "message", "retryable")

    def __init__(self) -> None:
        self.code: str | None = None
        self.message: str | None = None
        self.hint: str | None = None
        self.retryable: bool | None = None
        self.details: Any = None


def _told(answer: Answer, backend: Backend) -> _Told:
    told = _Told()
    secrets = _secrets(backend)
    body = json_text.parse(answer.body)
    if not isinstance(body, dict):
        return told
    error = body.get("error")
    if backend.errors:  # the operator said where a legacy body keeps its facts; nothing else of it is shown
        told.code = _word(_told_at(body, backend, "code"))
        told.message = plain_text(_told_at(body, backend, "message"), secrets)
    elif isinstance(error, dict) and isinstance(error.get("code"), str):
        told.code, told.message = _word(error["code"]), plain_text(error.get("message"), secrets)
        told.hint = plain_text(error.get("hint"), secrets)
        told.retryable = error["retryable"] if isinstance(error.get("retryable"), bool) else None
        details = _plain_details(error.get("details"), secrets)
        told.details = details if len(json_text.encode(details)) <= SHOWN_BYTES else None
    elif answer.headers.get("content-type", "").lower().startswith("application/problem+json"):
        # RFC 9457 section 3.1: title and detail are written for people; `code` is a common extension member
        told.code = _word(body.get("code"))
        told.message = plain_text(body.get("detail"), secrets) or plain_text(body.get("title"), secrets)
        told.retryable = body["retryable"] if isinstance(body.get("retryable"), bool) else None
    if told.code and any(secret in told.code for secret in secrets):
        told.code = None
    return told


def declared_retryable(declared: DeclaredError, told: bool | None = None) -> bool:
    """Whether a declared code can be tried again: the contract's word, else the backend's, else by its status."""
    derived = declared.status in _RETRYABLE_STATUSES or declared.status == 429
    return next((word for word in (declared.retryable, told) if word is not None), derived)


def _declared_failure(told: _Told, declared: DeclaredError, answer: Answer) -> Failure:
    assert told.code is not None
    details: dict[str, Any] = {"backend_status": answer.status}
    if told.details:
        details["backend_details"] = told.details
    if (after := retry_after(answer)) is not None:
        details["retry_after"] = after
    hints = " ".join(hint for hint in (declared.hint, told.hint) if hint)
    return Failure(
        told.code,
        declared.status,
        told.message or f"The backend answered {told.code}.",
        declared_retryable(declared, told.retryable),
        details,
        hints or None,
    )


def credentials(backend: Backend) -> Sequence[str]:
    """Every spelling of what this backend is sent to prove who calls, longest first; it may say them back."""
    return _secrets(backend)


def plain_text(value: Any, secrets: Sequence[str] = ()) -> str | None:
    """A backend's words as short plain text without markup, addresses or credentials; None where nothing is left.

    `secrets`: what this backend was sent to prove who calls; it may say them back.
    """
    if not isinstance(value, str):
        return None
    text = _UNSEEN.sub("", value[:5000])
    if (trace := _TRACE.search(text)) is not None:
        text = text[: trace.start()]
    if _HTML.search(text):
        return None
    text = _CONTROL.sub(" ", text).strip()
    for secret in secrets:
        text = text.replace(secret, _LEFT_OUT)
    text = _CREDENTIAL.sub(_LEFT_OUT, _URL.sub("(address left out)", text))
    text = _NAMED_CREDENTIAL.sub(lambda found: (found[1] or found[2]) + _LEFT_OUT, text)
    text = _PLACE.sub("(address left out)", text).strip()
    if not text:
        return None
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _plain_details(value: Any, secrets: Sequence[str]) -> Any:
    """Structured details of the gateway-shaped envelope, within the same bounds as text."""
    if isinstance(value, str):
        return plain_text(value, secrets)
    if isinstance(value, dict):
        return {
            shown: _plain_details(item, secrets)
            for key, item in list(value.items())[:20]
            if (shown := plain_text(key, secrets))
        }
    if isinstance(value, list):
        return [_plain_details(item, secrets) for item in value[:20]]
    return value


def _word(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    word = str(value)
    return word if re.fullmatch(r"[\w.:-]{1,64}", word) else None


def _told_at(body: Any, backend: Backend, fact: str) -> Any:
    pointer = backend.errors.get(fact)
    return None if pointer is None else follow(body, pointer)


def _secrets(backend: Backend) -> list[str]:
    """Every text that the operator wrote for this backend's eyes alone, longest first, with and without its scheme."""
    texts = list(backend.headers.values())
    auth = backend.auth
    if auth is not None:
        texts += [auth.bearer] if auth.bearer else []
        texts += [auth.basic.password] if auth.basic else []
        texts += [auth.header.value] if auth.header else []
        texts += [auth.query.value] if auth.query else []
        texts += [auth.client_credentials.client_secret] if auth.client_credentials else []
    texts = [str(text) for text in texts]  # plain: a `Secret` can neither be written as JSON nor shown
    whole = {*texts, *(text.rpartition(" ")[2] for text in texts)}
    if auth is not None and auth.basic:
        pair = f"{auth.basic.username}:{auth.basic.password}"
        whole |= {pair, base64.b64encode(pair.encode()).decode()}
    # as it was sent, or may be said back, inside a query or a form
    whole |= {spelled(text, safe=safe) for text in whole for spelled in (quote, quote_plus) for safe in ("", "/")}
    return sorted((text for text in whole if len(text) >= SHORTEST_SECRET), key=len, reverse=True)


def _shown_violation(violation: Violation) -> dict[str, str]:
    return {"pointer": violation.pointer, "rule": violation.rule, "message": violation.message}
