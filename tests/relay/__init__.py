"""The relay, seen from raw sockets on both sides."""
