"""What either side of the relay receives, and how it ends, is what it would have been without the relay."""

from __future__ import annotations

import pytest

from tests.relay.exchanges import EXCHANGES
from tests.relay.rig import Door, play, relay_to


@pytest.mark.parametrize("name", EXCHANGES)
async def test_both_sides_receive_the_same_bytes_and_the_same_ends_as_without_the_relay(name: str) -> None:
    door = Door()
    try:
        direct = await play(EXCHANGES[name], door, door.port)
        async with relay_to(door) as (_, port, notes):
            relayed = await play(EXCHANGES[name], door, port)
        assert relayed == direct
        assert direct.at_server == b"".join(
            what for who, what in EXCHANGES[name] if who == "client" and what != "end" and isinstance(what, bytes)
        )
        assert notes.moved == {"in": len(direct.at_server), "out": len(direct.at_client)}
    finally:
        door.close()
