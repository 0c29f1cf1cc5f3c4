"""One direction of a pair: bytes go over as they come, and a slow reader holds back the sender. Knows no HTTP."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gateway.relay.gate import Gate, Refused
from gateway.relay.observe import Piece
from gateway.relay.ready import Ready

WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

#: What one direction takes at once where much is coming, and so holds at most while its reader is slow.
HELD = 262144
#: The same, once its reader has been slow: large pieces only help where they go straight through.
HELD_FOR_THE_SLOW = 65536
#: What is asked for where little comes, and where more has come than that: a piece as large as was asked for tells that
#: more is waiting. To ask for less costs less, since what is asked for is set aside before any of it comes.
LITTLE, MORE = 4096, 32768


class Unread:
    """Pieces that were sent on and are still to be looked at.

    Many in a row cost about half of what each costs between two system calls, which leave cold caches behind.
    """

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        #: In the order in which they came, of all connections.
        self.pieces: deque[tuple[Callable[[Piece], None], bytes]] = deque()

    def catch_up(self) -> None:
        """Look at what is left; whoever asks what the pieces meant does this first."""
        pieces = self.pieces
        while pieces:
            tell, piece = pieces.popleft()
            tell(piece)


@dataclass(frozen=True, slots=True)
class Means:
    """What moving bytes takes. All flows share the buffer, for nothing stays in it across two events."""

    loop: asyncio.AbstractEventLoop
    ready: Ready
    buffer: memoryview
    unread: Unread


class Reader(Protocol):
    """Who looks at what went by in one direction."""

    #: What was taken last costs more to look at than to move.
    tiny: bool

    def take(self, view: Piece) -> None: ...


class Owner(Protocol):
    """Who decides what an end of one direction means for the other."""

    #: Wants to be told when bytes went by.
    attentive: bool

    def source_ended(self, flow: Flow) -> None: ...

    def source_broke(self, flow: Flow, fault: OSError) -> None: ...

    def sink_broke(self, flow: Flow) -> None: ...

    def went_by(self) -> None: ...

    def refuse(self, refused: Refused) -> None: ...


class Flow:
    """One direction of a pair: what arrives at `source` is sent to `sink`, and at most one buffer waits in between."""

    __slots__ = (
        "_buffer",
        "_catch_up",
        "_full",
        "_loop",
        "_on_readable",
        "_reader",
        "_ready",
        "_receive",
        "_send",
        "_tell",
        "_unread",
        "ended",
        "moved",
        "owner",
        "pending",
        "reading",
        "sink",
        "source",
        "told",
    )

    def __init__(
        self,
        owner: Owner,
        means: Means,
        source: socket.socket,
        sink: socket.socket,
        reader: Reader,
    ) -> None:
        self.owner = owner
        self.source = source
        self.sink = sink
        #: Taken from the source and not accepted by the sink; while there is any, nothing more is taken.
        self.pending: memoryview | None = None
        #: Bytes taken over, and how many of them the observer was told of.
        self.moved = self.told = 0
        self.reading = False
        #: The source said that nothing more will come, or nothing more is wanted.
        self.ended = False
        self._reader = reader
        self._tell = reader.take
        self._receive: Callable[[], Piece] = partial(source.recv, LITTLE)
        self._send = sink.send
        #: A piece of this size tells that more is waiting.
        self._full = LITTLE
        self._loop = means.loop
        self._ready = means.ready
        self._buffer = means.buffer
        self._unread = means.unread.pieces
        self._catch_up = means.unread.catch_up
        self._on_readable = self._readable_tls if isinstance(source, ssl.SSLSocket) else self._readable

    @property
    def held_back(self) -> bool:
        return self.pending is not None

    @property
    def toils(self) -> bool:
        """What came last costs more to look at than to move."""
        return self._reader.tiny

    def resume(self) -> None:
        """Read on, unless there is a reason not to."""
        if not self.ended and not self.reading and self.pending is None:
            self.reading = True
            self._ready.add_reader(self.source, self._on_readable)
            if isinstance(self.source, ssl.SSLSocket):
                self._loop.call_soon(self._readable_tls)  # decrypted bytes do not wake the poll

    def pause(self) -> None:
        if self.reading:
            self.reading = False
            self._ready.remove_reader(self.source)

    def push(self, data: Piece) -> None:
        """Send on, keep what the sink does not take yet, then tell what went by."""
        size = len(data)
        self.moved += size
        try:
            sent = self._send(data)
        except WOULD_BLOCK:
            sent = 0
        except OSError:
            self.owner.sink_broke(self)
            return
        if sent < size:
            self.pending = memoryview(bytes(data[sent:]))
            self._buffer = self._buffer[:HELD_FOR_THE_SLOW]
            self.pause()
            self._ready.add_writer(self.sink, self._writable)
        if type(data) is bytes:
            self._unread.append((self._tell, data))
        else:  # a view of the shared buffer, which the next event may fill with something else
            self._catch_up()
            self._tell(data)
        if self.owner.attentive:
            self.owner.went_by()

    #: What is done with bytes from the source; the gated flow looks at them first.
    accept = push

    def stop(self) -> None:
        """Nothing more is wanted of this direction."""
        self.ended = True
        self.pause()
        if self.pending is not None:
            self.pending = None
            self._ready.remove_writer(self.sink)

    def read(self) -> None:
        """Take over what has arrived."""
        self._on_readable()

    def _readable(self) -> None:
        """Every byte comes by here: a small piece is cheapest as bytes of its own, a large one in the shared buffer."""
        try:
            data = self._receive()
        except WOULD_BLOCK:
            return
        except OSError as fault:
            self.owner.source_broke(self, fault)
            return
        if len(data) >= self._full:
            self._ask_for_more(len(data))
        if data:
            self.accept(data)
        else:
            self.ended = True
            self.pause()
            self.owner.source_ended(self)

    def _receive_much(self) -> memoryview:
        return self._buffer[: self.source.recv_into(self._buffer)]

    def _ask_for_more(self, size: int) -> None:
        """More is waiting than was asked for; what comes in the shared buffer is looked at each time.

        Where it takes long to look at, little is asked for, so that all others have their turn in between.
        """
        if self.toils:
            self._receive, self._full = partial(self.source.recv, LITTLE), LITTLE
        elif self._full == LITTLE or (self._full == 0 and size < MORE):
            self._receive, self._full = partial(self.source.recv, MORE), MORE
        else:
            self._receive, self._full = self._receive_much, 0

    def _readable_tls(self) -> None:
        while self.reading:
            self._readable()
            if not self.reading or not self.source.pending():  # type: ignore[attr-defined]  # an SSLSocket
                return

    def _writable(self) -> None:
        if self.pending is None:
            return
        try:
            sent = self.sink.send(self.pending)
        except WOULD_BLOCK:
            return
        except OSError:
            self.owner.sink_broke(self)
            return
        if sent < len(self.pending):
            self.pending = self.pending[sent:]
            return
        self.pending = None
        self._ready.remove_writer(self.sink)
        self.resume()
        self.owner.went_by()


class GatedFlow(Flow):
    """The client's direction under `only: declared`: the gate says what may go on."""

    __slots__ = ("gate",)

    def __init__(
        self,
        owner: Owner,
        means: Means,
        source: socket.socket,
        sink: socket.socket,
        reader: Reader,
        gate: Gate,
    ) -> None:
        super().__init__(owner, means, source, sink, reader)
        self.gate = gate

    @property
    def toils(self) -> bool:
        return self.gate.tiny or self._reader.tiny

    def accept(self, data: Piece) -> None:
        self.follow(*self.gate.take(data))

    def follow(self, passed: bytes | memoryview, refused: Refused | None) -> None:
        """Send on what the gate let pass, and stop where it refused."""
        if passed:
            self.push(passed)
        if refused is not None and not self.ended:
            self.ended = True
            self.pause()
            self.owner.refuse(refused)
        elif self.gate.awaits_upgrade:
            self.pause()

    def resume(self) -> None:
        if not self.gate.awaits_upgrade:
            super().resume()
