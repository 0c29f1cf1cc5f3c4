"""The public JSON parsing suite as backend answers: each is read rightly, or is a clean fault of the backend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.backend.exchange import Answer
from gateway.call.outcome import Call, Outcome
from gateway.call.run import conclude, prepare, read_answer
from gateway.generation import Generation, index
from tests.rig import accepted
from tests.test_json_text import REFUSED_BY_DESIGN, SUITE

CONTRACT = """
    version: 1
    backends: {api: {url: http://127.0.0.1:1}}
    endpoints: {one: {request: GET /one, description: One., output: {}}}
"""


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    return index(accepted(tmp_path_factory.mktemp("suite"), CONTRACT))


@pytest.mark.parametrize("path", SUITE, ids=lambda path: path.stem)
def test_an_answer_is_read_or_refused(generation: Generation, path: Path) -> None:
    text = path.read_bytes()
    prepared = prepare(Call("one", {}, "mcp", "c"), generation)
    assert not isinstance(prepared, Outcome)
    full = read_answer(prepared, Answer(200, {"content-type": "application/json"}, text, len(text)), generation)
    outcome = full if isinstance(full, Outcome) else conclude(full)
    if path.name.startswith("n_") or path.name in REFUSED_BY_DESIGN:
        assert outcome.code == "BACKEND_ANSWER_INVALID"
    elif path.name.startswith("y_"):
        assert outcome.body is not None
        assert json.loads(outcome.body) == json.loads(text)
        assert outcome.full_bytes == len(text)
    else:
        assert outcome.code in ("ok", "BACKEND_ANSWER_INVALID")
    if outcome.failure is not None:
        shown = json.dumps(outcome.envelope())
        assert "internal" not in shown.lower()
