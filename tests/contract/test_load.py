"""What a contract becomes: the design's example, every default, derived names and hints, files, and what is legal."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.values import Address

EXAMPLE = """
version: 1

gateway:
  tools:  {listen: 127.0.0.1:8081}
  admin:  {listen: 127.0.0.1:9090}
  projections: ../projections

backends:
  directory:
    url: http://127.0.0.1:9000
    passthrough: 127.0.0.1:8080
    timeout: 10s
    headers: {Authorization: "Bearer ${DIRECTORY_TOKEN}"}

schemas:
  Person: {$ref: schemas/person.yaml}

endpoints:
  people.list:
    request: GET /people/{team}
    description: >
      Everyone in a team. Call it to find a person's id before people.get.
      Not for searching by skill: use skills.search.
    expose: [http, mcp, agent, cli]
    input:
      type: object
      required: [team]
      properties:
        team:    {type: string, description: Team slug, minLength: 1}
        include: {type: array, items: {enum: [stats, history]}, description: Extra blocks to load}
        limit:   {type: integer, minimum: 1, maximum: 200}
    send:
      include: {style: form, explode: false, empty: blank}
    output: {type: object, required: [people], properties: {people: {type: array, items: {$ref: "#/schemas/Person"}}}}
    tool:
      name: list_people
      view:
        defaults: {include: [], limit: 25}
        output:
          type: object
          required: [people]
          properties:
            people:
              type: array
              items:
                type: object
                required: [id, name]
                properties: {id: {type: string}, name: {type: string}, tags: {type: array, items: {type: string}}}
        project: {jmespath: "{people: full.people[].{id: id, name: name, tags: tags[].label}}"}
"""

PERSON = """
type: object
required: [id, name]
properties:
  id: {type: string}
  name: {type: string}
  tags: {type: array, items: {$ref: "#/$defs/Tag"}}
  boss: {$ref: "#"}
  team: {$ref: "team.yaml#/Team"}
$defs:
  Tag: {type: object, properties: {label: {type: string}}}
"""
TEAM = "Team: {type: object, properties: {members: {type: array, items: {$ref: person.yaml}}}}"

HEAD = "version: 1\nbackends: {api: {url: 'http://127.0.0.1:9000/base'}}\n"


def written(folder: Path, text: str, files: dict[str, str] | None = None) -> Path:
    for name, content in {"config/gateway.yaml": text, **(files or {})}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder / "config" / "gateway.yaml"


def loaded(folder: Path, text: str, files: dict[str, str] | None = None) -> Contract:
    contract = load(written(folder, text, files), {"DIRECTORY_TOKEN": "t0ken"})
    assert isinstance(contract, Contract), [str(refusal) for refusal in contract]
    return contract


def refused(folder: Path, text: str, files: dict[str, str] | None = None) -> list[str]:
    found = load(written(folder, text, files), {})
    assert not isinstance(found, Contract)
    return [str(refusal).removeprefix(f"{folder}/config/") for refusal in found]


def endpoint(folder: Path, keys: str, files: dict[str, str] | None = None) -> Any:
    """The only endpoint of a contract, `things`, with these keys."""
    return loaded(folder, f"{HEAD}endpoints:\n  things: {{description: Things., {keys}}}\n", files).endpoints["things"]


@pytest.fixture
def example(tmp_path: Path) -> Contract:
    files = {"config/schemas/person.yaml": PERSON, "config/schemas/team.yaml": TEAM, "projections/x.py": ""}
    return loaded(tmp_path, EXAMPLE, files)


def test_the_design_s_example_loads(example: Contract) -> None:
    people = example.endpoints["people.list"]
    assert (people.method, people.path, people.backend, people.timeout) == ("GET", "/people/{team}", "directory", 10.0)
    assert people.description.startswith("Everyone in a team.")
    assert people.expose == {"http", "mcp", "agent", "cli"}
    assert people.tool is not None
    assert people.tool.name == "list_people"
    assert people.tool.view is not None
    assert dict(people.tool.view.defaults) == {"include": [], "limit": 25}
    assert people.tool.view.project is not None
    assert people.tool.view.project.kind == "jmespath"
    request = people.request.build({"team": "a/b", "include": [], "limit": 25}, ())
    assert getattr(request, "target", request) == "/people/a%2Fb?include=&limit=25"
    assert example.backends["directory"].headers == {"Authorization": "Bearer t0ken"}


def test_references_cross_files_and_cycle(example: Contract) -> None:
    output = example.endpoints["people.list"].output
    assert output is not None
    one = {
        "id": "1",
        "name": "Ada",
        "team": {"members": [{"id": "2", "name": "Bo", "boss": {"id": "3", "name": "Cy"}}]},
    }
    assert output.valid({"people": [one]})
    one["team"]["members"][0]["boss"]["id"] = 3  # type: ignore[index]  # a JSON value is what it is
    assert not output.valid({"people": [one]})
    assert sorted(Path(file).name for file in example.files) == ["gateway.yaml", "person.yaml", "team.yaml"]


def test_a_contract_that_loads_is_frozen(example: Contract) -> None:
    for value, key in ((example, "digest"), (example.endpoints["people.list"], "method"), (example.gateway, "tools")):
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            setattr(value, key, None)
    with pytest.raises(TypeError):
        example.endpoints["x"] = example.endpoints["people.list"]  # type: ignore[index]  # this is what must not work


def test_everything_has_its_default(tmp_path: Path) -> None:
    contract = loaded(tmp_path, HEAD + "endpoints: {things: {request: GET /things, description: Things.}}")
    gateway = contract.gateway
    assert (gateway.tools.listen, gateway.admin.listen) == (Address("127.0.0.1", 8081), Address("127.0.0.1", 9090))
    assert (gateway.auth, gateway.hooks.before, gateway.hooks.after, gateway.ledger) == (None, None, None, None)
    assert (gateway.catalog.compact, gateway.catalog.list, gateway.catalog.description) == (True, "envelope", 256)
    assert (gateway.mcp.text, gateway.mcp.instructions) == ("json", None)
    limits = gateway.limits
    assert (limits.projection, limits.body, limits.calls, limits.queue) == (1.0, 4 << 20, 256, 512)
    assert limits.per_principal is None
    assert (gateway.missing_backend, gateway.formats, gateway.insecure) == ("refuse", "annotate", False)
    assert gateway.projections == str((tmp_path / "config").resolve())
    backend = contract.backends["api"]
    assert (backend.timeout, backend.connect_timeout, backend.limits.answer) == (30.0, 3.0, 10 << 20)
    assert (backend.retry.attempts, backend.tls.verify, backend.passthrough) == (2, True, None)
    things = contract.endpoints["things"]
    assert things.expose == {"http", "mcp", "agent"}
    assert (things.kind, things.validate_mode, things.idempotent, things.output) == ("json", "strict", True, None)
    assert things.tool is not None
    assert things.tool.name == "things"


@pytest.mark.parametrize(
    ("keys", "valid", "invalid"),
    [
        ("request: GET /a", {}, {"x": 1}),
        ("request: GET /a, input: {properties: {a: {type: integer}}}", {"a": 1}, {"b": 1}),
        ("request: GET /a, input: {type: object, additionalProperties: true}", {"b": 1}, []),
        ("request: GET /a, input: {allOf: [{type: object, properties: {a: {}}}]}", {"a": 1}, {"b": 1}),
        ("request: GET /a, input: {type: object, additionalProperties: {type: integer}}", {"b": 1}, {"b": "x"}),
    ],
)
def test_an_input_is_closed_unless_it_says_otherwise(tmp_path: Path, keys: str, valid: Any, invalid: Any) -> None:
    schema = endpoint(tmp_path, keys).input
    assert schema.valid(valid)
    assert not schema.valid(invalid)


def test_an_output_may_be_a_map_by_status(tmp_path: Path) -> None:
    keys = 'request: POST /a, output: {"201": {type: array}, "200": {type: object}, "204": null}'
    things = endpoint(tmp_path, keys)
    assert sorted(things.outputs) == ["200", "201"]
    assert things.output is things.outputs["200"]
    assert sorted(endpoint(tmp_path, "request: POST /a, output: {type: array}").outputs) == ["2XX"]


def test_a_view_or_output_of_another_root_is_legal(tmp_path: Path) -> None:  # class 8
    keys = "request: GET /a, output: {type: array, items: {type: object, properties: {a: {}, b: {}}}}"
    things = endpoint(
        tmp_path, f"{keys}, tool: {{view: {{output: {{type: array, items: {{properties: {{a: {{}}}}}}}}}}}}"
    )
    assert things.tool.view.output.cut([{"a": 1, "b": 2}]) == [{"a": 1}]


@pytest.mark.parametrize("empty", ["omit", "blank", "none"])
def test_an_empty_list_may_be_a_default_once_it_is_said_how_it_travels(tmp_path: Path, empty: str) -> None:
    keys = "request: GET /a, input: {type: object, properties: {x: {type: array, items: {type: string}}}}"
    rest = "output: {type: object}, tool: {view: {defaults: {x: []}}}"
    request = endpoint(tmp_path, f"{keys}, send: {{x: {{empty: {empty}}}}}, {rest}").request.build({"x": []}, ())
    assert request.target == {"omit": "/base/a", "blank": "/base/a?x=", "none": "/base/a?x=none"}[empty]


@pytest.mark.parametrize(
    ("request_", "keys", "hints"),
    [
        ("GET", "", {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}),
        ("DELETE", "", {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}),
        ("POST", "", {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}),
        ("POST", "safety_tier: read", {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": False}),
        ("GET", "safety_tier: write", {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}),
        ("POST", "annotations: {destructiveHint: false, title: T}", {"destructiveHint": False, "title": "T"}),
    ],
)
def test_hints_follow_from_method_and_tier(tmp_path: Path, request_: str, keys: str, hints: dict[str, Any]) -> None:
    found = dict(endpoint(tmp_path, f"request: {request_} /a, tool: {{{keys}}}").tool.annotations)
    assert {key: found[key] for key in hints} == hints
    assert found["openWorldHint"] is False


@pytest.mark.parametrize("kind", ["raw", "multipart", "stream"])
def test_kinds_that_are_http_only_are_no_tools(tmp_path: Path, kind: str) -> None:
    things = endpoint(tmp_path, f"request: GET /a, kind: {kind}")
    assert things.expose == {"http"}
    assert things.tool is None


def test_an_endpoint_of_http_alone_has_no_tool(tmp_path: Path) -> None:
    assert endpoint(tmp_path, "request: GET /a, expose: [http]").tool is None


def test_a_backend_without_url_is_a_stub_where_that_is_said(tmp_path: Path) -> None:
    text = "version: 1\ngateway: {missing_backend: stub}\nbackends: {api: {}}\n"
    contract = loaded(tmp_path, text + "endpoints: {a: {request: GET /a, description: A.}}")
    assert contract.backends["api"].url is None
    assert contract.endpoints["a"].tool is not None


def test_listeners_on_port_0_never_share(tmp_path: Path) -> None:
    text = "version: 1\ngateway: {tools: {listen: '127.0.0.1:0'}, admin: {listen: '127.0.0.1:0'}}\n"
    text += "backends: {api: {url: 'http://a', passthrough: '127.0.0.1:0'}}\n"
    assert loaded(tmp_path, text + "endpoints: {a: {request: GET /a, description: A.}}")


def test_open_listeners_are_fine_with_auth_or_when_insecure_is_written(tmp_path: Path) -> None:
    rest = "backends: {api: {url: 'http://a'}}\nendpoints: {a: {request: GET /a, description: A.}}"
    key = f"auth: {{keys: [{{name: me, sha256: {'0a' * 32}, scopes: [a]}}]}}"
    for way in ("insecure: true", key):
        gateway = f"gateway: {{tools: {{listen: '0.0.0.0:8081'}}, {way}}}\n"
        assert loaded(tmp_path, f"version: 1\n{gateway}{rest}")


def test_includes_merge_schemas_and_endpoints(tmp_path: Path) -> None:
    text = HEAD + "include: [contracts/*.yaml]\nschemas: {A: {type: object}}\n"
    files = {
        "config/contracts/one.yaml": """
endpoints: {one: {request: GET /1, description: One., output: {$ref: "#/schemas/A"}}}
""",
        "config/contracts/two.yaml": """schemas: {B: {$ref: "#/schemas/A"}}
endpoints:
  two: {request: GET /2, description: Two., output: {$ref: "#/schemas/B"}}""",
    }
    contract = loaded(tmp_path, text, files)
    assert list(contract.endpoints) == ["one", "two"]
    files["config/contracts/two.yaml"] += "\n  bad: {request: GET /3, descripton: Three.}\n"
    assert [line.partition(": ")[0] for line in refused(tmp_path, text, files)] == [
        "contracts/two.yaml:4:3",
        "contracts/two.yaml:4:26",
    ]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("type: object\n")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (tmp_path / "config" / "folder").symlink_to(tmp_path)
    for reference in ("link.yaml", "folder/secret.yaml", "folder/../../secret.yaml"):
        text = f"{HEAD}endpoints: {{a: {{request: GET /a, description: A., output: {{$ref: {reference}}}}}}}"
        (line,) = refused(tmp_path, text)
        assert "leads out of the contract's folder" in line


def test_a_loop_of_links_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "loop.yaml").symlink_to(tmp_path / "config" / "loop.yaml")
    text = f"{HEAD}endpoints: {{a: {{request: GET /a, description: A., output: {{$ref: loop.yaml}}}}}}"
    assert len(refused(tmp_path, text)) == 1


def test_a_fault_in_a_shared_file_is_said_once(tmp_path: Path) -> None:
    text = HEAD + "schemas: {A: {$ref: a.yaml}}\nendpoints:\n"
    text += "".join(
        f'  e{n}: {{request: GET /{n}, description: E., output: {{$ref: "#/schemas/A"}}}}\n' for n in range(5)
    )
    assert len(refused(tmp_path, text, {"config/a.yaml": "type: strnig\n"})) == 1
    assert len(refused(tmp_path, text, {"config/a.yaml": "$ref: '#/nowhere'\n"})) == 1
    assert len(refused(tmp_path, text, {"config/a.yaml": "a: [\n"})) >= 1


def test_definitions_inside_a_schema_are_its_own(tmp_path: Path) -> None:
    definitions = '{X: {type: object, properties: {x: {$ref: "#/$defs/Y"}}}, Y: {type: integer}}'
    keys = f'request: GET /a, output: {{$ref: "#/$defs/X", $defs: {definitions}}}'
    output = endpoint(tmp_path, keys).output
    assert output.valid({"x": 1})
    assert not output.valid({"x": "1"})


def test_hooks_are_imported_anew_at_each_load(tmp_path: Path) -> None:
    text = "version: 1\ngateway: {hooks: {before: 'h:before', after: 'h:after'}}\nbackends: {api: {url: 'http://a'}}\n"
    text += "endpoints: {a: {request: GET /a, description: A.}}"
    for number in (1, 2):
        source = f"def before(call):\n    return {number}\ndef after(call):\n    return {number}{' ' * number}\n"
        contract = loaded(tmp_path, text, {"config/h.py": source})
        assert contract.gateway.hooks.before is not None
        assert contract.gateway.hooks.before(None) == number


def test_the_digest_moves_with_the_contract_and_not_with_its_spelling(tmp_path: Path) -> None:
    one = loaded(tmp_path, HEAD + "endpoints: {a: {request: GET /a, description: A., title: T}}")
    other = loaded(
        tmp_path, HEAD + "endpoints:\n  a:\n    title: 'T'\n    description: A.\n    request: GET /a # same\n"
    )
    moved = loaded(tmp_path, HEAD + "endpoints: {a: {request: GET /a, description: B., title: T}}")
    assert one.digest == other.digest != moved.digest
    assert len(one.digest) == 16


def test_examples_are_checked_and_kept(tmp_path: Path) -> None:
    keys = "request: GET /a, output: {type: object}, examples: [{answer: {a: 1}}, {answer_file: a.json}, {title: none}]"
    examples = endpoint(tmp_path, keys, {"config/a.json": '{"n": 12345678901234567890}'}).examples
    assert [(each.has_answer, each.answer) for each in examples] == [
        (True, {"a": 1}),
        (True, {"n": 12345678901234567890}),
        (False, None),
    ]


def test_a_durable_endpoint_has_its_keys(tmp_path: Path) -> None:
    poll = "status: 'GET /jobs/{id}', id: /job_id, done: \"status == 'finished'\", every: 500ms, deadline: 1m"
    durable = endpoint(
        tmp_path, f"request: POST /jobs, durable: {{poll: {{{poll}}}, result: 'GET /jobs/{{id}}/result'}}"
    ).durable
    assert (durable.poll.status.path, durable.poll.every, durable.poll.deadline) == ("/jobs/{id}", 0.5, 60.0)
    assert durable.result.path == "/jobs/{id}/result"


def test_five_faults_give_five_refusals(tmp_path: Path) -> None:
    text = """version: 1
gateway: {tools: {listen: 8081}}
backends:
  api:
    url: http://127.0.0.1:9000
    timeout: 10
endpoints:
  a:
    request: GET /a/{id}
    description: "  "
    output: {type: object, properties: {x: {type: strnig}}}
"""
    assert [line.split(": ")[0] for line in refused(tmp_path, text)] == [
        "gateway.yaml:2:19",
        "gateway.yaml:6:5",
        "gateway.yaml:9:5",
        "gateway.yaml:10:5",
        "gateway.yaml:11:45",
    ]


FILTERED = """
version: 1
backends: {api: {url: http://127.0.0.1:9}}
endpoints:
  rows:
    request: GET /rows
    description: Rows.
    input: {properties: {kind: {type: string}}}
    output: {type: array, items: {type: object, properties: {kind: {type: string}}}}
    tool: {safety_tier: read, view: {project: {jmespath: "full[?kind == input.kind]"}}}
"""


def test_an_argument_that_a_filter_looks_up_in_each_row_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(FILTERED)
    contract = load(tmp_path / "gateway.yaml")
    assert isinstance(contract, Contract)
    (warning,) = contract.warnings
    assert ".jmespath: `input.kind` stands inside a list or filter" in str(warning)
    assert "let the backend filter, or project with a Python function" in str(warning)
