"""Deaths at bad moments: while the files are refused, while the gateway is told to end, while it reloads."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.processes.served import PATIENCE, served
from tests.processes.test_serve_in_processes import ASK, CALL, CARD_A, CARD_B, FULL, Caller, answered, write
from tests.rig import backend
from tests.test_serve import agent, fetch, one_exchange, samples


async def test_who_dies_is_replaced_from_the_contract_that_is_served_whatever_stands_on_the_disk(
    tmp_path: Path,
) -> None:
    async with backend(answered) as api, served(write(tmp_path, api.url)) as gateway:
        tools, admin = gateway.addresses["tools"], gateway.addresses["admin"]
        (worker,) = await gateway.until("tools", 1)
        deaths = 0

        async def die() -> None:
            nonlocal worker, deaths
            worker.kill()
            deaths += 1
            await gateway.said("a process died and is replaced", deaths)

        async def card() -> bytes:
            nonlocal worker
            (worker,) = await gateway.until("tools", 1, without=worker)
            return (await agent(tools, "list_people", {}))[2]

        path = write(tmp_path, api.url, "a: {")
        assert (await fetch(admin, "POST", "/-/reload"))[0] == 422
        path.unlink()
        await die()
        assert await card() == CARD_A
        assert (await samples(admin))["toolview_config_last_reload_successful",] == 0
        assert b"gateway.yaml" in (await fetch(admin, "GET", "/console/state"))[2]
        write(
            tmp_path, api.url, "b"
        )  # what nobody asked to load is not loaded because of a death; and from the kept again
        await die()
        assert await card() == CARD_A
        assert (await fetch(admin, "POST", "/-/reload"))[0] == 200
        assert (await samples(admin))["toolview_config_last_reload_successful",] == 1
        assert (await agent(tools, "list_people", {}))[2] == CARD_B
        write(tmp_path, api.url, "a")
        await die()
        gateway.process.send_signal(signal.SIGHUP)  # while nobody is there to load anything: it is made up for
        await gateway.said("the contract was reloaded", 2)
        assert await card() == CARD_A


async def test_a_successor_that_comes_up_during_a_reload_serves_the_new_contract_too(tmp_path: Path) -> None:
    async with backend(answered) as api, served(write(tmp_path, api.url), "--workers", "2") as gateway:
        old = await gateway.until("tools", 2)
        old[0].kill()
        await gateway.said("a process died and is replaced")
        write(tmp_path, api.url, "b")
        assert (await fetch(gateway.addresses["admin"], "POST", "/-/reload"))[0] == 200
        await gateway.until("tools", 2)
        assert {(await agent(gateway.addresses["tools"], "list_people", {}))[2] for _ in range(12)} == {CARD_B}


@pytest.mark.parametrize("door", ["tools", "passthrough.api"])
async def test_whoever_waits_at_the_door_of_a_dead_process_is_served_though_the_gateway_is_told_to_end(
    tmp_path: Path, door: str
) -> None:
    async with backend(answered) as api, served(write(tmp_path, api.url)) as gateway:
        (victim,) = await gateway.until(door, 1)
        address = gateway.addresses[door]
        victim.kill()
        await gateway.said("a process died and is replaced")
        waiting = [await Caller.connect(address) for _ in range(3)]
        for each in waiting:
            each.writer.write(CALL if door == "tools" else ASK)
        gateway.process.send_signal(signal.SIGTERM)
        for each in waiting:
            answer = await each.answer()
            assert answer == (CARD_A if door == "tools" else json.dumps(FULL).encode())
            each.writer.close()
        assert await asyncio.wait_for(gateway.process.wait(), PATIENCE) == 0


async def test_once_it_is_told_to_end_nobody_is_let_in_to_wait_for_nothing(tmp_path: Path) -> None:
    arrived, release = asyncio.Event(), asyncio.Event()

    async def slow(_: object) -> bytes:
        arrived.set()
        await release.wait()
        return answered(_)  # type: ignore[arg-type]  # what it was asked is of no interest

    async with backend(slow) as api, served(write(tmp_path, api.url)) as gateway:
        exchange = asyncio.create_task(one_exchange(gateway.addresses["passthrough.api"], ASK))
        await arrived.wait()
        gateway.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            for door in ("tools", "passthrough.api"):
                while True:
                    try:
                        (await Caller.connect(gateway.addresses[door])).writer.close()
                    except ConnectionRefusedError:
                        break
                    await asyncio.sleep(0.02)
        assert gateway.process.returncode is None
        release.set()
        assert (await exchange).endswith(json.dumps(FULL).encode())
