"""Who speaks: an `Authorization` header to a principal with scopes, or to nobody. Knows no tool and no HTTP library."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.contract.model import ApiKey, Auth


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever holds a key: the name for logs, and what they may do."""

    name: str
    scopes: frozenset[str]


class Principals:
    """Everybody that `gateway.auth` knows; where that names nobody, nobody gets in."""

    def __init__(self, auth: Auth) -> None:
        self._keys = tuple((key.sha256.lower().encode(), _principal(key)) for key in auth.keys)

    def of(self, authorization: Sequence[str]) -> Principal | None:
        """Whose key the one `Authorization: Bearer` header carries."""
        if len(authorization) != 1:
            return None
        scheme, _, key = authorization[0].strip().partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            return None
        digest = hashlib.sha256(key.strip().encode("utf-8", "surrogateescape")).hexdigest().encode()
        found = None
        # Every key is compared, whichever fits: the time tells nothing of which keys there are.
        for known, principal in self._keys:
            if hmac.compare_digest(digest, known):
                found = found or principal
        return found


def principals_of(auth: Callable[[], Auth | None]) -> Callable[[], Principals | None]:
    """The principals of whatever `gateway.auth` is being served, made anew where that has changed; None without one."""
    made: list[tuple[Auth | None, Principals | None]] = [(None, None)]

    def current() -> Principals | None:
        wanted = auth()
        if made[0][0] is not wanted:
            made[0] = (wanted, None if wanted is None else Principals(wanted))
        return made[0][1]

    return current


def _principal(key: ApiKey) -> Principal:
    return Principal(key.name, frozenset(key.scopes))
