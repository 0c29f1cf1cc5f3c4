"""The contract as data with comments, in the order of CONFIGURATION.md; made anew whenever something is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.authoring.openapi import failures
from gateway.authoring.openapi.backends import Backends
from gateway.authoring.openapi.normal import Api
from gateway.authoring.openapi.operation import Drafted
from gateway.authoring.openapi.shared import named
from gateway.authoring.openapi.translate import Key
from gateway.authoring.openapi.yaml_text import Commented
from gateway.contract.names import HTTP_ONLY
from gateway.schema.keywords import subschemas

Json = Any

#: What a folder's second file is called, and how the contract names it.
SCHEMAS_FILE = "schemas.yaml"


@dataclass
class Content:
    """All that becomes the contract."""

    api: Api
    source: str
    #: Everything is a tool, not only what reads.
    all_tools: bool
    observe: bool
    backends: Backends
    #: Shared schemas by name, and the name of each key.
    schemas: dict[str, Json]
    names: Mapping[Key, str]
    told: failures.Told | None
    #: By id.
    drafts: dict[str, Drafted] = field(default_factory=dict)
    #: Shared schemas that the contract's own loader refused: any value is allowed instead.
    opened: set[str] = field(default_factory=set)

    def is_tool(self, drafted: Drafted) -> bool:
        return drafted.kind not in HTTP_ONLY and (drafted.operation.method == "GET" or self.all_tools)

    def document(self) -> Commented:
        title = f"{self.api.title} {self.api.version}".strip() or "an API without a title"
        document = Commented(version=1, backends=self._backends())
        document.above["version"] = [
            f"{title}, imported by `toolview import openapi` from {self.source}.",
            "Write for models what each tool is for, and give it a view: docs/first-contract.md says how.",
        ]
        document.above |= {"schemas": [""], "endpoints": [""]}
        used = self._used_schemas()
        if used:
            document["schemas"] = {name: {} if name in self.opened else self.schemas[name] for name in used}
        document["endpoints"] = endpoints = Commented()
        for name, drafted in self.drafts.items():
            endpoints[name] = self._endpoint(drafted)
            endpoints.above[name] = [*([""] if len(endpoints) > 1 else []), *drafted.comments]
        return document

    def _backends(self) -> dict[str, Json]:
        used = {self.backends.of(each.operation) for each in self.drafts.values()}
        written: dict[str, Json] = {}
        for name, backend in self.backends.by_name.items():
            if name in used:
                written[name] = copy = backend.copied()
                if self.told is not None:
                    facts = (("code", self.told.code), ("message", self.told.message))
                    copy["errors"] = {key: at for key, at in facts if at}
        return written

    def _used_schemas(self) -> list[str]:
        """Shared schemas that an endpoint reaches, by name."""
        waiting = [
            name
            for drafted in self.drafts.values()
            for schema in (drafted.input, *drafted.outputs)
            for name in _names_in(named(schema, self.names))
        ]
        used: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in used:
                used.add(name)
                waiting += [] if name in self.opened else _names_in(self.schemas[name])
        return sorted(used)

    def _endpoint(self, drafted: Drafted) -> Commented:
        operation, is_tool = drafted.operation, self.is_tool(drafted)
        endpoint = Commented()
        if len(self.backends.by_name) > 1:
            endpoint["backend"] = self.backends.of(operation)
        endpoint["request"] = drafted.request
        endpoint["description"] = drafted.description
        if drafted.title:
            endpoint["title"] = drafted.title
        endpoint["expose"] = ["http", "mcp", "agent", "cli"] if is_tool else ["http"]
        if not is_tool and drafted.kind not in HTTP_ONLY:
            why = "answers nothing" if drafted.reads else "writes"
            endpoint.behind["expose"] = f"no tool, since it {why}: [http, mcp, agent, cli] makes it one"
        if drafted.kind != "json":
            endpoint["kind"] = drafted.kind
        if drafted.input:
            endpoint["input"] = named(drafted.input, self.names)
        if drafted.send:
            endpoint["send"] = drafted.send
        self._answer(endpoint, drafted)
        if is_tool:
            endpoint["tool"] = tool = Commented(safety_tier="read" if drafted.reads else "write")
            if drafted.output is not None:
                tool.below.append("view: {output: …} # the part of the answer that a model needs")
        return endpoint

    def _answer(self, endpoint: Commented, drafted: Drafted) -> None:
        if drafted.by_status:
            endpoint["output"] = {status: named(each, self.names) for status, each in drafted.output.items()}
        elif drafted.output is not None:
            endpoint["output"] = named(drafted.output, self.names)
        if drafted.output is not None and self.observe:
            endpoint["validate"] = "observe"
        if errors := failures.declared(drafted.operation, self.api.description, self.told):
            endpoint["errors"] = errors


def apart(document: Commented) -> tuple[Commented, Commented]:
    """The contract with its shared schemas in a file of their own, and that file."""
    contract, schemas = Commented(), Commented(schemas=document["schemas"])
    for key, value in document.items():
        if key != "schemas":
            contract[key] = value
        if key == "version":
            contract["include"] = [SCHEMAS_FILE]
    contract.above = document.above
    schemas.above["schemas"] = ["The shapes that the endpoints of gateway.yaml share."]
    return contract, schemas


def _names_in(schema: Json) -> list[str]:
    """The names of shared schemas that a schema refers to."""
    found, waiting = [], [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            found += [reference.removeprefix("#/schemas/")] if isinstance(reference, str) else []
            waiting += [child for _, child in subschemas(each)]
    return found
