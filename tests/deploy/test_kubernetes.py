"""The manifests under deploy/kubernetes fit the API, fit each other, and serve the contract that they carry."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.authoring.lint import Loaded as Linted
from gateway.authoring.lint import lint
from gateway.contract.load import load
from gateway.contract.model import Contract
from tests.deploy.kubernetes_api import faults, gateway_of, pod_of

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
KEYS = [line.partition("=")[0] for line in (FOLDER / "toolview.env.example").read_text().splitlines() if "=" in line]


def manifests() -> list[dict[str, Any]]:
    texts = ((FOLDER / name).read_text() for name in KUSTOMIZATION["resources"])
    return [manifest for text in texts for manifest in yaml.safe_load_all(text)]


def generated() -> list[str]:
    return [each["name"] for kind in ("configMapGenerator", "secretGenerator") for each in KUSTOMIZATION[kind]]


def of_kind(kind: str) -> dict[str, Any]:
    return next(each for each in manifests() if each["kind"] == kind)


def test_every_manifest_fits_the_api_and_the_others() -> None:
    assert faults(manifests(), elsewhere=generated()) == []


def test_the_kustomization_names_every_file_and_no_other() -> None:
    assert set(KUSTOMIZATION) == {
        "apiVersion", "kind", "namespace", "resources", "configMapGenerator", "secretGenerator",
    }  # fmt: skip
    listed = {*KUSTOMIZATION["resources"], "kustomization.yaml"}
    assert listed == {path.name for path in FOLDER.glob("*.yaml")}
    carried = {name for each in KUSTOMIZATION["configMapGenerator"] for name in each["files"]}
    assert carried == {str(path.relative_to(FOLDER)) for path in (FOLDER / "contract").iterdir()}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda all_: all_["Deployment"]["spec"].update(replica=2), "'replica' was unexpected"),
        (lambda all_: gateway_of(pod_of(all_["Deployment"]))["ports"].pop(0), "nobody listens on 8080"),
        (lambda all_: all_["Service"]["spec"]["selector"].update(tier="x"), "selects no pod"),
        (lambda all_: pod_of(all_["Deployment"])["volumes"].clear(), "there is no volume contract"),
        (
            lambda all_: gateway_of(pod_of(all_["Deployment"]))["securityContext"].clear(),
            "readOnlyRootFilesystem is None",
        ),
        (lambda all_: all_["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"].update(name="x"), "scales nothing"),
        (lambda all_: all_["NetworkPolicy"]["spec"]["ingress"][0].update(form=[]), "'form' was unexpected"),
    ],
)
def test_a_spoilt_manifest_is_noticed(spoil: Callable[[dict[str, Any]], Any], said: str) -> None:
    spoilt: list[dict[str, Any]] = copy.deepcopy(manifests())
    spoil({each["kind"]: each for each in reversed(spoilt)})
    assert any(said in fault for fault in faults(spoilt, elsewhere=generated()))


def test_the_gateway_is_a_native_sidecar_that_starts_before_what_it_waits_for() -> None:
    pod = pod_of(of_kind("Deployment"))
    (sidecar,) = pod["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["startupProbe"]["httpGet"]["path"] == "/-/healthy"  # ready would wait for the API behind it
    assert sidecar["readinessProbe"]["httpGet"]["path"] == "/-/ready"


def test_the_contract_is_accepted_from_a_mounted_config_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes mounts links through a folder that it swaps; `$ref` has to find its file there."""
    version = tmp_path / "..2026_01_01"
    version.mkdir()
    for path in (FOLDER / "contract").iterdir():
        (version / path.name).write_bytes(path.read_bytes())
        (tmp_path / path.name).symlink_to(Path("..data") / path.name)
    (tmp_path / "..data").symlink_to(version.name)
    contract = accepted(tmp_path / "gateway.yaml", monkeypatch)
    assert [str(warning) for warning in contract.warnings] == []
    ports = {port["containerPort"] for port in gateway_of(pod_of(of_kind("Deployment")))["ports"]}
    gateway, backend = contract.gateway, contract.backends["directory"]
    assert backend.passthrough is not None
    assert ports == {each.port for each in (gateway.tools.listen, gateway.admin.listen, backend.passthrough.listen)}


def test_the_contract_is_clean_under_our_own_lint(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted(FOLDER / "contract" / "gateway.yaml", monkeypatch)
    assert lint(FOLDER / "contract" / "gateway.yaml") == Linted(())


def test_what_the_contract_reads_from_its_environment_is_what_the_secret_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        with monkeypatch.context() as without:
            without.setattr(os, "environ", {name: "0" * 64 for name in KEYS if name != key})
            refused = load(FOLDER / "contract" / "gateway.yaml")
        assert not isinstance(refused, Contract)
        assert any(key in str(fault) for fault in refused)


def test_a_pod_has_time_to_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    contract = accepted(FOLDER / "contract" / "gateway.yaml", monkeypatch)
    assert pod_of(of_kind("Deployment"))["terminationGracePeriodSeconds"] > contract.gateway.shutdown


def test_the_adapter_makes_the_metric_that_the_autoscaler_asks_for() -> None:
    (rule,) = yaml.safe_load((FOLDER.parent / "helm" / "prometheus-adapter-values.yaml").read_text())["rules"]["custom"]
    (metric,) = of_kind("HorizontalPodAutoscaler")["spec"]["metrics"]
    assert rule["name"]["as"] == metric["pods"]["metric"]["name"] == "toolview_calls_in_flight"


def accepted(path: Path, monkeypatch: pytest.MonkeyPatch) -> Contract:
    for number, key in enumerate(KEYS):
        monkeypatch.setenv(key, f"{number}" * 64)
    contract = load(path)
    assert isinstance(contract, Contract), [str(fault) for fault in contract]
    return contract
