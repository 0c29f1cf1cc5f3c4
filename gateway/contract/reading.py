"""One contract while it is read: shapes out of written data, and every fault kept with its place. Judges no rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from gateway.contract.references import Files
from gateway.contract.refusal import Path, Refusal, dotted
from gateway.contract.shape import Shape, misfits

Json = Any
S = TypeVar("S", bound=Shape)


class Reading:
    """Collects refusals and warnings; what was faulted is remembered, so that nothing is said twice of one slip."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.warnings: list[Refusal] = []
        self._faulted: set[Path] = set()
        #: Those places and everything around them, so that a file of a thousand faults is not gone through for each.
        self._hold_faults: set[Path] = set()
        # What the YAML itself was refused for needs no second sentence about its shape.
        self._unread = {refusal.path for refusal in files.refusals}

    def refuse(self, path: Path, message: str) -> None:
        self._faulted.add(path)
        self._hold_faults.update(path[:depth] for depth in range(len(path) + 1))
        self.files.refusals.append(self.files.refusal("", path, message))

    def warn(self, path: Path, message: str) -> None:
        self.warnings.append(self.files.refusal("", path, message))

    def faulted(self, path: Path) -> bool:
        """Whether this key, or something inside it, was refused for its shape."""
        return path in self._hold_faults

    def shape(
        self,
        shape: type[S],
        written: Json,
        path: Path,
        moved: Mapping[str, str] = MappingProxyType({}),
        stand_ins: Mapping[str, Json] = MappingProxyType({}),
    ) -> S | None:
        """The written data as a shape; what does not fit is refused and left out, so that the rest is still checked.

        `stand_ins` serve for keys that must be there. None where nothing is left to check.
        """
        found = misfits(shape, written, moved, self.files.folder, self.files.disk)
        if isinstance(found, list):
            for inner, message in found:
                at = (*path, *inner)
                if at not in self._faulted and dotted(at) not in self._unread:
                    self.refuse(at, message)
        for _ in range(10):
            if not isinstance(found, list):
                assert isinstance(found, shape)
                return found
            if not isinstance(written, dict):
                return None
            for inner, _ in found:
                written = _without(written, inner)
            written = {**stand_ins, **written}
            found = misfits(shape, written, moved, self.files.folder, self.files.disk)
        return None


def _without(node: Json, path: Path) -> Json:
    """A copy without one key; a list goes as a whole, so that no index moves. What stands beside it is shared."""
    if not isinstance(node, dict) or not path or path[0] not in node:
        return node
    if len(path) == 1 or not isinstance(node[path[0]], dict):
        return {key: value for key, value in node.items() if key != path[0]}
    return {**node, path[0]: _without(node[path[0]], path[1:])}
