"""What the demo directory answers and what it loads for that: the sizes and defaults the worked example rests on."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from gateway.demo import backend


@pytest.fixture
async def url() -> AsyncIterator[str]:
    runner, port = await backend.start("127.0.0.1", 0)
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
async def client(url: str) -> AsyncIterator[aiohttp.ClientSession]:
    # As plain as curl: asks for no compression, and undoes none.
    async with aiohttp.ClientSession(url, auto_decompress=False, skip_auto_headers=["Accept-Encoding"]) as session:
        yield session


async def _body(client: aiohttp.ClientSession, target: str) -> bytes:
    async with client.get(target) as answer:
        assert answer.status == 200
        return await answer.read()


async def _json(client: aiohttp.ClientSession, target: str) -> Any:
    return json.loads(await _body(client, target))


async def test_the_whole_list_is_about_140_kilobytes(client: aiohttp.ClientSession) -> None:
    assert 135_000 < len(await _body(client, "/people/platform")) < 145_000


async def test_two_starts_serve_the_same_bytes(client: aiohttp.ClientSession) -> None:
    runner, port = await backend.start("127.0.0.1", 0)
    async with client.get(f"http://127.0.0.1:{port}/people/platform") as answer:
        other = await answer.read()
    await runner.cleanup()
    assert other == await _body(client, "/people/platform")


async def test_ids_are_distinct_and_beyond_what_a_double_holds(client: aiohttp.ClientSession) -> None:
    ids = [person["id"] for person in (await _json(client, "/people/platform"))["people"]]
    assert len(set(ids)) == len(ids)
    assert all(2**53 < identity < 2**63 for identity in ids)


@pytest.mark.parametrize(
    ("query", "stats", "history"),
    [("", 63, 63), ("?include=", 0, 0), ("?include=stats", 63, 0), ("?include=stats,history", 63, 63)],
)
async def test_what_is_not_included_is_not_loaded(
    client: aiohttp.ClientSession, query: str, stats: int, history: int
) -> None:
    people = (await _json(client, f"/people/platform{query}"))["people"]
    assert sum(person["stats"] is not None for person in people) == stats
    assert sum(person["history"] is not None for person in people) == history
    assert await _json(client, "/debug/loads") == {
        "people": 63,
        "stats": stats,
        "history": history,
        "last": f"GET /people/platform{query}",
    }


async def test_a_blank_include_sends_less_than_half(client: aiohttp.ClientSession) -> None:
    lean = await _body(client, "/people/platform?include=")
    assert len(lean) < len(await _body(client, "/people/platform")) / 2


async def test_a_limit_shortens_the_list_and_keeps_the_total(client: aiohttp.ClientSession) -> None:
    answer = await _json(client, "/people/platform?limit=2")
    assert (len(answer["people"]), answer["total"]) == (2, 63)


@pytest.mark.parametrize("accepted", ["gzip", "deflate, GZIP;q=0.5, br"])
async def test_gzip_is_used_when_it_is_asked_for(client: aiohttp.ClientSession, accepted: str) -> None:
    async with client.get("/people/platform", headers={"Accept-Encoding": accepted}) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        packed = await answer.read()
    assert gzip.decompress(packed) == await _body(client, "/people/platform")


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "gzip; q=0.00", "br"])
async def test_gzip_is_not_used_otherwise(client: aiohttp.ClientSession, accepted: str) -> None:
    async with client.get("/people/platform", headers={"Accept-Encoding": accepted}) as answer:
        assert "Content-Encoding" not in answer.headers


async def test_one_record_is_found_by_its_id(client: aiohttp.ClientSession) -> None:
    first = (await _json(client, "/people/support"))["people"][0]
    assert await _json(client, f"/people/support/{first['id']}") == first


async def test_a_search_looks_in_every_team_or_in_one(client: aiohttp.ClientSession) -> None:
    async with client.post("/people/search", json={"query": "MENTOR"}) as answer:
        everywhere = await answer.json()
    async with client.post("/people/search", json={"query": "mentor", "team": "support", "limit": 1}) as answer:
        one_team = await answer.json()
    assert {person["team"] for person in everywhere["people"]} == {"platform", "payments", "support"}
    assert [person["team"] for person in one_team["people"]] == ["support"]
    assert 1 <= one_team["total"] < everywhere["total"] == len(everywhere["people"])


async def test_a_created_person_is_where_the_location_says(client: aiohttp.ClientSession) -> None:
    new = {"team": "support", "name": "Zoë Ångström", "email": "zoe@directory.example", "notify": False}
    async with client.post("/people", json=new) as answer:
        assert answer.status == 201
        created = await answer.json()
        place = answer.headers["Location"]
    assert created.pop("welcome_mail") is False
    assert await _json(client, place) == created
    async with client.post("/people", json=new) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (409, "EMAIL_TAKEN")


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "code"),
    [
        ("GET", "/broken", None, 500, "DB_DOWN"),
        ("GET", "/people/nobody", None, 404, "TEAM_NOT_FOUND"),
        ("GET", "/people/support/1", None, 404, "PERSON_NOT_FOUND"),
        ("GET", "/nowhere", None, 404, "NO_SUCH_PATH"),
        ("DELETE", "/people/support", None, 405, "BAD_METHOD"),
        ("GET", "/people/support?limit=0", None, 422, "BAD_LIMIT"),
        ("GET", "/people/support?limit=-1", None, 422, "BAD_LIMIT"),
        ("GET", "/people/support?limit=%D9%A3", None, 422, "BAD_LIMIT"),
        ("GET", "/people/support?include=salary", None, 422, "BAD_INCLUDE"),
        ("GET", "/slow?seconds=soon", None, 422, "BAD_SECONDS"),
        ("GET", "/slow?seconds=nan", None, 422, "BAD_SECONDS"),
        ("POST", "/people/search", b"{}", 422, "QUERY_MISSING"),
        ("POST", "/people/search", b"[]", 400, "BAD_BODY"),
        ("POST", "/people/search", b"\xff", 400, "BAD_BODY"),
        ("POST", "/people", b'{"team": "support", "name": " "}', 422, "FIELD_MISSING"),
        ("POST", "/people", b'{"team": "x", "name": "n", "email": "e"}', 404, "TEAM_NOT_FOUND"),
        ("POST", "/people", b'{"team": ["x"], "name": "n", "email": "e"}', 422, "FIELD_MISSING"),
        ("POST", "/people/search", b'{"query": "a", "team": ["x"]}', 404, "TEAM_NOT_FOUND"),
    ],
)
async def test_every_refusal_has_the_legacy_error_body(
    client: aiohttp.ClientSession, method: str, target: str, body: bytes | None, status: int, code: str
) -> None:
    async with client.request(method, target, data=body) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (status, code)
        assert error["message"]


async def test_the_slow_path_says_how_long_it_waited(client: aiohttp.ClientSession) -> None:
    assert await _json(client, "/slow?seconds=0") == {"status": "DONE", "waited": 0.0}


async def test_the_slow_path_does_not_answer_early(client: aiohttp.ClientSession) -> None:
    with pytest.raises(TimeoutError):
        await client.get("/slow?seconds=60", timeout=aiohttp.ClientTimeout(total=0.05))


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_open(url: str) -> None:
    port = int(url.rpartition(":")[2])
    with pytest.raises(OSError, match="address already in use"):
        await backend.start("127.0.0.1", port)
