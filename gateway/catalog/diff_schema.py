"""What changed from one schema to another, place by place, for those who send such values or read them. Pure.

Objects and lists are gone through key by key, so that every change has its own place; what has no keys to go through is
one question to the relation engine. What the engine can neither prove nor refute counts as breaking.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from gateway.catalog.diff_change import Path, SchemaChange, Shown, Verdict, below, short
from gateway.catalog.diff_place import (
    definitions,
    flattened,
    kept,
    own_bounds,
    points_inside,
    structured,
    takes,
    without_definitions,
    without_words,
)
from gateway.json_text import canonical
from gateway.record import record
from gateway.schema import No, Schema, Unknown, Yes, compile_schema, fits, fits_slice
from gateway.schema.bundle import bundle_part
from gateway.schema.keywords import ANNOTATIONS

Json = Any


class Side(Enum):
    """Who holds the old schema: callers who send values by it, or readers who take answers for it."""

    CALLERS = "callers"
    READERS = "readers"


def compare(old: Json, new: Json, side: Side, *, formats: str = "annotate") -> list[SchemaChange]:
    """Every change from one self-contained schema to another that concerns values; wording is `diff_words`."""
    ignored = ANNOTATIONS if formats == "assert" else ANNOTATIONS | {"format"}
    comparison = _Comparison(without_words(old, ignored), without_words(new, ignored), side, formats)
    comparison.walk(_Pair(comparison.old, comparison.new))
    changes = comparison.changes
    if all(change.verdict is not Verdict.BREAKING for change in changes) and comparison.differs:
        # The places agree one by one; the whole has the last word where it can show a value.
        verdict = comparison.asked(comparison.old, comparison.new)
        if isinstance(verdict, No):
            changes.append(comparison.broken(verdict, _Pair(old, new)))
    return changes


#: Places of one schema that are gone through key by key; what is left after them is one question each.
_MOST_VISITS = 5_000


@record
class _Pair:
    """The same place in both documents."""

    old: Json
    new: Json
    path: str = ""
    at: Path = ()

    def below(self, name: str, old: Json, new: Json) -> _Pair:
        return _Pair(old, new, below(self.path, name), (*self.at, "properties", name))

    def item(self, old: Json, new: Json) -> _Pair:
        return _Pair(old, new, f"{self.path}[]", (*self.at, "items"))

    def entry(self, old: Json, new: Json) -> _Pair:
        return _Pair(old, new, below(self.path, "*"), (*self.at, "additionalProperties"))


class _Comparison:
    def __init__(self, old: Json, new: Json, side: Side, formats: str) -> None:
        self.old = old
        self.new = new
        self.side = side
        self.formats = formats
        self.changes: list[SchemaChange] = []
        self.differs = False
        self._share_definitions = definitions(old) == definitions(new) and not points_inside(old, new)
        self._open: set[tuple[bytes, bytes]] = set()
        self._visits = 0

    def walk(self, pair: _Pair) -> None:
        """Compare one place and all below it; a definition inside itself is told where it is met first."""
        key = (canonical(without_definitions(pair.old)), canonical(without_definitions(pair.new)))
        if key in self._open or (key[0] == key[1] and self._share_definitions):
            return
        whole = self._whole(self.old, pair.old), self._whole(self.new, pair.new)
        if canonical(whole[0]) == canonical(whole[1]):
            return
        self.differs = True
        self._visits += 1
        if self._visits > _MOST_VISITS:
            self._judge(pair, *whole)
            return
        self._open.add(key)
        self._place(pair, whole)
        self._open.discard(key)

    def _place(self, pair: _Pair, whole: tuple[Json, Json]) -> None:
        before, after = flattened(self.old, pair.old), flattened(self.new, pair.new)
        if before is None or after is None or not (structured(before) and structured(after)):
            self._judge(pair, *whole)
            return
        self._shell(pair, before, after)
        if takes(before, "object") and takes(after, "object"):
            self._object(pair, before, after)
        if takes(before, "array") and takes(after, "array"):
            self.walk(pair.item(before.get("items", True), after.get("items", True)))

    def asked(self, old: Json, new: Json) -> Yes | No | Unknown:
        """Whether everyone who keeps to the old schema is served by the new one."""
        if self.side is Side.CALLERS:
            found = fits(old, new, formats=self.formats, names=("an old call", "the new input"))
            return self._declared_only(found, old, new)
        names = ("the new answer", "the old schema")
        # A reader takes what it knows and leaves the rest, which is what a slice does.
        sliced = fits_slice(new, old, formats=self.formats, names=names)
        return fits(new, old, formats=self.formats, names=names) if isinstance(sliced, Unknown) else sliced

    def _declared_only(self, found: Yes | No | Unknown, old: Json, new: Json) -> Yes | No | Unknown:
        """A key that no schema declares is nobody's promise: a difference has to show without it."""
        if not isinstance(found, No):
            return found
        before = compiled(old, self.formats)
        shown = before.cut(found.counterexample)
        if not before.valid(shown):
            return found  # a key that is required and not declared is a promise after all
        if not compiled(new, self.formats).valid(shown):
            return No(found.path, shown, found.reason)
        return Unknown("a difference shows only in keys that the old schema does not declare")

    def broken(self, no: No, pair: _Pair) -> SchemaChange:
        message = no.reason + (f" (at `{no.path}`)" if no.path else "")
        if no.reason.startswith("enum member") and not no.path:
            callers, value = self.side is Side.CALLERS, short(no.counterexample)
            who, then = ("an old call", "is taken no longer") if callers else ("the new answer", "readers do not know")
            message = f"{who} may be {value} here, which {then}"
        return SchemaChange(Verdict.BREAKING, pair.path, message, Shown(no.counterexample), pair.at)

    def _judge(self, pair: _Pair, old: Json, new: Json) -> None:
        match self.asked(old, new):
            case No() as no:
                self.changes.append(self.broken(no, pair))
            case Unknown() as unknown:
                self._tell(Verdict.BREAKING, pair, f"cannot be proven compatible: {unknown.reason}")
            case Yes():
                self._widened(pair, old, new)

    def _widened(self, pair: _Pair, old: Json, new: Json) -> None:
        callers = self.side is Side.CALLERS
        match fits(new, old, formats=self.formats) if callers else fits(old, new, formats=self.formats):
            case Yes():
                self._tell(Verdict.DOCS, pair, "written otherwise; the same values")
            case No() as no if callers:
                example = f", as {short(no.counterexample)}"
                self._tell(Verdict.COMPATIBLE, pair, f"every old call is still taken, and more{example}")
            case No() as no:
                example = f", as {short(no.counterexample)}"
                self._tell(Verdict.COMPATIBLE, pair, f"answers fit the old schema, and some no longer come{example}")
            case _ if callers:
                self._tell(Verdict.COMPATIBLE, pair, "every old call is still taken")
            case _:
                self._tell(Verdict.COMPATIBLE, pair, "answers fit the old schema")

    def _tell(self, verdict: Verdict, pair: _Pair, message: str, shown: Shown | None = None) -> None:
        self.changes.append(SchemaChange(verdict, pair.path, message, shown, pair.at))

    def _shell(self, pair: _Pair, before: dict[str, Json], after: dict[str, Json]) -> None:
        """What the place says of itself, without what is below it."""
        old, new = own_bounds(before), own_bounds(after)
        if canonical(old) == canonical(new):
            return
        found = self.asked(old, new)
        if not isinstance(found, No):
            self._judge(pair, old, new)
            return
        # The sender's whole place is asked as well, so that the value shown is one that can come.
        callers = self.side is Side.CALLERS
        sender = self._whole(self.old, pair.old) if callers else self._whole(self.new, pair.new)
        match self.asked(sender, new) if callers else self.asked(old, sender):
            case No() as no:
                self.changes.append(self.broken(no, pair))
            case Yes():
                self._tell(Verdict.COMPATIBLE, pair, "is narrower, and no value that can come is refused")
            case Unknown():
                self._tell(Verdict.BREAKING, pair, found.reason)

    # objects

    def _object(self, pair: _Pair, before: dict[str, Json], after: dict[str, Json]) -> None:
        old, new = before.get("properties", {}), after.get("properties", {})
        required = frozenset(before.get("required", ())), frozenset(after.get("required", ()))
        for name in [*old, *(name for name in new if name not in old)]:
            if name in old and name in new:
                self.walk(pair.below(name, old[name], new[name]))
                self._requirement(pair.below(name, old[name], new[name]), name, pair, required)
            elif name in new:
                self._added(pair.below(name, None, new[name]), name, pair, before, after)
            else:
                self._removed(pair.below(name, old[name], None), name, pair, before, after)
        for name in sorted((required[0] ^ required[1]) - old.keys() - new.keys()):
            self._requirement(pair.below(name, None, None), name, pair, required)
        self._rest(pair, before, after)

    def _requirement(
        self, place: _Pair, name: str, parent: _Pair, required: tuple[frozenset[str], frozenset[str]]
    ) -> None:
        was, now = name in required[0], name in required[1]
        if was == now:
            return
        if self.side is Side.CALLERS and now:
            lacking = self._lacking(self._whole(self.old, parent.old), name)
            self._tell(Verdict.BREAKING, place, "is required now; old calls may leave it out", lacking)
        elif self.side is Side.CALLERS:
            self._tell(Verdict.COMPATIBLE, place, "may be left out now")
        elif was:
            lacking = self._lacking(self._whole(self.new, parent.new), name)
            self._tell(Verdict.BREAKING, place, "may be absent now; readers were told that it is there", lacking)
        else:
            self._tell(Verdict.COMPATIBLE, place, "is always there now")

    def _added(self, place: _Pair, name: str, parent: _Pair, before: dict[str, Json], after: dict[str, Json]) -> None:
        callers = self.side is Side.CALLERS
        rest = kept(before) if callers else before.get("additionalProperties", True)
        needed = name in after.get("required", ())
        if not callers:
            if isinstance(rest, dict) and rest:
                self._answers_for(place, self._whole(self.new, place.new), self._whole(self.old, rest))
                return
            self._tell(Verdict.COMPATIBLE, place, f"is new{'' if needed else ', and optional'}; readers leave it")
            return
        if needed:
            lacking = self._lacking(self._whole(self.old, parent.old), name)
            self._tell(Verdict.BREAKING, place, "is new and required; no old call has it", lacking)
        elif rest is False:
            self._tell(Verdict.COMPATIBLE, place, "is new and optional")
        else:
            self._answers_for(place, self._whole(self.old, rest), self._whole(self.new, place.new))

    def _answers_for(self, place: _Pair, narrow: Json, wide: Json) -> None:
        """A name that was one of the undeclared is declared now, or the other way round."""
        what = "old calls" if self.side is Side.CALLERS else "answers"
        match fits(narrow, wide, formats=self.formats, names=("an undeclared value", "the declaration")):
            case Yes():
                self._tell(Verdict.COMPATIBLE, place, f"is declared now, and {what} fit")
            case No() as no:
                self._tell(Verdict.BREAKING, place, f"{what} may hold another value here", Shown(no.counterexample))
            case Unknown() as unknown:
                self._tell(Verdict.BREAKING, place, f"cannot be proven compatible: {unknown.reason}")

    def _removed(self, place: _Pair, name: str, parent: _Pair, before: dict[str, Json], after: dict[str, Json]) -> None:
        needed = name in before.get("required", ())
        if self.side is Side.CALLERS:
            rest = after.get("additionalProperties", True)
            if rest is False:
                holding = self._holding(self._whole(self.old, parent.old), name)
                self._tell(
                    Verdict.BREAKING, place, "is declared no longer, and calls that pass it are refused", holding
                )
                return
            self._still_taken(place, rest)
            return
        rest = kept(after)
        if rest is not False:
            match fits(self._whole(self.new, rest), self._whole(self.old, place.old), formats=self.formats):
                case Yes() if not needed or name in after.get("required", ()):
                    self._tell(Verdict.COMPATIBLE, place, "is declared no longer; what may stand there still fits")
                    return
                case No() as no:
                    message = "is declared no longer, and may be anything that the rest of the object may be"
                    self._tell(Verdict.BREAKING, place, message, Shown(no.counterexample))
                    return
        lacking = self._lacking(self._whole(self.new, parent.new), name)
        what = "is gone; readers were told that it is there" if needed else "is gone; readers that use it find nothing"
        self._tell(Verdict.BREAKING, place, what, lacking)

    def _still_taken(self, place: _Pair, rest: Json) -> None:
        match fits(self._whole(self.old, place.old), self._whole(self.new, rest), formats=self.formats):
            case Yes():
                self._tell(Verdict.COMPATIBLE, place, "is declared no longer; calls that pass it are still taken")
            case No() as no:
                message = "is declared no longer, and what stands for the undeclared refuses it"
                self._tell(Verdict.BREAKING, place, message, Shown(no.counterexample))
            case Unknown() as unknown:
                self._tell(Verdict.BREAKING, place, f"cannot be proven compatible: {unknown.reason}")

    def _rest(self, pair: _Pair, before: dict[str, Json], after: dict[str, Json]) -> None:
        """What keys may hold that no property declares."""
        if self.side is Side.CALLERS:
            old, new = before.get("additionalProperties", True), after.get("additionalProperties", True)
            if old is False and new is False:
                return
            if old is False:
                self._tell(Verdict.COMPATIBLE, pair, "takes undeclared keys now")
            elif new is False:
                message = "refuses undeclared keys now, which were taken"
                self._tell(Verdict.BREAKING, pair, message, self._undeclared(pair, before, after))
            else:
                self.walk(pair.entry(old, new))
            return
        old, new = kept(before), kept(after)
        if isinstance(old, dict) and old and new is False:
            self._tell(Verdict.BREAKING, pair.entry(old, new), "entries are gone; readers that use them find nothing")
        elif old is not False and new is not False:
            self.walk(pair.entry(old, new))
        elif new is not False:
            self._tell(Verdict.COMPATIBLE, pair, "may hold undeclared keys now; readers leave them")
        elif old is not False:
            self._tell(Verdict.COMPATIBLE, pair, "holds declared keys only now")

    def _undeclared(self, pair: _Pair, before: dict[str, Json], after: dict[str, Json]) -> Shown | None:
        found = fits(
            self._whole(self.old, pair.old),
            {"properties": dict.fromkeys([*before.get("properties", {}), *after.get("properties", {})], True)}
            | {"additionalProperties": False},
            formats=self.formats,
        )
        return Shown(found.counterexample) if isinstance(found, No) else None

    # values that show a change

    def _lacking(self, schema: Json, name: str) -> Shown | None:
        found = fits(schema, {"type": "object", "required": [name]}, formats=self.formats)
        return Shown(found.counterexample) if isinstance(found, No) else None

    def _holding(self, schema: Json, name: str) -> Shown | None:
        schema = {"allOf": [without_definitions(schema)], "required": [name]} | definitions(schema)
        found = fits(schema, {"type": "object", "properties": {name: False}}, formats=self.formats)
        return Shown(found.counterexample) if isinstance(found, No) else None

    def _whole(self, document: Json, node: Json) -> Json:
        """A part of a document, self-contained."""
        if not isinstance(node, dict):
            return node
        whole = bundle_part(document, node)
        assert not isinstance(whole, tuple), whole
        return whole


def compiled(document: Json, formats: str) -> Schema:
    """A document that is known to compile."""
    schema = compile_schema(document, formats=formats)
    assert isinstance(schema, Schema), schema
    return schema
