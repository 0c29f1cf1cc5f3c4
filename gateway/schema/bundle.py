"""Making a schema self-contained: every reference that leads out becomes a definition inside; knows no file."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

from gateway.schema.keywords import MANY, NAMED, ONE, Path
from gateway.schema.resolve import resolve
from gateway.schema.violation import SchemaFault

#: For a reference that leads out: a stable name and the raw node, or None where there is none.
Lookup = Callable[[str], tuple[str, Any] | None]


def bundle(node: Any, lookup: Lookup) -> dict[str, Any] | bool | tuple[SchemaFault, ...]:
    """The same schema with every outer reference as `#/$defs/NAME`, holding only the definitions it reaches."""
    return _bundled(_Bundling(node, lookup), node)


def bundle_part(root: Any, node: Any) -> dict[str, Any] | bool | tuple[SchemaFault, ...]:
    """A schema out of a self-contained document, made self-contained itself; `#` still means the whole document."""

    def lookup(ref: str) -> tuple[str, Any] | None:
        target = resolve(root, ref)
        if isinstance(target, str):
            return None
        return str(target[0][-1]) if target[0] else "root", target[1]

    return _bundled(_Bundling(None, lookup), node)


def _bundled(bundling: _Bundling, node: Any) -> dict[str, Any] | bool | tuple[SchemaFault, ...]:
    document = bundling.rewritten(node, (), at_root=True)
    bundling.finish()
    if bundling.faults:
        return tuple(bundling.faults)
    if not isinstance(document, dict):
        return document if isinstance(document, bool) else (SchemaFault((), "a schema is an object, true or false"),)
    document = {keyword: held for keyword, held in document.items() if keyword != "$defs"}
    if bundling.definitions:
        document["$defs"] = bundling.definitions
    return document


class _Bundling:
    def __init__(self, root: Any, lookup: Lookup) -> None:
        self._root = root
        self._lookup = lookup
        own = root.get("$defs") if isinstance(root, dict) else None
        self._own: dict[str, Any] = own if isinstance(own, dict) else {}
        #: Names by id of the raw node, so that one node under two spellings becomes one definition. The node beside
        #: its name keeps the id its own.
        self._names: dict[int, tuple[str, Any]] = {}
        self._taken = set(self._own)
        self._refs: dict[str, str] = {}
        self._kept: set[str] = set()
        self._waiting: list[tuple[str, Any, Path]] = []
        self.definitions: dict[str, Any] = {}
        self.faults: list[SchemaFault] = []

    def finish(self) -> None:
        """Rewrites definitions until no new one is reached; those of the root first and in its order."""
        while self._waiting:
            name, raw, path = self._waiting.pop(0)
            self.definitions[name] = self.rewritten(raw, path)
        order = [name for name in self._own if name in self.definitions]
        order += [name for name in self.definitions if name not in self._own]
        self.definitions = {name: self.definitions[name] for name in order}

    def rewritten(self, node: Any, path: Path, *, at_root: bool = False) -> Any:
        if not isinstance(node, dict):
            return node
        written: dict[str, Any] = {}
        for keyword, held in node.items():
            here = (*path, keyword)
            if keyword == "$ref" and isinstance(held, str):
                written[keyword] = self._reference(held, here)
            elif keyword == "$defs" and at_root:
                written[keyword] = held
            elif keyword in ONE:
                written[keyword] = self.rewritten(held, here)
            elif keyword in MANY and isinstance(held, list):
                items = [self.rewritten(item, (*here, index)) for index, item in enumerate(held)]
                written[keyword] = held if all(map(is_, items, held)) else items
            elif keyword in NAMED and isinstance(held, dict):
                named = {name: self.rewritten(item, (*here, name)) for name, item in held.items()}
                written[keyword] = held if all(map(is_, named.values(), held.values())) else named
            else:
                written[keyword] = held
        # What holds no outer reference stays the same object, so that contracts share their schemas.
        return node if all(written[keyword] is held for keyword, held in node.items()) else written

    def _reference(self, ref: str, path: Path) -> str:
        # `#` is the schema itself, unless it is only a part of what is looked up in.
        known = self._refs.get(ref)
        if known is not None:
            return known
        found = self._lookup(ref) if ref != "#" or self._root is None else None
        if found is not None:
            self._refs[ref] = self._definition(*found)
            return self._refs[ref]
        target = resolve(self._root, ref)
        if isinstance(target, str):
            self.faults.append(SchemaFault(path, f"`{ref}` cannot be resolved: {target}"))
            return ref
        if target[0][:1] == ("$defs",):
            self._keep(str(target[0][1]))
        return ref

    def _keep(self, name: str) -> None:
        """A definition of the root that something refers to, or into."""
        if name not in self._kept:
            self._kept.add(name)
            self._waiting.append((name, self._own[name], ("$defs", name)))

    def _definition(self, wanted: str, raw: Any) -> str:
        name, _ = self._names.get(id(raw), ("", None))
        if not name:
            name, number = wanted, 2
            while name in self._taken:
                name, number = f"{wanted}_{number}", number + 1
            self._taken.add(name)
            self._names[id(raw)] = name, raw
            self._waiting.append((name, raw, ("$defs", name)))
        return "#/$defs/" + name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
