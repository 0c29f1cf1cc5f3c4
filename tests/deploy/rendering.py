"""Helm over the chart, in the checks' own interpreter: values as JSON on stdin, one set a line; answers likewise."""

from __future__ import annotations

import json
import sys
from typing import Any

from helm_python.chart import Chart, lint  # type: ignore[import-not-found]  # lives in .venv-checks
from helm_python.errors import HelmError  # type: ignore[import-not-found]  # likewise


def main(chart: str) -> None:
    with Chart.load(chart) as loaded:
        for line in sys.stdin:
            print(json.dumps(_answer(loaded, chart, json.loads(line))))


def _answer(loaded: Any, chart: str, values: dict[str, Any]) -> dict[str, Any]:
    try:
        loaded.validate_schema(values)
        files = loaded.render(values, name="legacy", namespace="directory")
    except HelmError as fault:
        return {"refused": str(fault)}
    messages = lint(chart, values, strict=True)["messages"]
    return {"files": files, "lint": [each["error"] for each in messages if each["severity"] > 1]}


if __name__ == "__main__":
    main(sys.argv[1])
