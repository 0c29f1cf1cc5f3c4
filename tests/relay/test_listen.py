"""The listener: where there is no backend it says so, it knows its limits, and it drains without losing an answer."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import socket
from pathlib import Path

import pytest

from tests.relay.rig import Door, End, connect, relay_to, until

_GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _lets_in(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


async def test_a_backend_that_refuses_is_a_502_in_short_json() -> None:
    async with relay_to(None, port=_free_port()) as (_, port, notes):
        end = await connect(port)
        await end.send(_GET)
        head, _, body = (await end.read_to_end()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"Connection: close" in head
        assert json.loads(body)["error"] == "backend_unreachable"
        assert end.saw == "end"
        end.close()
        assert notes.exchanges == [("GET", 502)]


async def test_a_502_for_head_has_no_body() -> None:
    async with relay_to(None, port=_free_port()) as (_, port, _notes):
        end = await connect(port)
        await end.send(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await end.read_to_end()).endswith(b"\r\n\r\n")
        end.close()


async def test_a_502_is_read_even_by_a_client_that_is_still_sending() -> None:
    async with relay_to(None, port=_free_port()) as (_, port, _notes):
        end = await connect(port)
        await end.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
        await end.send(b"x" * 500_000)
        assert (await end.read_to_end()).startswith(b"HTTP/1.1 502 ")
        assert end.saw == "end"
        end.close()


async def test_a_name_that_does_not_resolve_is_a_502() -> None:
    async with relay_to(None, port=1, backend_host="no.such.host.invalid") as (_, port, _notes):
        end = await connect(port)
        await end.send(_GET)
        assert (await end.read_to_end()).startswith(b"HTTP/1.1 502 ")
        end.close()


async def test_a_backend_that_never_answers_the_connection_is_a_502_after_the_connect_timeout() -> None:
    door = Door()
    door.sock.listen(0)
    fill = [socket.socket() for _ in range(4)]  # nobody accepts, so the backlog is full and the kernel drops the rest
    for sock in fill:
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", door.port))
    async with relay_to(door, connect_timeout=0.05) as (_, port, _notes):
        end = await connect(port)
        await end.send(_GET)
        assert (await end.read_to_end()).startswith(b"HTTP/1.1 502 ")
        end.close()
    for sock in [*fill, door.sock]:
        sock.close()


async def test_over_max_connections_is_a_503_and_a_place_that_is_left_is_free_again() -> None:
    door = Door()
    async with relay_to(door, max_connections=1) as (relay, port, _):
        first = await connect(port)
        await first.send(_GET)
        far = await door.accept()
        second = await connect(port)
        await second.send(_GET)
        assert (await second.read_to_end()).startswith(b"HTTP/1.1 503 ")
        second.close()
        first.close()
        far.close()
        await until(lambda: relay.connections == 0)
        third = await connect(port)
        await third.send(_GET)
        (await door.accept()).close()
        third.close()
    door.close()


async def test_a_client_that_connects_and_leaves_never_reaches_the_backend() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, _):
        end = await connect(port)
        end.end()
        await end.read_to_end()
        end.close()
        await until(lambda: relay.connections == 0)
        with pytest.raises(BlockingIOError):
            door.sock.accept()
    door.close()


async def test_every_address_of_a_name_is_tried() -> None:
    door = Door()  # listens on 127.0.0.1 alone, where "localhost" may mean ::1 first
    async with relay_to(door, backend_host="localhost") as (_, port, _notes):
        end = await connect(port)
        await end.send(_GET)
        far = await door.accept()
        await far.read_until(len(_GET))
        assert far.received == _GET
        far.close()
        end.close()
    door.close()


async def test_a_backend_on_ipv6() -> None:
    door = Door(socket.AF_INET6, ("::1", 0))
    async with relay_to(door, backend_host="::1") as (_, port, _notes):
        end = await connect(port)
        await end.send(_GET)
        far = await door.accept()
        await far.read_until(len(_GET))
        await far.send(_OK)
        await end.read_until(len(_OK))
        assert end.received == _OK
        far.close()
        end.close()
    door.close()


async def test_a_backend_on_a_unix_socket(tmp_path: Path) -> None:
    door = Door(socket.AF_UNIX, str(tmp_path / "backend.sock"))
    async with relay_to(door, backend_socket=str(tmp_path / "backend.sock")) as (_, port, _notes):
        end = await connect(port)
        await end.send(_GET)
        far = await door.accept()
        await far.read_until(len(_GET))
        await far.send(_OK)
        far.end()
        assert await end.read_to_end() == _OK
        far.close()
        end.close()
    door.close()


async def test_stopping_closes_an_idle_connection_at_once() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, _):
        end = await connect(port)
        await end.send(_GET)
        far = await door.accept()
        await far.read_until(len(_GET))
        await far.send(_OK)
        await end.read_until(len(_OK))
        stopped = asyncio.create_task(relay.stop(60))
        await end.read_to_end()
        assert end.saw == "end"
        end.close()
        await stopped
        far.close()
    door.close()


async def test_stopping_waits_for_the_answer_in_flight_and_then_closes() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, _):
        end = await connect(port)
        await end.send(_GET)
        far = await door.accept()
        await far.read_until(len(_GET))
        await far.send(_OK[:20])
        await end.read_until(20)
        stopped = asyncio.create_task(relay.stop(60))
        await until(lambda: not _lets_in(port))
        await far.send(_OK[20:])
        assert await end.read_to_end() == _OK
        assert end.saw == "end"
        end.close()
        await stopped
        far.close()
    door.close()


async def test_a_request_that_arrived_before_the_stop_is_still_answered() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, _):
        end = await connect(port)
        end.sock.send(_GET)  # in the kernel, and the relay has not looked yet
        stopped = asyncio.create_task(relay.stop(60))
        far = await door.accept()
        await far.read_until(len(_GET))
        await far.send(_OK)
        assert await end.read_to_end() == _OK
        end.close()
        await stopped
        far.close()
    door.close()


async def test_an_answer_that_outlasts_the_grace_period_is_reset_and_does_not_look_whole() -> None:
    door = Door()
    async with relay_to(door) as (relay, port, notes):
        end = await connect(port)
        await end.send(_GET)
        far = await door.accept()
        await far.send(_OK[:20])
        await end.read_until(20)
        await relay.stop(0)
        await end.read_to_end()
        await far.read_to_end()
        assert (end.saw, far.saw) == ("reset", "reset")
        assert notes.cuts == [("GET", 0)]
        far.close()
        end.close()
    door.close()


async def test_a_connection_on_which_nothing_moves_is_closed_after_the_idle_timeout() -> None:
    door = Door()
    async with relay_to(door, idle_timeout=0.01) as (_, port, _notes):
        end = await connect(port)
        await end.send(_GET)
        far = await door.accept()
        await far.send(_OK)
        assert await end.read_to_end() == _OK
        assert end.saw == "end"
        end.close()
        far.close()
    door.close()


async def test_a_head_that_is_never_finished_is_a_408_where_that_is_asked_for() -> None:
    door = Door()
    async with relay_to(door, head_timeout=0.01) as (_, port, notes):
        end = await connect(port)
        await end.send(b"GET / HT")
        far = await door.accept()
        assert (await end.read_to_end()).startswith(b"HTTP/1.1 408 ")
        await far.read_to_end()
        end.close()
        far.close()
        assert notes.exchanges == []
    door.close()


async def test_without_descriptors_clients_wait_in_the_backlog_and_are_served_later() -> None:
    door = Door()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with relay_to(door) as (relay, port, _):
        near = End(socket.socket())
        near.sock.connect_ex(("127.0.0.1", port))  # by the kernel alone: the relay has not had its turn yet
        gc.collect()  # or a descriptor comes free below the limit while the relay has its turn
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            relay._accept(relay._doors[0])
            assert relay.connections == 0
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await near.send(_GET)
        far = await door.accept()
        await far.read_until(len(_GET))
        assert far.received == _GET
        near.close()
        far.close()
    door.close()
