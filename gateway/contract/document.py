"""One YAML file to plain data, with the line of every key. Knows the YAML 1.2 core schema and no contract key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from gateway.contract.refusal import Path, Refusal, dotted, quoted
from gateway.record import record

#: Bounds of one file: bytes, levels, and nodes that aliases may add.
LARGEST_FILE = 32 * 1024 * 1024
DEEPEST = 100
LARGEST_EXPANSION = 100_000


class Place(NamedTuple):
    """Where something is written; lines and columns count from 1."""

    file: str
    line: int
    column: int


class Marks:
    """Where every key and list item of the read containers is written, asked by the container itself.

    Kept beside the data, by identity, so that the data stay plain dicts and lists. A place is packed into one integer:
    a large contract has some hundred thousand.
    """

    def __init__(self) -> None:
        self._marks: dict[int, tuple[Any, str, Mapping[str | int, int | Place]]] = {}

    def note(self, container: Any, file: str, places: Mapping[str | int, int | Place]) -> None:
        # The container is held so that its identity is not given to another one.
        self._marks[id(container)] = (container, file, places)

    def copied(self, copy: Any, container: Any) -> None:
        """A changed copy of a container is written where the container is."""
        if id(container) in self._marks:
            _, file, places = self._marks[id(container)]
            self.note(copy, file, places)

    def of(self, container: Any) -> dict[str | int, Place]:
        return {key: place for key in self._keys(container) if (place := self._place(container, key)) is not None}

    def place(self, root: Any, path: Path, otherwise: Place) -> Place:
        """The place of the deepest key of `path` that is written."""
        place, node = otherwise, root
        for part in path:
            place = self._place(node, part) or place
            try:
                node = node[part]
            except (KeyError, IndexError, TypeError):
                break
        return place

    def _keys(self, container: Any) -> Iterable[str | int]:
        found = self._marks.get(id(container))
        return found[2] if found else ()

    def _place(self, container: Any, key: str | int) -> Place | None:
        found = self._marks.get(id(container))
        packed = found[2].get(key) if found else None
        if found is None or packed is None:
            return None
        return packed if isinstance(packed, Place) else Place(found[1], (packed >> 20) + 1, (packed & 0xFFFFF) + 1)


def _packed(mark: Any) -> int:
    return int(mark.line) << 20 | min(int(mark.column), 0xFFFFF)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not been read yet."""

    value: Any
    is_mapping: bool
    anchor: str | None
    #: Nodes read before it.
    before: int
    places: dict[str | int, int] = field(default_factory=dict)
    key: str | None = None
    height: int = 1


@record
class Document:
    """One file as data; where it could not be read to its end, `value` is None and `whole` is false."""

    file: str
    value: Any
    refusals: tuple[Refusal, ...] = ()
    whole: bool = True
    #: Why there is no such file; whoever names it is refused, not the file.
    absent: str = ""


def read_yaml(data: bytes, file: str, marks: Marks) -> Document:
    """The one document of a file, its keys all text, with everything that is wrong with it."""
    if len(data) > LARGEST_FILE:
        return broken(file, f"the file is larger than {LARGEST_FILE} bytes; split it with `include`")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        before = data[: fault.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        return broken(file, "the file is not UTF-8 text; save it as UTF-8", line, column)
    composer = _Composer(file, marks)
    try:
        composer.compose(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        return Document(file, composer.root, tuple(composer.refusals))
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        if mark and fault.context_mark and mark.index >= len(text):
            mark = fault.context_mark  # what is not closed is looked for where it opens, not at the file's end
        composer.refuse(mark, (), _syntax(fault.problem or "", _character(text, mark)))
    except yaml.YAMLError:
        composer.refusals.append(_control(text, file))
    except _Stop:
        pass
    return Document(file, None, tuple(composer.refusals), whole=False)


def broken(file: str, message: str, line: int = 1, column: int = 1) -> Document:
    """A file of which nothing can be read."""
    return Document(file, None, (Refusal(file, line, column, "", message),), whole=False)


def absent(file: str, message: str) -> Document:
    """A file that is not there."""
    return Document(file, None, (Refusal(file, 1, 1, "", message),), whole=False, absent=message)


class _Stop(Exception):
    pass


class _Composer:
    """Builds data from YAML events, without recursion, so that no input can exhaust the stack."""

    def __init__(self, file: str, marks: Marks) -> None:
        self.file = file
        self.marks = marks
        self.root: Any = None
        self.refusals: list[Refusal] = []
        self._stack: list[_Open] = []
        #: anchor -> (value, nodes in it, levels in it)
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self._nodes = 0
        self._aliased = 0

    def refuse(self, mark: Any, path: Path, message: str) -> None:
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        self.refusals.append(Refusal(self.file, line, column, dotted(path), message))

    def compose(self, events: Iterator[Any]) -> None:
        documents = 0
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._start(event, kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents == 2:
                    self.refuse(event.start_mark, (), "a second document starts here; write one document in a file")
                    raise _Stop
        if documents == 0:
            self.refuse(None, (), "the file is empty; write its keys")
            raise _Stop

    def _scalar(self, event: Any) -> None:
        text = event.value
        self._nodes += 1
        if event.tag is not None:
            self.refuse(event.start_mark, self._path(), f"the tag {quoted(event.tag)} is not read; leave it out")
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            message = "half of a surrogate pair is not text; write the whole character"
            self.refuse(event.start_mark, self._path(), message)
            text = "?"
        if self._stack and self._stack[-1].is_mapping and self._stack[-1].key is None:
            self._key(event, text)
            return
        value = plain_scalar(text) if event.implicit[0] else text
        if isinstance(value, _NoNumber):
            self.refuse(event.start_mark, self._path(), value.reason)
            value = None
        self._put(value, event.start_mark, 0)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1, 0)

    def _key(self, event: Any, text: str) -> None:
        frame = self._stack[-1]
        if text == "<<" and event.implicit[0]:
            message = "`<<` is no key of YAML 1.2; write the keys out, or use `$ref` in a schema"
            self.refuse(event.start_mark, (*self._path(), text), message)
        if text in frame.places:
            message = f"this key is already written on line {(frame.places[text] >> 20) + 1}; write it once"
            self.refuse(event.start_mark, (*self._path(), text), message)
        else:
            frame.places[text] = _packed(event.start_mark)
        frame.key = text
        if event.anchor:
            self._anchors[event.anchor] = (text, 1, 0)

    def _start(self, event: Any, is_mapping: bool) -> None:
        self._nodes += 1
        if event.tag is not None:
            self.refuse(event.start_mark, self._path(), f"the tag {quoted(event.tag)} is not read; leave it out")
        if self._wants_key():
            message = "a key must be text; quote it where it starts with `{`, `[` or `?`"
            self.refuse(event.start_mark, self._path(), message)
            raise _Stop
        if len(self._stack) == DEEPEST:
            self.refuse(event.start_mark, (), f"this is more than {DEEPEST} levels deep; move a part out with `$ref`")
            raise _Stop
        value: Any = {} if is_mapping else []
        self._put(value, event.start_mark, 0, opened=True)
        self._stack.append(_Open(value, is_mapping, event.anchor, self._nodes - 1))

    def _end(self) -> None:
        frame = self._stack.pop()
        self.marks.note(frame.value, self.file, frame.places)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, self._nodes - frame.before, frame.height)
        if self._stack:
            parent = self._stack[-1]
            parent.height = max(parent.height, frame.height + 1)
            parent.key = None

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            is_open = any(frame.anchor == event.anchor for frame in self._stack)
            why = "stands inside what it repeats" if is_open else "is not written above"
            message = f"the anchor of the alias `*{event.anchor}` {why}; write it out"
            self.refuse(event.start_mark, self._path(), message)
            raise _Stop
        value, nodes, height = self._anchors[event.anchor]
        self._nodes += nodes
        self._aliased += nodes
        if self._aliased > LARGEST_EXPANSION or len(self._stack) + height > DEEPEST:
            self.refuse(event.start_mark, (), f"aliases repeat more than {LARGEST_EXPANSION} nodes; use `$ref` instead")
            raise _Stop
        if self._wants_key():
            self.refuse(event.start_mark, self._path(), "a key cannot be an alias; write it out")
            raise _Stop
        self._put(value, event.start_mark, height)

    def _wants_key(self) -> bool:
        return bool(self._stack) and self._stack[-1].is_mapping and self._stack[-1].key is None

    def _path(self) -> Path:
        """Where the next node belongs; only a refusal asks."""
        path: list[str | int] = []
        for frame in self._stack:
            if not frame.is_mapping:
                path.append(len(frame.value))
            elif frame.key is not None:
                path.append(frame.key)
        # An open list already holds the container that is open inside it.
        for depth, frame in enumerate(self._stack[:-1]):
            if not frame.is_mapping:
                path[depth] = len(frame.value) - 1
        return tuple(path)

    def _put(self, value: Any, mark: Any, height: int, opened: bool = False) -> None:
        if not self._stack:
            self.root = value
            return
        frame = self._stack[-1]
        if height >= frame.height:
            frame.height = height + 1
        if not frame.is_mapping:
            frame.places[len(frame.value)] = _packed(mark)
            frame.value.append(value)
            return
        assert frame.key is not None
        frame.value.setdefault(frame.key, value)
        if not opened:
            frame.key = None


class _NoNumber(NamedTuple):
    reason: str


_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# YAML 1.2.2 §10.3.2 without octal: a leading zero keeps a number text, so that `012` is what was written.
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def plain_scalar(text: str) -> Any:
    """The value of an unquoted scalar in the YAML 1.2 core schema; what is no word or number of it is text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= 1000 else _NoNumber("a number of over 1000 digits is not read; quote it")
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16) if len(text) <= 800 else _NoNumber("a number of over 1000 digits is not read; quote it")
    if _FLOAT.fullmatch(text):
        number = float(text)
        return _NoNumber("no double holds this number; quote it") if number in (INFINITE, -INFINITE) else number
    if _NO_JSON.fullmatch(text):
        return _NoNumber("JSON has no such number; quote it where it is text")
    return text


INFINITE = float("inf")

_SYNTAX = (
    (
        "mapping values are not allowed",
        "a key and `:` cannot stand here; quote the text before, or mend the indentation",
    ),
    ("could not find expected ':'", "a key without `:` stands here; write `key: value`, or quote the text"),
    ("expected <block end>", "this line does not fit the indentation above it; align it with its neighbours"),
    ("did not find expected key", "this line does not fit the indentation above it; align it with its neighbours"),
    ("did not find expected '-' indicator", "a list item starts with `- ` here; align it with the items above"),
    ("expected ',' or '}'", "a `{` is not closed; end its keys with `,` and close it with `}`"),
    ("expected ',' or ']'", "a `[` is not closed; end its items with `,` and close it with `]`"),
    ("found unexpected end of stream", "a quoted text is not closed; end it with the quote it starts with"),
    ("unknown escape character", "this `\\` escape is unknown; use single quotes, or write `\\\\`"),
    ("cannot start any token", "a plain text cannot start with this character; quote it"),
    ("maximum nesting depth", f"this is more than {DEEPEST} levels deep; move a part out with `$ref`"),
    ("expected node content", "a `{` or `[` is not closed; close it, or write the value that is missing here"),
    ("Unicode character escape", "this `\\u` escape is no character; write the character itself"),
    ("duplicate anchor", "an anchor of this name is written twice; name it otherwise"),
)


def _syntax(problem: str, character: str) -> str:
    if "cannot start any token" in problem and character == "\t":
        return "a tab cannot indent YAML; use spaces"
    for part, sentence in _SYNTAX:
        if part in problem:
            return sentence
    return f"this is not YAML ({problem or 'unreadable'}); check the indentation and quotes of this line"


def _character(text: str, mark: Any) -> str:
    lines = text.splitlines() if mark else []
    return lines[mark.line][mark.column : mark.column + 1] if lines and mark.line < len(lines) else ""


def _control(text: str, file: str) -> Refusal:
    """YAML's reader refuses characters before any event, and says nothing of their place."""
    at = next(
        (at for at, char in enumerate(text) if not char.isprintable() and char not in "\t\n\r\x85\u2028\u2029"), 0
    )
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    what = f"the character U+{ord(text[at]):04X} is" if text else "this is"
    message = f"{what} not allowed in YAML; take it out, or write it as an escape in double quotes"
    return Refusal(file, line, column, "", message)
