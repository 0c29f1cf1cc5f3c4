"""A room imports lower rooms only, each third-party library has its rooms, and every file begins with a sentence."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gateway"

#: The most specific prefix decides. The same table, with a line on each room, is drawn in ARCHITECTURE.md.
ROOMS = {
    "gateway": 0,
    "gateway.json_text": 0,
    "gateway.json_pointer": 0,
    "gateway.record": 0,
    "gateway.schema": 1,
    "gateway.projection": 1,
    "gateway.backend.exchange": 1,
    "gateway.backend": 1,
    "gateway.contract": 2,
    "gateway.view": 3,
    "gateway.catalog": 3,
    "gateway.backend.destination": 3,
    "gateway.backend.client": 3,
    "gateway.backend.kept": 3,
    "gateway.backend.health": 3,
    "gateway.generation": 4,
    "gateway.call.outcome": 3,
    "gateway.call.hooks": 4,
    "gateway.call.failure": 4,
    "gateway.call": 5,
    "gateway.gateway": 6,
    "gateway.telemetry": 6,
    "gateway.telemetry.lines": 0,
    "gateway.telemetry.passthrough": 2,
    "gateway.relay": 0,
    "gateway.processes": 1,
    "gateway.processes.relay": 3,
    "gateway.processes.tools": 9,
    "gateway.watch": 5,
    "gateway.unlistened": 7,
    "gateway.surfaces": 7,
    "gateway.authoring": 7,
    "gateway.demo": 0,
    "gateway.serve": 8,
    "gateway.once": 8,
    "gateway.preview": 8,
    "gateway.piped": 8,
    "gateway.mock": 8,
    "gateway.demo.run": 9,
    "gateway.__main__": 10,
}

#: Third-party libraries, and the only rooms that may name them.
LIBRARIES = {
    "aiohttp": {
        "gateway.backend.arrived",
        "gateway.backend.destination",
        "gateway.backend.client",
        "gateway.backend.kept",
        "gateway.surfaces.http",
        "gateway.surfaces.key_set",
        "gateway.surfaces.oauth",
        "gateway.surfaces.admin",
        "gateway.surfaces.agent",
        "gateway.surfaces.catalog",
        "gateway.surfaces.console.http",
        "gateway.surfaces.mcp.http",
        "gateway.surfaces.openapi.http",
        "gateway.surfaces.ready",
        "gateway.serve",
        "gateway.mock",
        "gateway.demo",
    },
    "jiter": {"gateway.json_text"},
    "jmespath": {"gateway.projection"},
    "jsonschema_rs": {"gateway.schema"},
    "jwt": {"gateway.surfaces.signing"},
    "opentelemetry": {"gateway.telemetry.traces"},
    "orjson": {"gateway.json_text"},
    "prometheus_client": {"gateway.telemetry.exposition", "gateway.serve"},
    "pydantic": {"gateway.contract"},
    "pydantic_core": {"gateway.contract"},
    "uvloop": {"gateway.__main__", "gateway.relay"},
    "watchfiles": {"gateway.watch"},
    "yaml": {"gateway.contract"},
    "yarl": {"gateway.backend"},
}

FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def within(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


def level(module: str) -> int:
    room = max((room for room in ROOMS if within(module, room)), key=len)
    return ROOMS[room]


def imported(path: Path) -> Iterator[str]:
    module = module_of(path)
    known = {module_of(file) for file in FILES}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            source = node.module or ""
            for name in node.names:
                yield f"{source}.{name.name}" if f"{source}.{name.name}" in known else source


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_room_imports_lower_rooms_only(path: Path) -> None:
    module = module_of(path)
    for name in imported(path):
        if not within(name, "gateway"):
            continue
        same_room = module.split(".")[:2] == name.split(".")[:2]
        assert same_room or level(name) < level(module), (
            f"{module} (room {level(module)}) imports {name} ({level(name)})"
        )


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_each_library_stays_in_its_rooms(path: Path) -> None:
    module = module_of(path)
    for name in imported(path):
        top = name.split(".")[0]
        if top in sys.stdlib_module_names or top == "gateway":
            continue
        assert top in LIBRARIES, f"{module} imports {top}, which has no room"
        assert any(within(module, room) for room in LIBRARIES[top]), f"{module} must not import {top}"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_every_file_begins_with_a_sentence(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text()))
    assert said, "a file says what it does, and what it may not know"
    assert "." in said


def test_the_byte_path_knows_nothing() -> None:
    allowed = {"gateway.relay", "gateway"}
    for path in FILES:
        if within(module_of(path), "gateway.relay"):
            for name in imported(path):
                if within(name, "gateway"):
                    assert any((within(name, room) and room != "gateway") or name == room for room in allowed), name
