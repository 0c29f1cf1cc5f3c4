"""What changed from one schema to another, place by place, for those who send such values or read them. Pure.

Objects and lists are gone through key by key, so that every change has its own place; what has no keys to go through is
one question to the relation engine. What the engine can neither prove nor refute counts as breaking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gateway import json_text
from gateway.catalog.diff_change import Shown, Verdict
from gateway.schema import No, Schema, Unknown, Yes, compile_schema, fits, fits_slice
from gateway.schema.bundle import bundle_part
from gateway.schema.keywords import ANNOTATIONS, KNOWN, MANY, NAMED, ONE, subschemas
from gateway.schema.resolve import resolve

Json = Any
Path = tuple[str | int, ...]


class Side(Enum):
    """Who holds the old schema: callers who send values by it, or readers who take answers for it."""

    CALLERS = "callers"
    READERS = "readers"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One change below a schema's root."""

    verdict: Verdict
    #: As `limit` or `people[].name`; "" is the root.
    path: str
    message: str
    counterexample: Shown | None
    #: The keys that lead there in the document.
    at: Path


def compare(old: Json, new: Json, side: Side, *, formats: str = "annotate") -> list[SchemaChange]:
    """Every change from one self-contained schema to another that concerns values; wording is `compare_words`."""
    ignored = ANNOTATIONS if formats == "assert" else ANNOTATIONS | {"format"}
    comparison = _Comparison(_plain(old, ignored), _plain(new, ignored), side, formats)
    comparison.walk(_Pair(comparison.old, comparison.new))
    changes = comparison.changes
    if all(change.verdict is not Verdict.BREAKING for change in changes) and comparison.differs:
        # The places agree one by one; the whole has the last word where it can show a value.
        verdict = comparison.asked(comparison.old, comparison.new)
        if isinstance(verdict, No):
            changes.append(comparison.broken(verdict, _Pair(old, new)))
    return changes


def compare_words(old: Json, new: Json) -> list[SchemaChange]:
    """Changes of what a schema says beside its rules, at places that both have: descriptions, titles, examples."""
    before, after = dict(_words(old)), dict(_words(new))
    changes = []
    for path in [path for path in before if path in after]:
        (said, _), (says, at) = before[path], after[path]
        for keyword in sorted(said.keys() | says.keys()):
            if keyword != "default" and _canonical(said.get(keyword)) != _canonical(says.get(keyword)):
                changes.append(SchemaChange(Verdict.DOCS, path, f"`{keyword}` is worded otherwise", None, at))
    return changes


def compare_inner_defaults(old: Json, new: Json) -> list[SchemaChange]:
    """Defaults below the top level that changed: what is left out there now means something else."""
    before, after = dict(_words(old)), dict(_words(new))
    changes = []
    for path in [path for path in before if path in after and _is_inner(path)]:
        (said, _), (says, at) = before[path], after[path]
        if _canonical(said.get("default", _ABSENT)) != _canonical(says.get("default", _ABSENT)):
            message = _moved(said.get("default", _ABSENT), says.get("default", _ABSENT))
            changes.append(SchemaChange(Verdict.BREAKING, path, message, None, at))
    return changes


_ABSENT = "\0absent"
#: Places of one schema that are gone through key by key; what is left after them is one question each.
_MOST_VISITS = 5_000


def _moved(before: Json, after: Json) -> str:
    if before == _ABSENT:
        return f"what is left out is now {_text(after)}, where nothing was sent"
    if after == _ABSENT:
        return f"what is left out was {_text(before)}, and nothing is sent now"
    return f"what is left out was {_text(before)}, and is {_text(after)} now"


def _is_inner(path: str) -> bool:
    return any(mark in path for mark in ".[*|")


@dataclass(frozen=True, slots=True)
class _Pair:
    """The same place in both documents."""

    old: Json
    new: Json
    path: str = ""
    at: Path = ()

    def below(self, name: str, old: Json, new: Json) -> _Pair:
        return _Pair(old, new, _joined(self.path, name), (*self.at, "properties", name))

    def item(self, old: Json, new: Json) -> _Pair:
        return _Pair(old, new, f"{self.path}[]", (*self.at, "items"))

    def entry(self, old: Json, new: Json) -> _Pair:
        return _Pair(old, new, _joined(self.path, "*"), (*self.at, "additionalProperties"))


def _joined(path: str, name: str) -> str:
    plain = name == "*" or all(char.isalnum() or char in "_$@-" for char in name)
    if not plain or not name:
        return f"{path}[{_text(name)}]"
    return f"{path}.{name}" if path else name


class _Comparison:
    def __init__(self, old: Json, new: Json, side: Side, formats: str) -> None:
        self.old = old
        self.new = new
        self.side = side
        self.formats = formats
        self.changes: list[SchemaChange] = []
        self.differs = False
        self._share_definitions = _definitions(old) == _definitions(new) and not _points_inside(old, new)
        self._open: set[tuple[bytes, bytes]] = set()
        self._visits = 0

    def walk(self, pair: _Pair) -> None:
        """Compare one place and all below it; a definition inside itself is told where it is met first."""
        key = (_canonical(_of_definitions(pair.old)), _canonical(_of_definitions(pair.new)))
        if key in self._open or (key[0] == key[1] and self._share_definitions):
            return
        whole = self._whole(self.old, pair.old), self._whole(self.new, pair.new)
        if _canonical(whole[0]) == _canonical(whole[1]):
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
        before, after = _flat(self.old, pair.old), _flat(self.new, pair.new)
        if before is None or after is None or not (_structured(before) and _structured(after)):
            self._judge(pair, *whole)
            return
        self._shell(pair, before, after)
        if _takes(before, "object") and _takes(after, "object"):
            self._object(pair, before, after)
        if _takes(before, "array") and _takes(after, "array"):
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
            callers, value = self.side is Side.CALLERS, _text(no.counterexample)
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
                example = f", as {_text(no.counterexample)}"
                self._tell(Verdict.COMPATIBLE, pair, f"every old call is still taken, and more{example}")
            case No() as no:
                example = f", as {_text(no.counterexample)}"
                self._tell(Verdict.COMPATIBLE, pair, f"answers fit the old schema, and some no longer come{example}")
            case _ if callers:
                self._tell(Verdict.COMPATIBLE, pair, "every old call is still taken")
            case _:
                self._tell(Verdict.COMPATIBLE, pair, "answers fit the old schema")

    def _tell(self, verdict: Verdict, pair: _Pair, message: str, shown: Shown | None = None) -> None:
        self.changes.append(SchemaChange(verdict, pair.path, message, shown, pair.at))

    def _shell(self, pair: _Pair, before: dict[str, Json], after: dict[str, Json]) -> None:
        """What the place says of itself, without what is below it."""
        old, new = _without_inner(before), _without_inner(after)
        if _canonical(old) == _canonical(new):
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
        rest = _kept(before) if callers else before.get("additionalProperties", True)
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
        rest = _kept(after)
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
        old, new = _kept(before), _kept(after)
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
        schema = {"allOf": [_of_definitions(schema)], "required": [name]} | _definitions(schema)
        found = fits(schema, {"type": "object", "properties": {name: False}}, formats=self.formats)
        return Shown(found.counterexample) if isinstance(found, No) else None

    def _whole(self, document: Json, node: Json) -> Json:
        """A part of a document, self-contained."""
        if not isinstance(node, dict):
            return node
        whole = bundle_part(document, node)
        assert not isinstance(whole, tuple), whole
        return whole


# one place of a document

#: Keywords of a place that can be gone through key by key; each other one that judges makes it one question.
_INNER = frozenset({"properties", "required", "additionalProperties", "items"})
_OWN = frozenset(
    {
        *("type", "format", "pattern", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minProperties", "maxProperties"),
    }
)


def _structured(node: dict[str, Json]) -> bool:
    named = node.get("type")
    types = {named} if isinstance(named, str) else set(named or ())
    return bool(types & {"object", "array"}) and node.keys() <= _INNER | _OWN | {"$defs"}


def _takes(node: dict[str, Json], kind: str) -> bool:
    return kind in ([node["type"]] if isinstance(node["type"], str) else node["type"])


def _without_inner(node: dict[str, Json]) -> dict[str, Json]:
    return {keyword: held for keyword, held in node.items() if keyword in _OWN}


def _kept(node: dict[str, Json]) -> Json:
    """What an answer keeps of keys that no property declares: an object that declares some is cut to them."""
    return node.get("additionalProperties", "properties" not in node)


def _flat(document: Json, node: Json, depth: int = 0) -> dict[str, Json] | None:
    """A place as one flat object: its references followed, and parts that add to each other put together.

    None where it cannot be said so.
    """
    if not isinstance(node, dict) or depth > 50:
        return None
    if "$ref" not in node and "allOf" not in node:
        return node
    own = {keyword: held for keyword, held in node.items() if keyword not in ("$ref", "allOf", "$defs")}
    parts: list[Json] = list(node.get("allOf", ()))
    if "$ref" in node:
        target = resolve(document, node["$ref"])
        parts.insert(0, None if isinstance(target, str) else target[1])
    closed = own.pop("unevaluatedProperties", None)
    flat = [_flat(document, part, depth + 1) for part in parts]
    together: dict[str, Json] | None = {key: held for key, held in own.items() if key != "$anchor"}
    for part in flat:
        together = None if together is None or part is None else _joined_parts(part, together)
    if together is None or closed is None:
        return together
    return {"additionalProperties": closed, **together}


def _joined_parts(one: dict[str, Json], other: dict[str, Json]) -> dict[str, Json] | None:
    """Two parts that must both hold, as one; None where that takes more than putting them side by side."""
    one = {keyword: held for keyword, held in one.items() if keyword not in ("$defs", "$anchor")}
    shared = one.keys() & other.keys()
    if "additionalProperties" in one.keys() | other.keys() and ("properties" in one and "properties" in other):
        return None
    joined = {**one, **other}
    for keyword in shared:
        if keyword == "required":
            joined[keyword] = sorted({*one[keyword], *other[keyword]})
        elif keyword == "properties":
            if any(
                _canonical(one[keyword][n]) != _canonical(other[keyword][n])
                for n in one[keyword]
                if n in other[keyword]
            ):
                return None
            joined[keyword] = {**one[keyword], **other[keyword]}
        elif _canonical(one[keyword]) != _canonical(other[keyword]):
            return None
    return joined


def _plain(schema: Json, ignored: frozenset[str]) -> Json:
    """A schema without what judges no value."""
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Json] = {}
    for keyword, held in schema.items():
        if keyword in ignored or keyword not in KNOWN:
            continue
        if keyword in ONE:
            plain[keyword] = _plain(held, ignored)
        elif keyword in MANY and isinstance(held, list):
            plain[keyword] = [_plain(item, ignored) for item in held]
        elif keyword in NAMED and isinstance(held, dict):
            plain[keyword] = {name: _plain(item, ignored) for name, item in held.items()}
        else:
            plain[keyword] = held
    return plain


def _words(document: Json) -> Iterator[tuple[str, tuple[dict[str, Json], Path]]]:
    """The annotations of every place, by a readable path; a definition is told where it is met first."""
    waiting: list[tuple[str, Path, Json]] = [("", (), document)]
    met: set[int] = set()
    while waiting:
        path, at, node = waiting.pop(0)
        if not isinstance(node, dict) or id(node) in met:
            continue
        met.add(id(node))
        said = {keyword: node[keyword] for keyword in node if keyword in ANNOTATIONS}
        if isinstance(node.get("$ref"), str) and not isinstance(target := resolve(document, node["$ref"]), str):
            behind = target[1]
            if isinstance(behind, dict):
                said = {**{key: behind[key] for key in behind if key in ANNOTATIONS}, **said}
                waiting += [(_step(path, step), (*at, *step), held) for step, held in subschemas(behind)]
                met.add(id(behind))
        yield path, (said, at)
        waiting += [(_step(path, step), (*at, *step), held) for step, held in subschemas(node) if step[0] != "$defs"]


def _step(path: str, step: Path) -> str:
    match step:
        case ("properties", str(name)):
            return _joined(path, name)
        case ("items",):
            return f"{path}[]"
        case ("additionalProperties",):
            return _joined(path, "*")
    return f"{path}|{'/'.join(map(str, step))}"


def _points_inside(*documents: Json) -> bool:
    """Whether a reference names a place other than a definition, so that equal text may mean different things."""
    return any(re.search(rb'"\$ref":"#(?!/\$defs/)', _canonical(document)) for document in documents)


def _definitions(schema: Json) -> dict[str, Json]:
    return {"$defs": schema["$defs"]} if isinstance(schema, dict) and "$defs" in schema else {}


def _of_definitions(schema: Json) -> Json:
    return {key: held for key, held in schema.items() if key != "$defs"} if isinstance(schema, dict) else schema


def _canonical(value: Json) -> bytes:
    return json_text.canonical(value)


def _text(value: Json) -> str:
    text = json_text.encode(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."


def compiled(document: Json, formats: str) -> Schema:
    """A document that is known to compile."""
    schema = compile_schema(document, formats=formats)
    assert isinstance(schema, Schema), schema
    return schema
