"""References inside one document: from a `$ref` to the schema it names; knows no file and no network."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from gateway.schema.keywords import MANY, NAMED, ONE, Path, subschemas

_MISSING = object()


def resolve(root: Any, ref: str) -> tuple[Path, Any] | str:
    """The path and node that a local reference names, or why there is none."""
    if not ref.startswith("#"):
        return "it leads out of this document, and nothing is ever fetched"
    fragment = unquote(ref[1:])
    if fragment and not fragment.startswith("/"):
        return _anchored(root, fragment)
    node, kind = root, "schema"
    path: Path = ()
    for token in fragment.split("/")[1:]:
        key: str | int = token.replace("~1", "/").replace("~0", "~")
        if kind == "list":
            key = int(token) if token.isdecimal() and str(int(token)) == token else token
        held = _child(node, key)
        if held is _MISSING:
            return f"there is no `{'/'.join(map(str, (*path, key)))}` in this document"
        node, path, kind = held, (*path, key), _kind(kind, key)
    if kind != "schema":
        return "it names a place where no schema stands"
    return path, node


def _child(node: Any, key: str | int) -> Any:
    if isinstance(node, dict):
        return node.get(key, _MISSING)
    if isinstance(node, list) and isinstance(key, int) and key < len(node):
        return node[key]
    return _MISSING


def _kind(kind: str, key: str | int) -> str:
    """What stands below a key: a schema, a list or map of schemas, or something else."""
    if kind in ("list", "map"):
        return "schema"
    if kind != "schema":
        return "other"
    return "schema" if key in ONE else "list" if key in MANY else "map" if key in NAMED else "other"


def _anchored(root: Any, name: str) -> tuple[Path, Any] | str:
    waiting: list[tuple[Path, Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict) and node.get("$anchor") == name:
            return path, node
        waiting.extend(subschemas(node, path))
    return f"there is no `$anchor: {name}` in this document"
