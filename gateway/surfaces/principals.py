"""Who speaks: an `Authorization` header to a principal with scopes, or to a stranger. Knows no HTTP library.

A static key is looked up; a signed token is checked once and remembered until it ends, so that the calls that follow
cost a digest. What a principal may use is the generation's to say (`may_use`).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from urllib.parse import urlsplit

from gateway.contract.model import ApiKey, Auth, Contract, Jwt
from gateway.generation import may_use
from gateway.record import record
from gateway.surfaces.key_set import KeySet
from gateway.surfaces.signing import Claims, Fault, SigningKey, check, looks_signed

log = logging.getLogger("toolview.auth")

#: RFC 9728 section 3: where a client asks who gives out tokens for this gateway.
METADATA = "/.well-known/oauth-protected-resource"

#: Tokens that are remembered; the one that has waited longest goes first.
_REMEMBERED = 1024


@record
class Principal:
    """Whoever speaks: the name for logs and limits, and what they may do."""

    name: str
    scopes: frozenset[str]
    #: Whether a token says so, which its holder may exchange for one that says more.
    by_token: bool = False


class Stranger(Enum):
    """Why nobody is known by a header."""

    SILENT = "no key and no token was sent"
    REFUSED = "the key or token is none that the gateway takes"
    #: Nothing is wrong with the token as far as anyone can tell: the keys to check it with were never had.
    UNCHECKED = "the gateway has no keys to check a token with"


class Principals:
    """Everybody that `gateway.auth` knows; where that names nobody, nobody gets in."""

    def __init__(self, auth: Auth, contract: Contract | None = None, key_set: KeySet | None = None) -> None:
        self._keys = tuple((key.sha256.lower().encode(), _principal(key)) for key in auth.keys)
        self._jwt, self._key_set = auth.jwt, key_set
        self._known: dict[bytes, tuple[Principal, float, tuple[SigningKey, ...]]] = {}
        endpoints = () if contract is None else contract.endpoints.values()
        self._tools = tuple(endpoint for endpoint in endpoints if endpoint.tool is not None)
        #: What a client is told to ask its authorization server for.
        self.scopes = _told(auth, (endpoint.scopes for endpoint in self._tools))
        self.metadata = None if auth.oauth is None else metadata_url(auth.oauth.resource)

    def of(self, authorization: Sequence[str]) -> Principal | None:
        """Whose key, or whose remembered token, the one `Authorization: Bearer` header carries."""
        sent = _bearer(authorization)
        if sent is None:
            return None
        raw = hashlib.sha256(sent.encode("utf-8", "surrogateescape"))
        found = None
        if self._keys:
            digest = raw.hexdigest().encode()
            # Every key is compared, whichever fits: the time tells nothing of which keys there are.
            for known, principal in self._keys:
                if hmac.compare_digest(digest, known):
                    found = found or principal
        return found if found is not None or not self._known else self._remembered(raw.digest())

    async def introduce(self, authorization: Sequence[str]) -> Principal | Stranger:
        """Who a header speaks for that `of` does not know: a new token is checked, perhaps with keys yet to be read."""
        sent = _bearer(authorization)
        if sent is None:
            return Stranger.REFUSED if any(authorization) else Stranger.SILENT
        if self._jwt is None or self._key_set is None:
            return Stranger.REFUSED
        claims = await self._checked(sent, self._jwt, self._key_set)
        if not isinstance(claims, Claims):
            log.info("a token was refused", extra={"reason": claims.value})
            return claims if isinstance(claims, Stranger) else Stranger.REFUSED
        principal = Principal(claims.name, claims.scopes, by_token=True)
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[hashlib.sha256(sent.encode()).digest()] = (principal, claims.until, self._key_set.keys)
        return principal

    def wants(self, principal: Principal) -> tuple[str, ...]:
        """The scopes that a token must be exchanged for, where it opens no tool at all; none for whoever may go on."""
        if not principal.by_token or not self._tools:
            return ()
        return () if any(may_use(tool, principal.scopes) for tool in self._tools) else self.scopes

    async def _checked(self, token: str, jwt: Jwt, key_set: KeySet) -> Claims | Fault | Stranger:
        if not looks_signed(token):
            return Fault.MALFORMED
        keys = await key_set.current()
        if not keys:
            return Stranger.UNCHECKED
        found = check(token, keys, jwt)
        if found is Fault.UNKNOWN_KEY:  # its issuer may have a new one
            await key_set.again()
            if key_set.keys is not keys:
                found = check(token, key_set.keys, jwt)
        return found

    def _remembered(self, digest: bytes) -> Principal | None:
        """Whoever holds a token that was found good, while it lasts and while the same keys are known."""
        found = self._known.get(digest)
        if found is None or self._key_set is None or not self._key_set.at_hand():
            return None
        principal, until, keys = found
        if time.time() < until and keys is self._key_set.keys:
            return principal
        del self._known[digest]
        return None


class Doorman:
    """The principals of whatever contract is being served, made anew where that has changed."""

    def __init__(self, contract: Callable[[], Contract]) -> None:
        self._contract = contract
        self._made: tuple[Contract, Principals | None] | None = None
        self._key_set: KeySet | None = None
        self._source: tuple[str, str | None] | None = None

    def principals(self) -> Principals | None:
        """Who may speak; None where nobody has to prove who they are."""
        contract = self._contract()
        if self._made is None or self._made[0] is not contract:
            auth = contract.gateway.auth
            self._made = contract, None if auth is None else Principals(auth, contract, self._keys_of(auth.jwt))
        return self._made[1]

    async def ready(self) -> None:
        """Read the key set, where there is one, so that no first caller waits for it."""
        if self.principals() is not None and self._key_set is not None:
            await self._key_set.again()

    async def renew(self) -> None:
        """Another contract is served: its key set is read now, also where the one before named the same."""
        if self.principals() is not None and self._key_set is not None:
            await self._key_set.renew()

    async def close(self) -> None:
        if self._key_set is not None:
            await self._key_set.close()

    def _keys_of(self, jwt: Jwt | None) -> KeySet | None:
        """The key set of a contract; where a new contract names the same, what is known of it goes on being known."""
        source = None if jwt is None else (jwt.jwks, jwt.ca)
        if source != self._source:
            self._source = source
            self._key_set = None if jwt is None else KeySet(jwt.jwks, jwt.ca)
        if jwt is not None and self._key_set is not None:
            self._key_set.refresh = jwt.refresh
        return self._key_set


def metadata_url(resource: str) -> str:
    """Where a protected resource's metadata are (RFC 9728 section 3.1): between its host and its path."""
    parts = urlsplit(resource)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{METADATA}{path}"


def _bearer(authorization: Sequence[str]) -> str | None:
    if len(authorization) != 1:
        return None
    scheme, _, sent = authorization[0].strip().partition(" ")
    return sent.strip() or None if scheme.lower() == "bearer" else None


def _told(auth: Auth, needed: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """The scopes that clients are told to ask for: those that the operator names, else every tool's."""
    if auth.oauth is not None and auth.oauth.scopes is not None:
        return auth.oauth.scopes
    return tuple(sorted(frozenset().union(*needed)))


def _principal(key: ApiKey) -> Principal:
    return Principal(key.name, frozenset(key.scopes))
