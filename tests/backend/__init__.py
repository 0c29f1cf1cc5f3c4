"""Requests, the client that sends them, and the decoding of answers."""
