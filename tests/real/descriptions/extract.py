"""Cuts an OpenAPI 3.0 description down to the schemas that some names reach; run by hand, knows nothing of the gateway.

    python -m tests.real.descriptions.extract DESCRIPTION.json EXTRACT.json NAME...
    python -m tests.real.descriptions.extract DESCRIPTION.json EXTRACT.json --answers FIXTURES.json ANSWERS.json

What no answer is judged by is left out: descriptions, titles, examples, extensions. The rest is as it was written. The
second form takes the names from the `resources` of a file of answers, and keeps the answers that are described.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.real.descriptions.translate import COMPONENTS, MANY, NAMED, ONE, OTHER, SAME

Json = Any


def extract(description: Json, names: Iterable[str]) -> dict[str, Json]:
    """The component schemas that these names reach, themselves first, then in the description's order."""
    components = description["components"]["schemas"]
    wanted = list(names)
    reached = dict.fromkeys(wanted)
    while wanted:
        for name in references(components[wanted.pop()]):
            if name not in reached:
                reached[name] = None
                wanted.append(name)
    return {name: judging(components[name]) for name in components if name in reached}


def references(node: Json) -> Iterator[str]:
    """The names of the schemas that a schema refers to."""
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        assert node["$ref"].startswith(COMPONENTS), node["$ref"]
        yield node["$ref"].removeprefix(COMPONENTS)
    for key, held in node.items():
        below = held.values() if key in NAMED else held if key in MANY else [held] if key in ONE else ()
        for item in below:
            yield from references(item)


def judging(node: Json) -> Json:
    """The schema without what judges nothing; a `$ref` keeps its siblings."""
    if not isinstance(node, dict):
        return node
    kept: dict[str, Json] = {}
    for key, held in node.items():
        if key in ONE:
            kept[key] = judging(held)
        elif key in MANY:
            kept[key] = [judging(item) for item in held]
        elif key in NAMED:
            kept[key] = {name: judging(item) for name, item in held.items()}
        elif key in SAME or key in OTHER or key == "$ref":
            kept[key] = held
    return kept


def write(path: str, members: dict[str, Json]) -> None:
    """One member a line, so that a change of one is seen as one."""
    lines = [f"{json.dumps(name)}: {json.dumps(held, separators=(',', ':'))}" for name, held in members.items()]
    Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(description: str, target: str, *names: str) -> None:
    described = json.loads(Path(description).read_bytes())
    if names[:1] == ("--answers",):
        answers = json.loads(Path(names[1]).read_bytes())["resources"]
        known = {name: answer for name, answer in answers.items() if name in described["components"]["schemas"]}
        write(names[2], known)
        names = tuple(known)
    write(target, extract(described, names))


if __name__ == "__main__":
    main(*sys.argv[1:])
