"""Derived names and hints: the same on every start, within what every surface takes."""

from __future__ import annotations

import pytest

from gateway.contract.names import is_tool_name, tool_name


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        ("people.list", "people_list"),
        ("people", "people"),
        ("a..b", "a_b"),
        (".a.", "a"),
        ("GET /people/{team}", "GET_people_team"),
        ("личность", "tool"),
        ("a" * 64, "a" * 64),
        ("a" * 65, "a" * 55 + "_635361c4"),
    ],
)
def test_a_name_derives_from_the_endpoint_s_id(endpoint: str, name: str) -> None:
    assert tool_name(endpoint) == name
    assert is_tool_name(name)


def test_long_ids_with_one_beginning_stay_apart() -> None:
    names = {tool_name("x" * 70 + str(number)) for number in range(100)}
    assert len(names) == 100
    assert {len(name) for name in names} == {64}


@pytest.mark.parametrize("name", ["", "a b", "a.b", "é", "a" * 65, "a\n"])
def test_what_is_no_tool_name(name: str) -> None:
    assert not is_tool_name(name)
