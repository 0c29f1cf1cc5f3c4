"""The schemas of a contract, compiled: `$ref`s followed through its files, each fault at the line that holds it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from gateway import json_text
from gateway.contract.references import Files, Home, Target
from gateway.contract.refusal import Path
from gateway.json_pointer import pointer_of
from gateway.schema import Schema, SchemaFault, bundle, compile_schema, faults_of_cutting
from gateway.schema.fit import Fits, Unknown, fits_slice
from gateway.schema.keywords import subschemas

Json = Any

#: Starts an absolute reference into the merged contract; no file can be named so.
_MERGED = "contract:"
#: Stands for a reference that was refused, so that nothing else is said of it.
_REFUSED = "contract:refused#"

#: Keywords by which a schema's root may declare properties elsewhere.
_COMPOSES = ("$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")


class Schemas:
    """Compiles each schema of one contract once; equal ones share their compiled form."""

    def __init__(self, files: Files, formats: Literal["annotate", "assert"]) -> None:
        self._files = files
        self.formats = formats
        self._compiled: dict[bytes, Schema | tuple[SchemaFault, ...]] = {}
        self._names: dict[Target, str] = {}
        self._targets: dict[str, Target] = {}
        self._rebased: dict[Target, Json] = {}
        self._slices: dict[tuple[int, int], Fits] = {}
        self._cutting: dict[int, tuple[SchemaFault, ...]] = {}
        self._met_refused = False

    def compile(self, node: Json, path: Path) -> Schema | None:
        """The schema that stands at a path of the contract; None where it was refused."""
        found = self._compile(self._rebase(node, Home("", path), path, local=True))
        if isinstance(found, Schema):
            return found
        self._refuse(found, node, path)
        return None

    def reached(self, name: str) -> bool:
        """Whether a named schema was compiled as a part of another one."""
        return Target("", ("schemas", name)) in self._rebased

    def slice_fits(self, full: Schema, view: Schema) -> Fits:
        """Whether every full answer, once cut to the view, satisfies it; asked once of a pair."""
        pair = (id(full), id(view))  # both are held by `_compiled`
        if pair not in self._slices:
            try:
                self._slices[pair] = fits_slice(full, view, formats=self.formats)
            except RecursionError:
                self._slices[pair] = Unknown("the schemas refer to each other through too many levels")
        return self._slices[pair]

    def of_argument(self, arguments: Schema, name: str) -> Schema | None:
        """The schema of one argument; many endpoints have the same one."""
        document = arguments.property_document(name)
        found = None if document is None else self._compile(document)
        return found if isinstance(found, Schema) else None

    def compile_input(self, node: Json, path: Path) -> Schema | None:
        """The schema of an endpoint's arguments: an object, closed where it does not say otherwise."""
        return self.compile(closed({} if node is None else node), path)

    def compile_output(self, node: Json, path: Path) -> Schema | None:
        """The schema of an answer, by which it is cut too: refused where that would leak, or break what it promises."""
        schema = self.compile(node, path)
        if schema is None:
            return None
        if id(schema) not in self._cutting:  # held by `_compiled`
            self._cutting[id(schema)] = faults_of_cutting(schema.document)
        faults = self._cutting[id(schema)]
        self._refuse(faults, node, path)
        return None if faults else schema

    def _compile(self, rebased: Json) -> Schema | tuple[SchemaFault, ...]:
        key = json_text.encode(rebased)
        if key not in self._compiled:
            self._met_refused = False
            document = bundle(rebased, self._lookup)
            found = document if isinstance(document, tuple) else compile_schema(document, formats=self.formats)
            self._compiled[key] = () if self._met_refused and isinstance(found, Schema) else found
        return self._compiled[key]

    def _refuse(self, faults: Iterable[SchemaFault], node: Json, path: Path) -> None:
        own = node.get("$defs") if isinstance(node, dict) else None
        for fault in faults:
            target, rest = Target("", path), fault.path
            if len(rest) > 1 and rest[0] == "$defs" and not (isinstance(own, dict) and rest[1] in own):
                target, rest = self._targets.get(str(rest[1]), target), rest[2:]
            self._files.refusals.append(self._files.refusal(target.file, (*target.path, *rest), fault.message))

    def _lookup(self, reference: str) -> tuple[str, Json] | None:
        if reference == _REFUSED:
            self._met_refused = True
            return "refused", True
        file, mark, pointer = reference.partition("#")
        if not mark or (file != _MERGED and file not in self._files.documents):
            return None
        target, node = self._files.at("" if file == _MERGED else file, pointer)
        if target not in self._rebased:
            rebased = self._rebase(node, _home_of(target), target.path, local=False)
            # Nothing refers into its own definitions any more: each became a definition of the whole.
            self._rebased[target] = _without_definitions(rebased)
        return self._name(target), self._rebased[target]

    def _rebase(self, node: Json, home: Home, path: Path, *, local: bool) -> Json:
        """The node with its references made absolute; `local` leaves those that stay inside the node itself."""
        if not isinstance(node, dict):
            return node
        copy: dict[str, Json] | None = None
        reference = node.get("$ref")
        if isinstance(reference, str):
            absolute = self._absolute(reference, home, path, local)
            if absolute != reference:
                copy = {**node, "$ref": absolute}
        for at, child in subschemas(node):
            fresh = self._rebase(child, home, (*path, *at), local=local)
            if fresh is not child:
                copy = dict(node) if copy is None else copy
                _replace(copy, node, at, fresh)
        return node if copy is None else copy

    def _absolute(self, reference: str, home: Home, path: Path, local: bool) -> str:
        if re.fullmatch(r"#[^/].*", reference) and local:
            return reference  # an `$anchor` of the same schema
        target = self._files.target(reference, home)
        if isinstance(target, str):
            self._files.refusals.append(self._files.refusal(home.file, (*path, "$ref"), target))
            return _REFUSED
        if local and target.file == home.file and target.path[: len(home.root)] == home.root:
            return "#" + pointer_of(target.path[len(home.root) :])
        return f"{target.file or _MERGED}#{pointer_of(target.path)}"

    def _name(self, target: Target) -> str:
        """The definition's name: the schema's own where it is free, the same on every start."""
        if target not in self._names:
            parts = [str(part) for part in target.path if part != "schemas"] or [
                target.file.rsplit("/")[-1].split(".")[0]
            ]
            short = re.sub(r"[^A-Za-z0-9_.-]", "_", parts[-1] if target.file else "_".join(parts)) or "schema"
            name, count = short, 2
            while name in self._targets:
                name, count = f"{short}_{count}", count + 1
            self._names[target], self._targets[name] = name, target
        return self._names[target]


def closed(node: Json) -> Json:
    """An input schema that refuses what it does not declare, unless it says otherwise itself."""
    if not isinstance(node, dict):
        return node
    composes = any(keyword in node for keyword in _COMPOSES)
    typed = node if "type" in node or composes else {"type": "object", **node}
    if "additionalProperties" in node or "unevaluatedProperties" in node:
        return typed
    return {**typed, "unevaluatedProperties" if composes else "additionalProperties": False}


def _without_definitions(node: Json) -> Json:
    return {key: held for key, held in node.items() if key != "$defs"} if isinstance(node, dict) else node


def _replace(copy: dict[str, Json], node: dict[str, Json], at: Path, fresh: Json) -> None:
    keyword = at[0]
    assert isinstance(keyword, str)
    if len(at) == 1:
        copy[keyword] = fresh
        return
    if copy[keyword] is node[keyword]:
        copy[keyword] = node[keyword].copy()
    copy[keyword][at[1]] = fresh


def _home_of(target: Target) -> Home:
    return Home("", target.path[:2]) if target.file == "" else Home(target.file)
