"""A gateway of several processes: metrics add up, the dead are replaced, restarts and reloads lose nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from gateway.contract.values import Address
from gateway.processes import SAME_SIGNAL, supervisor
from tests.processes.served import PATIENCE, RELAYED, counted, served
from tests.rig import Held, Received, backend, http
from tests.test_serve import agent, fetch, one_exchange, samples

CONTRACT = """
version: 1
gateway:
  tools: {listen: "127.0.0.1:0"}
  admin: {listen: "127.0.0.1:0"}
  log: {level: info, format: json}
  shutdown: 60s
backends: {api: {url: URL, passthrough: "127.0.0.1:0"}}
endpoints:
  people.list:
    request: GET /people
    description: Lists people.
    output: {type: object, properties: {people: {type: string}, MARK: {type: string}}}
    tool: {name: list_people, safety_tier: read, view: {output: {type: object, properties: {MARK: {type: string}}}}}
"""
FULL = {"people": "all", "a": "card a", "b": "card b"}
CARD_A, CARD_B = b'{"ok":true,"data":{"a":"card a"}}', b'{"ok":true,"data":{"b":"card b"}}'
ASK = b"GET /people HTTP/1.1\r\nHost: x\r\n\r\n"
CALL = b"POST /agent/tools/list_people HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


def write(folder: Path, url: str, mark: str = "a") -> Path:
    path = folder / "gateway.yaml"
    path.write_text(CONTRACT.replace("URL", url).replace("MARK", mark))
    return path


def answered(_: Received) -> bytes:
    return http(FULL)


async def test_metrics_of_two_workers_add_up_also_when_one_is_killed_and_replaced(tmp_path: Path) -> None:
    async with backend(answered) as api, served(write(tmp_path, api.url), "--workers", "2") as gateway:
        tools, admin, plain = (gateway.addresses[name] for name in ("tools", "admin", "passthrough.api"))
        workers = await gateway.until("tools", 2)
        (relay,) = gateway.of("passthrough.api")
        calls = exchanges = 0

        async def some_calls() -> None:
            nonlocal calls, exchanges
            for _ in range(10):
                answers = await asyncio.gather(*(agent(tools, "list_people", {}) for _ in range(8)))
                assert {answer[2] for answer in answers} == {CARD_A}
                calls += len(answers)
                await one_exchange(plain, ASK)
                exchanges += 1

        async def check() -> None:
            for _ in range(4):  # whichever process answers
                found = await counted(admin, exchanges)
                assert found["toolview_tool_calls_total", "ok", "agent", "list_people"] == calls
                assert found["toolview_tool_duration_seconds_count", "list_people"] == calls
                assert found["toolview_tool_full_bytes_total", "agent", "list_people"] == calls * len(json.dumps(FULL))
                assert found[RELAYED] == exchanges
                assert found["toolview_calls_in_flight", "api"] == 0

        await some_calls()
        await check()
        for victim, door in ((workers[0], "tools"), (relay, "passthrough.api"), (workers[1], "tools")):
            victim.kill()
            await gateway.said("a process died and is replaced")
            await gateway.until(door, 2 if door == "tools" else 1, without=victim)
            await check()
            await some_calls()
            await check()
        assert await gateway.end() == 0


async def test_a_killed_worker_takes_its_own_calls_along_and_no_other(tmp_path: Path) -> None:
    """Also those that wait at the door are served by whoever is left."""
    held: list[asyncio.StreamWriter] = []
    arrived = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        held.append(writer)
        arrived.set()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with served(write(tmp_path, url), "--workers", "2") as gateway:
        tools = gateway.addresses["tools"]
        workers = await gateway.until("tools", 2)
        calls = [await Caller.connect(tools) for _ in range(16)]
        for number, call in enumerate(calls):
            call.writer.write(CALL)
            while len(held) <= number:
                await arrived.wait()
                arrived.clear()
        mine = {each.raddr.port for each in workers[0].net_connections() if each.raddr}
        doomed = {call.port for call in calls} & mine
        workers[0].kill()
        for writer in held:
            writer.write(http(FULL))
        for call in calls:
            answer = await call.answer()
            assert (answer is None) is (call.port in doomed)
            call.writer.close()
        for writer in held:
            writer.close()
        await gateway.until("tools", 2, without=workers[0])
    server.close()


class Caller:
    """One connection to a listener."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self.port: int = writer.get_extra_info("sockname")[1]
        #: The last answer said that it was the last.
        self.over = False
        #: Some of an answer came, and not all.
        self.begun = False

    @classmethod
    async def connect(cls, address: Address) -> Caller:
        return cls(*await asyncio.open_connection(address.host, address.port))

    async def answer(self) -> bytes | None:
        """A whole answer's body; None where the connection broke."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            self.over = b"connection: close" in head
            return await self._reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
        except asyncio.IncompleteReadError as broken:
            self.begun = bool(broken.partial)
        except ConnectionError:
            self.begun = self._reader.at_eof() is False
        return None


async def _restarts(folder: Path, wanted: int, turns: int) -> None:
    async with backend(answered) as api, served(write(folder, api.url), "--workers", "2") as gateway:
        tools, plain = gateway.addresses["tools"], gateway.addresses["passthrough.api"]
        await gateway.until("tools", 2)
        done, whole = asyncio.Event(), 0

        async def call(*, keep: bool) -> None:
            nonlocal whole
            caller, used = await Caller.connect(tools), False
            while not done.is_set():
                caller.writer.write(CALL)
                answer = await caller.answer()
                if answer is None and used and not caller.begun:
                    caller.over = True  # closed between two exchanges: RFC 9112 section 9.5, ask again
                else:
                    assert answer == CARD_A
                    whole += 1
                used = keep and not caller.over
                if not used:
                    caller.writer.close()
                    caller = await Caller.connect(tools)
            caller.writer.close()

        async def relay() -> None:
            nonlocal whole
            while not done.is_set():
                assert (await one_exchange(plain, ASK)).endswith(json.dumps(FULL).encode())
                whole += 1

        traffic = [
            *(asyncio.create_task(call(keep=keep)) for keep in (True, False)),
            *(asyncio.create_task(relay()) for _ in range(1)),
        ]
        for turn in range(turns):
            while whole < wanted * turn // turns:
                assert not any(task.done() for task in traffic)
                await asyncio.sleep(0.01)
            door = "passthrough.api" if turn % 5 == 2 else "tools"
            count = 1 if door == "passthrough.api" else 2
            victim = (await gateway.until(door, count))[0]
            victim.terminate()
            await gateway.until(door, count, without=victim)
        while whole < wanted:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.01)
        done.set()
        await asyncio.gather(*traffic)
        called = (await samples(gateway.addresses["admin"]))["toolview_tool_calls_total", "ok", "agent", "list_people"]
        found = await counted(gateway.addresses["admin"], int(whole - called))
        assert called + found[RELAYED] == whole
        assert not [line for line in gateway.lines if line.get("level") == "error"]


async def test_restarts_of_workers_and_relay_under_load_lose_nothing(tmp_path: Path) -> None:
    await _restarts(tmp_path, 60, 3)


@pytest.mark.long
async def test_ten_thousand_requests_across_ten_restarts(tmp_path: Path) -> None:
    await _restarts(tmp_path, 10_000, 10)


async def test_all_processes_take_a_new_contract_or_none(tmp_path: Path) -> None:
    async with backend(answered) as api, served(write(tmp_path, api.url), "--workers", "2") as gateway:
        tools, admin = gateway.addresses["tools"], gateway.addresses["admin"]
        await gateway.until("tools", 2)

        async def cards() -> set[bytes]:
            return {(await agent(tools, "list_people", {}))[2] for _ in range(12)}

        async def reload_states() -> set[tuple[float, float]]:
            names = (
                ("toolview_config_last_reload_successful",),
                ("toolview_config_last_reload_success_timestamp_seconds",),
            )
            found = [await samples(admin) for _ in range(6)]
            return {(each[names[0]], each[names[1]]) for each in found}

        assert await cards() == {CARD_A}
        before = await reload_states()
        write(tmp_path, api.url, "b")
        assert (await fetch(admin, "POST", "/-/reload"))[0] == 200
        assert await cards() == {CARD_B}
        after = await reload_states()
        assert len(before) == len(after) == 1
        write(tmp_path, api.url, "a: {")
        status, _, body = await fetch(admin, "POST", "/-/reload")
        assert (status, json.loads(body)["refusals"] != []) == (422, True)
        assert await cards() == {CARD_B}
        assert {(0.0, at) for _, at in after} == await reload_states()
        taken = api.url.removeprefix("http://")
        text = write(tmp_path, api.url).read_text().replace('passthrough: "127.0.0.1:0"', f'passthrough: "{taken}"')
        (tmp_path / "gateway.yaml").write_text(text)
        status, _, body = await fetch(admin, "POST", "/-/reload")
        assert (status, [each["path"] for each in json.loads(body)["refusals"]]) == (422, ["backends.api.passthrough"])
        write(tmp_path, "http://127.0.0.1:1")
        gateway.process.send_signal(signal.SIGHUP)
        await gateway.said("the contract was reloaded", 2)
        assert (await one_exchange(gateway.addresses["passthrough.api"], ASK)).startswith(b"HTTP/1.1 502")


async def test_watching_reloads_once_a_file_is_written(tmp_path: Path) -> None:
    async with backend(answered) as api, served(write(tmp_path, api.url), "--watch") as gateway:
        await gateway.said("the files of the contract are watched")
        (tmp_path / "notes.txt").write_text("nothing of the contract")
        write(tmp_path, api.url, "b")
        said = await gateway.said("files of the contract changed")
        await gateway.said("the contract was reloaded")
        assert said["files"] == ["gateway.yaml"]
        assert (await agent(gateway.addresses["tools"], "list_people", {}))[2] == CARD_B


async def test_sigterm_finishes_what_is_in_flight_and_nothing_is_left(tmp_path: Path) -> None:
    held = Held(http(FULL))
    async with backend(held) as api, served(write(tmp_path, api.url)) as gateway:
        children = gateway.children()
        call = asyncio.create_task(agent(gateway.addresses["tools"], "list_people", {}))
        await held.was_asked()
        exchange = asyncio.create_task(one_exchange(gateway.addresses["passthrough.api"], ASK))
        await held.was_asked()
        gateway.process.send_signal(signal.SIGTERM)
        while gateway.of("tools") or gateway.of("passthrough.api"):  # noqa: ASYNC110 - only the system knows
            await asyncio.sleep(0.01)
        held.release.set()
        assert (await call)[2] == CARD_A
        assert (await exchange).endswith(json.dumps(FULL).encode())
        assert await asyncio.wait_for(gateway.process.wait(), PATIENCE) == 0
        assert not any(child.is_running() for child in children)


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_to_the_whole_group_and_to_the_command_again_is_one_and_ends_nothing_in_flight(
    tmp_path: Path, workers: str, number: int
) -> None:
    """Ctrl-C reaches every process of a terminal, and `timeout` tells the command and then the group."""
    held = Held(http(FULL))
    async with backend(held) as api, served(write(tmp_path, api.url), "--workers", workers) as gateway:
        call = asyncio.create_task(agent(gateway.addresses["tools"], "list_people", {}))
        await held.was_asked()
        gateway.process.send_signal(number)
        os.killpg(gateway.process.pid, number)
        held.release.set()
        assert (await call)[2] == CARD_A
        assert await asyncio.wait_for(gateway.process.wait(), PATIENCE) == 0


def test_the_supervisor_takes_signals_that_come_together_for_one_and_a_later_one_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("gateway.processes.supervisor.time.monotonic", lambda: now)
    stopping = supervisor.Supervisor(0, lambda *_: 0, lambda *_: 0)
    stopping._signalled(bytes((signal.SIGINT, signal.SIGTERM)))
    assert stopping._code == 0
    now += SAME_SIGNAL
    stopping._signalled(bytes((signal.SIGTERM,)))
    assert stopping._code == 128 + signal.SIGTERM


async def test_a_worker_that_is_told_twice_to_end_has_one_successor(tmp_path: Path) -> None:
    held = Held(http(FULL))
    async with backend(held) as api, served(write(tmp_path, api.url)) as gateway:
        (worker,) = await gateway.until("tools", 1)
        call = asyncio.create_task(agent(gateway.addresses["tools"], "list_people", {}))
        await held.was_asked()
        worker.terminate()
        (successor,) = await gateway.until("tools", 1, without=worker)
        worker.terminate()
        held.release.set()
        assert (await call)[2] == CARD_A
        await asyncio.to_thread(worker.wait, PATIENCE)
        assert (await agent(gateway.addresses["tools"], "list_people", {}))[2] == CARD_A
        assert gateway.of("tools") == [successor]
        assert len(gateway.children()) == 2


async def test_a_later_signal_does_not_wait(tmp_path: Path) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()
        writer.close()

    arrived = asyncio.Event()
    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with served(write(tmp_path, url)) as gateway:
        call = asyncio.create_task(agent(gateway.addresses["tools"], "list_people", {}))
        await arrived.wait()
        children = gateway.children()
        gateway.process.send_signal(signal.SIGTERM)
        while gateway.process.returncode is None:  # one that comes at once is taken for the first
            await asyncio.sleep(0.05)
            with suppress(ProcessLookupError):  # not by `send_signal`, which would take the exit code from the loop
                os.kill(gateway.process.pid, signal.SIGINT)
        # a shell says 130 of either: the last one may have met an interpreter that was ending already
        assert gateway.process.returncode in (128 + signal.SIGINT, -signal.SIGINT)
        assert not any(child.is_running() for child in children)
        await asyncio.gather(call, return_exceptions=True)
    server.close()


async def test_when_the_supervisor_is_killed_nobody_stays(tmp_path: Path) -> None:
    async with backend(answered) as api, served(write(tmp_path, api.url)) as gateway:
        children = gateway.children()
        assert len(children) == 2
        gateway.process.kill()
        gone, alive = await asyncio.to_thread(psutil.wait_procs, children, PATIENCE)
        assert (len(gone), alive) == (2, [])


def test_a_refused_contract_is_told_once_and_the_command_ends_with_1(tmp_path: Path) -> None:
    path = write(tmp_path, "http://127.0.0.1:1")
    path.write_text(path.read_text().replace("version: 1", "version: 7"))
    for workers in ("0", "2"):
        command = [sys.executable, "-m", "gateway", "serve", str(path), "--workers", workers]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert ended.returncode == 1
        assert ended.stderr == f"{path}:2:1: version: only version 1 is known; write `version: 1`\n"


def test_all_taken_ports_are_told_once_and_the_command_ends_with_1(tmp_path: Path) -> None:
    path = write(tmp_path, "http://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [each.getsockname()[1] for each in (one, other)]
        text = path.read_text().replace('tools: {listen: "127.0.0.1:0"}', f'tools: {{listen: "127.0.0.1:{ports[0]}"}}')
        path.write_text(text.replace('admin: {listen: "127.0.0.1:0"}', f'admin: {{listen: "127.0.0.1:{ports[1]}"}}'))
        for workers in ("0", "2"):
            command = [sys.executable, "-m", "gateway", "serve", str(path), "--workers", workers]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            assert ended.returncode == 1
            assert ended.stderr == "".join(
                f"toolview: 127.0.0.1:{port}, where {name} should listen, is in use by another process;"
                " change its `listen` or free the port\n"
                for name, port in zip(("tools", "admin"), ports, strict=True)
            )


@pytest.mark.parametrize("count", ["-1", "many", "65", "1.5"])
def test_a_number_of_workers_that_is_none_is_a_usage_error(count: str) -> None:
    command = [sys.executable, "-m", "gateway", "serve", f"--workers={count}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2
    assert "write a number from 0 to 64" in ended.stderr


def test_the_supervisor_loads_nothing_heavy() -> None:
    heavy = {"asyncio", "ssl", "logging", "aiohttp", "pydantic", "uvloop", "orjson", "yaml", "gateway.contract"}
    program = "import sys, gateway.__main__, gateway.processes.supervisor; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert heavy & set(told.stdout.split()) == set()
