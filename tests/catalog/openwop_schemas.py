"""The descriptors, discovery and error bodies of OpenWOP v1 as JSON Schemas, written anew from the field tables."""

from __future__ import annotations

from typing import Any

from gateway.schema import Schema, compile_schema

Json = Any

SOURCES = ["node-pack", "workflow", "mcp", "connector", "host-extension"]
TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
LEVEL = {"enum": ["low", "medium", "high"]}
TIER = {"enum": ["pure", "read", "write", "exec"]}

#: RFC 0069: an exec tool is the host's own extension.
EXEC_IS_THE_HOSTS = {
    "if": {"properties": {"safetyTier": {"const": "exec"}}, "required": ["safetyTier"]},
    "then": {"properties": {"source": {"const": "host-extension"}}},
}

#: RFC 0078.
TOOL_DESCRIPTOR: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": ["toolId", "source", "safetyTier"],
    "properties": {
        "toolId": NAME,
        "source": {"enum": SOURCES},
        "title": TEXT,
        "description": TEXT,
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"},
        "auth": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "scopes": {"type": "array", "items": TEXT, "uniqueItems": True},
                "credentialRef": {"type": "boolean"},
            },
        },
        "egress": {"enum": ["none", "safe-fetch", "host-mediated", "host-owned"]},
        "approval": {"enum": ["never", "conditional", "always"]},
        "replayPolicy": {"enum": ["deterministic", "idempotent", "non-deterministic"]},
        "safetyTier": TIER,
        "costHint": LEVEL,
        "latencyHint": LEVEL,
    },
    **EXEC_IS_THE_HOSTS,
}

#: RFC 0112; the floor at the top, what holds at any depth is for a walker.
COMPACT_TOOL_DESCRIPTOR: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": ["toolId", "source", "safetyTier"],
    "properties": {
        "toolId": NAME,
        "source": {"enum": SOURCES},
        "safetyTier": TIER,
        "title": TEXT,
        "description": TEXT,
        "inputSchema": {
            "type": "object",
            "required": ["type", "properties"],
            "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
            "propertyNames": {
                "not": {"enum": ["$ref", "oneOf", "allOf", "anyOf", "not", "patternProperties", "dependentSchemas"]}
            },
        },
    },
    **EXEC_IS_THE_HOSTS,
}

#: What `/.well-known/openwop` holds, as far as this host says anything.
DISCOVERY: Json = {
    "type": "object",
    "required": ["protocolVersion", "supportedEnvelopes", "schemaVersions", "limits"],
    "properties": {
        "protocolVersion": {"type": "string", "pattern": r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$"},
        "supportedEnvelopes": {"type": "array", "items": TEXT},
        "schemaVersions": {"type": "object", "additionalProperties": COUNT},
        "implementation": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"name": TEXT, "version": TEXT, "vendor": TEXT},
        },
        "supportedTransports": {"type": "array", "items": {"enum": ["rest", "mcp", "a2a", "grpc"]}},
        "limits": {
            "type": "object",
            "additionalProperties": False,
            "required": ["clarificationRounds", "schemaRounds", "envelopesPerTurn"],
            "properties": {
                "clarificationRounds": COUNT,
                "schemaRounds": COUNT,
                "envelopesPerTurn": COUNT,
                "maxNodeExecutions": {"type": "integer", "minimum": 1},
                "maxRunDurationMs": {"type": "integer", "minimum": 1000},
                "maxLoopIterations": COUNT,
                "maxBudgetTokens": COUNT,
                "maxBudgetCostUsd": {"type": "number", "minimum": 0},
                "maxRequestBodyBytes": COUNT,
            },
        },
        "toolCatalog": {
            "type": "object",
            "additionalProperties": False,
            "required": ["supported"],
            "properties": {
                "supported": {"type": "boolean"},
                "sources": {"type": "array", "items": {"enum": SOURCES}, "uniqueItems": True},
                "sessionLifecycle": {"type": "boolean"},
                "compactView": {"type": "boolean"},
            },
        },
    },
}

ERROR: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": ["error", "message"],
    "properties": {
        "error": {"type": "string", "pattern": "^[a-z]+(?:_[a-z]+)*$"},
        "message": NAME,
        "details": {"type": "object"},
    },
}


def _compiled(document: Json) -> Schema:
    made = compile_schema(document)
    assert isinstance(made, Schema), made
    return made


STANDARD = _compiled(TOOL_DESCRIPTOR)
COMPACT = _compiled(COMPACT_TOOL_DESCRIPTOR)
DISCOVERED = _compiled(DISCOVERY)
REFUSED = _compiled(ERROR)
