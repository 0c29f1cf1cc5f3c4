"""The files of one API description: read, held by file and place, `$ref`s followed. Knows no keyword but `$ref`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import unquote

from gateway import json_text
from gateway.contract.document import LARGEST_FILE, Marks, read_yaml
from gateway.contract.refusal import Path, printable, quoted
from gateway.json_pointer import pointer_of
from gateway.record import record

Json = Any

#: Longer than any chain of `$ref`s that a person writes.
_MOST_STEPS = 50


@record
class Unreadable:
    """Why a file is no description: one sentence."""

    message: str


@record
class Node:
    """A value where it is written; "" is the description's own file."""

    value: Json
    file: str = ""
    path: Path = ()

    @property
    def place(self) -> str:
        return place_of(self.file, self.path)

    def get(self, *keys: str | int) -> Node:
        """What stands below; its value is None where nothing does."""
        value = self.value
        for key in keys:
            if isinstance(value, dict) and isinstance(key, str):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                value = None
        return Node(value, self.file, (*self.path, *keys))

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping; none where it is none."""
        for key, value in self.value.items() if isinstance(self.value, dict) else ():
            yield key, Node(value, self.file, (*self.path, key))

    def each(self) -> Iterator[Node]:
        """The items of a list; none where it is none."""
        for index, value in enumerate(self.value if isinstance(self.value, list) else ()):
            yield Node(value, self.file, (*self.path, index))

    def text(self, key: str) -> str | None:
        """A text below that says something."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return value if isinstance(value, str) and value.strip() else None


def place_of(file: str, path: Path) -> str:
    return printable(f"{file}#{pointer_of(path)}")


@dataclass
class Notes:
    """What could not be carried over: a place and a sentence each, every one once, in the order they were found."""

    lines: dict[tuple[str, str], None] = field(default_factory=dict)

    def add(self, place: str, sentence: str) -> None:
        self.lines[(place, printable(sentence))] = None


@dataclass
class Description:
    """The description's file, and those beside it that its `$ref`s name."""

    root: Node
    notes: Notes
    #: The folder that files are read from; None where the description came through a pipe.
    folder: FilePath | None
    _files: dict[str, Json | Unreadable] = field(default_factory=dict)

    def follow(self, node: Node) -> Node | None:
        """The node itself, or what its chain of `$ref`s leads to; None, and a note, where that is nothing."""
        found, start = node, node
        for _ in range(_MOST_STEPS):
            reference = found.value.get("$ref") if isinstance(found.value, dict) else None
            if not isinstance(reference, str):
                return found
            target = self.target(reference, found.file)
            if isinstance(target, str):
                self.notes.add(start.place, f"{target}; this is left out")
                return None
            found = target
        self.notes.add(start.place, f"its `$ref` leads back to itself, or over {_MOST_STEPS} others; this is left out")
        return None

    def file(self, name: str) -> Node:
        """A file that a `$ref` was followed into, whole."""
        return self.root if name == "" else Node(self._files[name], name)

    def target(self, reference: str, file: str) -> Node | str:
        """What a `$ref` names, or why it names nothing."""
        name, _, fragment = reference.partition("#")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", name) or name.startswith("//"):
            return f"{quoted(reference)} is on the network, which is never read"
        if name:
            found = self._inside(unquote(name), file)
            if found is None:
                return f"{quoted(reference)} leads out of the description's folder, and is not read"
            file = found
        root = self._read(file)
        if isinstance(root, Unreadable):
            return f"{quoted(reference)}: {root.message}"
        return _followed(root, unquote(fragment), file) or f"{quoted(reference)} names nothing"

    def _inside(self, name: str, home: str) -> str | None:
        if self.folder is None:
            return None
        try:
            return (self.folder / FilePath(home).parent / name).resolve().relative_to(self.folder).as_posix()
        except (ValueError, OSError, RuntimeError):
            return None

    def _read(self, file: str) -> Json | Unreadable:
        if file == "":
            return self.root.value
        if file not in self._files:
            assert self.folder is not None
            data = read_file(self.folder / file)
            self._files[file] = data if isinstance(data, Unreadable) else parse(data, file)
        return self._files[file]


def open_description(data: bytes, name: str, folder: FilePath | None) -> Description | Unreadable:
    """The description that bytes hold, JSON or YAML."""
    root = parse(data, name)
    if isinstance(root, Unreadable):
        return root
    if not isinstance(root, dict):
        return Unreadable("this is no OpenAPI description: it is not a mapping")
    return Description(Node(root), Notes(), folder)


def read_file(path: FilePath) -> bytes | Unreadable:
    try:
        if path.is_dir():
            return Unreadable("this is a folder; name a file in it")
        if not path.exists():
            return Unreadable("there is no such file")
        with path.open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except (OSError, ValueError, RuntimeError):
        return Unreadable("the file cannot be read")
    return data if len(data) <= LARGEST_FILE else Unreadable(f"the file is larger than {LARGEST_FILE} bytes")


def parse(data: bytes, name: str) -> Json | Unreadable:
    """JSON where it begins as JSON, else YAML."""
    if not data.strip():
        return Unreadable("the file is empty")
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") and not name.lower().endswith((".yaml", ".yml")):
        value = json_text.parse(data)
        if not isinstance(value, json_text.NotJson):
            return value
        return Unreadable(f"this is not JSON: {printable(value.reason)}")
    document = read_yaml(data, name, Marks())
    if not document.refusals:
        return document.value
    first = document.refusals[0]
    return Unreadable(f"line {first.line}, column {first.column}: {first.message}")


def _followed(root: Json, fragment: str, file: str) -> Node | None:
    """What a JSON Pointer names; an `$anchor` names nothing here."""
    if fragment and not fragment.startswith("/"):
        return None
    node, path = root, []
    for part in fragment.split("/")[1:]:
        key: str | int = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and part.isascii() and part.isdigit() and len(part) < 9 and int(part) < len(node):
            key = int(part)
        elif not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
        path.append(key)
    return Node(node, file, tuple(path))
