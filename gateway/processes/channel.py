"""What two processes of a gateway say to each other: JSON messages in order, and open sockets along with them.

Knows no message's meaning.
"""

from __future__ import annotations

import json
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
        self._sockets: list[socket.socket] = []

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, message: Mapping[str, Any], doors: Mapping[str, Sequence[socket.socket]] | None = None) -> bool:
        """Whether it left; where it did not, the other side is gone."""
        named = {name: len(sockets) for name, sockets in (doors or {}).items()}
        data = json.dumps({**message, "doors": named}).encode() + b"\n"
        handed = [sock.fileno() for sockets in (doors or {}).values() for sock in sockets]
        try:
            sent = socket.send_fds(self._sock, [data], handed) if handed else 0
            self._sock.sendall(data[sent:])
        except OSError:
            return False
        return True

    def receive(self) -> list[Message] | None:
        """Every message that is whole by now, its `doors` being sockets; None once the other side is gone."""
        try:
            data, numbers, _, _ = socket.recv_fds(self._sock, 1 << 16, _MOST_SOCKETS)
        except (BlockingIOError, InterruptedError, TimeoutError):
            return []
        except OSError:
            return None
        for number in numbers:
            handed = socket.socket(fileno=number)
            handed.setblocking(False)  # as it is already for all who share it
            self._sockets.append(handed)
        if not data:
            return None
        *whole, self._begun = (self._begun + data).split(b"\n")
        return [self._read(line) for line in whole]

    def close(self) -> None:
        self._sock.close()
        for each in self._sockets:
            each.close()

    def _read(self, line: bytes) -> Message:
        message: Message = json.loads(line)
        doors = {}
        for name, count in message["doors"].items():
            doors[name], self._sockets = self._sockets[:count], self._sockets[count:]
        message["doors"] = doors
        return message


def pair() -> tuple[Channel, Channel]:
    """Two ends."""
    one, other = socket.socketpair()
    return Channel(one), Channel(other)
