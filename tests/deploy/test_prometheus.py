"""The rules and the dashboard: read and run by Prometheus's own tool, and about metrics that the gateway has."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.telemetry.test_metrics import PROMISED

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "toolview.rules.yaml"
TESTS = DEPLOY / "prometheus" / "tests" / "toolview.yaml"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "toolview.json").read_text())

#: What the gateway shows: all that is promised, and of each process what Prometheus clients usually show.
SHOWN = {
    *PROMISED,
    *(name.replace("_bucket", part) for name in PROMISED if name.endswith("_bucket") for part in ("_sum", "_count")),
    *("process_resident_memory_bytes", "process_cpu_seconds_total"),
}
GROUPS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
RECORDED = {rule["record"] for group in GROUPS for rule in group["rules"] if "record" in rule}
#: What Grafana fills in, and a value of its kind.
_VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$job": ".*", "$instance": ".*", "$tool": ".*"}


def promtool(*arguments: str) -> str:
    """Run it; where it is not to be had the test is left out, and the reason says how to have it."""
    path = shutil.which("promtool")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("CI has no promtool; .ci/run installs it")
        pytest.skip("there is no promtool to read the rules with; `apt-get install prometheus` gives one")
    ran = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def expressions() -> Iterator[tuple[str, str]]:
    """Every query of the rules and the dashboard, and where it stands."""
    for group in GROUPS:
        for rule in group["rules"]:
            yield rule.get("record") or rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def filled_in(expression: str) -> str:
    """As Grafana sends it."""
    for variable, value in _VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


def test_prometheus_takes_the_rules() -> None:
    assert f"{sum(len(group['rules']) for group in GROUPS)} rules found" in promtool("check", "rules", str(RULES))


def test_the_rules_say_what_their_tests_expect() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(TESTS))


def test_every_rule_has_a_test() -> None:
    tests = TESTS.read_text()
    untested = [
        name
        for group in GROUPS
        for rule in group["rules"]
        if not re.search(rf"\b{re.escape(name := rule.get('record') or rule['alert'])}\b", tests)
    ]
    assert untested == []


def test_every_alert_says_how_grave_it_is_and_what_it_means() -> None:
    for group in GROUPS:
        for rule in group["rules"]:
            if "alert" in rule:
                assert rule["labels"]["severity"] in ("critical", "warning", "info")
                assert set(rule["annotations"]) == {"summary", "description"}


def test_prometheus_reads_every_query_of_the_dashboard(tmp_path: Path) -> None:
    rules = []
    for index, (_, expression) in enumerate(expressions()):
        rules.append({"record": f"query:{index}", "expr": filled_in(expression)})
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", "--lint=none", str(file))


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_metric_that_is_asked_for_is_one_that_the_gateway_shows(where: str, expression: str) -> None:
    named = set(re.findall(r"\b(?:toolview|process)_[a-z_]+\b", re.sub(r'"[^"]*"', "", expression)))
    recorded = set(re.findall(r"\btoolview:[\w:]+\b", expression))
    assert named | recorded, where
    assert named <= SHOWN
    assert recorded <= RECORDED


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_label_that_is_asked_for_is_one_that_the_metric_has(where: str, expression: str) -> None:
    for name, matchers in re.findall(r"\b(toolview_[a-z_]+)\{([^}]*)\}", expression):
        histogram = re.sub(r"_(sum|count|bucket)$", "_bucket", name)
        _, labels = PROMISED.get(name) or PROMISED[histogram]
        asked = set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", matchers))
        assert asked <= {*labels, "job", "instance"}, where


def test_the_dashboard_asks_for_every_metric_so_that_none_is_shown_to_nobody() -> None:
    text = " ".join(expression for _, expression in expressions())
    assert [name for name in PROMISED if re.sub("_(count|sum)$", "_bucket", name) not in text] == []


def test_the_dashboards_panels_have_places_and_ids_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert all(
        target["datasource"]["uid"] == "${datasource}" for panel in panels for target in panel.get("targets", ())
    )
