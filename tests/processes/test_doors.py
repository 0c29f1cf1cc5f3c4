"""Doors: opened all or none, kept while they are wanted, and shared with whoever serves at them next."""

from __future__ import annotations

import socket

import pytest

from gateway.processes.doors import Doors, address_of


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_all_are_opened_or_none_and_a_sentence_names_each_that_is_taken() -> None:
    port, doors = free_port(), Doors()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()
        found = doors.open({"admin": taken, "tools": ("127.0.0.1", port), "passthrough.api": taken})
    assert isinstance(found, tuple)
    assert list(map(str, found)) == [
        f"127.0.0.1:{taken[1]}, where {name} should listen, is in use by another process;"
        " change its `listen` or free the port"
        for name in ("admin", "the pass-through of api")
    ]
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_name_that_is_no_address_is_said() -> None:
    found = Doors().open({"tools": ("::zz", 1)})
    assert isinstance(found, tuple)
    assert "[::zz]:1" in str(found[0])


def test_a_door_that_is_wanted_again_is_the_same() -> None:
    doors = Doors()
    first = doors.open({"tools": ("127.0.0.1", 0), "admin": ("127.0.0.1", 0)})
    assert isinstance(first, dict)
    assert address_of(first["tools"]) != address_of(first["admin"])
    second = doors.open({"tools": ("127.0.0.1", 0)})
    assert isinstance(second, dict)
    assert second["tools"] is first["tools"]
    place = address_of(first["admin"])
    doors.keep({"tools": ("127.0.0.1", 0)})
    with pytest.raises(OSError):
        socket.create_connection(place, timeout=1)
    doors.keep({})


def test_whoever_knocks_waits_for_the_next_to_serve() -> None:
    doors = Doors()
    found = doors.open({"tools": ("127.0.0.1", 0)})
    assert isinstance(found, dict)
    (door,) = found["tools"]
    old = door.dup()
    guest = socket.create_connection(address_of([door]), timeout=5)
    old.close()
    new = door.dup()
    host, _ = new.accept()
    host.sendall(b"hello")
    assert guest.recv(5) == b"hello"
    for each in (guest, host, new):
        each.close()
    doors.keep({})


def test_a_door_may_widen_to_all_addresses_of_its_port_and_is_then_nobody_elses() -> None:
    port, doors = free_port(), Doors()
    narrow = doors.open({"tools": ("127.0.0.1", port)})
    wide = doors.open({"tools": ("0.0.0.0", port)})
    assert isinstance(narrow, dict)
    assert isinstance(wide, dict)
    doors.keep({"tools": ("0.0.0.0", port)})
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    assert isinstance(Doors().open({"tools": ("127.0.0.1", port)}), tuple)
    doors.keep({})
