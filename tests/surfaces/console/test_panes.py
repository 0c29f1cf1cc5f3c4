"""A full answer and its card as lines: what was kept, what was dropped, exact digits, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.surfaces.console.panes import CHARACTERS, LINES, Pane, pane, projected, sliced


def plain(text: str) -> str:
    return text


def dropped(pane: Pane) -> list[str]:
    return [line.text.strip() for line in pane.lines if line.dropped]


def test_an_answer_is_indented_as_json_is_and_nothing_of_it_is_dropped() -> None:
    shown = pane({"a": [1, {"b": "c"}], "d": {}, "e": []}, plain)
    assert [line.text for line in shown.lines] == [
        "{", '  "a": [', "    1,", "    {", '      "b": "c"', "    }", "  ],", '  "d": {},', '  "e": []', "}",
    ]  # fmt: skip
    assert not dropped(shown)
    assert (shown.values, shown.kept) == (4, 4)


def test_every_digit_of_a_number_is_shown() -> None:
    assert pane({"id": 12345678901234567890123}, plain).lines[1].text == '  "id": 12345678901234567890123'


def test_a_slice_keeps_what_stands_at_the_same_place() -> None:
    full = {"total": 2, "people": [{"id": 1, "tags": [{"id": 7, "label": "x"}]}, {"id": 2, "tags": []}], "by": {"a": 1}}
    card = {"people": [{"id": 1, "tags": [{"label": "x"}]}]}
    shown = sliced(full, card, plain)
    assert dropped(shown) == [
        '"total": 2,', '"id": 7,', "{", '"id": 2,', '"tags": []', "}", '"by": {', '"a": 1', "}",
    ]  # fmt: skip
    assert (shown.values, shown.kept) == (7, 2)


@pytest.mark.parametrize(
    ("full", "card", "left"),
    [
        ({"id": 4711, "n": "x"}, {"key": "4711"}, ['"n": "x"']),  # a number made a text, under another name
        ({"a": True, "b": True}, {"a": True}, ['"b": true']),  # what is everywhere counts under its own name
        ({"a": 5, "b": 5}, {"b": 5}, ['"a": 5,']),
        ({"a": None}, {"b": None}, ["{", '"a": null', "}"]),
        ({"rows": [{"label": "one"}, {"label": "two"}]}, ["one"], ["{", '"label": "two"', "}"]),
        ({"a": [], "b": {}}, {"a": []}, ['"b": {}']),
    ],
)
def test_a_projection_keeps_what_the_card_holds_anywhere(full: Any, card: Any, left: list[str]) -> None:
    assert dropped(projected(full, card, plain)) == left


def test_what_may_not_be_shown_is_out_before_a_value_is_cut_short() -> None:
    secret = "s3cret" * 20
    text = "x" * (CHARACTERS - 20) + secret
    shown = pane({secret: text}, lambda text: text.replace(secret, "(left out)"))
    assert "s3cret" not in "".join(line.text for line in shown.lines)


def test_a_long_value_is_cut_short_and_says_how_long_it_is() -> None:
    (line,) = pane("x" * 2000, plain).lines
    assert line.text == '"' + "x" * (CHARACTERS - 1) + "… (2,002 characters)"


def test_of_a_large_answer_the_first_lines_are_shown_and_all_values_counted() -> None:
    shown = sliced({"rows": list(range(LINES * 2))}, {"rows": [0]}, plain)
    assert len(shown.lines) == LINES
    assert shown.cut
    assert (shown.values, shown.kept) == (LINES * 2, 1)


def test_the_deepest_answer_is_drawn() -> None:
    value: Any = "x"
    for _ in range(199):
        value = [value]
    assert pane(value, plain).lines[199].text.strip() == '"x"'
    assert projected(value, value, plain).kept == 1
