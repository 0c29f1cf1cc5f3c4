"""A projection that misbehaves ends its own call as INTERNAL_SERVER_ERROR, says nothing to the caller, stops no other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.rig import accepted, backend, http, running

CONTRACT = """
    version: 1
    gateway: {{projections: projections, limits: {{projection: {limit}}}}}
    backends: {{api: {{url: {url}}}}}
    endpoints:
      faulty:
        request: GET /x
        description: Faulty.
        input: {{type: object, properties: {{fault: {{type: string}}}}}}
        output: {{type: object}}
        tool:
          view:
            output: {{type: object, required: [a], properties: {{a: {{type: integer}}}}}}
            project: {{python: "cards:card"}}
      plain:
        request: GET /x
        description: Plain.
        output: {{type: object, properties: {{a: {{type: integer}}}}}}
        tool: {{view: {{output: {{type: object, properties: {{a: {{type: integer}}}}}}}}}}
"""
CARDS = """
    import sys, os

    class NotFound(Exception):
        code, status = "NOT_FOUND", 404

    async def later():
        return {"a": 1}

    def card(full, ctx):
        fault = ctx.input.get("fault")
        if fault == "raise":
            raise ValueError("secret text")
        if fault == "domain":
            raise NotFound("secret text")
        if fault == "exit":
            sys.exit("secret text")
        if fault == "die":
            os._exit(3)
        if fault == "coroutine":
            return later()
        if fault == "nothing":
            return None
        if fault == "schema":
            return {"a": "secret text"}
        if fault == "set":
            return {"a": {1}}
        if fault == "loop":
            while True:
                pass
        if fault == "change":
            full["a"] = 99
            full.clear()
        return {"a": 1}
"""


@pytest.mark.requirement(
    "196-3-project-raises", "196-3-project-awaitable", "196-3-project-nothing", "196-3-project-breaks-schema"
)
@pytest.mark.parametrize(
    ("fault", "logged"),
    [
        ("raise", "ValueError: secret text"),
        ("domain", "NotFound: secret text"),
        ("exit", "SystemExit"),
        ("die", "its process ended"),
        ("coroutine", "awaitable"),
        ("nothing", "the projection returned nothing"),
        ("schema", "the view breaks its schema: `a`"),
        ("set", "not JSON"),
        ("loop", "did not return within 0.3 seconds"),
    ],
)
async def test_a_fault_is_internal_logged_and_hidden_while_others_are_served(
    tmp_path: Path, fault: str, logged: str
) -> None:
    async with backend(http({"a": 7})) as api:
        limit = "300ms" if fault == "loop" else "60s"
        text = CONTRACT.format(url=api.url, limit=limit)
        async with running(accepted(tmp_path, text, {"projections/cards.py": CARDS})) as gateway:
            failing, *fine = await asyncio.gather(
                gateway.call("faulty", {"fault": fault}), *(gateway.call("plain") for _ in range(20))
            )
            after = await gateway.call("faulty", {"fault": ""})
            while after.code == "GATEWAY_OVERLOADED":  # who takes the place of what was killed is on its way
                after = await gateway.call("faulty", {"fault": ""})
    assert failing.failure is not None
    assert (failing.code, failing.failure.status, failing.failure.retryable) == ("INTERNAL_SERVER_ERROR", 500, False)
    assert "secret" not in json.dumps(failing.envelope())
    assert failing.failure.details["correlation_id"] == "call-1"
    assert failing.fault is not None
    assert logged in failing.fault
    assert all(outcome.value == {"a": 7} for outcome in fine)
    assert after.value == {"a": 1}, "the next call of the same projection runs"


@pytest.mark.requirement("196-3-project-cannot-change-others")
async def test_a_projection_that_changes_its_input_changes_nobody_elses(tmp_path: Path) -> None:
    async with backend(http({"a": 7})) as api:
        text = CONTRACT.format(url=api.url, limit="60s")
        contract = accepted(tmp_path, text, {"projections/cards.py": CARDS})
        async with running(contract) as gateway:
            changed = await gateway.call("faulty", {"fault": "change"})
            plain = await gateway.call("plain")
            full = await gateway.call("faulty", {"fault": "change"}, view=False)
    assert (changed.value, plain.value, full.value) == ({"a": 1}, {"a": 7}, {"a": 7})
