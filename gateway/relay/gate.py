"""`only: declared`: lets through exactly the requests that match a declared method and path, byte for byte.

It reads a request before anything of it is forwarded, forwards the bytes as they are, and re-arms at the next message.
Knows no socket; the pair asks it what may go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote_to_bytes

from gateway.relay.observe import STEP
from gateway.relay.strict import CHUNKS, TRAILER_LINES, Head, is_trailer, read_chunk_line, read_head

#: Of a head with its empty line, and of a trailer with its own.
_LONGEST_HEAD = 65536
#: Of a chunk or trailer, its LF left out.
_LONGEST_LINE = 8192


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that may not go on, and what its client is told."""

    status: int
    sentence: str | None = None
    allow: str | None = None
    method: bytes = b""
    target: bytes = b""
    #: Its head was let through before; the fault is in its body.
    in_body: bool = False


class Routes:
    """Declared methods and path templates, ready to be matched against raw paths."""

    def __init__(self, declared: Iterable[tuple[str, str]]) -> None:
        methods: dict[str, set[str]] = {}
        for method, template in declared:
            methods.setdefault(template, set()).add(method)
        self._routes = [(_pattern(template), frozenset(allowed)) for template, allowed in methods.items()]

    def judge(self, head: Head) -> Refused | None:
        """Why this head may not pass; None where it may."""
        allowed: set[str] = set()
        for pattern, methods in self._routes:
            found = pattern.fullmatch(head.path)
            if found and not any(map(_climbs, found.groups())):
                allowed |= methods
        if not allowed:
            return Refused(404, method=head.method, target=head.target)
        if head.method.decode() not in allowed:
            return Refused(405, allow=", ".join(sorted(allowed)), method=head.method, target=head.target)
        return None


class _Place(Enum):
    HEAD = "head"
    LENGTH = "length"
    SIZE_LINE = "size line"
    CHUNK = "chunk"
    CHUNK_END = "chunk end"
    TRAILER = "trailer"
    UPGRADE = "upgrade"
    OPEN = "open"
    SHUT = "shut"


class Gate:
    """One connection's requests. `take` says which bytes may go on, and why no more may."""

    __slots__ = ("_held", "_left", "_looked_at", "_place", "_routes", "_work", "tiny")

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._place = _Place.HEAD
        self._held = b""
        #: So many of these were searched and hold no end of a head; what drips in then costs no more for each byte.
        self._looked_at = 0
        #: Bytes of the body or chunk at hand that are still to come; of a trailer, that may come.
        self._left = 0
        self._work = 0
        #: What was taken last held so many small chunks or lines that to read it costs more than to move it.
        self.tiny = False

    @property
    def at_boundary(self) -> bool:
        return self._place is _Place.HEAD and not self._held

    @property
    def awaits_upgrade(self) -> bool:
        """A request to upgrade went on; whether its connection still speaks HTTP is for the answer to say."""
        return self._place is _Place.UPGRADE

    def take(self, data: bytes | memoryview) -> tuple[bytes | memoryview, Refused | None]:
        """Bytes that may go on, in order, and the refusal that ends them."""
        if self._place is _Place.OPEN or (self._place is _Place.LENGTH and self._left > len(data)):
            self._left -= len(data)
            self.tiny = False
            return data, None
        self._looked_at = len(self._held)
        self._held += data
        self._work = 0
        verdict = self._go_on()
        self.tiny = self._work > len(data)
        return verdict

    def upgraded(self, yes: bool) -> tuple[bytes | memoryview, Refused | None]:
        """The answer to an upgrade came: from here on everything passes, or requests are read again."""
        if not yes:
            self._place = _Place.HEAD
            self._looked_at = 0
            return self._go_on()
        self._place = _Place.OPEN
        passed, self._held = self._held, b""
        return passed, None

    def _go_on(self) -> tuple[bytes, Refused | None]:
        passed: list[bytes] = []
        at = 0
        while True:
            step = self._step(at)
            if isinstance(step, Refused):
                self._place, self._held = _Place.SHUT, b""
                return b"".join(passed), step
            if not step:
                self._held = self._held[at:]
                return b"".join(passed), None
            passed.append(self._held[at : at + step])
            at += step

    def _step(self, at: int) -> int | Refused:
        """How many more bytes may pass now; 0 where more must come first."""
        if self._place is _Place.HEAD:
            return self._pass_head(at)
        if self._place in (_Place.LENGTH, _Place.CHUNK):
            step = min(self._left, len(self._held) - at)
            self._left -= step
            if not self._left:
                self._place = _Place.HEAD if self._place is _Place.LENGTH else _Place.CHUNK_END
            return step
        if self._place in (_Place.SIZE_LINE, _Place.CHUNK_END, _Place.TRAILER):
            return self._pass_many(at) or self._pass_line(at)
        return 0

    def _pass_head(self, at: int) -> int | Refused:
        end = self._held.find(b"\r\n\r\n", max(at, self._looked_at - 3)) + 4
        if end < 4:
            return self._head_so_far(at)
        if end - at > _LONGEST_HEAD:
            return Refused(400, "The head is too long.")
        head = read_head(self._held[at:end])
        if isinstance(head, str):
            return Refused(400, head)
        refused = self._routes.judge(head)
        if refused is not None:
            return refused
        self._left = head.length or 0
        if head.upgrades:
            if head.length != 0:
                return Refused(400, "A request to upgrade has no body here.")
            self._place = _Place.UPGRADE
        elif head.length is None:
            self._place = _Place.SIZE_LINE
        elif head.length:
            self._place = _Place.LENGTH
        return end - at

    def _head_so_far(self, at: int) -> int | Refused:
        """An unfinished head: what can only get worse is refused now, so that nobody waits for its end in vain."""
        if len(self._held) - at > _LONGEST_HEAD:
            return Refused(400, "The head is too long.")
        first = self._held.find(b"\n", at)
        new = max(first, self._looked_at - 1)
        if first >= 0 and (first == at or self._held[first - 1] != 13 or self._held.find(b"\n\n", new) >= 0):
            return Refused(400, "Lines end with CR and LF.")
        return 0

    def _pass_many(self, at: int) -> int:
        """Whole chunks or lines, so many as can be judged in few steps; 0 where the next needs a look of its own."""
        if self._place is _Place.SIZE_LINE:
            return self._pass_chunks(at) - at
        if self._place is not _Place.TRAILER:
            return 0
        found = TRAILER_LINES.match(self._held, at, at + self._left)
        assert found is not None  # it may match nothing
        step = found.end() - at
        self._left -= step
        self._work += step
        return step

    def _pass_chunks(self, at: int) -> int:
        """Where the last of the whole chunks ends that are beyond doubt."""
        held, count = self._held, len(self._held)
        while at < count:
            found = CHUNKS.match(held, at)
            assert found is not None  # it may match nothing
            digits = found[1]
            small = found.end() if digits is None else found.start(1)
            self._work += small - at + STEP
            at = small
            if digits is None:
                break
            end = found.end() + int(digits, 16)
            if end == found.end() or not held.startswith(b"\r\n", end):  # the last one, or not all there, or unsound
                break
            at = end + 2
        return at

    def _pass_line(self, at: int) -> int | Refused:
        self._work += STEP
        end = self._held.find(b"\n", at) + 1
        size = (end or len(self._held)) - at
        if self._place is _Place.TRAILER and size > self._left:
            return Refused(400, "The trailer is too long.", in_body=True)
        if size > _LONGEST_LINE + (end > 0):
            return self._bad_body()
        if not end:
            return 0
        line = self._held[at:end]
        if not line.endswith(b"\r\n"):
            return self._bad_body()
        if not self._line_is_sound(line[:-2]):
            return self._bad_body()
        return end - at

    def _line_is_sound(self, line: bytes) -> bool:
        if self._place is _Place.CHUNK_END:
            self._place = _Place.SIZE_LINE
            return not line
        if self._place is _Place.TRAILER:
            self._left -= len(line) + 2
            if not line:
                self._place = _Place.HEAD
            return not line or is_trailer(line)
        size = read_chunk_line(line)
        if size is None:
            return False
        self._left = size or _LONGEST_HEAD
        self._place = _Place.CHUNK if size else _Place.TRAILER
        return True

    def _bad_body(self) -> Refused:
        return Refused(400, "The chunked body is malformed.", in_body=True)


def _pattern(template: str) -> re.Pattern[bytes]:
    """`{name}` stands for one part of a raw path without a slash; everything else stands for itself."""
    parts = re.split(r"\{[^{}]*\}", template)
    return re.compile(b"([^/]+)".join(re.escape(part.encode()) for part in parts))


def _climbs(part: bytes) -> bool:
    """Whether a backend that decodes and tidies paths would leave the declared one through this part."""
    for _ in range(3):  # some decode more often than once
        steps = [step.partition(b";")[0] for step in re.split(rb"[/\\]", part)]
        if b"." in steps or b".." in steps:
            return True
        part = unquote_to_bytes(part)
    return False
