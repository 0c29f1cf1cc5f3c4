"""How the backend is connected to: who the client is, and which address."""

from __future__ import annotations

import socket
import struct

from gateway.relay.backend import proxy_header
from tests.relay.rig import Door, connect, relay_to

_GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
_SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")


async def test_one_proxy_header_says_who_the_client_is_and_then_come_its_bytes() -> None:
    door = Door()
    async with relay_to(door, client_address="proxy-v2") as (_, port, _notes):
        near = await connect(port)
        await near.send(_GET)
        far = await door.accept()
        mine = near.sock.getsockname()[1]
        expected = (
            _SIGNATURE
            + bytes([0x21, 0x11])  # version 2, PROXY; TCP over IPv4
            + struct.pack("!H4s4sHH", 12, bytes([127, 0, 0, 1]), bytes([127, 0, 0, 1]), mine, port)
        )
        await far.read_until(len(expected + _GET))
        await near.send(_GET)
        await far.read_until(len(expected + _GET + _GET))
        assert far.received == expected + _GET + _GET
        near.close()
        far.close()
    door.close()


def test_a_client_on_ipv6_is_told_as_such() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as door, socket.socket(socket.AF_INET6) as near:
        near.connect(door.getsockname())
        far, _ = door.accept()
        with far:
            header = proxy_header(far)
        one = bytes(15) + b"\x01"
        ports = struct.pack("!HH", near.getsockname()[1], door.getsockname()[1])
        assert header == _SIGNATURE + bytes([0x21, 0x21]) + struct.pack("!H", 36) + one + one + ports


def test_a_client_without_an_address_leaves_it_to_the_connection() -> None:
    near, far = socket.socketpair()
    with near, far:
        assert proxy_header(far) == _SIGNATURE + bytes([0x20, 0x00, 0x00, 0x00])
