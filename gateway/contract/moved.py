"""Keys of older or other shapes by group, and where each belongs now. Plain tables, nothing else."""

from __future__ import annotations

from collections.abc import Mapping

#: At the root of the file.
CONTRACT: Mapping[str, str] = {
    "listen": "gateway.tools.listen",
    "tools": "gateway.tools",
    "admin": "gateway.admin",
    "auth": "gateway.auth",
    "backend": "backends.NAME",
    "upstream": "backends.NAME",
    "upstreams": "backends.NAME",
    "routes": "endpoints",
    "definitions": "schemas",
    "$defs": "schemas",
    "components": "schemas",
    "includes": "include",
}

GATEWAY: Mapping[str, str] = {
    "listen": "gateway.tools.listen",
    "metrics": "gateway.admin",
    "cors": "gateway.tools.origins",
    "keys": "gateway.auth.keys",
    "jwt": "gateway.auth.jwt",
    "passthrough": "backends.NAME.passthrough",
    "timeout": "backends.NAME.timeout",
    "queue": "gateway.limits.queue",
}

BACKEND: Mapping[str, str] = {
    "base_url": "url",
    "baseUrl": "url",
    "base": "url",
    "timeout_ms": "timeout: 500ms",
    "timeoutMs": "timeout: 500ms",
    "retries": "retry.attempts",
    "listen": "passthrough.listen",
    "concurrency": "limits.concurrency",
    "answer": "limits.answer",
    "bearer": "auth.bearer",
    "basic": "auth.basic",
    "ca": "tls.ca",
    "verify": "tls.verify",
}

ENDPOINT: Mapping[str, str] = {
    "toolName": "tool.name",
    "tool_name": "tool.name",
    "name": "tool.name",
    "toolView": "tool.view",
    "tool_view": "tool.view",
    "view": "tool.view",
    "mcpView": "tool.view",
    "annotations": "tool.annotations",
    "ui": "tool.ui",
    "mcp": "tool.mcp",
    "safety_tier": "tool.safety_tier",
    "safetyTier": "tool.safety_tier",
    "cost": "tool.cost",
    "latency": "tool.latency",
    "defaults": "tool.view.defaults",
    "project": "tool.view.project",
    "budget": "tool.view.budget",
    "method": "request: METHOD /path",
    "path": "request: METHOD /path",
    "url": "backends.NAME.url",
    "params": "input",
    "parameters": "input",
    "arguments": "input",
    "query": "input",
    "body": "send.body",
    "headers": "backends.NAME.headers",
    "response": "output",
    "responses": "output",
    "result": "output",
    "surfaces": "expose",
    "summary": "title",
}

TOOL: Mapping[str, str] = {
    "toolName": "tool.name",
    "toolView": "tool.view",
    "safetyTier": "tool.safety_tier",
    "description": "description, beside `tool`",
    "expose": "expose, beside `tool`",
    "input": "input, beside `tool`",
    "defaults": "tool.view.defaults",
    "output": "tool.view.output",
    "project": "tool.view.project",
    "budget": "tool.view.budget",
    "confirm": "tool.mcp.confirm",
    "visibility": "tool.ui.visibility",
    "resource": "tool.ui.resource",
    **{
        hint: f"tool.annotations.{hint}"
        for hint in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    },
}

VIEW: Mapping[str, str] = {
    "schema": "tool.view.output",
    "projection": "tool.view.project",
    "jmespath": "tool.view.project.jmespath",
    "python": "tool.view.project.python",
    "input": "tool.view.defaults",
    "trim": "tool.view.budget.trim",
    "note": "tool.view.budget.note",
    "name": "tool.name",
}

#: What `shape.misfits` looks a key up in: the key's own name after as much of its path as tells groups apart.
ENDPOINT_KEYS: Mapping[str, str] = {
    **{f"tool.view.{key}": place for key, place in VIEW.items()},
    **{f"tool.{key}": place for key, place in TOOL.items()},
    **ENDPOINT,
}
