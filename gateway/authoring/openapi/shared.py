"""The shared schemas of a description: no circle before a value, one name for each, and two where directions differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.authoring.openapi.translate import Direction, Key, Translator
from gateway.contract.refusal import Path
from gateway.schema.keywords import subschemas

Json = Any


def share(translator: Translator) -> tuple[dict[str, Json], Mapping[Key, str]]:
    """Every shared schema by its name, in order, and the name of each key; after all schemas were asked for."""
    return _Sharing(translator).run()


class _Sharing:
    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self._done = translator.done

    def run(self) -> tuple[dict[str, Json], Mapping[Key, str]]:
        self._break_loops()
        apart = self._directions_apart()
        names = self._names(apart)
        schemas: dict[str, Json] = {}
        for key, node in self._done.items():
            schemas.setdefault(names[key], named(node, names))
        return dict(sorted(schemas.items())), names

    def _break_loops(self) -> None:
        """Cut what leads back to itself before any value is read: a subtype's base, or else the reference."""
        while (loop := self._loop()) is not None:
            for _, holder, reference in loop:
                target: Key = reference["$ref"]
                union = (
                    {"oneOf", "anyOf"} & self._done[target].keys() if isinstance(self._done[target], dict) else set()
                )
                if holder == "allOf" and union and not target.base:
                    base = target._replace(base=True)
                    reference["$ref"] = base
                    self.translator.want(base)
                    break
            else:
                key, _, reference = loop[-1]
                self.translator.description.notes.add(
                    self.translator.node(key).place,
                    "this refers to itself before any value is read; the reference is left out",
                )
                del reference["$ref"]

    def _loop(self) -> list[tuple[Key, str, dict[str, Json]]] | None:
        """References along a circle of in-place keywords: from which schema, under which keyword."""
        edges = {key: list(_in_place(node)) for key, node in self._done.items()}
        done: set[Key] = set()
        for start in edges:
            trail = [(start, iter(edges[start]))] if start not in done else []
            taken: list[tuple[Key, str, dict[str, Json]]] = []
            while trail:
                key, left = trail[-1]
                step = next(left, None)
                if step is None:
                    done.add(key)
                    trail.pop()
                    del taken[-1:]
                    continue
                target = step[1]["$ref"]
                if any(target == other for other, _ in trail):
                    begin = next(index for index, (other, _) in enumerate(trail) if other == target)
                    return [*taken[begin:], (key, *step)]
                if target not in done:
                    taken.append((key, *step))
                    trail.append((target, iter(edges[target])))
        return None

    def _directions_apart(self) -> set[tuple[str, Path, bool]]:
        """Schemas that a request and an answer read differently, by themselves or through what they refer to."""
        both = [
            (key.file, key.path, key.base)
            for key in self._done
            if key.direction == "input" and key._replace(direction="output") in self._done
        ]
        apart: set[tuple[str, Path, bool]] = set()
        sides = {}
        for place in both:
            file, path, base = place
            one, other = (self._done[Key(file, path, direction, base)] for direction in _DIRECTIONS)
            if _undirected(one) != _undirected(other):
                apart.add(place)
            sides[place] = {(ref.file, ref.path, ref.base) for ref in _references(one)}
        changed = True
        while changed:
            more = {place for place in both if place not in apart and not apart.isdisjoint(sides[place])}
            apart |= more
            changed = bool(more)
        return apart

    def _names(self, apart: set[tuple[str, Path, bool]]) -> dict[Key, str]:
        """A name for each key: the schema's own where it is free, the same whatever else the description holds."""
        names: dict[Key, str] = {}
        taken: dict[str, tuple[str, Path, bool, str]] = {}
        for key in sorted(
            self._done,
            key=lambda key: (
                len(key.path),
                key.file,
                [str(part) for part in key.path],
                key.base,
                key.direction == "input",
            ),
        ):
            split = (key.file, key.path, key.base) in apart and key.direction == "input"
            identity = (key.file, key.path, key.base, "Input" if split else "")
            name = _name(key) + ("Base" if key.base else "") + identity[3]
            shown, count = name, 2
            while taken.setdefault(shown, identity) != identity:
                shown, count = f"{name}_{count}", count + 1
            names[key] = shown
        return names


_DIRECTIONS: tuple[Direction, Direction] = ("input", "output")


def named(node: Json, names: Mapping[Key, str]) -> Json:
    """A schema with the contract's references in the place of keys, its keywords in the order that people read."""
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    copy: dict[Any, Json] = {key: held for key, held in node.items() if key != "$ref"}
    if isinstance(reference, Key):
        copy["$ref"] = f"#/schemas/{names[reference]}"
    for at, child in subschemas(node):
        if len(at) == 1:
            copy[at[0]] = named(child, names)
            continue
        if copy[at[0]] is node[at[0]]:
            copy[at[0]] = node[at[0]].copy()
        copy[at[0]][at[1]] = named(child, names)
    return {key: copy[key] for key in sorted(copy, key=_rank)}


_ORDER = ("$ref", "type", "title", "description", "enum", "const", "format", "required", "properties", "items")


def _rank(keyword: str) -> int:
    return _ORDER.index(keyword) if keyword in _ORDER else len(_ORDER)


def _name(key: Key) -> str:
    parts = [str(part) for part in key.path]
    if parts[:2] == ["components", "schemas"] or parts[:1] == ["definitions"]:
        parts = parts[2:] if parts[0] == "components" else parts[1:]
    elif not parts:
        parts = [key.file.rsplit("/")[-1].split(".")[0]]
    elif key.file:
        parts = parts[-1:]
    # what lies deeper is named by its way, without the words that every way has
    own = [part for part in parts if part not in ("properties", "items", "schema", "content")] or parts[-1:]
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", "_".join(own)).strip("_")
    return name[-80:] or "schema"


def _in_place(node: Json, holder: str = "") -> Iterator[tuple[str, dict[str, Json]]]:
    """The references that judge the same value as the schema itself, and the keyword that each stands under."""
    if not isinstance(node, dict):
        return
    if isinstance(node.get("$ref"), Key):
        yield holder, node
    for at, child in subschemas(node):
        if at[0] in ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"):
            yield from _in_place(child, str(at[0]))


def _references(node: Json) -> Iterator[Key]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), Key):
            yield node["$ref"]
        for _, child in subschemas(node):
            yield from _references(child)


def _undirected(node: Json) -> Json:
    """A schema without the direction of its references, to compare."""
    if isinstance(node, list):
        return [_undirected(item) for item in node]
    if isinstance(node, Key):
        return node._replace(direction="output")
    return {key: _undirected(held) for key, held in node.items()} if isinstance(node, dict) else node
