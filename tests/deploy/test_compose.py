"""The compose sample is one that the specification accepts, mounts what is there, and its keys and ports agree."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.contract.load import load
from gateway.contract.model import Contract
from tests.deploy.conftest import ROOT
from tests.deploy.test_prometheus import promtool

FOLDER = ROOT / "deploy" / "compose"
FILE = FOLDER / "compose.yaml"
SERVICES: dict[str, Any] = yaml.safe_load(FILE.read_text())["services"]

#: Reads a compose file on stdin as the specification says; what it does not know, it refuses.
READ = "import sys, compose_spec; compose_spec.PyCompose.from_yaml(sys.stdin.read()).validate()"


def refusal(checks: Path, text: str) -> str:
    command = [str(checks / "python"), "-c", READ]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else done.stderr.splitlines()[-1]


def test_the_specification_accepts_it(checks: Path) -> None:
    assert refusal(checks, FILE.read_text()) == ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("healthcheck:", "health:", "health"),
        ("networks: [front]", "networks: [frond]", "frond"),
        ('"127.0.0.1:3000:3000"', '"127.0.0.1:x:3000"', "x"),
        ("interval: 5s", "interval: often", "often"),
    ],
)
def test_a_misspelt_one_is_refused(checks: Path, old: str, new: str, said: str) -> None:
    assert old in FILE.read_text()
    assert said in refusal(checks, FILE.read_text().replace(old, new))


def test_everything_that_is_mounted_or_built_is_there() -> None:
    binds = [each for service in SERVICES.values() for each in service.get("volumes", ()) if each.startswith(".")]
    assert len(binds) == 5
    for bind in binds:
        assert (FOLDER / bind.partition(":")[0]).exists(), bind
        assert bind.endswith(":ro")
    build = SERVICES["gateway"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).is_file()


def test_every_port_is_published_on_loopback_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_image_is_of_one_version() -> None:
    for service in SERVICES.values():
        assert service["image"].rpartition(":")[2] not in ("", "latest")


def contract(monkeypatch: pytest.MonkeyPatch) -> Contract:
    for name, value in SERVICES["gateway"]["environment"].items():
        monkeypatch.setenv(name, value.replace("${DIRECTORY_KEY:-demo}", "demo"))
    source = SERVICES["gateway"]["volumes"][0].partition(":")[0]
    found = load(FOLDER / source / "gateway.yaml")
    assert isinstance(found, Contract), [str(fault) for fault in found]
    return found


def test_the_contract_is_accepted_and_stands_where_the_ports_are(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway, backends = contract(monkeypatch).gateway, contract(monkeypatch).backends
    (backend,) = backends.values()
    assert backend.passthrough is not None
    inside = {str(port).rpartition(":")[2] for port in SERVICES["gateway"]["ports"]}
    assert inside == {str(each.port) for each in (backend.passthrough.listen, gateway.tools.listen)}
    assert backend.url == "http://api:9000"
    assert SERVICES["api"]["command"] == ["0.0.0.0:9000"]
    assert int(SERVICES["gateway"]["stop_grace_period"].rstrip("s")) > gateway.shutdown


def test_the_keys_that_the_texts_show_are_the_ones_that_are_known() -> None:
    known = SERVICES["gateway"]["environment"]
    prometheus = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    (job,) = prometheus["scrape_configs"]
    assert digest(job["authorization"]["credentials"]) == known["METRICS_KEY_SHA256"]
    assert "Bearer sample-agents" in FILE.read_text()
    assert digest("sample-agents") == known["AGENTS_KEY_SHA256"]
    assert job["static_configs"] == [{"targets": ["gateway:9090"]}]


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def test_grafana_finds_its_source_and_its_dashboards() -> None:
    (source,) = yaml.safe_load((FOLDER / "grafana" / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((FOLDER / "grafana" / "dashboards" / "toolview.yaml").read_text())["providers"]
    targets = [each.split(":")[1] for each in SERVICES["grafana"]["volumes"]]
    assert provider["options"]["path"] in targets
    assert "/etc/grafana/provisioning" in targets


def test_prometheus_takes_what_it_is_given(tmp_path: Path) -> None:
    rules = str(ROOT / "deploy" / "prometheus")
    here = tmp_path / "prometheus.yaml"
    here.write_text((FOLDER / "prometheus.yaml").read_text().replace("/etc/prometheus/rules", rules))
    said = promtool("check", "config", str(here))
    assert "1 rule files found" in said
