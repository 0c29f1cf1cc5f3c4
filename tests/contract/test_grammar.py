"""The grammar as JSON Schema and as CONFIGURATION.md says what the model says, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gateway.contract.grammar import json_schema
from tests.contract.configuration import GROUPS, PAGE, drawn, tables

CONFIG = Path(__file__).parents[2] / "config"


def test_the_page_has_every_key_as_the_model_has_it() -> None:
    page = PAGE.read_text()
    assert page == drawn(page), "run: python -m tests.contract.configuration"


def test_the_page_has_every_group() -> None:
    assert tables(PAGE.read_text()) == list(GROUPS)


def test_every_group_of_the_model_is_on_the_page() -> None:
    assert set(json_schema()["$defs"]) - {"Listener"} == {shape for shape in GROUPS.values() if shape}


def test_every_key_says_what_it_means() -> None:
    schema = json_schema()
    for shape in (schema, *schema["$defs"].values()):
        assert shape["additionalProperties"] is False
        assert all(field.get("description") for field in shape["properties"].values())


def test_the_schema_accepts_the_worked_example_and_refuses_a_slip() -> None:
    validator = jsonschema_rs.Draft202012Validator(json_schema())
    example: Any = yaml.safe_load((CONFIG / "gateway.yaml").read_text())
    assert list(validator.iter_errors(example)) == []
    for path, value in (
        (("gateway", "tools", "lissten"), 1),
        (("backends", "directory", "timeout"), 10),
        (("endpoints", "people.list", "toolName"), "x"),
        (("endpoints", "people.list", "expose"), ["mpc"]),
        (("endpoints", "people.list", "input"), {"type": "strnig"}),
        (("version",), 2),
    ):
        broken = yaml.safe_load((CONFIG / "gateway.yaml").read_text())
        node = broken
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
        assert not validator.is_valid(broken), path


@pytest.mark.parametrize(
    "text",
    [
        "{version: 1, backends: {a: {url: 'http://a', passthrough: '127.0.0.1:80'}}}",
        "{version: 1, backends: {a: {url: 'http://a', passthrough: {listen: '127.0.0.1:80', only: declared}}}}",
        "{version: 1, endpoints: {a: {request: GET /a, description: A, output: {'200': {type: object}}}}}",
        "{version: 1, endpoints: {a: {request: GET /a, description: A, send: {body: {argument: x}, b: {in: query}}}}}",
        "{version: 1, endpoints: {a: {request: GET /a, description: A, tool: {view: {budget: 24KiB, output: true}}}}}",
        "{version: 1, schemas: {A: {type: object}, B: true}}",
    ],
)
def test_the_schema_accepts_both_spellings(text: str) -> None:
    errors = list(jsonschema_rs.Draft202012Validator(json_schema()).iter_errors(yaml.safe_load(text)))
    assert errors == []
