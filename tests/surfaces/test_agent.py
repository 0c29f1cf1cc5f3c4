"""The agent surface on a running gateway: a body that is no arguments ends as every other call does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rig import accepted
from tests.test_serve import fetch, samples, serving

CONTRACT = """
version: 1
gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
backends: {api: {url: http://127.0.0.1:1}}
endpoints:
  read: {request: GET /read, description: Reads., expose: [agent], output: {type: object}}
"""


@pytest.mark.parametrize("body", [b"{", b"[1]", b"null", b'"a"', b"{} {}", b'{"a":1,"a":2}', b"\xff"])
@pytest.mark.parametrize(("tool", "label"), [("read", "read"), ("absent", "unknown")])
async def test_a_body_that_is_no_arguments_is_one_refused_call(
    tmp_path: Path, body: bytes, tool: str, label: str
) -> None:
    async with serving(accepted(tmp_path, CONTRACT)) as served:
        told = await fetch(served.addresses["tools"], "POST", f"/agent/tools/{tool}", body, "X-Tool-Call-Id: mine\r\n")
        counted = await samples(served.addresses["admin"])
    status, headers, answer = told
    envelope = json.loads(answer)
    assert (status, headers["x-tool-call-id"]) == (400, "mine")
    assert list(envelope) == ["ok", "code", "error", "retryable", "details"]
    assert (envelope["ok"], envelope["code"], envelope["retryable"]) == (False, "BAD_REQUEST", False)
    calls = {
        key: value
        for key, value in counted.items()
        if {label, "BAD_REQUEST"} <= set(key) and not key[0].endswith("_created")
    }
    assert calls
    assert set(calls.values()) == {1.0}
