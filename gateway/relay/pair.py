"""One client connection and its own backend connection: bytes go over as they come, ends go over as they are.

A clean end stays a clean end, a reset stays a reset, a slow reader holds back the sender. Knows sockets and no HTTP;
what the bytes mean is asked of `observe`.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gateway.relay.backend import Backend, Unreachable
from gateway.relay.flow import MORE, WOULD_BLOCK, Flow, GatedFlow, Means
from gateway.relay.gate import Gate, Refused, Routes
from gateway.relay.observe import Observer, Watch
from gateway.relay.own_words import own_answer
from gateway.relay.route import Route
from gateway.relay.tls import handshake

try:
    from fcntl import ioctl
    from termios import TIOCOUTQ
except ImportError:  # not every system has them; a reset then does not wait for what is on its way
    ioctl = None  # type: ignore[assignment]  # the name stays, its absence is asked for

#: What a broken connection's other half may still deliver before it is broken too.
LAST_WORDS = 1.0
HANDSHAKE = 10.0
#: How long a client may take to read an answer of ours, or to begin its first request while we drain.
PATIENCE = 2.0
#: One end closed and nothing moving for so long: nobody is coming back (a kernel forgets such a connection as well).
HALF_CLOSED = 60.0

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Setting:
    """What all pairs of one listener share."""

    route: Route
    means: Means
    backend: Backend
    observer: Observer
    listen_tls: ssl.SSLContext | None
    #: What may pass under `only: declared`; None lets everything pass.
    routes: Routes | None
    closed: Callable[[Pair], None]


class Pair:
    """A client connection from its acceptance to its end."""

    __slots__ = (
        "_broken",
        "_gate",
        "_leaving",
        "_quiet_since",
        "_refusal",
        "_task",
        "_timer",
        "_watch",
        "attentive",
        "backend",
        "born",
        "client",
        "down",
        "draining",
        "is_closed",
        "refused",
        "setting",
        "up",
    )

    def __init__(self, client: socket.socket, setting: Setting, *, refused: bool = False) -> None:
        self.setting = setting
        self.client = client
        self.backend: socket.socket | None = None
        self._watch = Watch(setting.observer)
        self.up: Flow | None = None
        self.down: Flow | None = None
        #: Something is to be done once certain bytes have gone by: see `went_by`.
        self.attentive = False
        self.draining = False
        self.is_closed = False
        self.born = self._quiet_since = setting.means.loop.time()
        self._gate = Gate(setting.routes) if setting.routes is not None else None
        #: A request that the gate refused, to be answered when those before it have been.
        self._refusal: Refused | None = None
        #: There is no room: the first bytes get 503.
        self.refused = refused
        #: Nothing more is relayed; the client only reads what it was sent.
        self._leaving = False
        #: The peer that takes no more bytes, while what it said before is handed on.
        self._broken: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def watch(self) -> Watch:
        """What is known of this connection, with all that went by."""
        self.setting.means.unread.catch_up()
        return self._watch

    # -- until bytes flow

    def start(self) -> None:
        """Wait for the client's first bytes."""
        if self.setting.listen_tls is not None:
            self._task = self.setting.means.loop.create_task(self._greet(self.setting.listen_tls))
        else:
            self._listen()

    async def _greet(self, context: ssl.SSLContext) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE):
                secured = context.wrap_socket(
                    self.client, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=False
                )
                self.client = secured
                await handshake(self.setting.means.loop, secured)
        except (OSError, TimeoutError):
            self.close()
            return
        self._listen()
        self._first_bytes()  # decrypted bytes do not wake the poll

    def _listen(self) -> None:
        self.setting.means.ready.add_reader(self.client, self._first_bytes)
        if self.refused:
            self._after(PATIENCE, self.close)

    def _first_bytes(self) -> None:
        try:
            count = self.client.recv_into(self.setting.means.buffer, MORE)
        except WOULD_BLOCK:
            return
        except OSError:
            count = 0
        if not count:
            self.close()
            return
        first = memoryview(bytes(self.setting.means.buffer[:count]))
        if self.refused:
            self.watch.requests.take(first)
            self.speak(503)
        elif self._gate is None:
            self._begin(first, None)
        else:
            passed, refused = self._gate.take(first)
            if passed:
                self._begin(memoryview(passed), refused)
            elif refused is not None:
                self.refuse(refused)

    def _begin(self, first: memoryview, refused: Refused | None) -> None:
        self.setting.means.ready.remove_reader(self.client)
        self._forget_timer()
        self._task = self.setting.means.loop.create_task(self._open(first, refused))

    async def _open(self, first: memoryview, refused: Refused | None) -> None:
        opened = await self.setting.backend.connect(self.client)
        if isinstance(opened, Unreachable):
            self.watch.requests.take(first)
            self.speak(502)
            return
        self.backend = opened
        means = self.setting.means
        self.down = Flow(self, means, opened, self.client, self._watch.answers)
        self.down.resume()
        if self._gate is None:
            self.up = Flow(self, means, self.client, opened, self._watch.requests)
            self.up.push(first)
        else:
            self.up = gated = GatedFlow(self, means, self.client, opened, self._watch.requests, self._gate)
            gated.follow(first, refused)
        self.up.resume()
        self._look_out()

    # -- ends, as they come

    def source_ended(self, flow: Flow) -> None:
        """A clean end: handed on as one, unless that peer was found broken before."""
        if flow.source is self._broken:
            self._reset(flow.sink)
            return
        if flow is self.down:
            self.watch.answers_ended()
        if self.up and self.down and self.up.ended and self.down.ended:
            self.close()
        else:
            _end_writing(flow.sink)

    def source_broke(self, flow: Flow, fault: OSError) -> None:
        """A reset, or an end without TLS's own goodbye: only between exchanges may the latter pass for a clean end."""
        flow.stop()
        if isinstance(fault, ssl.SSLEOFError) and flow.source is not self._broken and self.watch.idle:
            self.source_ended(flow)
        else:
            self._reset(flow.sink)

    def sink_broke(self, flow: Flow) -> None:
        """A peer that takes no more bytes may have said something before: hand that on, then reset the other side."""
        flow.stop()
        back = self.down if flow is self.up else self.up
        if back is None or back.ended:
            self._reset(flow.source)
            return
        self._broken = flow.sink
        back.resume()
        self._after(LAST_WORDS, self._abort)

    def _reset(self, survivor: socket.socket) -> None:
        """Break the other side as well, once what was handed to it has arrived."""
        self._leaving = True
        self._stop_flows()
        other = self.backend if survivor is self.client else self.client
        if other is not None:
            self._let_go(other)
        self._reset_when_delivered(survivor, self.setting.means.loop.time() + LAST_WORDS)

    def _reset_when_delivered(self, survivor: socket.socket, deadline: float) -> None:
        if _undelivered(survivor) and self.setting.means.loop.time() < deadline:
            self._after(0.01, lambda: self._reset_when_delivered(survivor, deadline))
        else:
            self._abort()

    def _abort(self) -> None:
        for sock in (self.client, self.backend):
            if sock is not None and sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close()

    def close(self) -> None:
        """Let go of everything; whatever is not over is cut."""
        if self.is_closed:
            return
        self.is_closed = True
        self._stop_flows()
        self._forget_timer()
        self._let_go(self.client)
        if self.backend is not None:
            self._let_go(self.backend)
        if self._task is not None and self._task is not asyncio.current_task(self.setting.means.loop):
            self._task.cancel()
        self._task = None
        self._tell_moved()
        self.watch.closed()
        self.setting.closed(self)

    # -- our own words

    def speak(self, status: int, sentence: str | None = None) -> None:
        """Answer in the backend's place, where no byte of an answer was given yet, and end the connection."""
        text = own_answer(status, head_only=self.watch.oldest_method == "HEAD", sentence=sentence)
        self.watch.spoken(status)
        self._say(text)

    def refuse(self, refused: Refused) -> None:
        """Answer a request that may not pass, after the answers to those before it."""
        if refused.in_body and len(self.watch.waiting) == 1 and not self.watch.answer_begun:
            self.speak(refused.status, refused.sentence)
        elif refused.in_body or self.watch.is_opaque:
            self._abort()  # in the middle of an answer nothing else can be said
        elif self.watch.waiting or (self.down is not None and self.down.held_back):
            self._refusal = refused
            self._look_out()
        else:
            self.watch.refused(refused.method, refused.target, refused.status)
            head_only = refused.method == b"HEAD"
            self._say(own_answer(refused.status, head_only=head_only, sentence=refused.sentence, allow=refused.allow))

    def _say(self, text: bytes) -> None:
        try:
            self.client.send(text)
        except OSError:
            self.close()
            return
        self._leave()

    def _leave(self) -> None:
        """End the client's connection so that it can still read what it was sent: closing at once might reset it."""
        self._leaving = True
        self._stop_flows()
        if self.backend is not None:
            if not self.watch.idle:  # what it has of a request must not look whole
                self.backend.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._let_go(self.backend)
        _end_writing(self.client)
        self.setting.means.ready.add_reader(self.client, self._ignore)
        self._after(PATIENCE, self.close)

    def _ignore(self) -> None:
        try:
            if self.client.recv_into(self.setting.means.buffer):
                return
        except WOULD_BLOCK:
            return
        except OSError:
            pass  # gone is as good as ended here
        self.close()

    # -- draining and time

    def drain(self) -> None:
        """Finish the exchanges in flight, then close. A client that only just connected may still begin one."""
        self.draining = True
        self._look_out()
        if self.up is not None:
            self.went_by()
        elif self._task is None:
            self._after(PATIENCE, self.close)

    def went_by(self) -> None:
        """Some bytes were delivered; some of them may be what was waited for."""
        if self._leaving:
            return
        if self._refusal is not None:
            self.refuse(self._refusal)
        elif self._gate is not None and self._gate.awaits_upgrade:
            self._upgrade_answered()
        elif self.draining and self._at_rest():
            self.setting.means.loop.call_soon(self._leave_if_at_rest)

    def _look_out(self) -> None:
        waits = self._gate is not None and self._gate.awaits_upgrade
        self.attentive = self.draining or waits or self._refusal is not None

    def _upgrade_answered(self) -> None:
        if not isinstance(self.up, GatedFlow) or self._gate is None:
            return
        if self.watch.is_opaque and not self.watch.upgraded:
            self._abort()  # nobody can say which language the connection speaks now
        elif self.watch.upgraded or not self.watch.waiting:
            verdict = self._gate.upgraded(self.watch.upgraded)
            self._look_out()
            self.up.follow(*verdict)
            self.up.resume()

    def _leave_if_at_rest(self) -> None:
        if self.is_closed or self.up is None or not self.up.reading or not self._at_rest():
            return
        self.up.read()  # a request that has arrived already is in flight, too
        if not self.is_closed and self._broken is None and not self.up.ended and self._at_rest():
            self._leave()

    def _at_rest(self) -> bool:
        return (
            self.watch.idle
            and (self._gate is None or self._gate.at_boundary)
            and (self.up is None or not self.up.held_back)
            and (self.down is None or not self.down.held_back)
        )

    def abort(self) -> None:
        """The grace period is over: an answer that is cut must not look whole."""
        if not self.is_closed:
            self._abort()

    def tick(self, now: float) -> None:
        """Look after what no event tells: time that passes, and a client that left while nobody was reading it."""
        route = self.setting.route
        if self._tell_moved():
            self._quiet_since = now
        quiet = now - self._quiet_since
        if self._client_is_gone():
            self._abort()
        elif self._leaving:
            return
        elif self._too_slow(now):
            self.speak(408)
        elif route.idle_timeout is not None and quiet >= route.idle_timeout:
            self._leave() if self._at_rest() else self._abort()
        elif quiet >= HALF_CLOSED and self._is_deserted():
            self._abort()

    def _tell_moved(self) -> bool:
        """Tell the observer how many bytes went by since last time, and say whether any did."""
        moved = False
        for flow in (self.up, self.down):
            if flow is not None and flow.moved != flow.told:
                self.setting.observer.relayed("in" if flow is self.up else "out", flow.moved - flow.told)
                flow.told = flow.moved
                moved = True
        return moved

    def _too_slow(self, now: float) -> bool:
        limit = self.setting.route.head_timeout
        return limit is not None and now - self.born >= limit and not (self.watch.seen_a_head or self._answered)

    def _is_deserted(self) -> bool:
        """One end is closed and nobody waits for an answer; a client that ended its side may wait for one."""
        if self.up is None or self.down is None:
            return False
        return self.down.ended or (self.up.ended and self.watch.idle)

    @property
    def _answered(self) -> bool:
        return self.down is not None and self.down.moved > 0

    def _client_is_gone(self) -> bool:
        if self.up is None or self.up.reading or self.client.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self.client, 0)  # errors are always told; a clean end may have bytes before it
        return any(event & select.POLLERR for _, event in poll.poll(0))

    # -- small things

    def _stop_flows(self) -> None:
        for flow in (self.up, self.down):
            if flow is not None:
                flow.stop()

    def _let_go(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0:
            self.setting.means.ready.remove_reader(sock)
            sock.close()

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self._forget_timer()
        self._timer = self.setting.means.loop.call_later(seconds, act)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _end_writing(sock: socket.socket) -> None:
    """Say that nothing more comes, and go on reading."""
    try:
        if isinstance(sock, ssl.SSLSocket):
            with suppress(OSError, ValueError):
                sock.unwrap()  # says goodbye; the peer's goodbye is read like its other bytes
        socket.socket.shutdown(sock, socket.SHUT_WR)  # SSLSocket's own would forget how to decrypt what still comes
    except OSError:
        pass  # the peer is gone, and reading will tell


def _undelivered(sock: socket.socket) -> bool:
    """Whether bytes are still on their way to the peer; a reset would throw them away."""
    if ioctl is None or sock.fileno() < 0:
        return False
    try:
        return ioctl(sock.fileno(), TIOCOUTQ, b"\0\0\0\0") != b"\0\0\0\0"
    except OSError:
        return False
