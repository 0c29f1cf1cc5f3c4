"""Toolview: a sidecar gateway that shows agents a declared view of an HTTP API and leaves its plain HTTP alone."""

__version__ = "0.1.0"
