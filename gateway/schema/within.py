"""Whether one schema's cut leaves nothing that another's would drop, so that one cut does for both. Knows no values."""

from __future__ import annotations

from collections.abc import Callable

from gateway.schema.keywords import Path
from gateway.schema.place import Part, declares, opens, spread

#: Schemas that judge one place.
Parts = tuple[Part, ...]
#: Whether anything at or below some place may be dropped.
Closing = Callable[[Parts], bool]

_MORE_OF_OBJECT = ("patternProperties", "unevaluatedProperties")
_MORE_OF_ARRAY = ("prefixItems", "unevaluatedItems", "contains")


def drops_all_of(slice_: Part, full: Part, closing: Closing) -> bool:
    """True where, of any value, the slice keeps only what `full` keeps too: cutting by both is cutting by the slice.

    Told by the written keywords alone. Where a value has a choice, or keys go by patterns, the answer is False.
    `closing` speaks of places of `full`.
    """
    return _within((slice_,), (full,), closing, set())


def _within(slice_: Parts, full: Parts, closing: Closing, seen: set[tuple[frozenset[Path], frozenset[Path]]]) -> bool:
    if not closing(full):
        return True
    key = frozenset(part.path for part in slice_), frozenset(part.path for part in full)
    if key in seen:  # what led here decides: a difference would show on the way round
        return True
    seen.add(key)
    return _objects(slice_, full, closing, seen) and _arrays(slice_, full, closing, seen)


def _objects(slice_: Parts, full: Parts, closing: Closing, seen: set[tuple[frozenset[Path], frozenset[Path]]]) -> bool:
    (ours, our_choices), (theirs, their_choices) = spread(slice_, "object"), spread(full, "object")
    if our_choices or their_choices:
        return False
    if not any(declares(part.node) for part in theirs):
        return True  # an object stays whole there
    if any(keyword in part.node for part in (*ours, *theirs) for keyword in _MORE_OF_OBJECT):
        return False
    if any(opens(part.node) for part in ours) or not any(declares(part.node) for part in ours):
        return False
    for name in dict.fromkeys(name for part in ours for name in part.node.get("properties", ())):
        kept = _under(theirs, name)
        if kept is None or not _within(_under(ours, name) or (), kept, closing, seen):
            return False
    return True


def _arrays(slice_: Parts, full: Parts, closing: Closing, seen: set[tuple[frozenset[Path], frozenset[Path]]]) -> bool:
    (ours, our_choices), (theirs, their_choices) = spread(slice_, "array"), spread(full, "array")
    if our_choices or their_choices:
        return False
    if any(keyword in part.node for part in (*ours, *theirs) for keyword in _MORE_OF_ARRAY):
        return False
    return _within(_items(ours), _items(theirs), closing, seen)


def _under(flat: Parts, name: str) -> Parts | None:
    """The schemas of the value under a key; None where the key is dropped."""
    found: list[Part] = []
    kept = False
    for part in flat:
        if name in part.node.get("properties", ()):
            found.append(part.under("properties", name))
        elif part.node.get("additionalProperties", False) is not False:
            kept = True
            found += filter(None, [part.one("additionalProperties")])
    return tuple(found) if found or kept else None


def _items(flat: Parts) -> Parts:
    return tuple(filter(None, (part.one("items") for part in flat)))
