"""What all tests share: the long forms of randomised tests run only when asked for."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long forms of randomised tests as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    long_forms = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long_forms)
    items[:] = [item for item in items if not item.get_closest_marker("long")]
