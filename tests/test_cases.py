"""Every case from a bug report is shown by a test, decided otherwise in writing, or still to come for a reason."""

from __future__ import annotations

import pytest

from tests.cases import CASES, LATER, decided, shown, summary


@pytest.mark.parametrize("area", sorted({case.area for case in CASES.values()}))
def test_every_case_of_an_area_is_shown_or_decided(area: str) -> None:
    answered = {*shown(), *decided(), *LATER}
    missing = [f"{case.id}: {case.fault}" for case in CASES.values() if case.area == area and case.id not in answered]
    assert missing == []


def test_what_is_shown_is_no_longer_called_later() -> None:
    assert set(LATER) <= set(CASES)
    assert [name for name in LATER if name in shown()] == []


def test_the_summary_names_every_case_once_at_least() -> None:
    told = " ".join(summary())
    assert [name for name in CASES if name not in told] == []
