"""The relay's own answers are whole HTTP messages that end the connection."""

from __future__ import annotations

import json

import pytest

from gateway.relay.own_words import own_answer


@pytest.mark.parametrize("status", [400, 404, 405, 408, 502, 503])
def test_an_own_answer_is_short_json_and_closes(status: int) -> None:
    head, _, body = own_answer(status).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0].startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close" in lines
    assert b"Content-Length: %d" % len(body) in lines
    assert set(json.loads(body)) == {"error", "message"}


def test_an_answer_to_head_has_the_length_and_not_the_body() -> None:
    whole = own_answer(502)
    assert own_answer(502, head_only=True) == whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def test_a_405_says_what_is_allowed() -> None:
    assert b"\r\nAllow: GET, POST\r\n" in own_answer(405, allow="GET, POST")
