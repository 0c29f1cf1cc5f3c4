"""A record compares, hashes and shows itself as the standard dataclass would."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gateway.record import record


@record
class Point:
    x: int
    y: Any = 0
    note: str = field(default="", compare=False)
    secret: str = field(default="hidden", repr=False)


@record
class Place(Point):
    name: str = "here"


@record
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class Standard:
    x: int
    y: Any = 0
    note: str = field(default="", compare=False)
    secret: str = field(default="hidden", repr=False)


_VALUES = [(1,), (1, 2), (1, 2, "a"), (1, 2, "b"), (1, 2, "a", "s"), (1, None), ("1",)]


@pytest.mark.parametrize("one", _VALUES)
@pytest.mark.parametrize("other", _VALUES)
def test_it_is_equal_to_what_its_standard_twin_is_equal_to(one: Any, other: Any) -> None:
    assert (Point(*one) == Point(*other)) is (Standard(*one) == Standard(*other))
    if Point(*one) == Point(*other):
        assert hash(Point(*one)) == hash(Point(*other))


def test_it_is_equal_to_no_other_kind_of_thing() -> None:
    others: list[object] = [Place(1), Standard(1), (1, 0, "hidden"), None]
    assert all(Point(1) != other for other in others)
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing(), Point(1), Point(1)}) == 2


def test_what_is_not_to_be_shown_is_not_shown() -> None:
    assert repr(Point(1, [2])) == "Point(x=1, y=[2], note='')"
    assert repr(Place(1, name="there")) == "Place(x=1, y=0, note='', name='there')"
    assert repr(Nothing()) == "Nothing()"


def test_it_has_slots_and_can_be_copied_matched_and_sent_on() -> None:
    point = replace(Point(1, 2), x=3)
    match point:
        case Point(x, y):
            assert (x, y) == (3, 2)
    assert pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(AttributeError):
        point.z = 1  # type: ignore[attr-defined]  # slots have no room for it


def test_what_cannot_be_hashed_says_so() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1, []))
