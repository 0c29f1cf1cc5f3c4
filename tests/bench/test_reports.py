"""What the bench says of its figures: runaways by code, three gateways in one table and plot, and what is absent."""

from __future__ import annotations

from xml.etree import ElementTree

from bench import peers
from bench.runaway import AT_LIMIT, REFUSED, Ended, told

MEASURED = {
    "versions": {"toolview": "toolview 0.1.0", "fastmcp": "fastmcp 4.0"},
    "absent": {"contextforge": "no index"},
    "figures": [
        {
            "answer": "1 KB",
            "server": server,
            "calls_per_second": rate,
            "cpu_seconds_per_call": spent,
            "cpu_of_toolview": spent / 0.0005,
        }
        for server, rate, spent in (("toolview", 1500.0, 0.0005), ("fastmcp", 150.0, 0.005))
    ],
}


def test_runaways_are_counted_by_how_they_ended_and_some_must_reach_their_limit() -> None:
    ended = [Ended("loop", AT_LIMIT, 1.0), Ended("loop", REFUSED, 0.5), Ended("loop", AT_LIMIT, 1.25)]
    lines, reached = told("loop", ended)
    assert reached
    assert lines == [
        "loop      2 ended as INTERNAL_SERVER_ERROR (it ran to its limit), after 1.00 to 1.25 s",
        "loop      1 ended as GATEWAY_OVERLOADED (it was refused unstarted), after 0.50 to 0.50 s",
    ]
    assert told("eat", [Ended("eat", REFUSED, 0.5)])[1] is False
    assert told("eat", [])[1] is False


def test_the_table_says_versions_ratios_and_who_was_not_measured() -> None:
    heading, absent, _, ours, theirs = peers.table(MEASURED).splitlines()
    assert "toolview 0.1.0; fastmcp 4.0" in heading
    assert absent == "NOT MEASURED: contextforge: no index"
    assert ours.split() == ["1", "KB", "toolview", "1,500", "500", "µs", "1.0"]
    assert theirs.split() == ["1", "KB", "fastmcp", "150", "5,000", "µs", "10.0"]


def test_the_plot_has_a_bar_for_each_figure() -> None:
    drawn = ElementTree.fromstring(peers.plot(MEASURED))
    assert [each.get("width") for each in drawn.iter("{http://www.w3.org/2000/svg}rect")] == ["40", "400"]
