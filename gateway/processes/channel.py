"""What two processes of a gateway say to each other: JSON messages in order, open sockets and files with them.

Knows no message's meaning.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

#: Seconds that the other side may take to make room for a message; it is as good as dead then.
PATIENCE = 10.0
_MOST_SOCKETS = 64

Message = dict[str, Any]


class Channel:
    """One end of a socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE)
        self._sock = sock
        self._begun = b""
        #: Descriptors that came and belong to a message that is not whole yet.
        self._handed: list[int] = []
        #: Kept back so that what is handed finds room where clients have taken all descriptors but these.
        self._spare: list[int] = []
        self._spares = 0

    def reserve(self, count: int = 16) -> None:
        """Keep so many descriptors back for what is handed over."""
        self._spares = count
        self._refill()

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(
        self,
        message: Mapping[str, Any],
        doors: Mapping[str, Sequence[socket.socket]] | None = None,
        kept: int | None = None,
    ) -> bool:
        """Whether it left; where it did not, the other side is gone. `kept` is a file, which stays ours."""
        named = {name: len(sockets) for name, sockets in (doors or {}).items()}
        data = json.dumps({**message, "doors": named, "kept": kept is not None}).encode() + b"\n"
        handed = [sock.fileno() for sockets in (doors or {}).values() for sock in sockets]
        if kept is not None:
            handed.append(kept)
        try:
            sent = socket.send_fds(self._sock, [data], handed) if handed else 0
            self._sock.sendall(data[sent:])
        except OSError:
            return False
        return True

    def receive(self) -> list[Message] | None:
        """Every message that is whole by now, its `doors` being sockets; None once the other side is gone.

        `kept` is the descriptor of a file, for whoever reads the message to close; None where none was handed.
        """
        while self._spare:
            os.close(self._spare.pop())
        try:
            data, numbers, flags, _ = socket.recv_fds(self._sock, 1 << 16, _MOST_SOCKETS)
        except (BlockingIOError, InterruptedError, TimeoutError):
            return []
        except OSError:
            return None
        self._handed += numbers
        self._refill()
        if not data or flags & socket.MSG_CTRUNC:  # what it should have is lost: another one will do better
            return None
        *whole, self._begun = (self._begun + data).split(b"\n")
        return [self._read(line) for line in whole]

    def close(self) -> None:
        self._sock.close()
        for number in (*self._handed, *self._spare):
            os.close(number)

    def _refill(self) -> None:
        try:
            while len(self._spare) < self._spares:
                self._spare.append(os.dup(self._sock.fileno()))
        except OSError:  # as many as there are
            return

    def _read(self, line: bytes) -> Message:
        message: Message = json.loads(line)
        doors = {}
        for name, count in message["doors"].items():
            doors[name] = [_socket(self._handed.pop(0)) for _ in range(count)]
        message["doors"] = doors
        message["kept"] = self._handed.pop(0) if message["kept"] else None
        return message


def _socket(number: int) -> socket.socket:
    handed = socket.socket(fileno=number)
    handed.setblocking(False)  # as it is already for all who share it
    return handed


def pair() -> tuple[Channel, Channel]:
    """Two ends."""
    one, other = socket.socketpair()
    return Channel(one), Channel(other)
