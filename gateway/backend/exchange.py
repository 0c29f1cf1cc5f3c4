"""Values that cross to a backend and come back; no answer is a value here, not an exception. Knows no I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from enum import Enum

from gateway.record import record


@record
class Request:
    """One HTTP request, whole: `target` is the raw request target (base path included), `body` its exact bytes."""

    backend: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    #: Seconds from the call's start to its last answer byte.
    timeout: float = 30.0
    #: Repeating it does no harm, so it may be sent again where the backend closed a kept connection.
    idempotent: bool = False


@record
class Answer:
    """What a backend answered; `body` is decoded of its content codings, `wire_bytes` is its size before."""

    status: int
    #: Names in any case; of a repeated header the first value.
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int
    #: Seconds from sending to the last byte.
    duration: float = 0.0


class Silence(Enum):
    """Why there is no answer."""

    UNREACHABLE = "unreachable"  # refused, DNS, TLS, connect timeout: nothing was sent
    CLOSED = "closed"  # the connection broke after sending, or the body was cut short
    TIMEOUT = "timeout"  # the deadline passed
    TOO_LARGE = "too_large"  # more decoded bytes than `limits.answer`
    UNDECODABLE = "undecodable"  # the content coding is broken or unknown, or the answer is no HTTP
    OVERLOADED = "overloaded"  # the gateway's own limit or an open breaker: nothing was sent
    STUBBED = "stubbed"  # a backend declared without `url`


@record
class NoAnswer:
    """There is no answer, and why; `note` is for the log and never holds a body, URL, header or credential."""

    silence: Silence
    note: str = ""
    duration: float = 0.0
    #: Whether any byte of the request may have reached the backend.
    sent: bool = field(default=True)


#: Sends one request and never raises but for cancellation. Wrappers (retry, breaker, limits) have this same shape.
Send = Callable[[Request], Awaitable[Answer | NoAnswer]]
