"""What ADR 0196 refuses at definition time is refused at load, at its line, with a sentence that repairs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.contract.model import Contract
from tests.rig import accepted, contract_at

ENDPOINT = """
    version: 1
    gateway: {{projections: projections}}
    backends: {{api: {{url: http://127.0.0.1:1}}}}
    endpoints:
      one:
        request: {request}
        description: {description}
        {more}
"""
CARDS = """
    async def later(full, ctx): return full
    def alone(full): return full
    def card(full, ctx): return full
    thing = 3
"""
FULL = "output: {type: object, properties: {a: {type: integer}}}"


def text(more: str, *, request: str = "GET /one/{id}", description: str = "One.") -> str:
    fields = more.replace("\n", "\n        ")
    return ENDPOINT.format(request=request, description=description, more=fields)


INPUT = "input: {type: object, required: [id], properties: {id: {type: string}, limit: {type: integer}}}"
WHOLE = f"{INPUT}\n{FULL}\n"


@pytest.mark.parametrize(
    ("more", "path", "sentence"),
    [
        pytest.param(
            WHOLE + "tool: {nmae: x}", "tool.nmae", "name",
            marks=pytest.mark.requirement("196-1-one-group"), id="unknown-key",
        ),
        pytest.param(
            WHOLE + "toolName: x", "toolName", "tool",
            marks=pytest.mark.requirement("196-1-old-keys-by-name"), id="toolName",
        ),
        pytest.param(
            WHOLE + "toolView: {}", "toolView", "tool",
            marks=pytest.mark.requirement("196-1-old-keys-by-name"), id="toolView",
        ),
        pytest.param(
            WHOLE + "annotations: {}", "annotations", "tool",
            marks=pytest.mark.requirement("196-1-old-keys-by-name"), id="annotations",
        ),
        pytest.param(
            WHOLE + "expose: [http]\ntool: {name: x}", "tool", "",
            marks=pytest.mark.requirement("196-1-group-needs-a-tool-surface"), id="http-only",
        ),
        pytest.param(
            INPUT + "\ntool: {view: {project: {jmespath: full}}}", "tool.view", "output",
            marks=pytest.mark.requirement("196-6-no-full-output"), id="no-full-output",
        ),
        pytest.param(
            INPUT + "\nkind: stream\ntool: {name: x}", "tool", "",
            marks=pytest.mark.requirement("196-6-http-only-kinds", "196-c-stream-is-no-tool"), id="stream",
        ),
        pytest.param(
            INPUT + "\nkind: raw\ntool: {view: {defaults: {limit: 1}}}", "tool", "",
            marks=pytest.mark.requirement("196-6-http-only-kinds"), id="raw",
        ),
        pytest.param(
            WHOLE + "kind: multipart\ntool: {view: {defaults: {limit: 1}}}", "tool", "",
            marks=pytest.mark.requirement("196-6-http-only-kinds"), id="multipart",
        ),
        pytest.param(
            WHOLE + "tool: {view: {}}", "tool.view", "defaults",
            marks=pytest.mark.requirement("196-6-means-nothing"), id="empty-view",
        ),
        pytest.param(
            WHOLE + "tool: {view: {defaults: {}}}", "tool.view", "defaults",
            marks=pytest.mark.requirement("196-6-means-nothing"), id="empty-defaults",
        ),
        pytest.param(
            WHOLE + "tool: {view: {defaults: {limt: 1}}}", "tool.view.defaults.limt", "`limit`",
            marks=pytest.mark.requirement("196-6-default-unknown-key"), id="unknown-default",
        ),
        pytest.param(
            WHOLE + "tool: {view: {defaults: {id: x}}}", "tool.view.defaults.id", "path",
            marks=pytest.mark.requirement("196-6-default-path-key"), id="path-default",
        ),
        pytest.param(
            WHOLE + "tool: {view: {defaults: {limit: many}}}", "tool.view.defaults.limit", "integer",
            marks=pytest.mark.requirement("196-6-default-rejected-value"), id="wrong-default",
        ),
        pytest.param(
            f"input: {{type: array}}\n{FULL}\ntool: {{view: {{defaults: {{limit: 1}}}}}}", "input", "object",
            marks=pytest.mark.requirement("196-6-default-non-object-input"), id="array-input",
        ),
        pytest.param(
            WHOLE + "tool: {view: {output: {type: object, required: [a], properties: {a: {type: integer}}}}}",
            "tool.view.output", "requires `a`",
            marks=pytest.mark.requirement("196-6-slice-cannot-hold-full"), id="slice",
        ),
        pytest.param(
            WHOLE + "tool: {view: {project: {python: 'cards:missing'}}}", "tool.view.project.python", "missing",
            marks=pytest.mark.requirement("196-6-projection-resolves"), id="no-function",
        ),
        pytest.param(
            WHOLE + "tool: {view: {project: {python: 'cards:later'}}}", "tool.view.project.python", "coroutine",
            marks=pytest.mark.requirement("196-6-projection-resolves"), id="coroutine",
        ),
        pytest.param(
            WHOLE + "tool: {view: {project: {python: 'cards:alone'}}}", "tool.view.project.python", "two",
            marks=pytest.mark.requirement("196-6-projection-resolves"), id="one-argument",
        ),
        pytest.param(
            WHOLE + "tool: {view: {project: {python: 'cards:thing'}}}", "tool.view.project.python", "not a function",
            marks=pytest.mark.requirement("196-6-projection-resolves"), id="no-callable",
        ),
        pytest.param(
            WHOLE + "tool: {view: {project: {jmespath: 'full['}}}", "tool.view.project.jmespath", "",
            marks=pytest.mark.requirement("196-6-projection-resolves"), id="jmespath",
        ),
        pytest.param(
            WHOLE + "tool: {name: a b}", "tool.name", "A-Z",
            marks=pytest.mark.requirement("s12-16-names"), id="CAT-04",
        ),
    ],
)  # fmt: skip
def test_it_is_refused_at_its_line(tmp_path: Path, more: str, path: str, sentence: str) -> None:
    refusals = contract_at(tmp_path, text(more), {"projections/cards.py": CARDS})
    assert isinstance(refusals, tuple)
    (refusal,) = refusals
    assert refusal.path == f"endpoints.one.{path}"
    assert sentence in refusal.message
    assert refusal.line > 8
    assert refusal.message.count("\n") == 0


@pytest.mark.requirement("196-c-description-required")
def test_a_blank_description_is_refused(tmp_path: Path) -> None:
    refusals = contract_at(tmp_path, text(WHOLE, description="' '"))
    assert isinstance(refusals, tuple)
    (refusal,) = refusals
    assert (refusal.line, refusal.path) == (8, "endpoints.one.description")


@pytest.mark.requirement("s12-16-names")
def test_one_name_twice_on_a_surface_is_refused_and_on_disjoint_surfaces_is_not(tmp_path: Path) -> None:
    two = """
        version: 1
        backends: {api: {url: http://127.0.0.1:1}}
        endpoints:
          one: {request: GET /one, description: One., expose: [mcp], tool: {name: same}}
          two: {request: GET /two, description: Two., expose: [OTHER], tool: {name: same}}
    """
    refusals = contract_at(tmp_path, two.replace("OTHER", "mcp"))
    assert isinstance(refusals, tuple)
    assert [refusal.path for refusal in refusals] == ["endpoints.two.tool.name"]
    contract = accepted(tmp_path, two.replace("OTHER", "agent"))
    assert isinstance(contract, Contract)


@pytest.mark.parametrize("kind", ["stream", "raw", "multipart"])
def test_an_endpoint_that_is_http_only_by_kind_is_no_tool(tmp_path: Path, kind: str) -> None:
    contract = accepted(tmp_path, text(f"{INPUT}\nkind: {kind}"))
    assert contract.endpoints["one"].expose == {"http"}
    assert contract.endpoints["one"].tool is None
