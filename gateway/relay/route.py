"""What one pass-through listener is told: plain values that can cross to another process; nothing is opened here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ListenTls:
    """Files that make the listener speak TLS."""

    cert: str
    key: str


@dataclass(frozen=True, slots=True)
class BackendTls:
    """How to speak TLS to the backend; `server_name` where the name to verify is not the backend's host."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One listener and the backend behind it. Durations are seconds; None means no limit."""

    name: str
    listen_host: str
    listen_port: int
    backend_host: str
    backend_port: int
    #: Path of a unix socket to connect to instead of host and port.
    backend_socket: str | None = None
    backend_tls: BackendTls | None = None
    listen_tls: ListenTls | None = None
    #: `proxy-v2` sends one PROXY protocol header before the client's first byte.
    client_address: Literal["none", "proxy-v2"] = "none"
    max_connections: int | None = None
    #: A connection on which no byte moved for so long is closed.
    idle_timeout: float | None = None
    #: For all addresses of the backend together, TLS included.
    connect_timeout: float = 3.0
    #: A client whose first head is not whole after so long is answered 408.
    head_timeout: float | None = None
    #: `only: declared`: the (method, path template) pairs that may pass; None lets everything pass.
    declared: tuple[tuple[str, str], ...] | None = None


def plain_of(route: Route) -> dict[str, Any]:
    """What JSON can carry to another process."""
    return asdict(route)


def route_of(plain: dict[str, Any]) -> Route:
    """The route that `plain_of` was made of."""
    told = dict(plain)
    for key, kind in (("backend_tls", BackendTls), ("listen_tls", ListenTls)):
        if told[key] is not None:
            told[key] = kind(**told[key])
    if told["declared"] is not None:
        told["declared"] = tuple((method, path) for method, path in told["declared"])
    return Route(**told)
