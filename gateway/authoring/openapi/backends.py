"""The backends that a description names: a URL each, and in comments what cannot be carried over. Knows no endpoint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from gateway.authoring.openapi.normal import Api, Credential, Operation
from gateway.authoring.openapi.yaml_text import Commented, write_yaml
from gateway.contract.refusal import printable
from gateway.contract.values import Malformed
from gateway.contract.values import url as checked_url

Json = Any


@dataclass
class Backends:
    """One for the description's first server, one for each other that operations name for themselves."""

    api: Api
    #: What is asked for instead of the description's servers.
    url: str | None = None
    by_name: dict[str, Commented] = field(default_factory=dict)
    _by_server: dict[str, str] = field(default_factory=dict)

    def add(self, operations: Sequence[Operation]) -> None:
        """The backends that these operations need."""
        base = _slug(self.api.title) or "api"
        if self.url is not None:
            self._add(base, (self.url,), "")
            return
        if not operations or any(not each.servers for each in operations):
            self._add(base, self.api.servers or ("",), "#/host" if self.api.dialect == "2.0" else "#/servers")
        for operation in operations:
            if operation.servers:
                self._add(base, operation.servers, operation.at.get("servers").place)

    def of(self, operation: Operation) -> str:
        """The name of an operation's backend."""
        if self.url is not None:
            return next(iter(self.by_name))
        servers = operation.servers or self.api.servers or ("",)
        return self._by_server[servers[0]]

    def _add(self, base: str, servers: Sequence[str], place: str) -> None:
        if servers[0] in self._by_server:
            return
        name, count = base, 2
        while name in self.by_name:
            name, count = f"{base}-{count}", count + 1
        url, said = _usable(servers)
        others = [each for each in servers if each != servers[0]]
        told = [said] if said else []
        if others:
            told.append(f"other servers are described and not carried over: {', '.join(others[:10])}")
        for each in told:
            self.api.description.notes.add(place, each)
        backend = Commented(url=url)
        backend.above["url"] = told
        backend.below = [_PASSTHROUGH, *_credentials(self.api.credentials)]
        self.by_name[name], self._by_server[servers[0]] = backend, name


_PASSTHROUGH = "passthrough: 127.0.0.1:8080 # today's clients connect here, and every byte passes unchanged"


def _credentials(credentials: Sequence[Credential]) -> list[str]:
    """How the description says that callers prove who they are, and what that would be in a contract."""
    lines = ["the description asks for:"] if credentials else []
    for credential in credentials:
        lines.append(f"{credential.name}: {credential.said}")
        if credential.auth is not None:
            shown = write_yaml({"auth": credential.auth}).rstrip("\n").split("\n")
            lines += [f"  {line}" for line in shown]
    return lines


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")


_NO_HOST = "the description names no host; write where the API is"


def _usable(servers: Sequence[str]) -> tuple[str, str | None]:
    """A URL for the backend, and what there is to say of it."""
    for server in servers:
        try:
            parts = urlsplit(server)
            bare = f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        except ValueError:
            continue
        if not isinstance(checked_url(bare), Malformed):
            rest = (
                "its credentials, query and fragment are not carried over"
                if bare.rstrip("/") != server.rstrip("/") and (parts.query or parts.fragment or "@" in parts.netloc)
                else None
            )
            return bare, rest
    path = servers[0] if servers and servers[0].startswith("/") and not servers[0].startswith("//") else ""
    bare = f"http://127.0.0.1:8000{path.rstrip('/')}"
    usable = path and not isinstance(checked_url(bare), Malformed)
    known = (
        _NO_HOST
        if not servers or not servers[0] or path
        else f"{printable(servers[0])[:200]} is no http or https URL; write where the API is"
    )
    return (bare if usable else "http://127.0.0.1:8000"), known
