"""What all tests share: long forms run only when asked for, garbage is found, the cases covered are told at the end."""

from __future__ import annotations

import gc

import pytest

from tests.cases import summary


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long forms of randomised tests as well")
    parser.addoption("--screenshots", action="store_true", help="write the console's pictures under docs/")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    long_forms = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long_forms)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays to the end, and need not be looked through again and again."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """A command turns the collector off for its own process; here it has to find what the next test leaves unclosed."""
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which cases of bug reports the tests cover, area by area."""
    for line in summary():
        terminalreporter.write_line(line)
