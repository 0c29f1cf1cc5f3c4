"""What is wrong with a schema document itself: every fault with its path, before anything is compiled."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from gateway.json_text import type_name
from gateway.schema.explain import sentence
from gateway.schema.keywords import DIALECT, FORMATS, KNOWN, REFUSED, TYPES, Path, subschemas
from gateway.schema.nearest import did_you_mean
from gateway.schema.pattern import PatternFault, translate
from gateway.schema.resolve import resolve
from gateway.schema.violation import SchemaFault

#: In-place applicators: what they hold judges the same value.
_IN_PLACE = frozenset(("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))

#: Keywords about which only the metaschema has anything to say.
_QUIET = KNOWN - {"$schema", "$id", "format", "items", "exclusiveMinimum", "exclusiveMaximum", "required", "type"}

_metaschema: jsonschema_rs.Validator | None = None


def faults_of(document: Any, *, formats: str = "annotate") -> tuple[SchemaFault, ...]:
    """Every fault of a self-contained document; none where it can be compiled."""
    faults: list[SchemaFault] = []
    loops: dict[Path, list[Path]] = {}
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, bool):
            continue
        if not isinstance(node, dict):
            faults.append(SchemaFault(path, f"a schema is an object, true or false; found {type_name(node)}"))
            continue
        for keyword, held in node.items():
            message = None if keyword in _QUIET else _keyword(keyword, held, path, formats)
            if message:
                faults.append(SchemaFault((*path, keyword), message))
        below = list(subschemas(node, path))
        edges = [at for at, _ in below if at[len(path)] in _IN_PLACE]
        ref = node.get("$ref")
        if isinstance(ref, str):
            target = resolve(document, ref)
            if isinstance(target, str):
                faults.append(SchemaFault((*path, "$ref"), f"`{ref}` cannot be resolved: {target}"))
            else:
                edges.append(target[0])
        if edges:
            loops[path] = edges
        if "pattern" in node or "patternProperties" in node:
            faults += _patterns(node, path)
        waiting.extend(below)
    faults += [
        SchemaFault(path, "the reference leads back to itself before any value is read") for path in _loops(loops)
    ]
    known = {fault.path for fault in faults}
    faults += [fault for fault in _against_metaschema(document) if not _covered(fault.path, known)]
    return tuple(
        sorted(
            faults,
            key=lambda fault: [str(part).rjust(6, "0") if isinstance(part, int) else part for part in fault.path],
        )
    )


def _keyword(keyword: Any, held: Any, path: Path, formats: str) -> str | None:
    """Why one keyword cannot be honoured, by its name alone or by a value the metaschema lets pass."""
    if not isinstance(keyword, str):
        return f"a key of a schema is text; found {type_name(keyword)}"
    if keyword in REFUSED:
        return REFUSED[keyword]
    if keyword not in KNOWN and not keyword.startswith("x-"):
        return f"`{keyword}` is no keyword of JSON Schema{did_you_mean(keyword, KNOWN, '`')}"
    if keyword == "$schema" and (not isinstance(held, str) or held.rstrip("#") != DIALECT):
        return f"only the dialect {DIALECT} is spoken here; leave `$schema` out"
    if keyword == "$id" and path:
        return "a schema inside another has no address of its own; put it under `$defs` and refer to `#/$defs/NAME`"
    if keyword == "format" and formats == "assert" and isinstance(held, str) and held not in FORMATS:
        return f"format `{held}` cannot be checked{did_you_mean(held, FORMATS, '`')}"
    if keyword == "items" and isinstance(held, list):
        return "`items` is one schema for all items; write `prefixItems` for a list of schemas"
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(held, bool):
        bound = "minimum" if keyword == "exclusiveMinimum" else "maximum"
        return f"`{keyword}` is a number; write the bound itself here and leave `{bound}` out"
    if keyword == "required" and isinstance(held, bool):
        return "`required` is a list of names and stands beside `properties`, not inside a property"
    if keyword == "type":
        for name in held if isinstance(held, list) else [held]:
            if name not in TYPES:
                return f"`type` is one of {', '.join(TYPES)}, or a list of them{did_you_mean(str(name), TYPES)}"
    return None


def _patterns(node: dict[str, Any], path: Path) -> list[SchemaFault]:
    written: list[tuple[Path, Any]] = [(("pattern",), node["pattern"])] if "pattern" in node else []
    if isinstance(node.get("patternProperties"), dict):
        written += [(("patternProperties", pattern), pattern) for pattern in node["patternProperties"]]
    faults = []
    told: set[str] = set()
    for at, pattern in written:
        if not isinstance(pattern, str):
            continue
        spelled = translate(pattern)
        if isinstance(spelled, PatternFault):
            faults.append(SchemaFault((*path, *at), f"the pattern cannot be honoured: {spelled.reason}"))
            continue
        if len(at) > 1 and spelled in told:
            faults.append(SchemaFault((*path, *at), "another pattern beside it means the same; keep one of the two"))
        elif not _compiles(spelled):
            message = "the pattern is not a regular expression of ECMA-262, or too large"
            faults.append(SchemaFault((*path, *at), message))
        if len(at) > 1:
            told.add(spelled)
    return faults


def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator(
            {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions(), offline=True
        )
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _loops(edges: dict[Path, list[Path]]) -> list[Path]:
    """Places from which in-place applicators alone lead back to the place itself."""
    found, done = [], set()
    for start in edges:
        if start in done:
            continue
        trail: list[tuple[Path, list[Path]]] = [(start, list(edges[start]))]
        on_trail = {start}
        while trail:
            place, left = trail[-1]
            if not left:
                trail.pop()
                on_trail.discard(place)
                done.add(place)
                continue
            following = left.pop()
            if following in on_trail:
                found.append(place)
            elif following in edges and following not in done:
                trail.append((following, list(edges[following])))
                on_trail.add(following)
    return found


def _against_metaschema(document: Any) -> list[SchemaFault]:
    global _metaschema
    if _metaschema is None:
        _metaschema = jsonschema_rs.Draft202012Validator({"$ref": DIALECT}, offline=True)
    try:
        if _metaschema.is_valid(document):
            return []
        errors = list(_metaschema.iter_errors(document))
    except ValueError as fault:
        return [SchemaFault((), f"the schema is not JSON: {fault}")]
    return [
        SchemaFault(tuple(error.instance_path), f"`{_last_name(error.instance_path)}`: {sentence(error, document)}")
        for error in errors
    ]


def _last_name(path: list[str | int]) -> str:
    names = [part for part in path if isinstance(part, str)]
    return names[-1] if names else "schema"


def _covered(path: Path, known: set[Path]) -> bool:
    return any(path[: len(other)] == other for other in known if other or not path)
