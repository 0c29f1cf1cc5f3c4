"""One JSON Schema, compiled: check, cut, fill and decode values by it. The engine is named here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.schema.bundle import bundle_part
from gateway.schema.complete import endless_defaults
from gateway.schema.cut import removed
from gateway.schema.engine import Engine, engine_for
from gateway.schema.place import Part, spread
from gateway.schema.refuse import faults_of
from gateway.schema.resolve import resolve
from gateway.schema.secret import Hide
from gateway.schema.violation import SchemaFault, Violation


def compile_schema(document: Any, *, formats: str = "annotate") -> Schema | tuple[SchemaFault, ...]:
    """Compile a self-contained document, or say everything that is wrong with it.

    `formats`: under "annotate" a `format` never refuses a value; under "assert" it does, and an unknown one is a fault.
    """
    faults = faults_of(document, formats=formats) or tuple(endless_defaults(document))
    if faults:
        return faults
    engine = engine_for(document, formats)
    return engine if isinstance(engine, tuple) else Schema(document, engine)


@dataclass(frozen=True, eq=False)
class Schema:
    """A compiled schema. Values are never mutated; they are JSON of at most some thousand levels."""

    #: As it was given; nobody changes it.
    document: Any
    _engine: Engine

    def valid(self, value: Any) -> bool:
        return self._engine.valid(value)

    def check(self, value: Any, limit: int = 20) -> list[Violation]:
        """Every violation, at most `limit`; empty where the value is valid."""
        return self._engine.check(value, limit)

    def cut(self, value: Any) -> Any:
        """The value without undeclared keys, at every depth; the same object where nothing is dropped."""
        return self._engine.cut(value)

    def drops_all_of(self, full: Schema) -> bool:
        """Whether `cut` leaves, of any value, what it leaves of `full.cut(value)`; False where that is not certain."""
        return self._engine.drops_all_of(full._engine)

    def undeclared(self, value: Any) -> list[str]:
        """The paths that `cut` removes, as `rows[0].ssn`."""
        return removed(value, self._engine.cut(value))

    def fill(self, value: Any) -> Any:
        """The value with defaults of absent properties, where the schema names exactly one."""
        return self._engine.completing.fill(value)

    def decode_text(self, value: Any) -> Any:
        """The value with strings read as JSON where the schema wants an array or object and no string."""
        return self._engine.completing.decode(value)

    def hidden(self, value: Any, hide: Hide) -> Any:
        """The value with each part that is for writing only, at every depth, as `hide` gives it."""
        return self._engine.secrets.hidden(value, hide)

    @property
    def is_object(self) -> bool:
        """Whether only objects can be valid."""
        return self._engine.places.top().types == {"object"}

    @property
    def property_names(self) -> tuple[str, ...]:
        """Properties that the root declares, also through `$ref` and `allOf`."""
        return tuple(dict.fromkeys(name for part in self._root() for name in part.node.get("properties", ())))

    @property
    def required(self) -> frozenset[str]:
        return frozenset(name for part in self._root() for name in part.node.get("required", ()))

    def property_document(self, name: str) -> Any:
        """The schema of a property of the root, self-contained; None where it is not declared."""
        nodes = [part.node["properties"][name] for part in self._root() if name in part.node.get("properties", ())]
        if not nodes:
            return None
        node = nodes[0] if len(nodes) == 1 else {"allOf": nodes}
        return bundle_part(self.document, node)

    def property_schema(self, name: str) -> Schema | None:
        document = self.property_document(name)
        if document is None:
            return None
        compiled = compile_schema(document, formats=self._engine.formats)
        assert isinstance(compiled, Schema), compiled
        return compiled

    def optional(self, names: frozenset[str] | set[str] | tuple[str, ...]) -> Any:
        """The document with these names required no longer."""
        return self._without_required(self.document, frozenset(names))

    def _root(self) -> tuple[Part, ...]:
        return spread((self._engine.places.top(),), "object")[0]

    def _without_required(self, node: Any, names: frozenset[str]) -> Any:
        if not isinstance(node, dict):
            return node
        changed = dict(node)
        if "required" in node:
            changed["required"] = [name for name in node["required"] if name not in names]
            if not changed["required"]:
                del changed["required"]
        members = [self._without_required(member, names) for member in node.get("allOf", ())]
        if "$ref" in node:
            target = resolve(self.document, node["$ref"])
            assert not isinstance(target, str), "a document with such a reference is refused"
            relaxed = self._without_required(target[1], names)
            if relaxed != target[1]:
                del changed["$ref"]
                members.append(relaxed)
        if members:
            changed["allOf"] = members
        return changed
