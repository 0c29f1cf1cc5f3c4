"""The files of one contract: what it includes and what its `$ref`s name, inside its own folder. Judges no schema."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, NamedTuple
from urllib.parse import unquote

from gateway.contract.disk import Disk
from gateway.contract.document import LARGEST_FILE, Document, Marks, Place, absent, read_yaml
from gateway.contract.refusal import Path, Refusal, dotted, nearest, printable, quoted

Json = Any


class Home(NamedTuple):
    """What `#` means to a `$ref`: a file, by its path below the folder, and a place; "" is the merged contract."""

    file: str
    root: Path = ()


class Target(NamedTuple):
    """What a `$ref` names: the file ("" for the merged contract) and the place in it."""

    file: str
    path: Path


@dataclass
class Files:
    """Every file that was read, and the contract that the included ones merge into."""

    folder: FilePath
    disk: Disk
    #: How the folder is shown before a file's name.
    shown: str
    marks: Marks
    refusals: list[Refusal] = field(default_factory=list)
    #: By path below the folder.
    documents: dict[str, Document] = field(default_factory=dict)
    merged: dict[str, Json] = field(default_factory=dict)
    #: The contract's own file, and those it includes.
    main: str = ""
    included: set[str] = field(default_factory=set)
    #: The pages of tools' cards, by path below the folder as it is written.
    cards: dict[str, str] = field(default_factory=dict)

    def root(self, file: str) -> Json:
        return self.merged if file == "" else self.documents[file].value

    def place(self, file: str, path: Path) -> Place:
        shown = self.name(file or self.main)
        return self.marks.place(self.root(file), path, Place(shown, 1, 1))

    def refusal(self, file: str, path: Path, message: str) -> Refusal:
        message = printable(message)
        return Refusal(
            *self.place(file, path), dotted(path), message if len(message) <= 1000 else message[:997] + "..."
        )

    def name(self, file: str) -> str:
        return f"{self.shown}{file}"

    def read(self, file: str) -> Document:
        """A file of the folder, read once."""
        if file not in self.documents:
            document = _read(self.disk, self.folder / file, self.name(file), self.marks)
            self.documents[file] = document
            if not document.absent or file == self.main:
                self.refusals.extend(document.refusals)
        return self.documents[file]

    def inside(self, reference: str, home: str) -> str | None:
        """The path below the folder of a file named from another one; None where it leads out of the folder."""
        try:
            found = self.disk.resolved(self.folder / FilePath(home).parent / reference)
            return found.relative_to(self.folder).as_posix()
        except (ValueError, OSError, RuntimeError):  # elsewhere, an impossible name, a loop of links
            return None

    def target(self, reference: str, home: Home) -> Target | str:
        """What a `$ref` names, or the sentence that refuses it."""
        name, _, fragment = reference.partition("#")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", name) or name.startswith("//"):
            return f"{quoted(reference)} is on the network, which is never read; copy it into the contract's folder"
        tokens = _tokens(unquote(fragment))
        if tokens is None:
            return f"{quoted(reference)} has no JSON Pointer after `#`; write it as `file.yaml#/pointer`"
        if not name:
            return self._local(reference, tokens, home)
        file = self.inside(unquote(name), home.file or self.main)
        if file is None:
            return f"{quoted(reference)} leads out of the contract's folder; copy the file into it"
        document = self.read(file)
        if not document.whole:
            return f"{quoted(reference)}: {document.absent or 'the file cannot be read; mend it, or the name'}"
        if tokens[:1] == ("schemas",) and (file == self.main or file in self.included):
            file = ""
        path = _follow(self.root(file), tokens)
        return Target(file, path) if isinstance(path, tuple) else f"{quoted(reference)} {path}"

    def at(self, file: str, pointer: str) -> tuple[Target, Json]:
        """The place and node of a pointer that is known to lead somewhere."""
        path = _follow(self.root(file), _tokens(pointer) or ())
        assert isinstance(path, tuple)
        return Target(file, path), _at(self.root(file), path)

    def _local(self, reference: str, tokens: tuple[str, ...], home: Home) -> Target | str:
        within = _follow(_at(self.root(home.file), home.root), tokens)
        if isinstance(within, tuple) and not (home.file == "" and tokens[:1] == ("schemas",)):
            return Target(home.file, (*home.root, *within))
        path = _follow(self.root(home.file), tokens)
        return Target(home.file, path) if isinstance(path, tuple) else f"{quoted(reference)} {path}"


def open_contract(path: FilePath, disk: Disk) -> Files | tuple[Refusal, ...]:
    """The contract's file with everything it includes merged; refusals where a file cannot be read at all."""
    marks = Marks()
    try:
        folder = disk.resolved(path.parent)
    except (OSError, RuntimeError, ValueError):
        return (Refusal(str(path), 1, 1, "", "this path cannot be followed; name the contract's file"),)
    shown = "" if str(path.parent) == "." else f"{path.parent.as_posix().rstrip('/')}/"
    files = Files(folder, disk, shown, marks, main=path.name)
    document = files.read(path.name)
    if not document.whole:
        return document.refusals
    if not isinstance(document.value, dict):
        message = "the contract is a mapping; write `version: 1`, `backends` and `endpoints`"
        return (*document.refusals, Refusal(document.file, 1, 1, "", message))
    files.merged = dict(document.value)
    marks.copied(files.merged, document.value)
    _merge_included(files)
    if any(not document.whole for document in files.documents.values()):
        return tuple(files.refusals)
    return files


_INCLUDABLE = ("version", "schemas", "endpoints")


def _merge_included(files: Files) -> None:
    patterns = files.merged.get("include")
    if not isinstance(patterns, list):
        return
    for index, pattern in enumerate(patterns):
        found = _matches(files, pattern)
        if isinstance(found, str):
            files.refusals.append(files.refusal("", ("include", index), found))
            continue
        for file in found:
            _include(files, file)
            if why := files.read(file).absent:  # a pipe, a dangling link, no rights to it
                files.refusals.append(files.refusal("", ("include", index), f"{quoted(file)}: {why}"))


def _matches(files: Files, pattern: Json) -> list[str] | str:
    """Files that a pattern of `include` names, sorted."""
    if not isinstance(pattern, str):
        return f"write a pattern of file names, as `contracts/*.yaml`, not {quoted(pattern)}"
    if FilePath(pattern).is_absolute() or ".." in FilePath(pattern).parts or not pattern.strip():
        return "an include stays in the contract's folder; write a pattern as `contracts/*.yaml`"
    try:
        found = files.disk.matching(files.folder, pattern)
    except (ValueError, OSError, NotImplementedError, RecursionError, IndexError):
        return "this is no pattern of file names; write one as `contracts/*.yaml`"
    names = []
    for item in found:
        name = files.inside(str(item), files.main)
        if name is None:
            return f"{quoted(item.name)} is a link out of the contract's folder; copy the file into it"
        if name != files.main:
            names.append(name)
    return names or f"no file matches {quoted(pattern)}; mend the pattern, or take it out"


def _include(files: Files, file: str) -> None:
    if file in files.included:
        return
    files.included.add(file)
    document = files.read(file)
    if not document.whole:
        return
    if not isinstance(document.value, dict):
        refusal = Refusal(document.file, 1, 1, "", "an included file is a mapping; write `schemas` and `endpoints`")
        files.refusals.append(refusal)
        return
    for key, value in document.value.items():
        if key not in _INCLUDABLE:
            meant = nearest(key, _INCLUDABLE)
            hint = f"did you mean `{meant}`? " if meant else ""
            message = f"an included file has no key {quoted(key)}; {hint}accepted here: schemas, endpoints"
            files.refusals.append(files.refusal(file, (key,), message))
        elif key != "version":
            _merge(files, file, key, value)


def _merge(files: Files, file: str, section: str, value: Json) -> None:
    """The entries of one section of an included file, into the merged contract."""
    if not isinstance(value, dict):
        files.refusals.append(files.refusal(file, (section,), f"write a mapping of {section} by name"))
        return
    known = files.merged.get(section)
    if known is not None and not isinstance(known, dict):
        return  # refused where it is written
    places = files.marks.of(known or {})
    theirs = files.marks.of(value)
    together = dict(known or {})
    for name, entry in value.items():
        if name in together:
            first = places[name]
            message = f"`{name}` is already written in {first.file} on line {first.line}; write it once"
            files.refusals.append(files.refusal(file, (section, name), message))
            continue
        together[name] = entry
        places[name] = theirs[name]
    files.merged[section] = together
    files.marks.note(together, files.name(file), places)
    if known is None:
        outer = files.marks.of(files.merged)
        outer.setdefault(section, files.marks.of(files.documents[file].value)[section])
        files.marks.note(files.merged, files.name(file), outer)


def _read(disk: Disk, file: FilePath, shown: str, marks: Marks) -> Document:
    try:
        match disk.kind(file):
            case "folder":
                return absent(shown, "this is a folder; name a file in it")
            case "":
                return absent(shown, "there is no such file; mend the path, or create it")
            case "other":
                return absent(shown, "this is no regular file; name a file")
            case "file":
                return read_yaml(disk.read(file, LARGEST_FILE + 1), shown, marks)
    except (OSError, ValueError):
        return absent(shown, "the file cannot be read; mend its rights, or the path")


def _tokens(fragment: str) -> tuple[str, ...] | None:
    """The parts of a JSON Pointer; None where the text is none."""
    if fragment == "":
        return ()
    if not fragment.startswith("/"):
        return None
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in fragment[1:].split("/"))


def _at(node: Json, path: Path) -> Json:
    for part in path:
        node = node[part]
    return node


def _follow(node: Json, tokens: tuple[str, ...]) -> Path | str:
    """The path that tokens lead along, or why they lead nowhere."""
    path: list[str | int] = []
    for token in tokens:
        if isinstance(node, dict):
            if token not in node:
                meant = nearest(token, list(node))
                return "names nothing" + (f"; did you mean {quoted(meant)}?" if meant else "; mend it, or write it")
            path.append(token)
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and len(token) < 9 and int(token) < len(node):
            path.append(int(token))
            node = node[int(token)]
        else:
            return "names nothing; mend it, or write it"
    return tuple(path)
