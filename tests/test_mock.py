"""`toolview mock`: a gateway with no backend yet gets its answers from the contract's examples."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.contract.model import Contract
from gateway.contract.values import Address
from gateway.mock import Mock, Unfit, places, start
from tests.rig import accepted, running
from tests.test_serve import fetch

CONTRACT = """
    version: 1
    backends:
      api:
        url: "http://127.0.0.1:{port}/base"
        auth: {{query: {{name: key, value: planted}}}}
        errors: {{code: /code}}
    endpoints:
      read:
        request: GET /read/{{id}}
        description: Reads.
        input:
          type: object
          required: [id]
          properties: {{id: {{type: string}}, size: {{type: integer}}}}
        output: {{type: object, required: [id], properties: {{id: {{type: integer}}}}}}
        errors: {{LOST: {{status: 404}}}}
        tool: {{view: {{defaults: {{size: 5}}}}}}
        examples:
        - {{arguments: {{id: a/b}}, answer: {{id: 12345678901234567890123}}}}
        - {{arguments: {{id: b, size: 9}}, answer: {{id: 2}}}}
        - {{arguments: {{id: gone}}, status: 404, answer: {{code: LOST}}}}
      make:
        request: POST /make
        description: Makes.
        input: {{type: object, properties: {{n: {{type: integer}}}}}}
        output: {{type: object, properties: {{made: {{type: integer}}}}}}
        examples: [{{arguments: {{n: 1}}, answer: {{made: 1}}}}, {{arguments: {{n: 2}}, answer: {{made: 2}}}}]
      later: {{request: GET /later, description: Comes later., output: {{type: object}}}}
"""


@asynccontextmanager
async def mocked(folder: Path) -> AsyncIterator[tuple[Contract, Address]]:
    """The contract, and its mock listening where the contract says that the backend is."""
    runner, address = await start(Mock(accepted(folder, CONTRACT.format(port=1)), "api"), Address("127.0.0.1", 0))
    try:
        yield accepted(folder, CONTRACT.format(port=address.port)), address
    finally:
        await runner.cleanup()


async def test_the_gateway_gets_the_answer_of_the_example_that_makes_its_request(tmp_path: Path) -> None:
    async with mocked(tmp_path) as (contract, _), running(contract) as gateway:
        assert (await gateway.call("read", {"id": "a/b"})).value == {"id": 12345678901234567890123}
        assert (await gateway.call("read", {"id": "b", "size": 9})).value == {"id": 2}
        assert (await gateway.call("make", {"n": 2})).value == {"made": 2}
        assert (await gateway.call("read", {"id": "gone"})).code == "LOST"


async def test_any_other_request_gets_the_first_answer_of_its_endpoint(tmp_path: Path) -> None:
    async with mocked(tmp_path) as (contract, _), running(contract) as gateway:
        assert (await gateway.call("read", {"id": "z"})).value == {"id": 12345678901234567890123}
        assert (await gateway.call("make", {"n": 7})).value == {"made": 1}
        nothing = await gateway.call("later")
        assert nothing.failure is not None
        assert (nothing.code, nothing.failure.details["backend_status"]) == ("BACKEND_ERROR", 501)


async def test_what_no_endpoint_declares_is_not_answered_as_if_one_did(tmp_path: Path) -> None:
    async with mocked(tmp_path) as (_, address):
        assert (await fetch(address, "GET", "/read/a"))[0] == 404
        assert (await fetch(address, "GET", "/base/read/a/b"))[0] == 404
        status, headers, _ = await fetch(address, "PUT", "/base/make")
        assert (status, headers["allow"]) == (405, "POST")
        assert (await fetch(address, "GET", "/base/read/a%2Fb"))[2] == b'{"id":12345678901234567890123}'


@pytest.mark.parametrize(
    ("url", "asked", "where"),
    [
        ("http://127.0.0.1:1/base", {}, {"api": Address("127.0.0.1", 1)}),
        ("http://[::1]:7", {}, {"api": Address("::1", 7)}),
        ("http://api.example", {}, None),
        ("https://127.0.0.1:1", {}, None),
        ("http://api.example", {"listen": Address("127.0.0.1", 9)}, {"api": Address("127.0.0.1", 9)}),
        ("http://127.0.0.1:1", {"backend": "other"}, None),
    ],
)
def test_it_stands_where_the_backend_will_be_or_where_it_is_told(
    url: str, asked: dict[str, Address], where: dict[str, Address] | None, tmp_path: Path
) -> None:
    contract = accepted(tmp_path, CONTRACT.format(port=1).replace("http://127.0.0.1:1/base", url))
    found = places(contract, asked.get("backend"), asked.get("listen"))  # type: ignore[arg-type]  # a name in one case
    assert isinstance(found, Unfit) if where is None else found == where
