"""A second opinion on described answers: jsonschema's errors, and what is declared; knows nothing of the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import (  # type: ignore[import-untyped]  # has no stubs
    Draft202012Validator,
    ValidationError,
)

from tests.real.descriptions.translate import SCHEMAS

Json = Any


class Opinion:
    """Judges values by the schemas of one contract."""

    def __init__(self, schemas: dict[str, Json]) -> None:
        self.schemas = schemas

    def errors(self, value: Json, schema: Json) -> list[ValidationError]:
        # The references of a contract lead to its root, so the schemas stand there.
        return list(Draft202012Validator({**schema, "schemas": self.schemas}).iter_errors(value))

    def kept(self, value: Json, schema: Json) -> Json:
        """A valid value without the keys that nothing declares."""
        return self._kept(value, list(self._alternatives(value, schema)))

    def _kept(self, value: Json, parts: list[Json]) -> Json:
        if isinstance(value, list):
            return [self._kept(item, self._all(item, [part.get("items", {}) for part in parts])) for item in value]
        if not isinstance(value, dict) or not any("properties" in p or "additionalProperties" in p for p in parts):
            return value
        kept = {}
        for name, item in value.items():
            takes = [part for part in (_takes(part, name) for part in parts) if part is not None]
            if takes:
                kept[name] = self._kept(item, self._all(item, takes))
        return kept

    def _all(self, value: Json, schemas: list[Json]) -> list[Json]:
        return [part for schema in schemas for part in self._alternatives(value, schema)]

    def _alternatives(self, value: Json, schema: Json) -> Iterator[Json]:
        """The schemas without choice or reference that have a say about a value."""
        if not isinstance(schema, dict):
            return
        if "$ref" in schema:
            yield from self._alternatives(value, self.schemas[schema["$ref"].removeprefix(SCHEMAS)])
            return
        yield schema
        for branch in schema.get("anyOf", ()):
            if not self.errors(value, branch):
                yield from self._alternatives(value, branch)
        for part in schema.get("allOf", ()):
            yield from self._alternatives(value, part)


def places(error: ValidationError) -> Iterator[str]:
    """The pointers of an error and of all that led to it in the branches of `anyOf`."""
    yield pointer(error)
    for inner in error.context or ():
        yield from places(inner)


def pointer(error: ValidationError) -> str:
    """Where in the value, as JSON Pointer; of a missing key, the object that lacks it."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.absolute_path)


def _takes(part: Json, name: str) -> Json | None:
    if name in part.get("properties", {}):
        return part["properties"][name]
    additional = part.get("additionalProperties", False)
    return {} if additional is True else additional if isinstance(additional, dict) else None
