"""What follows from an endpoint's own keys: its surfaces, its tool's name, its MCP hints. Pure; knows no file."""

from __future__ import annotations

import hashlib
import re
from typing import Any

#: Kinds that only the pass-through carries.
HTTP_ONLY = ("raw", "multipart", "stream")
TOOL_SURFACES = ("mcp", "agent", "cli")

_LONGEST = 64
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_tool_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def tool_name(endpoint: str) -> str:
    """The name that a tool has where none is written: the endpoint's id in the characters that tools may have.

    A long id is cut and ends in a digest of the whole, so that two long ids with one beginning stay apart.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", endpoint).strip("_") or "tool"
    if len(name) <= _LONGEST:
        return name
    mark = hashlib.sha256(endpoint.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST - 9]}_{mark}"


def surfaces(written: tuple[str, ...] | None, kind: str) -> frozenset[str]:
    """`expose`, or its default for this kind."""
    if written is not None:
        return frozenset(written)
    return frozenset(("http",) if kind in HTTP_ONLY else ("http", "mcp", "agent"))


def hints(
    written: dict[str, Any], method: str, idempotent: bool, safety_tier: str | None, title: str | None
) -> dict[str, Any]:
    """MCP hints: those written, the others from method, `idempotent` and `safety_tier`.

    Where nothing tells, the careful answer is given: what is not known to only read may destroy something.
    """
    reads = method in ("GET", "HEAD", "OPTIONS") if safety_tier is None else safety_tier in ("pure", "read")
    derived: dict[str, Any] = {"title": title} if title else {}
    derived["readOnlyHint"] = written.get("readOnlyHint", reads)
    derived["destructiveHint"] = not derived["readOnlyHint"]
    derived["idempotentHint"] = idempotent
    derived["openWorldHint"] = False
    return {**derived, **written}
