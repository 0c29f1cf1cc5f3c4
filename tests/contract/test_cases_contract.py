"""Contracts as public bug reports have them: files that lead astray, scalars that lose text, odd names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.contract.model import Contract
from tests.rig import accepted, contract_at

HEAD = "version: 1\nbackends: {api: {url: 'http://127.0.0.1:9'}}\n"


def endpoint(reference: str) -> str:
    return (
        f"{HEAD}endpoints: {{one: {{request: GET /x, description: One., output: {{$ref: {json.dumps(reference)}}}}}}}\n"
    )


def refusals(folder: Path, text: str, files: dict[str, str] | None = None) -> list[str]:
    told = contract_at(folder, text, files)
    assert not isinstance(told, Contract)
    return [refusal.message for refusal in told]


@pytest.mark.parametrize(
    "reference",
    [
        "../outside.yaml",
        "schemas/../../outside.yaml",
        "/etc/hostname",
        "file:///etc/hostname",
        "http://127.0.0.1:9/schema.yaml",
        "https://example.com/schema.json#/A",
        "//example.com/a.yaml",
        "..%2Foutside.yaml",
        "schemas\\..\\..\\outside.yaml",
    ],
)
def test_yml_08_a_reference_leads_nowhere_but_into_the_folder(tmp_path: Path, reference: str) -> None:
    (tmp_path / "outside.yaml").write_text("type: object\n")
    folder = tmp_path / "config"
    folder.mkdir()
    (message,) = refusals(folder, endpoint(reference))
    assert "\n" not in message


def test_yml_08_files_that_refer_to_each_other_end(tmp_path: Path) -> None:
    files = {
        "a.yaml": "type: object\nproperties: {b: {$ref: deep/b.yaml}}\n",
        "deep/b.yaml": "type: object\nproperties: {a: {$ref: ../a.yaml}, n: {type: integer}}\n",
    }
    output = accepted(tmp_path, endpoint("a.yaml"), files).endpoints["one"].output
    assert output is not None
    assert output.valid({"b": {"a": {"b": {"n": 1}}}})
    assert not output.valid({"b": {"a": {"b": {"n": "1"}}}})


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("012", "012"),
        ("no", "no"),
        ("1_000", "1_000"),
        ("'1.10'", "1.10"),
    ],
)
def test_yml_03_a_default_reaches_the_backend_as_it_was_written(tmp_path: Path, written: str, sent: str) -> None:
    request = accepted(tmp_path, with_default(written)).endpoints["one"]
    assert request.tool is not None
    assert request.tool.view is not None
    built = request.request.build(dict(request.tool.view.defaults), ())
    assert getattr(built, "target", built) == f"/x?v={sent.replace(':', '%3A')}"


@pytest.mark.parametrize("written", ["1.10", "1e3", "12", "true"])
def test_yml_03_a_default_that_yaml_reads_as_no_text_is_refused_where_text_is_wanted(
    tmp_path: Path, written: str
) -> None:
    (message,) = refusals(tmp_path, with_default(written))
    assert "string" in message


def with_default(written: str) -> str:
    input_ = "{type: object, properties: {v: {type: string}}}"
    return (
        f"{HEAD}endpoints:\n  one:\n    request: GET /x\n    description: One.\n    input: {input_}\n"
        f"    output: {{type: object}}\n    tool: {{view: {{defaults: {{v: {written}}}}}}}\n"
    )


@pytest.mark.parametrize("name", ['a"b', "a\\c", "a\nd", "é", "a b", "a/b", "x" * 65])
def test_met_04_cat_04_a_name_that_not_every_reader_takes_is_refused(tmp_path: Path, name: str) -> None:
    one = {"request": "GET /x", "description": "One.", "tool": {"name": name}}
    (message,) = refusals(tmp_path, HEAD + f"endpoints: {json.dumps({'one': one})}\n")
    assert "64" in message


def test_cat_02_long_ids_give_short_names_that_differ_and_stay(tmp_path: Path) -> None:
    ids = ["x" * 70 + end for end in ("a", "b")]
    text = HEAD + "endpoints:\n" + "".join(f"  {id}: {{request: GET /{id}, description: One.}}\n" for id in ids)

    def names() -> list[str]:
        endpoints = accepted(tmp_path, text).endpoints.values()
        return [endpoint.tool.name for endpoint in endpoints if endpoint.tool is not None]

    # Written out, since every start and every machine must come to the same.
    assert names() == ["x" * 55 + "_" + mark for mark in ("6e42a575", "d6fc6fd3")]
    assert [len(name) for name in names()] == [64, 64]
