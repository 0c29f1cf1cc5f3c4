"""A contract's file to a frozen `Contract`, or to every refusal at once. The only way into this room."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any

from gateway import json_text
from gateway.contract import moved
from gateway.contract.disk import Disk
from gateway.contract.endpoints import EndpointReader
from gateway.contract.grammar import json_schema
from gateway.contract.model import Contract, ContractWritten, Endpoint
from gateway.contract.names import TOOL_SURFACES
from gateway.contract.process import check_listeners, read_backends, read_gateway
from gateway.contract.reading import Reading
from gateway.contract.references import Files, open_contract
from gateway.contract.refusal import Path, Refusal, in_order, quoted
from gateway.contract.schemas import Schemas
from gateway.contract.secrets import masked, resolve
from gateway.contract.shape import keys_at, unknown_key

__all__ = ["json_schema", "load"]

Json = Any


def load(
    path: FilePath, environment: Mapping[str, str] | None = None, disk: Disk | None = None
) -> Contract | tuple[Refusal, ...]:
    """The contract that a file holds; or everything that is wrong with it, by file and line, each fault once.

    Who hands in a `disk` can keep what was read, and load the same once more.
    """
    with _collection_paused():
        return _load(path, os.environ if environment is None else environment, disk or Disk())


@contextmanager
def _collection_paused() -> Iterator[None]:
    """A load keeps nearly all it makes, so looking for garbage meanwhile finds none and costs a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _load(path: FilePath, environment: Mapping[str, str], disk: Disk) -> Contract | tuple[Refusal, ...]:
    files = open_contract(path, disk)
    if isinstance(files, tuple):
        return in_order(files)
    reading = Reading(files)
    _check_root(reading, files.merged)
    as_written = files.merged
    files.merged = _resolved(reading, as_written, environment)
    gateway = read_gateway(reading, files.merged.get("gateway", {}))
    backends = read_backends(reading, files.merged.get("backends"), gateway)
    check_listeners(reading, gateway, backends)
    schemas = Schemas(files, gateway.formats)
    projections = None if gateway.projections is None else FilePath(gateway.projections)
    endpoints = _endpoints(reading, EndpointReader(reading, schemas, backends, projections))
    _check_names(reading, endpoints)
    _check_named_schemas(schemas, files)
    if files.refusals:
        return in_order(files.refusals)
    _warn(reading, endpoints)
    shown = _shown(as_written)
    return Contract(
        gateway=gateway,
        backends=MappingProxyType(backends),
        endpoints=MappingProxyType(endpoints),
        digest=json_text.digest({"contract": shown, "files": _referenced(files) | files.cards}),
        folder=str(files.folder),
        warnings=in_order(reading.warnings),
        written=shown,
        files=tuple(str(files.folder / name) for name in (*files.documents, *files.cards)),
    )


_SECTIONS = {"include": list, "gateway": dict, "backends": dict, "schemas": dict, "endpoints": dict}


def _check_root(reading: Reading, root: dict[str, Json]) -> None:
    accepted = keys_at(ContractWritten, ())
    for key, value in root.items():
        if key not in accepted:
            reading.refuse((key,), unknown_key(key, accepted, moved.CONTRACT.get(key)))
        elif key in _SECTIONS and not isinstance(value, _SECTIONS[key]) and key != "backends":
            what = "a list of patterns, as `[contracts/*.yaml]`" if key == "include" else "a mapping"
            reading.refuse((key,), f"write {what} here, or take `{key}` out")
            root[key] = _SECTIONS[key]()
    if "version" not in root:
        reading.refuse((), "the key `version` is missing; write `version: 1`")
    elif root["version"] != 1 or type(root["version"]) is not int:
        reading.refuse(("version",), "only version 1 is known; write `version: 1`")


def _resolved(reading: Reading, root: dict[str, Json], environment: Mapping[str, str]) -> dict[str, Json]:
    """The contract with the placeholders of `gateway` and `backends` resolved."""
    marks, disk = reading.files.marks, reading.files.disk
    resolved = dict(root)
    for section in ("gateway", "backends"):
        if section in root:
            resolved[section] = resolve(root[section], (section,), environment, disk, marks, reading.refuse)
    marks.copied(resolved, root)
    return resolved


def _endpoints(reading: Reading, reader: EndpointReader) -> dict[str, Endpoint]:
    written = reading.files.merged.get("endpoints")
    if not written:
        if not reading.faulted(("endpoints",)):
            at: Path = ("endpoints",) if written is not None else ()
            reading.refuse(at, "there is no endpoint; write one, as `people.list: {request: GET /people, …}`")
        return {}
    endpoints = {}
    for name, group in written.items():
        if not name.strip() or not name.isprintable() or len(name) > 200:
            reading.refuse(("endpoints", name), "an endpoint's id is 1 to 200 printable characters; write another")
        try:
            endpoint = reader.read(name, group)
        except RecursionError:
            reading.refuse(("endpoints", name), _TOO_LONG)
            continue
        if endpoint is not None:
            endpoints[name] = endpoint
    return endpoints


# A chain of some hundred `$ref`s in a row; Python's stack is what bounds it.
_TOO_LONG = "its schemas refer to each other through too many levels to be followed; write the chain shorter"


def _check_names(reading: Reading, endpoints: Mapping[str, Endpoint]) -> None:
    """Class 7: one tool of a name on each surface."""
    taken: dict[tuple[str, str], str] = {}
    for endpoint in endpoints.values():
        if endpoint.tool is None:
            continue
        name = endpoint.tool.name
        clashes = [surface for surface in TOOL_SURFACES if surface in endpoint.expose and (surface, name) in taken]
        for surface in TOOL_SURFACES:
            if surface in endpoint.expose:
                taken.setdefault((surface, name), endpoint.id)
        if clashes:
            other = taken[clashes[0], name]
            where = " and ".join(clashes) if len(clashes) < 3 else "every surface"
            reading.refuse(
                ("endpoints", endpoint.id, "tool", "name"),
                f"the tool name `{name}` is already that of endpoint {quoted(other)} on {where};"
                " write another `tool.name`",
            )


def _check_named_schemas(schemas: Schemas, files: Files) -> None:
    """Those that nothing refers to are checked too; the others were, with what refers to them."""
    for name, node in (files.merged.get("schemas") or {}).items():
        try:
            if not schemas.reached(name):
                schemas.compile(node, ("schemas", name))
        except RecursionError:
            files.refusals.append(files.refusal("", ("schemas", name), _TOO_LONG))


def _warn(reading: Reading, endpoints: Mapping[str, Endpoint]) -> None:
    untold = [each.id for each in endpoints.values() if each.tool is not None and each.tool.safety_tier is None]
    if untold:
        count = f"{len(untold)} tools have" if len(untold) > 1 else "this tool has"
        reading.warn(
            ("endpoints", untold[0]),
            f"{count} no `tool.safety_tier`, so the catalog lists {'them' if len(untold) > 1 else 'it'} as `write`;"
            " write `pure`, `read`, `write` or `exec`",
        )
    _warn_of_later(reading)
    for section in ("schemas", "endpoints"):
        _warn_of_placeholders(reading, reading.files.merged.get(section), (section,))


#: Keys that are read and checked, and on which this version does not act: whoever writes one is told so.
_LATER: tuple[tuple[str, ...], ...] = (
    ("gateway", "ledger"),
    ("endpoints", "*", "durable"),
)


def _warn_of_later(reading: Reading) -> None:
    for pattern in _LATER:
        for path in _found(reading.files.merged, pattern):
            reading.warn(path, f"`{path[-1]}` is checked, and this version does not act on it yet")


def _found(node: Json, pattern: tuple[str, ...], at: Path = ()) -> Iterator[Path]:
    if not pattern:
        yield at
    elif isinstance(node, dict):
        for key in list(node) if pattern[0] == "*" else [pattern[0]]:
            if key in node:
                yield from _found(node[key], pattern[1:], (*at, key))


def _warn_of_placeholders(reading: Reading, node: Json, path: Path) -> None:
    if isinstance(node, str):
        if node.startswith("${") and node.endswith("}"):
            reading.warn(path, "`${…}` is only read under `gateway` and `backends`; here it stays text")
    elif isinstance(node, (dict, list)):
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            _warn_of_placeholders(reading, item, (*path, key))


def _shown(root: dict[str, Json]) -> dict[str, Json]:
    """The contract as written, secrets out: what digests and `/-/contract` see."""
    shown = dict(root)
    if isinstance(root.get("gateway"), dict):
        gateway = masked(root["gateway"])
        auth = gateway.get("auth") or {}
        for key in auth.get("keys", ()):
            key["sha256"] = "***"
        if "jwt" in auth:  # some issuers want a key in the query
            where, asked, _ = auth["jwt"]["jwks"].partition("?")
            auth["jwt"]["jwks"] = f"{where}?***" if asked else where
        if "ledger" in gateway:
            gateway["ledger"] = gateway["ledger"].split("://")[0] + "://***"
        shown["gateway"] = gateway
    if isinstance(root.get("backends"), dict):
        backends = masked(root["backends"])
        for backend in backends.values():
            for key in ("headers", "auth"):
                if key in backend:
                    backend[key] = _blanked(backend[key])
        shown["backends"] = backends
    return shown


def _blanked(node: Json) -> Json:
    """Texts without their values: a literal there is a secret as much as a resolved one."""
    if isinstance(node, dict):
        return {key: _blanked(item) for key, item in node.items()}
    if isinstance(node, list):
        return [_blanked(item) for item in node]
    return "***"


def _referenced(files: Files) -> dict[str, Json]:
    """What `$ref`s brought in from files that are not merged."""
    merged = {files.main, *files.included}
    return {name: document.value for name, document in files.documents.items() if name not in merged}
