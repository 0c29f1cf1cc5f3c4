"""What is wrong: of a value against a schema, and of a schema itself. Plain values, no JSON Schema engine."""

from __future__ import annotations

from gateway.record import record


@record
class Violation:
    """One place where a value breaks its schema."""

    #: JSON Pointer (RFC 6901) into the value; "" is the root.
    pointer: str
    #: The keyword that is broken: `type`, `required`, `enum`, ...
    rule: str
    #: One sentence that says what is expected and what type was found; never the value itself.
    message: str
    #: JSON Pointer into the schema document; a bounded set, fit for a metric label.
    schema_path: str
    #: JSON type of the value found there.
    found: str


@record
class SchemaFault:
    """One place where a schema cannot be honoured; `path` leads into the document as it was written."""

    path: tuple[str | int, ...]
    message: str
