"""The few answers the relay gives itself, where there is no backend to speak; pure texts."""

from __future__ import annotations

_WORDS = {
    400: ("Bad Request", "bad_request"),
    404: ("Not Found", "not_found"),
    405: ("Method Not Allowed", "method_not_allowed"),
    408: ("Request Timeout", "request_timeout"),
    502: ("Bad Gateway", "backend_unreachable"),
    503: ("Service Unavailable", "too_many_connections"),
}

_SENTENCES = {
    400: "The request cannot be read in one way only.",
    404: "No such path.",
    405: "This path does not take this method.",
    408: "The request did not arrive in time.",
    502: "The backend cannot be reached.",
    503: "Too many connections.",
}


def own_answer(status: int, *, head_only: bool = False, sentence: str | None = None, allow: str | None = None) -> bytes:
    """One whole answer with a short JSON body that ends the connection; `head_only` for a HEAD request."""
    reason, word = _WORDS[status]
    body = f'{{"error":"{word}","message":"{sentence or _SENTENCES[status]}"}}'.encode()
    lines = [
        f"HTTP/1.1 {status} {reason}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if allow is not None:
        lines.append(f"Allow: {allow}")  # RFC 9110 §15.5.6: a 405 must say what is allowed
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return head if head_only else head + body
