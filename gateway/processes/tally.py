"""Numbers that several processes count side by side, in memory that outlives each of them. Knows no metric's meaning.

One anonymous mapping is shared by every process that was forked after it was made. Each process writes to a part of
its own, so nothing is locked, and whatever was written is there when its writer is killed. Whoever takes that part over
goes on from its numbers: a counter never falls.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from collections.abc import Iterator, MutableSequence, Sequence
from typing import cast

#: What a row counts: a metric's name, then the values of its labels.
Key = tuple[str, ...]
#: Numbers that are written in place.
Cells = MutableSequence[float]

_PART_BYTES = 16 * 1024 * 1024  # address space; what is not written to takes no memory
_USED = struct.Struct("<Q")  # bytes of the part that are written, at its beginning
_PID = struct.Struct("<Q")  # of the process whose part this is, behind it; 0 for nobody's
_ROW = struct.Struct("<IHBB")  # its bytes, those of its key, how many cells, and whether they are a state
_FIRST = _USED.size + _PID.size
_SEPARATOR = "\x1f"


class Tallies:
    """The parts of all processes of one gateway; made before any of them is forked."""

    def __init__(self, parts: int = 1) -> None:
        self._memory = mmap.mmap(-1, parts * _PART_BYTES)
        self._numbers: memoryview[float] = memoryview(self._memory).cast("d")
        #: What was read of each part so far: up to where, and its rows. A row never moves.
        self._seen: list[tuple[int, list[tuple[Key, Cells]]]] = [(_FIRST, []) for _ in range(parts)]
        for part in range(parts):
            _USED.pack_into(self._memory, part * _PART_BYTES, _FIRST)

    def own(self, part: int, pid: int | None = None) -> Tally:
        """A part to write to, for one process at a time."""
        tally = Tally(self._memory, self._numbers, part * _PART_BYTES)
        for key, cells, is_state in self._rows(part, _FIRST):
            tally.known[key] = cells
            if is_state:
                _clear(cells)
        _PID.pack_into(self._memory, part * _PART_BYTES + _USED.size, pid or os.getpid())
        return tally

    def bury(self, part: int) -> None:
        """Its process is dead: what it counted stays, what was so while it lived is no more."""
        for _, cells, is_state in self._rows(part, _FIRST):
            if is_state:
                _clear(cells)
        _PID.pack_into(self._memory, part * _PART_BYTES + _USED.size, 0)

    def pids(self) -> list[int]:
        """The processes that own a part now."""
        found = (self._pid(part) for part in range(len(self._seen)))
        return [pid for pid in found if pid]

    def is_free(self, part: int) -> bool:
        """Whether no living process owns it."""
        return not self._pid(part)

    def rows(self, name: str = "") -> Iterator[tuple[Key, Sequence[float]]]:
        """Every row of every part, or those of one metric; a key comes once for each part that has it."""
        for part, (seen, rows) in enumerate(self._seen):
            (used,) = _USED.unpack_from(self._memory, part * _PART_BYTES)
            if used > seen:
                rows.extend((key, cells) for key, cells, _ in self._rows(part, seen))
                self._seen[part] = (used, rows)
            for key, cells in rows:
                if not name or key[0] == name:
                    yield key, cells

    def total(self, name: str) -> dict[Key, list[float]]:
        """The rows of one metric by the values of its labels, those of all parts added up."""
        sums: dict[Key, list[float]] = {}
        for key, cells in self.rows(name):
            known = sums.get(key[1:])
            sums[key[1:]] = list(cells) if known is None else [a + b for a, b in zip(known, cells, strict=True)]
        return sums

    def _pid(self, part: int) -> int:
        pid: int = _PID.unpack_from(self._memory, part * _PART_BYTES + _USED.size)[0]
        return pid

    def _rows(self, part: int, at: int) -> Iterator[tuple[Key, Cells, bool]]:
        begin = part * _PART_BYTES
        (used,) = _USED.unpack_from(self._memory, begin)
        while at < used:
            size, key_size, count, is_state = _ROW.unpack_from(self._memory, begin + at)
            key_at = begin + at + _ROW.size
            key = self._memory[key_at : key_at + key_size].decode(errors="surrogatepass")
            end = (begin + at + size) // 8
            yield tuple(key.split(_SEPARATOR)), cast("Cells", self._numbers[end - count : end]), bool(is_state)
            at += size


class Tally:
    """What one process counts."""

    def __init__(self, memory: mmap.mmap, numbers: memoryview[float], begin: int) -> None:
        self._memory, self._numbers, self._begin = memory, numbers, begin
        self.known: dict[Key, Cells] = {}

    def cells(self, key: Key, count: int = 1, *, state: bool = False) -> Cells:
        """The numbers of a row, made where it is not there yet: ask once, then write to them.

        A `state` is what is so just now, as connections that are open: it ends with the process.
        """
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._append(key, count, state=state)
        return found

    def _append(self, key: Key, count: int, *, state: bool) -> Cells:
        text = _SEPARATOR.join(key).encode(errors="surrogatepass")
        size = _ROW.size + (len(text) + 7) // 8 * 8 + 8 * count
        (used,) = _USED.unpack_from(self._memory, self._begin)
        if used + size > _PART_BYTES or len(text) > 0xFFFF:
            return array("d", bytes(8 * count))  # full: counted for nobody, and nobody else's numbers are harmed
        at = self._begin + used
        _ROW.pack_into(self._memory, at, size, len(text), count, state)
        self._memory[at + _ROW.size : at + _ROW.size + len(text)] = text
        _USED.pack_into(self._memory, self._begin, used + size)  # last: a reader never sees half a row
        end = (at + size) // 8
        return cast("Cells", self._numbers[end - count : end])


def _clear(cells: Cells) -> None:
    for index in range(len(cells)):
        cells[index] = 0.0
