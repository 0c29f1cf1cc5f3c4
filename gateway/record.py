"""Records: what is made anew on every call. Dataclasses with slots, frozen for the type checker; knows none of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, dataclass_transform

Made = TypeVar("Made")

if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(made: type[Made]) -> type[Made]: ...

else:
    # A frozen dataclass sets each field by a call of its own, ten times the work of a plain one; a tenth of a whole
    # tool call went there. mypy refuses every assignment to a field all the same (decision 0006).
    record = dataclass(slots=True, unsafe_hash=True)
