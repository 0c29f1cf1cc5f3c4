"""What a projection is and how running one ends, as frozen values; knows neither processes nor contracts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Sources:
    """The Python files of the projections folder as they were at load, so that old calls keep their old code."""

    folder: str
    #: Path below the folder, with `/`, to the file's bytes.
    files: Mapping[str, bytes] = field(repr=False, compare=False)
    #: SHA-256 over folder, names and bytes: equal digests run equal code.
    digest: str


@dataclass(frozen=True, slots=True)
class Projection:
    """A compiled way from the full answer to the shown one; only `kind` and `reference` are for other rooms."""

    kind: Literal["jmespath", "python"]
    #: The expression, or `module:function`.
    reference: str
    #: Of a python projection.
    sources: Sources | None = None
    #: Of a jmespath one: jmespath's own parsed expression, and how many times its input the work may be.
    parsed: Any = field(default=None, repr=False, compare=False)
    breadth: int = field(default=1, repr=False, compare=False)


class Reason(Enum):
    """Why a projection gave nothing to show."""

    RAISED = "raised"  # whatever it raises: an exception, SystemExit, KeyboardInterrupt
    AWAITABLE = "awaitable"  # it returned a coroutine or another awaitable; it is closed
    NOT_JSON = "not_json"  # a set, a datetime, NaN, a key that is no string, a cycle
    TOO_LARGE = "too_large"  # more bytes of JSON than the bound
    TIMEOUT = "timeout"  # it outran `gateway.limits.projection`
    OUT_OF_MEMORY = "out_of_memory"
    DIED = "died"  # its process ended: os._exit, a crash in C code, the kernel's killer
    NOT_LOADED = "not_loaded"  # its module no longer imports in a fresh process
    BUSY = "busy"  # no worker came free in time; the projection did not run


@dataclass(frozen=True, slots=True)
class Projected:
    """What the projection returned; None where it returned nothing (or null, which in Python is the same)."""

    value: Any


@dataclass(frozen=True, slots=True)
class ProjectionFault:
    """The projection gave nothing to show. `text` and `trace` may hold data: for the log and the error hook alone."""

    reason: Reason
    #: Of RAISED `KeyError: 'id'`: class name and text.
    text: str
    trace: str = ""
