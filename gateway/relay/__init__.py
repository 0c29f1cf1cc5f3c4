"""The pass-through: bytes both ways, observed, never rewritten; knows no contract, view, schema, call or aiohttp."""

from __future__ import annotations

from gateway.relay.listen import Relay
from gateway.relay.observe import Observer, Silent
from gateway.relay.relays import Relays
from gateway.relay.route import BackendTls, ListenTls, Route

__all__ = ["BackendTls", "ListenTls", "Observer", "Relay", "Relays", "Route", "Silent"]
