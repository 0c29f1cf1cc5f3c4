"""A passive reader of both directions of one connection: where messages begin and end; knows no socket.

It serves metrics, the access log and draining. It sees bytes after they were sent on and changes none; what it cannot
follow it calls opaque.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from time import monotonic
from typing import Literal, Protocol

Direction = Literal["in", "out"]
#: Bytes that came at once.
Piece = bytes | memoryview

#: A head longer than this is not followed; it is relayed all the same.
LONGEST_HEAD = 65536
#: A client that sends more requests than this without waiting for an answer is not followed: each costs memory here.
MOST_WAITING = 1024
_LONGEST_LINE = 8192
#: So much is looked at in one step where a head or a chunk size is expected.
_PIECE = 2048
_LINE_ENDS = (b"\r\n", b"\n")
#: An empty line, whatever its line end: RFC 9112 §2.2 lets a reader take LF alone.
_HEAD_END = re.compile(rb"\n\r?\n")
#: Lines of a head that say nothing of where its message ends; those that may, and an empty line, end the run.
_OTHER_LINES = (
    rb"(?:[^\r\nCcTt][^\n]*+\n"
    rb"|[Cc](?![Oo][Nn][Tt][Ee][Nn][Tt]-[Ll][Ee])[^\n]*+\n"
    rb"|[Tt](?![Rr][Aa][Nn][Ss])[^\n]*+\n)*+"
)
#: The usual head of a request without a body: method, target.
_USUAL_REQUEST = re.compile(rb"([A-Z]++) ([^ \n]++) HTTP/1\.[01]\r\n" + _OTHER_LINES + rb"\r\n")
#: The usual head of an answer with a length: status, length.
_USUAL_ANSWER = re.compile(
    rb"HTTP/1\.[01] ([2-5][0-9][0-9])[^\n]*+\n"
    + _OTHER_LINES
    + rb"[Cc][Oo][Nn][Tt][Ee][Nn][Tt]-[Ll][Ee][Nn][Gg][Tt][Hh]:[ \t]*+([0-9]{1,18}+)[ \t]*+\r?\n"
    + _OTHER_LINES
    + rb"\r\n"
)

#: A chunk or line counts as so many bytes of work, since each takes a step however short it is.
STEP = 64
#: Size, bytes and line ends of chunks that one digit sizes; the bytes and the line end behind them are not looked at.
_SMALL_CHUNK = b"|".join(
    rb"[%x%X][ \t]{0,256}+(?:;[^\n]{0,1024}+)?+\r?+\n(?s:.{%d})" % (size, size, size + 2) for size in range(1, 16)
)
#: A run of small chunks, read in one step, and the size of a chunk behind it that is large, the last or not all there.
_CHUNKS = re.compile(
    rb"(?:[ \t]{0,256}+0{0,15}+(?:" + _SMALL_CHUNK + rb"))*+(?:[ \t]{0,256}+([0-9A-Fa-f]{1,16}+)[ \t]{0,256}+\r?+\n)?"
)
#: Lines of a trailer, which nobody here reads.
_TRAILER_LINES = re.compile(rb"(?:[^\r\n][^\n]{0,1024}+\n)*+")

#: A caller can never make a label value: any other method is `other`.
_OTHER = "other"
_METHODS = {
    name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
}


#: Answers whose head does not say what follows it: to these methods, and with a status that is not here.
_ASKS_FOR_NO_BODY = frozenset({"HEAD", "CONNECT"})
_CARRIES_A_BODY = {b"%d" % status: status for status in range(200, 600) if status not in (204, 304)}


class Observer(Protocol):
    """Who wants to know. Plain calls from the event loop's thread; they must not block or raise."""

    def connection_opened(self) -> None: ...

    def connection_closed(self) -> None: ...

    def relayed(self, direction: Direction, count: int) -> None:
        """So many more bytes were taken over: `in` from the client, `out` from the backend. Told now and then."""

    def exchange(self, method: str, status: int, target: bytes, sizes: tuple[int, int], seconds: float) -> None:
        """One request and its answer are over. `status` 0: no answer came. `sizes`: bytes of request and answer."""

    def cut(self, method: str, status: int) -> None:
        """An exchange broke in the middle: follows its `exchange`."""

    def opaque(self) -> None:
        """One connection can no longer be followed: upgraded, or no HTTP/1 that can be read in one way only."""


class Silent:
    """An observer that keeps nothing."""

    def connection_opened(self) -> None: ...

    def connection_closed(self) -> None: ...

    def relayed(self, direction: Direction, count: int) -> None: ...

    def exchange(self, method: str, status: int, target: bytes, sizes: tuple[int, int], seconds: float) -> None: ...

    def cut(self, method: str, status: int) -> None: ...

    def opaque(self) -> None: ...


#: One request on its way to an answer: method's name, target, size, and when it began. A tuple costs least to make.
_Exchange = tuple[str, bytes, int, float]


class Watch:
    """What is known of one connection. Feed it each direction's bytes in order; ask it whether nothing is in flight."""

    __slots__ = ("answers", "is_opaque", "observer", "requests", "upgraded", "waiting")

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        #: Requests whose answer is not over, oldest first.
        self.waiting: deque[_Exchange] = deque()
        self.is_opaque = False
        #: Both sides agreed on another protocol.
        self.upgraded = False
        #: What came from the client is given to `requests.take`, what came from the backend to `answers.take`.
        self.requests = Requests(self)
        self.answers = Answers(self)

    @property
    def idle(self) -> bool:
        """Between two exchanges: nothing was begun that is not over."""
        return not self.waiting and not self.is_opaque and self.requests.at_boundary

    @property
    def seen_a_head(self) -> bool:
        return self.requests.heads > 0 or self.is_opaque

    @property
    def oldest_method(self) -> str:
        return self.waiting[0][0] if self.waiting else ""

    @property
    def answer_begun(self) -> bool:
        """The client has seen a part of the answer it waits for."""
        return not self.answers.at_boundary

    def asked(self, exchange: _Exchange) -> None:
        """A request went to the backend."""
        self.waiting.append(exchange)
        if len(self.waiting) > MOST_WAITING:
            self.give_up()

    def refused(self, method: bytes, target: bytes, status: int) -> None:
        """The relay answered a request that was not sent on."""
        self.report((_name(method), target, 0, monotonic()), status, 0)

    def spoken(self, status: int) -> None:
        """The relay answered in the backend's place."""
        if self.waiting:
            self.report(self.waiting.popleft(), status, 0)

    def answers_ended(self) -> None:
        """The backend closed its side cleanly; an answer that runs to the end of the connection is over now."""
        if self.answers.to_end and self.waiting:
            self.answers.over()

    def closed(self) -> None:
        """The connection is gone; whatever still waits was cut."""
        if self.is_opaque:
            return
        status, size = self.answers.begun
        while self.waiting:
            exchange = self.waiting.popleft()
            self.report(exchange, status, size)
            self.observer.cut(exchange[0], status)
            status = size = 0  # only the oldest can have a part of its answer

    def give_up(self) -> None:
        """From here on nothing is followed, in either direction."""
        if not self.is_opaque:
            self.is_opaque = True
            self.requests.blind()
            self.answers.blind()
            self.waiting.clear()
            self.observer.opaque()

    def report(self, exchange: _Exchange, status: int, answer_bytes: int) -> None:
        method, target, request_bytes, began = exchange
        self.observer.exchange(method, status, target, (request_bytes, answer_bytes), monotonic() - began)


def _name(method: bytes) -> str:
    return _METHODS.get(method, _OTHER)


# What a direction is in the middle of; nothing of a message has come at a boundary.
_BOUNDARY, _HEAD, _LENGTH, _SIZE_LINE, _CHUNK, _TRAILER, _TO_END, _BLIND = range(8)


class _Messages(ABC):
    """One direction: heads are read, bodies are counted and not looked into, chunk sizes are followed."""

    __slots__ = ("_counted", "_held", "_skip", "_state", "_watch", "_work", "heads", "tiny")

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._state = _BOUNDARY
        #: Bytes that belong to the body at hand and need no look.
        self._skip = 0
        #: A head or line of which only the beginning came so far.
        self._held = b""
        self.heads = 0
        #: Bytes of the message at hand, those to be skipped included.
        self._counted = 0
        self._work = 0
        #: What was taken last held so many small chunks or lines that to read it costs more than to move it.
        self.tiny = False

    @property
    def size(self) -> int:
        """Bytes of the message at hand that have come."""
        return self._counted - self._skip

    @property
    def at_boundary(self) -> bool:
        return self._state == _BOUNDARY

    @property
    def to_end(self) -> bool:
        return self._state == _TO_END

    def blind(self) -> None:
        self._state, self._held, self._skip = _BLIND, b"", 0

    def take(self, view: Piece) -> None:
        """Read what came, however it is cut; no body is copied."""
        count, at = len(view), 0
        self._work = 0
        while at < count:
            if self._skip:
                at += self._skip
                if at > count:
                    self._skip = at - count
                    break
                self._skip = 0
                if self._state == _LENGTH:
                    self._state = _BOUNDARY
                    self.over()
                else:
                    self._state = _SIZE_LINE
            elif self._state <= _HEAD:
                at += self._read_head(bytes(view[at : at + _PIECE] if at or count > _PIECE else view))
            elif self._state >= _TO_END:
                self._counted += count - at
                break
            else:
                end = at if self._held else self._read_many(view, at)
                if end == at:
                    end += self._read_line(bytes(view[at : at + _PIECE]))
                at = end
        self.tiny = self._work > count

    @abstractmethod
    def _begin(self, head: bytes) -> None:
        """A whole head came; what follows it is settled here."""

    @abstractmethod
    def over(self) -> None:
        """A whole message came."""

    def _read_head(self, data: bytes) -> int:
        """Read a head, or as much of it as came; returns how much of `data` it was."""
        known = len(self._held)
        if known:
            data = self._held + data
            self._held = b""
        self._state = _BOUNDARY
        begin = 0
        while data.startswith(_LINE_ENDS, begin):  # RFC 9112 §2.2: empty lines before a request are ignored
            begin += 2 if data[begin] == 13 else 1
        # What was held has no end in it, but may have the beginning of one; so bytes that drip in cost no more each.
        found = _HEAD_END.search(data, max(begin, known - 2))
        if found is None:
            if begin < len(data):
                self._state = _HEAD
                self._hold(data[begin:], LONGEST_HEAD)
            return len(data) - known
        end = found.end()
        self.heads += 1
        self._counted = end - begin
        self._begin(data[begin:end])
        return end - known

    def _read_many(self, view: Piece, at: int) -> int:
        """Read of the chunked coding what takes few steps; returns where that ends, maybe where it began."""
        began = at
        if self._state == _TRAILER:
            found = _TRAILER_LINES.match(view, at)
            assert found is not None  # it may match nothing
            at = found.end()
            self._work += at - began
        count = len(view)
        while self._state == _SIZE_LINE and at < count:
            found = _CHUNKS.match(view, at)
            assert found is not None  # it may match nothing
            end = found.end()
            self._work += end - at + STEP
            at = end
            if (digits := found[1]) is None:
                break
            size = int(digits, 16)
            if not size:
                self._state = _TRAILER
            elif at + size + 2 <= count:
                at += size + 2
            else:
                self._state = _CHUNK
                self._skip = size + 2
                self._counted += size + 2
        self._counted += at - began
        return at

    def _read_line(self, data: bytes) -> int:
        """Read a line of the chunked coding, or as much of it as came; returns how much of `data` it was."""
        self._work += STEP
        end = data.find(b"\n") + 1
        if not end:
            self._counted += len(data)
            self._hold(self._held + data, _LONGEST_LINE)
            return len(data)
        self._counted += end
        line = (self._held + data[:end]).rstrip(b"\r\n")
        self._held = b""
        if self._state == _SIZE_LINE:
            self._chunk_begins(line)
        elif not line:
            self._state = _BOUNDARY
            self.over()
        return end

    def _chunk_begins(self, line: bytes) -> None:
        digits = line.partition(b";")[0].strip()
        if not digits or len(digits) > 16 or digits.strip(b"0123456789abcdefABCDEF"):
            self._watch.give_up()
            return
        length = int(digits, 16)
        if length:
            self._state = _CHUNK
            self._skip = length + 2
            self._counted += length + 2
        else:
            self._state = _TRAILER

    def _hold(self, begun: bytes, most: int) -> None:
        self._held = begun
        if len(begun) > most:
            self._watch.give_up()

    def _follow_body(self, fields: bytes) -> bool:
        """Settle what follows a head with these lower-cased fields; false where they give no length."""
        length = fields.find(b"\ncontent-length:")
        coding = fields.find(b"\ntransfer-encoding:")
        if coding >= 0:
            if length < 0 and _value(fields, coding + 19).rpartition(b",")[2].strip() == b"chunked":
                self._state = _SIZE_LINE
            else:
                self._watch.give_up()  # two lengths, or a coding whose end nobody can see
            return True
        if length < 0:
            return False
        value = _value(fields, length + 16)
        again = fields.find(b"\ncontent-length:", length + 16)
        if not value.isdigit() or len(value) > 18 or (again >= 0 and _value(fields, again + 16) != value):
            self._watch.give_up()
            return True
        self._skip = int(value)
        self._counted += self._skip
        if self._skip:
            self._state = _LENGTH
        else:
            self.over()
        return True


def _value(fields: bytes, start: int) -> bytes:
    return fields[start : fields.find(b"\n", start)].strip()


class Requests(_Messages):
    __slots__ = ()

    def take(self, view: Piece) -> None:
        """Most pieces are one head without a body: such a one is read here in few steps, to the same end."""
        size = len(view)
        if self._state or size > _PIECE:
            super().take(view)
            return
        found = _USUAL_REQUEST.fullmatch(view)
        if found:
            method, target = found.groups()
            self.heads += 1
            self._counted = size
            self._watch.asked((_METHODS.get(method, _OTHER), target, size, monotonic()))
            return
        super().take(view)

    def _begin(self, head: bytes) -> None:
        method, _, rest = head[: head.find(b"\n")].partition(b" ")
        target, _, version = rest.rpartition(b" ")
        if not version.startswith(b"HTTP/1."):
            self._watch.give_up()
            return
        self._watch.asked((_name(method), target, self._counted, monotonic()))
        if not self._watch.is_opaque:
            self._follow_body(head.lower())  # without a length a request has no body, and the next head comes

    def over(self) -> None:
        # An answer may be over before its request; the request then has no exchange to add its size to.
        if self._watch.waiting:
            method, target, _, began = self._watch.waiting[-1]
            self._watch.waiting[-1] = (method, target, self._counted, began)


class Answers(_Messages):
    __slots__ = ("_status",)

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self._status = 0

    @property
    def begun(self) -> tuple[int, int]:
        """Status and size so far of the answer at hand; zeros where none was begun."""
        return (0, 0) if self._state <= _HEAD else (self._status, self.size)

    def take(self, view: Piece) -> None:
        """Most pieces are one head with a length and its body, or the body's beginning: see `Requests.take`."""
        waiting = self._watch.waiting
        if self._state or not waiting or waiting[0][0] in _ASKS_FOR_NO_BODY:
            super().take(view)
            return
        found = _USUAL_ANSWER.match(view)
        if found:
            size = len(view)
            digits, length = found.groups()
            status = _CARRIES_A_BODY.get(digits)
            whole = found.end() + int(length)
            if status and size <= whole:
                self.heads += 1
                self._status = status
                self._counted = whole
                if size == whole:
                    self._watch.report(waiting.popleft(), status, whole)
                else:
                    self._skip = whole - size
                    self._state = _LENGTH
                return
        super().take(view)

    def _begin(self, head: bytes) -> None:
        waiting = self._watch.waiting
        digits = head[9:12]
        if not waiting or not head.startswith(b"HTTP/1.") or not digits.isdigit():
            self._watch.give_up()  # an answer nobody asked for, or no HTTP/1
            return
        status = int(digits)
        method = waiting[0][0]
        if 100 <= status < 200 and status != 101:
            return  # an interim answer: the next head belongs to the same request
        self._status = status
        if status == 101 or (method == "CONNECT" and 200 <= status < 300):
            self._watch.upgraded = True
            self.over()
            self._watch.give_up()
        elif method == "HEAD" or status == 204 or status == 304:
            self.over()
        elif not self._follow_body(head.lower()):
            self._state = _TO_END

    def over(self) -> None:
        self._watch.report(self._watch.waiting.popleft(), self._status, self._counted)
