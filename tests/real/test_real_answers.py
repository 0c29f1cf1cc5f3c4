"""Real answers through realistic views: nothing but declared keys, rows as rows, every digit, bytes as measured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.contract.load import load
from gateway.contract.model import Contract
from tests.real.cards import REAL, Real
from tests.real.measure import Declared, depth, integers, read, write
from tests.rig import Backend, Received, Running, backend, http, running
from tests.test_serve import agent, samples, serving

CONTRACTS = Path(__file__).parent / "contracts"
ANSWERS = Path(__file__).parent.parent / "data" / "answers"


@cache
def declared() -> Declared:
    return Declared(CONTRACTS)


def raw(real: Real) -> bytes:
    return (ANSWERS / f"{real.file}.json").read_bytes()


def answer(request: Received) -> bytes:
    """The answer that the longest path of the table stands for."""
    path = request.target.partition("?")[0]
    return http(next(raw(real) for real in REAL if real.target.partition("?")[0] == path))


def contract(url: str) -> Contract:
    loaded = load(CONTRACTS / "gateway.yaml", {"REAL_BACKEND": url})
    assert isinstance(loaded, Contract), "\n".join(map(str, loaded))
    assert not loaded.warnings
    return loaded


def at(value: Any, key: str) -> Any:
    return value[key] if key else value


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def legacy() -> AsyncIterator[tuple[Backend, Running]]:
    """Contracts of this size are loaded once for all that is asked of them."""
    async with backend(answer) as api, running(contract(api.url)) as gateway:
        yield api, gateway


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("real", REAL, ids=lambda real: real.file)
async def test_a_real_answer_becomes_exactly_its_card(real: Real, legacy: tuple[Backend, Running]) -> None:
    full = raw(real)
    expected = real.card(read(full))
    api, gateway = legacy
    outcome = await gateway.call(real.tool, real.arguments)
    assert outcome.failure is None, outcome.failure
    assert outcome.body is not None
    assert api.received[-1].target == real.target

    card = read(outcome.body)
    assert outcome.body == write(expected)  # keys, their order, rows, every digit
    assert outcome.value == card == expected
    assert list(declared().undeclared(card, declared().shown[real.tool])) == []
    assert list(integers(card)) == list(integers(expected))
    assert (outcome.full_bytes, outcome.view_bytes) == (len(full), len(write(expected)))
    if real.rows is not None:
        in_full, in_card, count = real.rows
        assert len(at(read(full), in_full)) == len(at(card, in_card)) == count


#: One value deep in a real answer, made wrong: the file, where, and what it becomes.
DRIFT: list[tuple[str, tuple[str | int, ...], Any]] = [
    ("jira-all-projects", (300, "name"), None),
    ("jira-all-projects", (566, "avatarUrls", "48x48"), 48),
    ("twitter-get-friends-0-scrubbed", ("users", 150, "id"), "5430"),
    ("wikidata-Q32063953", ("entities", "Q32063953", "claims", "P31", 0, "rank"), "best"),
    ("couchbase-bucket-stats", ("op", "samples", "ep_dcp_views+indexes_count", 59), "0"),
    ("reddit-comments-scrubbed", (1, "data", "children", 0, "data", "replies"), None),
    ("fhir-questionnaire", ("item", 0, "item", 24, "item", 8, "item", 6, "item", 1, "type"), "text"),
    ("weathergov-gridpoints-stations", ("features", 40, "geometry", "coordinates", 1), 91.5),
    ("prometheus-up-range", (8, "values", 359, 1), 1),
    ("wordpress-rest-index-routes", ("/wp/v2/posts/(?P<id>[\\d]+)", "methods", 0), "BREW"),
    ("slurm-jobs", ("jobs", 2, "array_task_id"), "3"),
    ("redfish-dell-thermal", ("Fans", 15, "Status", "Health"), "Fine"),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("file", "path", "wrong"), DRIFT, ids=[f"{row[0]} {row[1][-1]}" for row in DRIFT])
async def test_one_wrong_value_deep_in_a_real_answer_is_found_at_its_place(
    file: str, path: tuple[str | int, ...], wrong: Any, legacy: tuple[Backend, Running]
) -> None:
    real = next(real for real in REAL if real.file == file)
    full = place = read(raw(real))
    for part in path[:-1]:
        place = place[part]
    assert place[path[-1]] != wrong
    place[path[-1]] = wrong
    endpoints = legacy[1].gateway.generation.contract.endpoints.values()
    output = next(each.output for each in endpoints if each.tool is not None and each.tool.name == real.tool)
    assert output is not None
    pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
    assert [violation.pointer for violation in output.check(full)] == [pointer]


async def test_the_counters_say_what_was_measured_by_hand() -> None:
    async with backend(answer) as api:
        loaded = contract(api.url)
        async with serving(loaded) as served:
            for real in REAL:
                status, _, body = await agent(served.addresses["tools"], real.tool, real.arguments)
                assert status == 200
                assert body == b'{"ok":true,"data":' + write(real.card(read(raw(real)))) + b"}"
            found = await samples(served.addresses["admin"])
    for real in REAL:
        assert found["toolview_tool_full_bytes_total", "agent", real.tool] == len(raw(real))
        assert found["toolview_tool_view_bytes_total", "agent", real.tool] == len(write(real.card(read(raw(real)))))
        assert found["toolview_tool_calls_total", "ok", "agent", real.tool] == 1


def test_the_answers_are_as_odd_as_real_ones_are() -> None:
    """What this page claims to cover is in the data: or these tests would show less than they say."""
    read_by_name = {real.file: read(raw(real)) for real in REAL}
    assert sum(number > 2**53 for number in integers(read_by_name["twitter-get-friends-0-scrubbed"])) == 384
    assert sum(number == 2**64 - 1 for number in integers(read_by_name["couchbase-bucket-stats"])) == 60
    assert depth(read_by_name["reddit-comments-scrubbed"]) == 57
    assert sum(len(raw(real)) > 100_000 for real in REAL) == 7
    assert {type(value) for value in read_by_name.values()} == {list, dict}
    shown = {real.file: len(write(real.card(read(raw(real))))) for real in REAL}
    assert all(size < len(raw(real)) for real, size in zip(REAL, shown.values(), strict=True))


def test_the_second_opinion_sees_what_is_not_declared() -> None:
    """The checker that the tests above trust finds a key at each kind of place."""
    schema = {
        "properties": {
            "pair": {"prefixItems": [{"properties": {"a": {}}}], "items": False},
            "map": {"additionalProperties": {"properties": {"a": {}}}},
            "one": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"a": {}}}]},
        },
        "patternProperties": {"^P[0-9]$": {"items": {"properties": {"a": {}}}}},
    }
    odd = {"pair": [{"b": 1}], "map": {"x": {"a": 1, "b": 2}}, "one": {"b": 1}, "P1": [{}, {"b": 1}], "P10": 1}
    found = list(declared().undeclared(odd, schema))
    assert found == [".pair[0].b", ".map.x.b", ".one.b", ".P1[1].b", ".P10"]
