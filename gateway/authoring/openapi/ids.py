"""Ids of endpoints: a name for each operation that no other has, and that does not depend on the order."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from gateway.authoring.openapi.normal import Operation
from gateway.contract.names import tool_name


def endpoint_ids(operations: Sequence[Operation]) -> dict[str, str]:
    """An id for each operation by `METHOD /path`: its operationId, else method and path; none depends on the order."""
    plain = {each.spelled: re.sub(r"[^A-Za-z0-9_.-]+", "_", each.id or "").strip("_.-")[:150] for each in operations}
    counts = Counter(tool_name(name).lower() for name in plain.values() if name)
    ids = {}
    for each in operations:
        name = plain[each.spelled]
        alone = bool(name) and counts[tool_name(name).lower()] == 1
        ids[each.spelled] = name if alone else _by_path(each)
    again = Counter(tool_name(name).lower() for name in ids.values())
    for spelled, name in ids.items():
        if again[tool_name(name).lower()] > 1:
            ids[spelled] = f"{name[:180]}_{hashlib.sha256(spelled.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return ids


def _by_path(operation: Operation) -> str:
    words = re.sub(r"[^A-Za-z0-9-]+", "_", operation.path).strip("_")[:150]
    return f"{operation.method.lower()}_{words}".strip("_")
