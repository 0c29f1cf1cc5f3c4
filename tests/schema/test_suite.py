"""The specification's own test suite through our door: what is refused has its reason, nothing is judged wrongly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.schema import Schema, compile_schema

SUITE = Path(__file__).parent.parent / "data" / "JSON-Schema-Test-Suite" / "tests" / "draft2020-12"

#: Why a schema of the suite is refused at load, by what the refusal says.
REASONS = {
    "it leads out of this document": "a reference to another document: the contract resolves files, nothing is fetched",
    "has no address of its own": "an embedded resource with its own `$id`: what a reference means would depend on it",
    "`$dynamicRef` depends on who refers to it": "dynamic scope cannot be shown to a caller of a tool",
    "`$dynamicAnchor` is only of use": "likewise",
    "only the dialect": "a metaschema of its own",
    "`dependencies` is an older draft": "optional compatibility with draft 7",
    "is no keyword of JSON Schema": "an unknown keyword: a misspelling must not be silent",
    "no schema stands": "a reference into an unknown keyword or an annotation",
    "there is no `": "a reference into an embedded resource, or into an annotation",
    "is no property that JavaScript knows": "`\\p{digit}`: names of properties are exact in ECMA-262",
    "format `unknown` cannot be checked": "an unknown format where formats are asserted",
}


def cases() -> Iterator[Any]:
    for file in sorted(SUITE.rglob("*.json")):
        name = str(file.relative_to(SUITE))
        asserted = name.startswith("optional/format/") or name == "optional/format-assertion.json"
        for case in json.loads(file.read_text()):
            yield pytest.param(case, "assert" if asserted else "annotate", id=f"{name}: {case['description']}")


@pytest.mark.parametrize(("case", "formats"), list(cases()))
def test_the_suite_is_judged_rightly_or_refused_with_a_reason(case: dict[str, Any], formats: str) -> None:
    schema = compile_schema(case["schema"], formats=formats)
    if not isinstance(schema, Schema):
        assert all(any(reason in fault.message for reason in REASONS) for fault in schema), schema
        return
    for test in case["tests"]:
        assert schema.valid(test["data"]) is test["valid"], test["description"]
        assert (schema.check(test["data"]) == []) is test["valid"], test["description"]


def test_few_schemas_of_the_suite_are_refused() -> None:
    compiled = [compile_schema(case.values[0]["schema"], formats=case.values[1]) for case in cases()]
    refused = [schema for schema in compiled if not isinstance(schema, Schema)]
    assert (len(refused), len(compiled)) == (81, 461)
