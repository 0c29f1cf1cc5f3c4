"""Records: dataclasses with slots, cheap to define and to make, frozen for the type checker; knows none of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

Made = TypeVar("Made")


if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(made: type[Made]) -> type[Made]: ...

else:

    def record(made: type[Made]) -> type[Made]:
        """A dataclass with slots. mypy refuses every assignment to a field; at run time it is plain (decision 0006).

        It compares, hashes and shows itself as a dataclass does, by functions that all records share: to write such
        functions anew for each class takes longer than anything else that happens when the program starts.
        """
        made = dataclass(slots=True, eq=False, repr=False)(made)
        compared = [one.name for one in fields(made) if one.compare]
        made.__compared__ = attrgetter(*compared) if compared else type
        made.__shown__ = tuple(one.name for one in fields(made) if one.repr)
        for name, shared in _SHARED.items():
            if name not in made.__dict__:
                setattr(made, name, shared)
        return made


def _equal(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _show(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shown__)
    return f"{type(self).__qualname__}({shown})"


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _show}
