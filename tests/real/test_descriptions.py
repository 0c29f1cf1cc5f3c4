"""Real descriptions beside real answers: strict refuses what breaks its description, at its place, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from gateway.backend.exchange import Answer
from gateway.call.outcome import Call, Outcome
from gateway.call.run import conclude, prepare, read_answer
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.generation import Generation, index
from gateway.json_pointer import follow
from gateway.processes.tally import Tallies
from gateway.schema import Schema, compile_schema
from gateway.telemetry.exposition import Counted
from gateway.telemetry.metrics import ToolMetrics
from tests.real.descriptions import contracts
from tests.real.descriptions.contracts import EXTRACTS, OBSERVED
from tests.real.descriptions.extract import extract
from tests.real.descriptions.opinion import Opinion, places, pointer
from tests.real.descriptions.translate import SCHEMAS, Null, translate
from tests.real.measure import read, write

Json = Any

STRIPE: dict[str, Json] = read((EXTRACTS / "stripe-answers.json").read_bytes())
DESCRIBED: dict[str, Json] = read((EXTRACTS / "stripe.json").read_bytes())
JIRA = (EXTRACTS.parent / "answers" / "jira-all-projects.json").read_bytes()

#: Most of the described schemas lead to each other: 57 of the resources reach some 500 schemas each, which takes the
#: gateway an eighth of a second at load and as much again at the first call. The short form takes these of them.
LARGE = ("account", "charge", "customer", "invoice", "payment_source", "subscription", "subscription_item", "tax_id")

FORMS = [
    pytest.param((Null.WRITTEN, False), id="as written"),
    pytest.param((Null.WRITTEN, True), id="as written, all", marks=pytest.mark.long),
    pytest.param((Null.MEANT, True), id="as meant, all", marks=pytest.mark.long),
]


@cache
def opinion(null: Null) -> Opinion:
    return Opinion(contracts.schemas("stripe", null))


@cache
def errors(name: str, null: Null) -> list[Any]:
    return opinion(null).errors(STRIPE[name], {"$ref": SCHEMAS + name})


@dataclass(frozen=True)
class Served:
    """A contract made from a description, and calls of it with the answers at hand."""

    generation: Generation

    def schema(self, endpoint: str) -> Schema:
        output = self.generation.contract.endpoints[endpoint].output
        assert output is not None
        return output

    def call(self, endpoint: str, body: bytes, *, view: bool = True) -> Outcome:
        tool = self.generation.contract.endpoints[endpoint].tool
        assert tool is not None
        prepared = prepare(Call(tool.name, {}, "mcp", "call-1", view=view), self.generation)
        assert not isinstance(prepared, Outcome)
        answer = Answer(200, {"content-type": "application/json"}, body, len(body))
        full = read_answer(prepared, answer, self.generation)
        return full if isinstance(full, Outcome) else conclude(full)


def served(folder: Path, document: Json) -> Served:
    contract = load(contracts.write(folder, document), {})
    assert isinstance(contract, Contract), "\n".join(map(str, contract))
    assert contract.warnings == ()  # every slice was decided
    return Served(index(contract))


@pytest.fixture(scope="module", params=FORMS)
def stripe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Null, Served]:
    """A contract of this size is loaded once for all that is asked of it."""
    null, whole = request.param
    names = [name for name in STRIPE if whole or name in LARGE or reach(name) < 100]
    return null, served(tmp_path_factory.mktemp("stripe"), contracts.stripe(names, null))


def reach(name: str) -> int:
    return len(extract({"components": {"schemas": DESCRIBED}}, [name]))


def served_names(gateway: Served) -> list[str]:
    return [name for name in gateway.generation.contract.endpoints if not name.endswith(OBSERVED)]


def test_strict_refuses_what_breaks_its_description_and_shows_the_rest_whole(stripe: tuple[Null, Served]) -> None:
    null, gateway = stripe
    for name in served_names(gateway):
        answer = STRIPE[name]
        outcome = gateway.call(name, write(answer), view=False)
        if not errors(name, null):
            assert outcome.failure is None, (name, outcome.failure)
            # Byte for byte, without the keys that a newer API answers beyond its description.
            assert outcome.body == write(opinion(null).kept(answer, {"$ref": SCHEMAS + name})), name
            continue
        assert outcome.failure is not None, name
        assert outcome.failure.code == "BACKEND_ANSWER_INVALID"
        violations = gateway.schema(name).check(answer, limit=1000)
        pointers = [violation.pointer for violation in violations]
        assert [shown["pointer"] for shown in outcome.failure.details["violations"]] == pointers[:5]
        check_pointers(name, pointers, null)


def check_pointers(name: str, pointers: list[str], null: Null) -> None:
    """What we tell may lie deeper than an error of jsonschema: within the branch of an `anyOf` that came nearest."""
    found = errors(name, null)
    assert set(pointers) <= {place for error in found for place in places(error)}, name
    for error in found:
        assert any(f"{told}/".startswith(f"{pointer(error)}/") for told in pointers), (name, pointer(error))


def test_observe_answers_the_card_and_counts_what_broke(stripe: tuple[Null, Served]) -> None:
    null, gateway = stripe
    for name in served_names(gateway):
        outcome = gateway.call(name + OBSERVED, write(STRIPE[name]))
        assert outcome.failure is None, (name, outcome.failure)
        assert outcome.body == write({key: item for key, item in STRIPE[name].items() if key in ("id", "object")})
        assert bool(outcome.violations) == bool(errors(name, null)), name
        document = gateway.schema(name).document
        assert all(follow(document, path) is not None for path in outcome.violations), name
        assert counted(outcome) == Counter(outcome.violations)


def counted(outcome: Outcome) -> dict[str, float]:
    registry, tallies = CollectorRegistry(), Tallies()
    ToolMetrics(tallies.own(0)).observe(outcome)
    Counted(registry, tallies)
    return {
        sample.labels["path"]: sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "toolview_answer_violations_total"
    }


#: Read as meant, these break: what is wrong, found by reading each answer beside its description.
BREAK = {
    "account": ["/settings/bacs_debit_payments/display_name"],
    "billing_portal.configuration": ["/features"],
    "billing_portal.session": ["/flow/type"],
    "credit_note": ["", "/lines/data/0", "/lines/data/1"],
    "credit_note_line_item": [""],
    "customer": ["/discount"],
    "deleted_discount": [""],
    "discount": [""],
    "funding_instructions": [
        "/bank_transfer/financial_addresses/0/supported_networks/0",
        "/bank_transfer/financial_addresses/0/supported_networks/1",
        "/bank_transfer/financial_addresses/0/type",
    ],
    "invoice": ["", "/lines/data/0"],
    "issuing.settlement": [""],
    "line_item": [""],
    "payment_source": ["/settings/bacs_debit_payments/display_name"],
    "promotion_code": [""],
    "subscription": [""],
    "tax.transaction": ["/line_items/url"],
}


def at_once(null: Null) -> Schema:
    """All resources in one schema, `{name: answer}`: judged as their own endpoints judge them, compiled once."""
    text = json.dumps(contracts.schemas("stripe", null)).replace(SCHEMAS, "#/$defs/")
    properties = {name: {"$ref": f"#/$defs/{name}"} for name in STRIPE}
    schema = compile_schema({"properties": properties, "$defs": json.loads(text)})
    assert isinstance(schema, Schema), schema
    return schema


@pytest.mark.parametrize(("null", "broken"), [(Null.WRITTEN, 57), (Null.MEANT, 16)])
def test_of_132_answers_so_many_break_their_description(null: Null, broken: int) -> None:
    schema = at_once(null)
    assert len(STRIPE) == 132
    found = {}
    for name, answer in STRIPE.items():
        violations = schema.check({name: answer}, limit=1000)
        pointers = [violation.pointer.removeprefix(f"/{name}") for violation in violations]
        check_pointers(name, pointers, null)
        if pointers:
            found[name] = sorted(set(pointers))
    assert found.keys() == {name for name in STRIPE if errors(name, null)}
    assert len(found) == broken
    if null is Null.MEANT:
        assert found == BREAK


def test_jiras_projects_keep_their_description(tmp_path: Path) -> None:
    gateway = served(tmp_path, contracts.jira(Null.WRITTEN))
    assert gateway.call("projects", JIRA, view=False).body == write(read(JIRA))
    cards = [{"key": project["key"], "name": project["name"]} for project in read(JIRA)]
    card = gateway.call("projects", JIRA)
    assert card.value is not None
    assert [{"key": row["key"], "name": row["name"]} for row in card.value] == cards
    assert {key for row in card.value for key in row} == {"key", "name"}


@pytest.mark.parametrize(
    ("path", "wrong", "told"),
    [
        ((300, "name"), None, "/300/name"),
        ((566, "avatarUrls", "48x48"), 48, "/566/avatarUrls/48x48"),
        ((0, "projectCategory", "colour"), "red", "/0/projectCategory/colour"),
        ((12, "projectTypeKey"), "Software", "/12/projectTypeKey"),
    ],
)
def test_a_project_that_breaks_its_description_is_refused_at_its_place(
    path: tuple[str | int, ...], wrong: Json, told: str, tmp_path: Path
) -> None:
    gateway = served(tmp_path, contracts.jira(Null.WRITTEN))
    answer = place = read(JIRA)
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = wrong
    refused = gateway.call("projects", write(answer)).failure
    assert refused is not None
    assert [violation["pointer"] for violation in refused.details["violations"]] == [told]


S = {"$ref": "#/components/schemas/S"}
NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "written", "meant"),
    [
        # SCH-08: beside a `type` there is no doubt, beside anything else there is.
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}, {"type": ["string", "null"]}),
        (
            {"allOf": [S], "nullable": True},
            {"allOf": [{"$ref": "#/schemas/S"}]},
            {"anyOf": [{"allOf": [{"$ref": "#/schemas/S"}]}, NULL]},
        ),
        (
            {"anyOf": [S], "nullable": True},
            {"anyOf": [{"$ref": "#/schemas/S"}]},
            {"anyOf": [{"$ref": "#/schemas/S"}, NULL]},
        ),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"type": "object", "allOf": [S], "nullable": True},
            {"type": ["object", "null"], "allOf": [{"$ref": "#/schemas/S"}]},
            {"anyOf": [{"type": "object", "allOf": [{"$ref": "#/schemas/S"}]}, NULL]},
        ),
        ({"nullable": True, "description": "anything"}, {}, {}),
        # SCH-09: what stands beside a `$ref` says nothing.
        ({**S, "nullable": True, "maxLength": 1}, {"$ref": "#/schemas/S"}, {"$ref": "#/schemas/S"}),
    ],
)
def test_null_in_both_readings(schema: Json, written: Json, meant: Json) -> None:
    assert translate(schema, Null.WRITTEN) == written
    assert translate(schema, Null.MEANT) == meant


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # SCH-11: a secret that only a request has is not missing in an answer.
        (
            {"required": ["id", "key"], "properties": {"id": {"readOnly": True}, "key": {"writeOnly": True}}},
            {"required": ["id"], "properties": {"id": {}, "key": {}}},
        ),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"oneOf": [S], "discriminator": {"propertyName": "kind"}}, {"oneOf": [{"$ref": "#/schemas/S"}]}),
        ({"type": "string", "example": "a", "x-origin": 1, "title": "A", "xml": {}}, {"type": "string"}),
        (
            {"properties": {"description": {"type": "string", "description": "said"}}, "additionalProperties": False},
            {"properties": {"description": {"type": "string"}}, "additionalProperties": False},
        ),
        ({"items": {"not": {"nullable": True, "type": "integer"}}}, {"items": {"not": {"type": ["integer", "null"]}}}),
    ],
)
def test_what_else_2020_12_says_otherwise(schema: Json, expected: Json) -> None:
    assert translate(schema, Null.MEANT) == expected


def test_an_extract_holds_what_its_names_reach_and_nothing_that_judges_nothing() -> None:
    described = {
        "A": {"properties": {"b": {**S, "description": "x"}, "title": {"type": "string", "title": "T"}}},
        "S": {"items": {"$ref": "#/components/schemas/A"}, "example": []},
        "Z": {"type": "string"},
    }
    assert extract({"components": {"schemas": described}}, ["A"]) == {
        "A": {"properties": {"b": S, "title": {"type": "string"}}},
        "S": {"items": {"$ref": "#/components/schemas/A"}},
    }
