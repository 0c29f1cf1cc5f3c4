"""What Swagger 2.0 and OpenAPI 3 have in common: paths, their operations, and the parameters that both give one."""

from __future__ import annotations

from collections.abc import Callable

from gateway.authoring.openapi.description import Description, Node
from gateway.authoring.openapi.normal import METHODS, Operation

Read = Callable[[Description, str, str, Node, Node], Operation]


def operations_of(description: Description, read: Read) -> tuple[Operation, ...]:
    """Every operation under `paths` that can be read at all."""
    operations = []
    for path, written in description.root.get("paths").items():
        if path.startswith("x-"):
            continue
        item = description.follow(written)
        if item is None:
            continue
        if not isinstance(item.value, dict):
            description.notes.add(written.place, "this is no path item; it is left out")
            continue
        for method, at in item.items():
            if method in METHODS and isinstance(at.value, dict):
                operations.append(read(description, method, path, item, at))
            elif method in METHODS:
                description.notes.add(at.place, "this is no operation; it is left out")
    return tuple(operations)


def parameters_of(description: Description, item: Node, at: Node) -> list[Node]:
    """The parameters of an operation and those of its path that it does not write itself, each with a name."""
    found: dict[tuple[str, str], Node] = {}
    for listed in (item.get("parameters"), at.get("parameters")):
        if listed.value is not None and not isinstance(listed.value, list):
            description.notes.add(listed.place, "this is no list of parameters; it is left out")
    for written in (*item.get("parameters").each(), *at.get("parameters").each()):
        parameter = description.follow(written)
        if parameter is None:
            continue
        value = parameter.value
        if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
            description.notes.add(written.place, "this parameter has no name; it is left out")
            continue
        found[str(value.get("in")), value["name"]] = parameter
    return list(found.values())
