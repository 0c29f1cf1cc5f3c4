"""The byte path knows nothing: what the relay may import, held in a fresh interpreter and in its source."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import gateway.relay

_STRANGERS = (
    "aiohttp",
    "pydantic",
    "yaml",
    "jsonschema_rs",
    "jmespath",
    "orjson",
    "jiter",
    "yarl",
    "prometheus_client",
)


def test_importing_the_relay_loads_no_other_room_and_no_third_party() -> None:
    script = "import sys, gateway.relay; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.partition(".")[0] in _STRANGERS] == []
    assert [name for name in loaded if name.startswith("gateway.") and not name.startswith("gateway.relay")] == []


def test_no_file_of_the_relay_names_another_room_even_inside_a_function() -> None:
    named = set()
    for file in Path(gateway.relay.__file__).parent.glob("**/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named.add(node.module or "")
    outside = {name for name in named if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name for name in outside if not name.startswith("gateway.relay")} <= {"uvloop"}
