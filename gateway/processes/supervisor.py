"""The first process of a gateway: forks the others, replaces the dead, carries reloads through, ends them in order.

It holds the listening sockets, so that no replacement loses a client, and the memory in which all count. It knows no
contract, imports only the standard library and runs no event loop: nothing in it can be slow or leak.

A process that serves tools loads the contract by itself and says what it takes: `loaded` (with a digest, places and
routes) or `refused`. It serves when told `adopt`, and says `adopted`. A reload asks all for that at once: where all
have loaded the same and every place can be had, all adopt it; else all are told `refuse`, and nothing changes.

With `loaded` comes an anonymous file of what was read. The supervisor keeps that of the contract in use, and whoever
replaces a dead process loads from it: a death changes nothing, whatever stands on the disk by then.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.processes import SAME_SIGNAL
from gateway.processes.channel import Channel, Message, pair
from gateway.processes.doors import Doors, Place, Taken, address_of
from gateway.processes.tally import Tallies

#: What a process does, once forked: its end of the channel, the numbers of all and its part of them, and the file that
#: the contract in use was kept in, where there is one; to an exit code.
Work = Callable[[Channel, Tallies, int, int | None], int]

_PASSTHROUGH = "passthrough."
#: A process that lives so long did not die of its start.
_SETTLED = 10.0
_LONGEST_PAUSE = 10.0
#: Beyond the grace that the contract gives, until a process that drains is killed.
_MERCY = 5.0
#: Loads of one reload, where the files change while they are read.
_LOADS = 3
CPU_OF_THE_DEAD = ("cpu_of_the_dead",)


@dataclass(eq=False, slots=True)
class _Child:
    #: `tools` or `relay`.
    kind: str
    pid: int
    channel: Channel
    part: int
    born: float
    #: Which contract it read, counted: one that was adopted since is another.
    edition: int
    #: It was told to serve, and has all that it takes.
    has_doors: bool = False
    serving: bool = False
    leaving: bool = False
    loaded: Message | None = None


@dataclass(slots=True)
class _Turn:
    """One reload under way: who has not answered yet, and who is to be told how it ended."""

    waiting: set[_Child]
    askers: list[tuple[_Child, int]]
    loads: int = 1
    loaded: list[Message] = field(default_factory=list)
    #: Who loaded it.
    ready: set[_Child] = field(default_factory=set)
    #: What they read.
    kept: int | None = None
    refusals: list[dict[str, Any]] = field(default_factory=list)
    #: The refusals as the log shows them.
    lines: list[str] = field(default_factory=list)
    adopting: bool = False

    def refuse(self, path: str, message: str) -> None:
        """Something other than the contract's text stands in the way."""
        self.refusals.append({"file": "", "line": 1, "column": 1, "path": path, "message": message})
        self.lines.append(f"{path}: {message}" if path else message)


class Supervisor:
    """`run` serves until a signal, and answers the exit code of the command."""

    def __init__(self, workers: int, tools: Work, relay: Work, *, watch: bool = False) -> None:
        self._workers = workers
        self._work: dict[str, Work] = {"tools": tools, "relay": relay}
        self._watch = watch
        #: Who watches the contract's files.
        self._watcher: _Child | None = None
        # a part for this process, one for the relay, and some for those that drain while others have taken over
        self._parts = 3 + 2 * workers + 4
        self._tallies = Tallies(self._parts)
        self._cpu = self._tallies.own(0).cells(CPU_OF_THE_DEAD)
        self._doors = Doors()
        self._selector = selectors.DefaultSelector()
        self._children: list[_Child] = []
        #: What is served, as the process that loaded it said; None until the first has.
        self._current: Message | None = None
        #: What was read of it: the descriptor of an anonymous file.
        self._kept: int | None = None
        self._edition = 0
        #: How the last load ended: what `Reload` is made from.
        self._last: dict[str, Any] = {}
        self._turn: _Turn | None = None
        self._next_askers: list[tuple[_Child, int]] | None = None
        #: When another process of a kind is to be started.
        self._due: list[tuple[float, str]] = []
        self._deaths: dict[str, int] = {"tools": 0, "relay": 0}
        self._stopping: float | None = None
        #: When the signal came that told it to stop.
        self._told = float("-inf")
        self._code = 0

    def run(self) -> int:
        """Start all, and watch over them until they have ended."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        self._selector.register(reader, selectors.EVENT_READ, lambda: self._signalled(reader.recv(256)))
        self._spawn("relay")
        for _ in range(self._workers):
            self._spawn("tools")
        while self._children or (self._due and self._stopping is None):
            for key, _ in self._selector.select(self._until_due()):
                key.data()
            self._start_due()
        return self._code

    # -- signals and time

    def _signalled(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGCHLD:
                self._reap()
            elif number == signal.SIGHUP:
                self._reload([])
            elif number in (signal.SIGINT, signal.SIGTERM):
                if self._stopping is None:
                    self._told = time.monotonic()
                    self._stop()
                elif time.monotonic() - self._told >= SAME_SIGNAL:
                    self._code = 128 + number
                    self._kill()

    def _until_due(self) -> float | None:
        times = [due for due, _ in self._due]
        if self._stopping is not None:
            times = [self._stopping]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _start_due(self) -> None:
        now = time.monotonic()
        if self._stopping is not None:
            if now >= self._stopping:
                self._kill()
                self._stopping = now + _MERCY
            return
        ready = [kind for due, kind in self._due if due <= now]
        self._due = [(due, kind) for due, kind in self._due if due > now]
        for kind in ready:
            self._spawn(kind)

    def _stop(self, code: int = 0) -> None:
        """Let everybody finish what is in flight."""
        self._code = self._code or code
        grace = self._current["shutdown"] if self._current is not None else 0.0
        self._stopping = time.monotonic() + grace + _MERCY
        for kind in ("relay", "tools"):
            able = [child for child in self._children if child.kind == kind and not child.leaving]
            is_served = any(child.serving for child in able)
            for child in able:
                if child.serving:
                    _signal(child.pid, signal.SIGTERM)
                elif not child.has_doors and (is_served or self._current is None):
                    _signal(child.pid, signal.SIGKILL)
            # Where the only one has just died, some may wait at the door: its successor serves them, and ends then.
            if self._current is not None and not able:
                self._spawn(kind)
        self._let_doors_go()

    def _let_doors_go(self) -> None:
        """Once stopping, and all who are to serve have their own: then whoever knocks is told at once that nobody is
        there."""
        if all(child.has_doors or child.leaving for child in self._children):
            self._doors.keep({})

    def _kill(self) -> None:
        for child in self._children:
            _signal(child.pid, signal.SIGKILL)

    # -- processes

    def _spawn(self, kind: str) -> None:
        part = next((part for part in range(1, self._parts) if self._tallies.is_free(part)), None)
        if part is None:  # many drain: whoever ends makes room
            self._due.append((time.monotonic() + 1.0, kind))
            return
        ours, theirs = pair()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            pid = os.fork()
        except OSError as fault:
            ours.close()
            theirs.close()
            self._say("error", f"no process can be started: {fault.strerror}", {})
            self._due.append((time.monotonic() + 1.0, kind))
            return
        if pid == 0:
            ours.close()
            os._exit(self._become(kind, theirs, part))
        theirs.close()
        self._tallies.own(part, pid)
        child = _Child(kind, pid, ours, part, time.monotonic(), self._edition)
        self._children.append(child)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._hear(child))
        if kind == "relay" and self._current is not None:
            self._adopt(child, self._current)

    def _become(self, kind: str, channel: Channel, part: int) -> int:
        """The child's life; whatever happens, it never goes on as a supervisor."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            # A terminal sends them to all, and until it can drain SIGTERM would end it at once: the supervisor decides.
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            self._selector.close()
            for child in self._children:
                child.channel.close()
            self._doors.keep({})
            channel.reserve()
            code = self._work[kind](channel, self._tallies, part, self._kept)
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:  # noqa: BLE001 - said, and then this process ends
            sys.excepthook(*sys.exc_info())
        return code

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            child = next((each for each in self._children if each.pid == pid), None)
            if child is not None:
                self._cpu[0] += usage.ru_utime + usage.ru_stime
                self._bury(child, os.waitstatus_to_exitcode(status))

    def _bury(self, child: _Child, code: int) -> None:
        while messages := child.channel.receive():  # its last words
            self._heed(child, messages)
        self._children.remove(child)
        self._selector.unregister(child.channel)
        child.channel.close()
        self._tallies.bury(child.part)
        self._lose(child)
        if self._stopping is not None:
            self._let_doors_go()
        if self._stopping is not None or child.leaving:
            return
        if self._current is None:
            if not self._code:
                self._say("error", f"a process ended while it started ({_ending(code)})", {})
            self._stop(1)
            return
        lived = time.monotonic() - child.born
        died = self._deaths[child.kind] = 0 if lived > _SETTLED else self._deaths[child.kind] + 1
        pause = min(_LONGEST_PAUSE, 0.1 * 2 ** (died - 2)) if died > 1 else 0.0
        facts = {"kind": child.kind, "pid": child.pid, "ended": _ending(code), "replaced_in": round(pause, 1)}
        self._say("error", "a process died and is replaced", facts)
        self._due.append((time.monotonic() + pause, child.kind))

    # -- messages

    def _hear(self, child: _Child) -> None:
        messages = child.channel.receive()
        if messages is None:
            if not child.leaving and self._stopping is None:
                _signal(child.pid, signal.SIGKILL)  # it can no longer be spoken to
            return
        self._heed(child, messages)

    def _heed(self, child: _Child, messages: list[Message]) -> None:
        for message in messages:
            getattr(self, f"_on_{message['is']}")(child, message)

    def _on_loaded(self, child: _Child, message: Message) -> None:
        child.loaded = message
        turn, kept = self._turn, message.pop("kept", None)
        if turn is not None and child in turn.waiting:
            turn.waiting.discard(child)
            turn.loaded.append(message)
            turn.ready.add(child)
            turn.kept = _instead(turn.kept, kept)
            self._conclude(turn)
        elif self._current is None:
            self._kept = _instead(self._kept, kept)
            self._begin(child, message)
        else:
            _instead(kept, None)
            if child.edition != self._edition:
                self._succeed(child)
            elif message["digest"] == self._current["digest"]:
                self._adopt(child, self._current)
            elif self._stopping is not None:
                _signal(child.pid, signal.SIGKILL)
            else:  # the files have changed since the others read them
                self._reload([])

    def _succeed(self, child: _Child) -> None:
        """It read an earlier contract than is served by now: another one takes its place."""
        if child.serving:
            _signal(child.pid, signal.SIGTERM)  # it says that it is leaving
            return
        child.leaving = True
        _signal(child.pid, signal.SIGKILL)
        if self._stopping is None:
            self._spawn(child.kind)

    def _on_refused(self, child: _Child, message: Message) -> None:
        turn = self._turn
        if turn is not None and child in turn.waiting:
            turn.waiting.discard(child)
            if not turn.refusals:
                turn.refusals, turn.lines = message["refusals"], message["lines"]
            self._conclude(turn)
        elif self._current is None:
            if not self._code and self._stopping is None:
                print(*message["lines"], sep="\n", file=sys.stderr, flush=True)  # noqa: T201 - the command's answer
            self._stop(1)
        else:
            facts = {"refusals": message["lines"]}
            self._say("error", "the contract is refused, so that a dead process cannot be replaced yet", facts)

    def _on_adopted(self, child: _Child, _: Message) -> None:
        child.serving = True
        if self._stopping is not None and not child.leaving:
            _signal(child.pid, signal.SIGTERM)  # it was waited for, to let in who stood at the door
        turn = self._turn
        if turn is not None and turn.adopting and child in turn.waiting:
            turn.waiting.discard(child)
            self._conclude(turn)
        if self._turn is None and child.kind == "tools":
            self._take_next_turn()

    def _on_reload(self, child: _Child, message: Message) -> None:
        self._reload([(child, message["ticket"])])

    def _on_leaving(self, child: _Child, _: Message) -> None:
        """It was told by somebody else to end; another one takes over while it drains."""
        if child.leaving:  # told twice
            return
        child.leaving = True
        self._lose(child)
        if self._stopping is None:
            self._spawn(child.kind)

    def _say(self, level: str, message: str, facts: Mapping[str, Any]) -> None:
        """Log it through a process that knows how; where there is none, plainly."""
        for child in self._children:
            if child.kind == "tools" and child.serving and not child.leaving:
                child.channel.send({"is": "log", "level": level, "message": message, "facts": dict(facts)})
                return
        if level == "info":
            return
        if self._current is not None and self._current["log"]["form"] == "json":
            now = time.time()
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
            line = json.dumps({"time": at, "level": level, "logger": "toolview", "message": message, **facts})
        else:
            line = f"toolview: {message}" + "".join(f" {name}={value}" for name, value in facts.items())
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - nobody is there who has a log

    # -- the contract

    def _begin(self, child: _Child, loaded: Message) -> None:
        """The first contract: everything that it wants, or the command ends."""
        doors = self._doors.open(_places(loaded))
        if isinstance(doors, tuple):
            if not self._code and self._stopping is None:
                for taken in doors:
                    print(f"toolview: {taken}", file=sys.stderr, flush=True)  # noqa: T201 - the command's answer
            self._stop(1)
            return
        self._current = loaded
        self._last = {"at": (now := time.time()), "ok": True, "refusals": [], "accepted_at": now}
        self._adopt(child, loaded, first=True)
        for other in self._children:
            if other.kind == "relay":
                self._adopt(other, loaded)
            elif other is not child and other.loaded is not None:
                self._on_loaded(other, other.loaded)

    def _adopt(self, child: _Child, contract: Message, *, first: bool = False) -> None:
        doors = self._doors.open(_places(contract))
        assert not isinstance(doors, tuple), "they are open already"
        message: Message = {"is": "adopt", "reload": self._last, "first": first, "shutdown": contract["shutdown"]}
        message["addresses"] = {name: address_of(each) for name, each in doors.items()}
        if child.kind == "relay":
            message |= {"routes": contract["routes"], "log": contract["log"]}
        else:
            if self._watch and (self._watcher is None or self._watcher not in self._children or self._watcher.leaving):
                self._watcher = child
            message["watch"] = self._watcher is child
        wanted = {
            name: each for name, each in doors.items() if name.startswith(_PASSTHROUGH) == (child.kind == "relay")
        }
        child.channel.send(message, wanted)
        child.has_doors = True
        if self._stopping is not None:
            self._let_doors_go()

    def _reload(self, askers: list[tuple[_Child, int]]) -> None:
        if self._current is None or self._stopping is not None:
            return
        if self._turn is not None:  # what runs may have read the files before they were as they are now
            self._next_askers = (self._next_askers or []) + askers
            return
        self._turn = _Turn(self._loaders(), askers)
        for child in self._turn.waiting:
            child.channel.send({"is": "load"})
        self._conclude(self._turn)

    def _loaders(self) -> set[_Child]:
        able = (child.serving or child.loaded is not None for child in self._children)
        return {
            child
            for child, is_able in zip(self._children, able, strict=True)
            if child.kind == "tools" and is_able and not child.leaving
        }

    def _conclude(self, turn: _Turn) -> None:
        """Go on where nobody is waited for any more."""
        if turn.waiting or turn is not self._turn:
            return
        if self._stopping is not None:  # its doors may be shut by now
            self._turn, turn.kept = None, _instead(turn.kept, None)
            return
        if not turn.adopting and not turn.loaded and not turn.refusals:  # nobody was left to load it: a successor will
            self._turn, self._next_askers = None, turn.askers + (self._next_askers or [])
            return
        if turn.adopting:
            assert self._current is not None
            self._doors.keep(_places(self._current))
            self._say("info", "the contract was reloaded", {"contract": self._current["contract"]})
            self._end(turn)
            return
        if not turn.refusals and len({message["digest"] for message in turn.loaded}) > 1:
            if turn.loads < _LOADS:
                turn.loads, turn.loaded, turn.ready, turn.waiting = turn.loads + 1, [], set(), self._loaders()
                for child in turn.waiting:
                    child.channel.send({"is": "load"})
                return
            turn.refuse("", "the files changed while they were read; reload once they are written")
        if not turn.refusals:
            doors = self._doors.open(_places(turn.loaded[0]))
            if not isinstance(doors, tuple):
                self._carry_through(turn)
                return
            for taken in doors:
                turn.refuse(_path_of(taken), str(taken))
        for line in turn.lines:
            self._say("error", "the contract was refused", {"refusal": line})
        self._last = {**self._last, "at": time.time(), "ok": False, "refusals": turn.refusals}
        for child in self._loaders():
            if child.has_doors:
                child.channel.send({"is": "refuse", "reload": self._last})
            else:  # it has loaded what nobody serves: another one may have more luck
                _signal(child.pid, signal.SIGKILL)
        self._end(turn)

    def _carry_through(self, turn: _Turn) -> None:
        self._current = turn.loaded[0]
        self._kept, turn.kept = _instead(self._kept, turn.kept), None
        self._edition += 1
        self._last = {"at": (now := time.time()), "ok": True, "refusals": [], "accepted_at": now}
        turn.adopting = True
        loaders = self._loaders()
        relays = {child for child in self._children if child.kind == "relay" and not child.leaving}
        turn.waiting = loaders & turn.ready | relays
        for child in list(turn.waiting):
            child.edition = self._edition
            self._adopt(child, self._current)
        for child in loaders - turn.ready:  # it took a dead one's place meanwhile, from what was served then
            self._succeed(child)
        self._conclude(turn)

    def _end(self, turn: _Turn) -> None:
        for child, ticket in turn.askers:
            if child in self._children:
                child.channel.send({"is": "ended", "ticket": ticket, "reload": self._last})
        turn.kept = _instead(turn.kept, None)
        self._turn = None
        self._take_next_turn()

    def _take_next_turn(self) -> None:
        if self._next_askers is not None:
            askers, self._next_askers = self._next_askers, None
            self._reload(askers)

    def _lose(self, child: _Child) -> None:
        """Nothing more is to be expected of it."""
        if self._turn is not None:
            self._turn.waiting.discard(child)
            self._conclude(self._turn)


def refused(refusals: Sequence[Any]) -> Message:
    """What a process says of a contract that cannot be served: its refusals, as values and as lines."""
    return {
        "is": "refused",
        "refusals": [each.as_json() for each in refusals],
        "lines": [str(each) for each in refusals],
    }


_SIGNALS = (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def _places(loaded: Message) -> dict[str, Place]:
    return {name: (host, port) for name, (host, port) in loaded["places"].items()}


def _path_of(taken: Taken) -> str:
    """Which key of the contract wants what cannot be had."""
    backend = taken.name.removeprefix(_PASSTHROUGH)
    return f"gateway.{backend}.listen" if backend == taken.name else f"backends.{backend}.passthrough"


def _instead(before: int | None, now: int | None) -> int | None:
    """One descriptor in the place of another, which is closed."""
    if before is not None:
        os.close(before)
    return now


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
