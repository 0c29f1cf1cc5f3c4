"""Real descriptions with anything in the place of anything: a contract that loads or one line, never a traceback."""

from __future__ import annotations

import copy
import io
import random
from pathlib import Path
from typing import Any

import pytest

from gateway import json_text
from gateway.authoring.openapi.description import parse
from gateway.authoring.openapi.importing import Choice, Imported, import_openapi

Json = Any
DESCRIPTIONS = Path(__file__).parent.parent.parent / "data" / "descriptions"
ODD: list[Json] = [
    *(None, True, False, 0, -1, 1.5, 10**30, "", " ", "a", "{", "${X}", "\n#", "\x00", "object", "array", "query"),
    *([], [None], [[]], ["a", "a"], {}, {"": {}}, {"$ref": "#"}, {"$ref": "#/"}, {"$ref": "#/paths"}, {"$ref": ""}),
    *(
        {"$ref": 1},
        {"type": "array"},
        {"type": ["object", "null"]},
        {"allOf": [{}]},
        {"type": "object"},
        {"in": "body"},
    ),
    *({"oneOf": [True]}, {"items": {}}, {"not": {}}, {"properties": {"a": 1}}, {"required": ["a"], "properties": {}}),
]


def places(node: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [each for key, item in inner for each in ((*path, key), *places(item, (*path, key)))]


def mutated(document: Json, draw: random.Random) -> Json:
    """The description with a few of its values replaced, moved or renamed."""
    changed = copy.deepcopy(document)
    for _ in range(draw.randrange(1, 6)):
        known = places(changed)
        *way, last = draw.choice(known)
        holder = changed
        for part in way:
            holder = holder[part]
        match draw.randrange(4):
            case 0:
                holder[last] = copy.deepcopy(draw.choice(ODD))
            case 1:
                del holder[last]
            case 2:
                other = changed
                for part in draw.choice(known):
                    other = other[part]
                holder[last] = copy.deepcopy(other) if len(str(other)) < 5000 else None
            case 3 if isinstance(holder, dict):
                holder[draw.choice(["$ref", "", "x-y", "in", "type", "allOf", "items", "${X}", "a\nb"])] = holder.pop(
                    last
                )
    return changed


def check(name: str, seed: int, count: int, folder: Path) -> None:
    data = (DESCRIPTIONS / name).read_bytes()
    document = parse(data, name)
    draw = random.Random(seed)
    file = folder / "description.json"
    for _ in range(count):
        file.write_bytes(json_text.encode(mutated(document, draw)))
        result = import_openapi(str(file), io.BytesIO(), Choice(all=draw.random() < 0.5))
        lines = result.notes if isinstance(result, Imported) else [result.message]
        assert all(line.isprintable() for line in lines)


NAMES = (
    "alertmanager-v2.swagger2.yaml",
    "petstore2.swagger2.yaml",
    "petstore3.oas30.yaml",
    "swashbuckle-basic.oas31.json",
)


@pytest.mark.parametrize("name", NAMES)
def test_anything_in_the_place_of_anything(name: str, tmp_path: Path) -> None:
    check(name, 1, 6, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_anything_in_the_place_of_anything_for_long(name: str, tmp_path: Path) -> None:
    check(name, 2, 60, tmp_path)
