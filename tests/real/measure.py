"""A second opinion on answers: read, write and hold against a declared schema; knows nothing of the gateway."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

Json = Any


def read(text: bytes) -> Json:
    """A JSON text by Python's own parser, which keeps every digit of an integer."""
    return json.loads(text)


def write(value: Json) -> bytes:
    """A value as compact JSON by hand: a double in its shortest digits, an exponent only beyond 1e-5 and 1e16."""
    if isinstance(value, dict):
        return b"{" + b",".join(write(key) + b":" + write(item) for key, item in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(write(item) for item in value) + b"]"
    if isinstance(value, float):
        digits = repr(value).replace("e-0", "e-")
        return (f"{Decimal(digits):f}" if digits.endswith("e-5") else digits).encode()
    return json.dumps(value, ensure_ascii=False).encode()


def integers(value: Json) -> Iterator[int]:
    """Every integer of a value, in its order."""
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from integers(item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


def depth(value: Json) -> int:
    if isinstance(value, (dict, list)):
        return 1 + max((depth(item) for item in (value.values() if isinstance(value, dict) else value)), default=0)
    return 0


class Declared:
    """The contracts' own schemas as YAML has them, without any of the gateway's reading of it."""

    def __init__(self, folder: Path) -> None:
        self.schemas: dict[str, Json] = {}
        self.shown: dict[str, Json] = {}
        for file in sorted(folder.glob("endpoints/*.yaml")):
            document = yaml.load(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            self.schemas.update(document.get("schemas", {}))
            for name, endpoint in document["endpoints"].items():
                view = endpoint["tool"]["view"]
                self.shown[name.replace(".", "_")] = view.get("output", endpoint["output"])

    def undeclared(self, value: Json, schema: Json, path: str = "") -> Iterator[str]:
        """The path of every key that the schema does not name and no map or pattern of it takes."""
        schema = self._resolved(schema, value)
        if isinstance(value, dict):
            for name, item in value.items():
                takes = _takes(schema, name)
                if takes is None:
                    yield f"{path}.{name}"
                else:
                    yield from self.undeclared(item, takes, f"{path}.{name}")
        elif isinstance(value, list):
            first = schema.get("prefixItems", [])
            for place, item in enumerate(value):
                takes = first[place] if place < len(first) else schema.get("items", {})
                yield from self.undeclared(item, takes, f"{path}[{place}]")

    def _resolved(self, schema: Json, value: Json) -> Mapping[str, Json]:
        while True:
            if schema is True:
                return {"additionalProperties": {}}
            if schema is False:
                return {}
            if "$ref" in schema:
                schema = self.schemas[schema["$ref"].removeprefix("#/schemas/")]
            elif "oneOf" in schema:
                schema = next(branch for branch in schema["oneOf"] if self._is_of(branch, value))
            else:
                assert isinstance(schema, Mapping)
                return schema

    def _is_of(self, branch: Json, value: Json) -> bool:
        """Whether a branch is meant for a value: its type, and the constants by which branches are told apart."""
        if "$ref" in branch:
            return self._is_of(self.schemas[branch["$ref"].removeprefix("#/schemas/")], value)
        if "const" in branch or "enum" in branch:
            return value in branch.get("enum", [branch.get("const")])
        types = {dict: "object", list: "array", str: "string", type(None): "null"}
        if types.get(type(value)) != branch["type"]:
            return False
        tags = {name: each["const"] for name, each in branch.get("properties", {}).items() if "const" in each}
        return all(value.get(name) == tag for name, tag in tags.items())


def _takes(schema: Mapping[str, Json], name: str) -> Json | None:
    if name in schema.get("properties", {}):
        return schema["properties"][name]
    for pattern, takes in schema.get("patternProperties", {}).items():
        if re.search(pattern, name):
            return takes
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, dict) or additional is True else None
