"""The vocabulary of a schema document: which keywords hold schemas, which say nothing, which are refused and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

#: Keywords whose value is a schema, a list of schemas, a map of schemas.
ONE = _words(
    "additionalProperties unevaluatedProperties items unevaluatedItems contains propertyNames not if then else"
    " contentSchema"
)
MANY = _words("allOf anyOf oneOf prefixItems")
NAMED = _words("$defs definitions properties patternProperties dependentSchemas")

#: Keywords that judge a value and hold no schema.
PLAIN = _words(
    "$ref $anchor type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength"
    " pattern maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required"
    " dependentRequired format"
)

#: Keywords that never change the outcome, OpenAPI's among them.
ANNOTATIONS = _words(
    "$schema $id $comment title description default examples deprecated readOnly writeOnly contentEncoding"
    " contentMediaType discriminator xml externalDocs example"
)

KNOWN = ONE | MANY | NAMED | PLAIN | ANNOTATIONS

#: Keywords of other dialects, each with what to write instead.
REFUSED = {
    "nullable": '`nullable` is OpenAPI 3.0; write `type: [string, "null"]`, or `anyOf: [..., {type: "null"}]`',
    "dependencies": "`dependencies` is an older draft; write `dependentRequired` or `dependentSchemas`",
    "additionalItems": "`additionalItems` is an older draft; write `prefixItems` and `items`",
    "id": "`id` is an older draft and says nothing here; leave it out",
    "divisibleBy": "`divisibleBy` is an older draft; write `multipleOf`",
    "extends": "`extends` is an older draft; write `allOf`",
    "disallow": "`disallow` is an older draft; write `not`",
    "$recursiveRef": "`$recursiveRef` is an older draft; write `$ref`",
    "$recursiveAnchor": "`$recursiveAnchor` is an older draft; write `$ref` to a definition",
    "$dynamicRef": "`$dynamicRef` depends on who refers to it, which cannot be shown to a caller; write `$ref`",
    "$dynamicAnchor": "`$dynamicAnchor` is only of use to `$dynamicRef`; write a definition and `$ref` to it",
    "$vocabulary": "`$vocabulary` belongs into a metaschema; leave it out",
}

#: Formats that are checked under `formats: assert`.
FORMATS = _words(
    "date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference iri iri-reference"
    " uuid uri-template json-pointer relative-json-pointer regex"
)


def subschemas(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every place directly under a schema where a schema stands, with its path. A value of another shape is passed
    over: the metaschema refuses it."""
    if not isinstance(node, dict):
        return
    for keyword, held in node.items():
        if keyword in ONE:
            yield (*path, keyword), held
        elif keyword in MANY and isinstance(held, list):
            for index, item in enumerate(held):
                yield (*path, keyword, index), item
        elif keyword in NAMED and isinstance(held, dict):
            for name, item in held.items():
                yield (*path, keyword, name), item
