"""The protocol's own conformance suite, on both eras: what it finds is what the baselines say, no more and no less."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.surfaces.mcp import answers
from tests.rig import Received, backend, http
from tests.surfaces.mcp import javascript
from tests.test_serve import serving

HERE = Path(__file__).parent / "conformance"
REVISIONS = ["2025-11-25", "2026-07-28"]

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
_SILENCE = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0"
_PARTS = {
    "text/plain": b"Multiple content types test:",
    "image/png": base64.b64decode(_PIXEL),
    "application/json": b'{"test":"data","value":123}',
}
_MIXED = b"".join(b"--x\r\nContent-Type: %s\r\n\r\n%s\r\n" % (kind.encode(), part) for kind, part in _PARTS.items())
ANSWERS = {
    "/text": http("This is a simple text response for testing."),
    "/image": http(base64.b64decode(_PIXEL), content_type="image/png"),
    "/audio": http(_SILENCE, content_type="audio/wav"),
    "/file": http(b"This is an embedded resource content.", content_type="text/plain"),
    "/mixed": http(_MIXED + b"--x--", content_type="multipart/mixed; boundary=x"),
    "/error": http({"message": "This tool intentionally returns an error for testing"}, status=500),
    "/mirrored": http({}),
    "/contact": http({}),
}


@pytest.fixture
async def url(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    noted: list[bytes] = []
    enough = asyncio.Event()

    def note(*told: Any) -> bytes:
        noted.append(progress(*told))
        if len(noted) == 3:
            enough.set()
        return noted[-1]

    async def slow() -> bytes:
        await enough.wait()
        return http({"done": True})

    def answer(request: Received) -> bytes | Awaitable[bytes]:
        path = request.target.partition("?")[0]
        return slow() if path == "/slow" else ANSWERS[path]

    progress = answers.progress
    monkeypatch.setattr(answers, "progress", note)
    async with backend(answer) as fixtures:
        monkeypatch.setenv("FIXTURES_URL", fixtures.url)
        contract = load(HERE / "gateway.yaml")
        assert isinstance(contract, Contract), contract
        async with serving(contract) as served:
            yield f"http://{served.addresses['tools']}/mcp"


def suite() -> Path:
    return javascript.package("@modelcontextprotocol/conformance") / "dist" / "index.js"


async def scenarios(revision: str) -> list[str]:
    """Every scenario that the suite has for a revision."""
    listed = await javascript.node(suite(), "list", "--server")
    return re.findall(rf"^  - (\S+) \[.*{revision}.*\]$", listed.out, re.M)


def found(results: Path) -> dict[str, str]:
    """By scenario and check, the worst that was said of it; what only informs is left out."""
    order = ["SUCCESS", "SKIPPED", "WARNING", "FAILURE"]
    verdicts: dict[str, str] = {}
    for file in results.glob("server-*/checks.json"):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.name)
        for check in json.loads(file.read_text()):
            if check["status"] != "INFO":
                name = f"{scenario}:{check['id']}"
                verdicts[name] = max(verdicts.get(name, "SUCCESS"), check["status"], key=order.index)
    return verdicts


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_suite_finds_what_the_baseline_says(url: str, revision: str, tmp_path: Path) -> None:
    baseline = HERE / f"baseline.{revision}.yml"
    ran = await javascript.node(
        suite(), "server", "--url", url, "--suite", "all", "--spec-version", revision,
        "--expected-failures", baseline, "-o", tmp_path,
    )  # fmt: skip
    verdicts = found(tmp_path)
    expected = set(yaml.safe_load(baseline.read_text())["server"])
    missed = {name: verdict for name, verdict in verdicts.items() if verdict != "SUCCESS"}
    # The suite forgives a line whose check did not run; here a line is true or gone, and what was skipped has a line.
    assert {"unexpected": sorted(missed.keys() - expected), "stale": sorted(expected - missed.keys())} == {
        "unexpected": [],
        "stale": [],
    }
    assert ran.status == 0, ran.out[-2000:]
    told = re.findall(r"^. ([\w-]+): \d+ passed, \d+ failed$", ran.out, re.M)
    assert sorted(told) == sorted(await scenarios(revision)) != []


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_line_of_a_baseline_has_its_reason(revision: str) -> None:
    _, _, lines = (HERE / f"baseline.{revision}.yml").read_text().partition("server:\n")
    assert [line for line in lines.splitlines() if not re.fullmatch(r"  - [\w-]+:[\w-]+ # \S.{9,}", line)] == []
    assert lines.splitlines() == sorted(set(lines.splitlines()))
