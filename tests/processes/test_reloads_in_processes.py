"""Reloads of a gateway of several processes that is in use: no call fails or is half one contract, nothing grows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psutil
import pytest

from tests.processes.served import RELAYED, counted, served
from tests.processes.test_serve_in_processes import ASK, CALL, CARD_A, CARD_B, FULL, Caller, answered, write
from tests.rig import backend
from tests.test_serve import fetch, one_exchange

#: What the memory of a process may differ by between two moments, in bytes.
_SWAY = 8_000_000


async def _reloads(folder: Path, count: int) -> None:
    """A third of the contracts is refused; meanwhile calls and exchanges on connections that stay and on new ones."""
    async with backend(answered) as api, served(write(folder, api.url), "--workers", "2") as gateway:
        tools, admin, plain = (gateway.addresses[name] for name in ("tools", "admin", "passthrough.api"))
        await gateway.until("tools", 2)
        done, cards, exchanges = asyncio.Event(), {CARD_A: 0, CARD_B: 0}, 0

        async def calls(*, keep: bool) -> None:
            caller = await Caller.connect(tools)
            while not done.is_set():
                caller.writer.write(CALL)
                card = await caller.answer()
                assert card is not None
                assert not caller.over
                cards[card] += 1  # anything else is no whole answer of either contract
                if not keep:
                    caller.writer.close()
                    caller = await Caller.connect(tools)
            caller.writer.close()

        async def exchanged(*, keep: bool) -> None:
            nonlocal exchanges
            caller = await Caller.connect(plain)
            while not done.is_set():
                if keep:
                    caller.writer.write(ASK)
                    assert await caller.answer() == json.dumps(FULL).encode()
                else:
                    assert (await one_exchange(plain, ASK)).endswith(json.dumps(FULL).encode())
                exchanges += 1
            caller.writer.close()

        async def turn(number: int) -> None:
            mark = "a: {" if number % 3 == 2 else "ab"[number % 2]
            write(folder, api.url, mark)
            status = (await fetch(admin, "POST", "/-/reload"))[0]
            assert status == (422 if number % 3 == 2 else 200)
            assert not [task for task in traffic if task.done()]
            api.received.clear()

        processes = [psutil.Process(gateway.process.pid), *gateway.children()]

        async def settled() -> list[tuple[int, int]]:
            """Memory and descriptors of each, between two exchanges of ours."""
            return [(each.memory_info().rss, each.num_fds()) for each in processes]

        jobs = [calls(keep=True), calls(keep=True), calls(keep=False), exchanged(keep=True), exchanged(keep=False)]
        traffic = [asyncio.create_task(job) for job in jobs]
        for number in range(count // 3):
            await turn(number)
        before = await settled()
        for number in range(count // 3, count):
            await turn(number)
        after = await settled()
        done.set()
        await asyncio.gather(*traffic)
        assert processes[1:] == gateway.children()  # the same from the beginning to the end
        for (memory, descriptors), (more_memory, more_descriptors) in zip(before, after, strict=True):
            assert more_memory - memory < _SWAY
            assert more_descriptors - descriptors <= 8  # connections of this moment
        found = await counted(admin, exchanges)
        assert found["toolview_tool_calls_total", "ok", "agent", "list_people"] == sum(cards.values())
        assert found[RELAYED] == exchanges
        assert min(cards.values()) > 0
        if count > 100:
            told = [f"{(b[0] - a[0]) / 1e6:+.1f} MB {b[1] - a[1]:+d} fds" for a, b in zip(before, after, strict=True)]
            print(f"{count} reloads, {cards}, {exchanges} exchanges; {told}")


async def test_a_dozen_reloads_of_all_processes_under_traffic(tmp_path: Path) -> None:
    await _reloads(tmp_path, 12)


@pytest.mark.long
async def test_a_thousand_reloads_of_all_processes_under_traffic(tmp_path: Path) -> None:
    await _reloads(tmp_path, 1000)
