"""What changed in what a schema says beside its rules: descriptions, examples, defaults below the top level. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.catalog.diff_change import Path, SchemaChange, Verdict, below, short
from gateway.json_text import canonical
from gateway.record import record
from gateway.schema.keywords import ANNOTATIONS, subschemas
from gateway.schema.resolve import resolve

Json = Any

_ABSENT = "\0absent"


@record
class _Place:
    """A place of a schema, and what it says beside its rules."""

    path: str
    #: The keys that lead there in the document.
    at: Path
    said: dict[str, Json]
    #: Whether the object around it requires it.
    required: bool


def compare_words(old: Json, new: Json) -> list[SchemaChange]:
    """Changes of wording at places that both have: descriptions, titles, examples."""
    before, after = _places(old), _places(new)
    changes = []
    for path in [path for path in before if path in after]:
        said, says = before[path].said, after[path].said
        for keyword in sorted((said.keys() | says.keys()) - {"default"}):
            if canonical(said.get(keyword)) != canonical(says.get(keyword)):
                message = f"`{keyword}` is worded otherwise"
                changes.append(SchemaChange(Verdict.DOCS, path, message, None, after[path].at))
    return changes


def compare_inner_defaults(old: Json, new: Json) -> list[SchemaChange]:
    """Defaults below the top level that changed: what is left out there now means something else."""
    before, after = _places(old), _places(new)
    known = {place.at for place in before.values()}
    changes = []
    for path, place in after.items():
        was = before.get(path)
        # What every old call had to pass is never left out, and so is nothing inside a place that is new as a whole.
        if not _is_inner(place.at) or (was.required if was else place.at[:-2] not in known):
            continue
        default, defaults = was.said.get("default", _ABSENT) if was else _ABSENT, place.said.get("default", _ABSENT)
        if canonical(default) != canonical(defaults):
            changes.append(SchemaChange(Verdict.BREAKING, path, _moved(default, defaults), None, place.at))
    return changes


def _is_inner(at: Path) -> bool:
    """Whether a key stands below the top level; what is no key is never left out."""
    return len(at) > 2 and at[-2] == "properties"


def _moved(before: Json, after: Json) -> str:
    if before == _ABSENT:
        return f"what is left out is now {short(after)}, where nothing was sent"
    if after == _ABSENT:
        return f"what is left out was {short(before)}, and nothing is sent now"
    return f"what is left out was {short(before)}, and is {short(after)} now"


def _places(document: Json) -> dict[str, _Place]:
    """Every place by its readable path; a definition is told where it is met first."""
    return {place.path: place for place in _walked(document)}


def _walked(document: Json) -> Iterator[_Place]:
    waiting: list[tuple[str, Path, Json, bool]] = [("", (), document, False)]
    met: set[int] = set()
    while waiting:
        path, at, node, required = waiting.pop(0)
        if not isinstance(node, dict) or id(node) in met:
            continue
        met.add(id(node))
        said = {keyword: node[keyword] for keyword in node if keyword in ANNOTATIONS}
        parts = [node]
        if isinstance(node.get("$ref"), str) and not isinstance(target := resolve(document, node["$ref"]), str):
            behind = target[1]
            if isinstance(behind, dict):
                said = {**{key: behind[key] for key in behind if key in ANNOTATIONS}, **said}
                if id(behind) not in met:
                    parts.append(behind)
                met.add(id(behind))
        yield _Place(path, at, said, required)
        for part in parts:
            for step, held in subschemas(part):
                if step[0] != "$defs":
                    needed = step[0] == "properties" and step[1] in part.get("required", ())
                    waiting.append((_step(path, step), (*at, *step), held, needed))


def _step(path: str, step: Path) -> str:
    match step:
        case ("properties", str(name)):
            return below(path, name)
        case ("items",):
            return f"{path}[]"
        case ("additionalProperties",):
            return below(path, "*")
    return f"{path}|{'/'.join(map(str, step))}"
