"""Judges manifests by the published schemas of an old and a new Kubernetes, and by what a schema cannot see."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it comes without stubs

SCHEMAS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parents[1] / "data" / "kubernetes").glob("*.json"))
}

Manifest = Mapping[str, Any]


def faults(manifests: Sequence[Manifest], elsewhere: Sequence[str] = ()) -> list[str]:
    """Everything wrong with these manifests taken together; `elsewhere` names what others put into the namespace."""
    return [*_misfits(manifests), *_loose_ends(manifests, elsewhere), *_open_doors(manifests)]


def pod_of(deployment: Manifest) -> Mapping[str, Any]:
    pod: Mapping[str, Any] = deployment["spec"]["template"]["spec"]
    return pod


def containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def gateway_of(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(each for each in containers(pod) if each["name"] == "toolview")


def _misfits(manifests: Sequence[Manifest]) -> Iterator[str]:
    """What the schema of a kind refuses, an unknown field too."""
    for version, known in SCHEMAS.items():
        for manifest in manifests:
            kind = f"{manifest['apiVersion']} {manifest['kind']}"
            if kind not in known["kinds"]:
                yield f"{version}: {kind} is no kind that is known here"
                continue
            schema = {"$ref": f"#/$defs/{known['kinds'][kind]}", "$defs": known["$defs"]}
            for fault in jsonschema.Draft202012Validator(schema).iter_errors(manifest):
                yield f"{version}: {kind} {manifest['metadata']['name']}: {fault.json_path}: {fault.message}"


def _loose_ends(manifests: Sequence[Manifest], elsewhere: Sequence[str]) -> Iterator[str]:
    """A selector that selects nothing, a port that nobody listens on, a name that is nowhere."""
    deployments = [each for each in manifests if each["kind"] == "Deployment"]
    names = {each["metadata"]["name"] for each in manifests} | set(elsewhere)
    for manifest in manifests:
        where = f"{manifest['kind']} {manifest['metadata']['name']}"
        selected = [each for each in deployments if _selects(manifest, each["spec"]["template"]["metadata"]["labels"])]
        if _selector(manifest) is not None and not selected:
            yield f"{where}: selects no pod"
        listening = {
            port["containerPort"]
            for each in selected
            for container in containers(pod_of(each))
            for port in container.get("ports", ())
        }
        yield from (f"{where}: nobody listens on {port}" for port in _ports(manifest) if port not in listening)
        if manifest["kind"] == "HorizontalPodAutoscaler" and manifest["spec"]["scaleTargetRef"]["name"] not in names:
            yield f"{where}: scales nothing"
    for deployment in deployments:
        yield from (
            f"Deployment {deployment['metadata']['name']}: there is no {name}"
            for name in _references(pod_of(deployment))
            if name not in names
        )


def _open_doors(manifests: Sequence[Manifest]) -> Iterator[str]:
    """What the restricted Pod Security Standard asks of a container, and a read-only root beyond it."""
    for deployment in (each for each in manifests if each["kind"] == "Deployment"):
        pod = pod_of(deployment)
        for container in containers(pod):
            held = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
            asked = {
                "runAsNonRoot": True,
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            }
            yield from (
                f"container {container['name']}: {key} is {held.get(key)}, not {value}"
                for key, value in asked.items()
                if held.get(key) != value
            )
            if "memory" not in container.get("resources", {}).get("limits", {}):
                yield f"container {container['name']}: no limit of memory"
        if pod.get("automountServiceAccountToken") is not False:
            yield "the pod carries a token for the API server, which it never asks"


def _selector(manifest: Manifest) -> Mapping[str, str] | None:
    match manifest["kind"]:
        case "Service":
            found: Mapping[str, str] = manifest["spec"]["selector"]
        case "NetworkPolicy":
            found = manifest["spec"]["podSelector"]["matchLabels"]
        case "Deployment" | "PodDisruptionBudget":
            found = manifest["spec"]["selector"]["matchLabels"]
        case _:
            return None
    return found


def _selects(manifest: Manifest, labels: Mapping[str, str]) -> bool:
    selector = _selector(manifest)
    return selector is not None and selector.items() <= labels.items()


def _ports(manifest: Manifest) -> Iterator[int]:
    if manifest["kind"] == "Service":
        yield from (port["targetPort"] for port in manifest["spec"]["ports"])
    if manifest["kind"] == "NetworkPolicy":
        yield from (port["port"] for rule in manifest["spec"].get("ingress", ()) for port in rule["ports"])


def _references(pod: Mapping[str, Any]) -> Iterator[str]:
    mounted = {mount["name"] for each in containers(pod) for mount in each.get("volumeMounts", ())}
    volumes = {volume["name"] for volume in pod.get("volumes", ())}
    yield from (f"volume {name}" for name in mounted - volumes)
    for volume in pod.get("volumes", ()):
        if "configMap" in volume:
            yield volume["configMap"]["name"]
        if "secret" in volume:
            yield volume["secret"]["secretName"]
    for each in containers(pod):
        for source in each.get("envFrom", ()):
            yield next(reference["name"] for reference in source.values())
