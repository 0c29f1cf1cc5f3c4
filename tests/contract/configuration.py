"""Draws the tables of CONFIGURATION.md from the model; `python -m tests.contract.configuration` rewrites them."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from gateway.contract.grammar import json_schema

PAGE = Path(__file__).parents[2] / "config" / "CONFIGURATION.md"

#: Groups in the order of the page: where they are written, and their shape.
GROUPS = {
    "The file": "",
    "gateway": "GatewayWritten",
    "gateway.tools": "ToolsListener",
    "gateway.admin": "AdminListener",
    "gateway.tools.tls": "TlsFiles",
    "gateway.auth": "Auth",
    "gateway.auth.keys[]": "ApiKey",
    "gateway.auth.jwt": "Jwt",
    "gateway.auth.oauth": "OAuth",
    "gateway.hooks": "HooksWritten",
    "gateway.catalog": "Catalog",
    "gateway.mcp": "Mcp",
    "gateway.limits": "GatewayLimits",
    "gateway.log": "Log",
    "backends.NAME": "BackendWritten",
    "backends.NAME.passthrough": "Passthrough",
    "backends.NAME.tls": "BackendTls",
    "backends.NAME.limits": "BackendLimits",
    "backends.NAME.retry": "Retry",
    "backends.NAME.breaker": "Breaker",
    "backends.NAME.health": "Health",
    "backends.NAME.auth": "BackendAuth",
    "backends.NAME.auth.basic": "BasicAuth",
    "backends.NAME.auth.header": "HeaderAuth",
    "backends.NAME.auth.query": "QueryAuth",
    "backends.NAME.auth.client_credentials": "ClientCredentials",
    "endpoints.ID": "EndpointWritten",
    "endpoints.ID.send.ARG": "SendWritten",
    "endpoints.ID.send.body": "BodyWritten",
    "endpoints.ID.errors.CODE": "DeclaredErrorWritten",
    "endpoints.ID.examples[]": "ExampleWritten",
    "endpoints.ID.durable": "DurableWritten",
    "endpoints.ID.durable.poll": "PollWritten",
    "endpoints.ID.tool": "ToolWritten",
    "endpoints.ID.tool.view": "ViewWritten",
    "endpoints.ID.tool.view.project": "ProjectWritten",
    "endpoints.ID.tool.view.budget": "BudgetWritten",
    "endpoints.ID.tool.annotations": "AnnotationsWritten",
    "endpoints.ID.tool.ui": "Ui",
    "endpoints.ID.tool.mcp": "ToolMcp",
}

_TABLE = re.compile(r"<!-- keys: (.*?) -->\n.*?<!-- end -->", re.DOTALL)


def drawn(page: str) -> str:
    """The page with every table as the model has it now."""
    return _TABLE.sub(lambda found: f"<!-- keys: {found[1]} -->\n{table(found[1])}<!-- end -->", page)


def tables(page: str) -> list[str]:
    return [found[1] for found in _TABLE.finditer(page)]


def table(group: str) -> str:
    schema = _schema()
    shape = schema if group == "The file" else schema["$defs"][GROUPS[group]]
    rows = "| key | what is written | meaning | default |\n| --- | --- | --- | --- |\n"
    for key, field in shape["properties"].items():
        meaning, _, default = field["description"].partition("; ")
        if "default" in field:
            default = f"`{str(field['default']).lower() if isinstance(field['default'], bool) else field['default']}`"
            meaning = field["description"]
        elif key in shape.get("required", ()):
            default, meaning = "**required**", field["description"]
        rows += f"| `{key}` | {_form(field)} | {_cell(meaning)} | {_cell(default) or '-'} |\n"
    return rows


@functools.cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _form(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_form(member) for member in field["anyOf"]))
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    if "examples" in field:
        return f"as `{field['examples'][0]}`"
    reference = field.get("$ref", "")
    if reference.startswith("https:"):
        return "JSON Schema"
    if reference:
        return "keys, below"
    match field.get("type"):
        case "array":
            return f"list of {_form(field['items'])}"
        case "boolean":
            return "`true`, `false`"
        case "integer":
            return f"whole number, from {field['minimum']}"
        case "string":
            return "text"
        case "object":
            inner = field.get("additionalProperties")
            return f"map of {_form(inner)}" if isinstance(inner, dict) else "map"
    return "`1`" if "const" in field else "any value" if "additionalProperties" not in field else "map of JSON Schema"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    PAGE.write_text(drawn(PAGE.read_text()))


if __name__ == "__main__":
    main()
