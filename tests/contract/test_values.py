"""The small texts of a contract: digits are ASCII everywhere, whatever other scripts have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.contract import values
from gateway.contract.values import Malformed

WIDE = str.maketrans("0123456789", "０１２３４５６７８９")

READ: list[tuple[Callable[[str], Any], str]] = [
    (values.duration, "5s"),
    (values.duration, "0.5s"),
    (values.size, "10MiB"),
    (values.rate, "100/s"),
    (values.address, "127.0.0.1:8081"),
    (values.address, "[::1]:8081"),
]


@pytest.mark.parametrize(("read", "text"), READ, ids=[text for _, text in READ])
def test_only_ascii_digits_are_digits(read: Callable[[str], Any], text: str) -> None:
    assert not isinstance(read(text), Malformed)
    assert isinstance(read(text.translate(WIDE)), Malformed)
