"""The chart renders with Helm itself to manifests that fit the API, and refuses values that it would misread."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway import __version__
from tests.deploy.kubernetes_api import faults, gateway_of, pod_of

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "toolview"
RENDERING = Path(__file__).with_name("rendering.py")

#: As a contract may be: with what a template language would read, and every kind of quote.
TEXT = "version: 1\n# {{ .Values.none }} 'one' \"two\" & <three>\n"
LONE: dict[str, Any] = {
    "contract": {"gateway.yaml": TEXT, "people.yaml": "List: {}\n"},
    "ports": {"passthrough": {"directory": {"container": 8080, "service": 80}}},
    "envFrom": [{"secretRef": {"name": "keys"}}],
    "networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.7/32"}}], "ports": [{"port": 443}]}]},
}
SIDECAR: dict[str, Any] = {
    **LONE,
    "api": {
        "image": "legacy:7",
        "args": ["--listen", "127.0.0.1:9000"],
        "env": [{"name": "MODE", "value": "old"}],
        "probes": {"livenessProbe": {"exec": {"command": ["true"]}}},
        "resources": {"limits": {"memory": "1Gi"}},
        "securityContext": {
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    },
    "networkPolicy": {},
    "autoscaling": {"enabled": True, "callsInFlight": 8},
    "podMonitor": {"enabled": True, "keySecret": {"name": "keys", "key": "metrics"}, "labels": {"release": "prom"}},
    "image": {"digest": "sha256:" + "a" * 64},
}
NOBODY: dict[str, Any] = {"clients": [], "agents": [], "metrics": []}
BARE: dict[str, Any] = {
    "existingConfigMap": "mine",
    "disruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "drainSeconds": 0,
    "podAnnotations": {"a": "b"},
    "extraArgs": ["--more"],
}


@pytest.fixture(scope="module")
def rendered(checks: Path) -> dict[str, Any]:
    """The answer for each of these values, from one start of Helm."""
    given = {
        "lone": LONE, "sidecar": SIDECAR, "bare": BARE, "closed": {**LONE, "networkPolicy": NOBODY},
        "changed": {**LONE, "contract": {**LONE["contract"], "people.yaml": "List: true\n"}},
        "in place": {**LONE, "reload": "in-place"},
        **dict(REFUSED),
    }  # fmt: skip
    lines = "".join(json.dumps(values) + "\n" for values in given.values())
    command = [checks / "python", RENDERING, CHART]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=120)
    return dict(zip(given, map(json.loads, done.stdout.splitlines()), strict=True))


REFUSED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("`contract` needs a file gateway.yaml", {}),
    ("write `contract` or `existingConfigMap`", {**LONE, "existingConfigMap": "mine"}),
    ("additional properties 'replica' not allowed", {**LONE, "replica": 2}),
    ("at '/replicas': got string, want integer", {**LONE, "replicas": "2"}),
    ("at '/ports/tools': maximum: got 80,810, want 65,535", {**LONE, "ports": {"tools": 80810}}),
    ("missing property 'ports'", {**LONE, "ports": None}),
    ("two of `ports` are the same", {**LONE, "ports": {"passthrough": {"a": {"container": 8081, "service": 80}}}}),
    ("`drainSeconds` has to be less than", {**LONE, "drainSeconds": 60}),
    ("`autoscaling.minReplicas` is more", {**LONE, "autoscaling": {"enabled": True, "minReplicas": 11}}),
    ("larger than a ConfigMap may be", {"contract": {"gateway.yaml": "x" * 1_048_576}}),
    ("at '/image/digest'", {**LONE, "image": {"digest": "sha256:short"}}),
    ("at '/reload'", {**LONE, "reload": "sometimes"}),
    ("additional properties 'probe' not allowed", {**LONE, "api": {"image": "x", "probe": {}}}),
    ("'allowed_clients' not allowed", {**LONE, "networkPolicy": {"allowed_clients": []}}),
)


def manifests(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    assert "refused" not in answer, answer
    texts = (text for name, text in answer["files"].items() if not name.endswith("NOTES.txt"))
    return [manifest for text in texts for manifest in yaml.safe_load_all(text) if manifest]


def of_kind(answer: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in manifests(answer) if each["kind"] == kind)


@pytest.mark.parametrize("values", ["lone", "sidecar", "bare", "closed", "in place"])
def test_what_it_renders_fits_the_api_and_itself(rendered: Mapping[str, Any], values: str) -> None:
    found = [each for each in manifests(rendered[values]) if each["kind"] != "PodMonitor"]
    assert faults(found, elsewhere=["keys", "mine"]) == []
    assert rendered[values]["lint"] == []


@pytest.mark.parametrize("said", [said for said, _ in REFUSED])
def test_values_that_it_would_misread_are_refused(rendered: Mapping[str, Any], said: str) -> None:
    assert said in rendered[said]["refused"]


def test_a_contract_arrives_as_it_was_written(rendered: Mapping[str, Any]) -> None:
    assert of_kind(rendered["lone"], "ConfigMap")["data"] == LONE["contract"]


def test_with_an_api_the_gateway_is_its_sidecar_and_without_one_it_is_alone(rendered: Mapping[str, Any]) -> None:
    beside = pod_of(of_kind(rendered["sidecar"], "Deployment"))
    assert [each["name"] for each in beside["containers"]] == ["api"]
    assert gateway_of(beside)["restartPolicy"] == "Always"
    assert gateway_of(beside)["image"] == "toolview@sha256:" + "a" * 64
    alone = pod_of(of_kind(rendered["lone"], "Deployment"))
    assert "initContainers" not in alone
    assert "restartPolicy" not in gateway_of(alone)
    assert gateway_of(alone)["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "5"]


def test_a_changed_contract_is_a_rollout_unless_it_is_read_in_place(rendered: Mapping[str, Any]) -> None:
    def noted(values: str) -> Any:
        return of_kind(rendered[values], "Deployment")["spec"]["template"]["metadata"]["annotations"]

    assert noted("lone") != noted("changed")
    assert not noted("in place")
    assert gateway_of(pod_of(of_kind(rendered["in place"], "Deployment")))["args"] == ["serve", "--watch"]
    assert gateway_of(pod_of(of_kind(rendered["lone"], "Deployment")))["args"] == ["serve"]


def test_nobody_may_come_in_where_nobody_is_named(rendered: Mapping[str, Any]) -> None:
    """In a NetworkPolicy a rule with an empty `from` lets everyone in: there must be no rule."""
    assert of_kind(rendered["closed"], "NetworkPolicy")["spec"]["ingress"] == []


def test_the_monitor_shows_the_key_that_metrics_ask_for(rendered: Mapping[str, Any]) -> None:
    (endpoint,) = of_kind(rendered["sidecar"], "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "keys", "key": "metrics"}
    assert endpoint["port"] in {
        port["name"] for port in gateway_of(pod_of(of_kind(rendered["sidecar"], "Deployment")))["ports"]
    }


def test_the_autoscaler_owns_the_number_of_replicas(rendered: Mapping[str, Any]) -> None:
    assert "replicas" not in of_kind(rendered["sidecar"], "Deployment")["spec"]
    assert of_kind(rendered["lone"], "Deployment")["spec"]["replicas"] == 2


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__


def test_every_value_is_in_the_schema_and_none_else() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["required"]) == set(schema["properties"]) - {"global"}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(schema["properties"]) - {"global"} == set(values)
