"""Signed tokens: a key set's text to keys, a token to its claims or to why it is none. Pure; knows no socket or tool.

Only signatures that prove a private key are known here. A key decides which algorithms it may check, so a token cannot
have a public key taken for a shared secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from gateway import json_text
from gateway.json_pointer import follow
from gateway.record import record

if TYPE_CHECKING:
    from jwt import PyJWK

    from gateway.contract.model import Jwt

#: RFC 7515 section 3.1; an empty signature is a token that nobody signed.
looks_signed = re.compile(r"[A-Za-z0-9_-]{1,4096}\.[A-Za-z0-9_-]{1,16384}\.[A-Za-z0-9_-]{1,4096}").fullmatch

_LEAST_RSA_BITS = 2048
_MOST_KEYS = 100
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",)}
_EDWARDS = {"Ed25519": ("EdDSA",), "Ed448": ("EdDSA",)}


class Fault(Enum):
    """Why a token is refused, in words for the log: nothing of the token is in them."""

    MALFORMED = "it is no signed token"
    ALGORITHM = "its algorithm is not one of those that the contract names"
    UNKNOWN_KEY = "no known key has its key id"
    SIGNATURE = "its signature is not right"
    EXPIRED = "it has expired"
    EARLY = "it is not valid yet"
    ISSUER = "its issuer is another"
    AUDIENCE = "it is for another audience"
    CLAIMS = "its claims are not as they must be"
    NOBODY = "it names nobody: it has no `sub`, `client_id` or `azp`"


@record
class SigningKey:
    """One public key of a set, and the algorithms that it may check."""

    kid: str | None
    algorithms: tuple[str, ...]
    #: By algorithm, ready to check.
    ready: Mapping[str, PyJWK]


@record
class Claims:
    """What a good token says of who holds it, and until when."""

    name: str
    scopes: frozenset[str]
    until: float


def read_key_set(text: bytes) -> tuple[SigningKey, ...] | str:
    """The keys of a set that can check a signature; or why there is none. What is not known is left (RFC 7517 §5)."""
    document = json_text.parse(text)
    written = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(written, list):
        return "it is no JSON object with a list of `keys`"
    keys = tuple(key for jwk in written[:_MOST_KEYS] if (key := _signing_key(jwk)) is not None)
    return keys or "it holds no public key that can check a signature"


def check(token: str, keys: Sequence[SigningKey], wanted: Jwt) -> Claims | Fault:
    """What a token claims, where one of these keys signed it and it is meant for this gateway, now."""
    import jwt

    header = _header(token)
    if header is None:
        return Fault.MALFORMED
    kid, algorithm = header
    if algorithm not in wanted.algorithms:
        return Fault.ALGORITHM
    # A token without a key id is checked with every key that fits its algorithm (RFC 7515 §4.1.4 leaves it optional).
    fitting = [key for key in keys if kid in (None, key.kid) and algorithm in key.algorithms]
    if not fitting:
        return Fault.UNKNOWN_KEY
    for key in fitting:
        try:
            claims = jwt.decode(
                token,
                key.ready[algorithm],
                algorithms=[algorithm],
                issuer=wanted.issuer,
                audience=wanted.audience,
                leeway=wanted.leeway,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.InvalidSignatureError:
            continue
        except Exception as fault:  # noqa: BLE001 - a stranger wrote it; whatever it breaks, it is refused
            return _fault(fault)
        return _claims(claims, wanted)
    return Fault.SIGNATURE


def _signing_key(jwk: Any) -> SigningKey | None:
    import jwt

    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
        return None
    operations = jwk.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    algorithms = _algorithms(jwk)
    kid = jwk.get("kid")
    if not algorithms or not (kid is None or isinstance(kid, str)):
        return None
    public = {name: value for name, value in jwk.items() if name not in _PRIVATE}
    try:
        ready = {algorithm: jwt.PyJWK(public, algorithm) for algorithm in algorithms}
    except Exception:  # noqa: BLE001 - numbers that are no key; the others of the set may be
        return None
    bits = getattr(ready[algorithms[0]].key, "key_size", None)
    if jwk["kty"] == "RSA" and (bits is None or bits < _LEAST_RSA_BITS):  # RFC 7518 section 3.3
        return None
    return SigningKey(kid, algorithms, ready)


#: RFC 7518 section 6: of a private key only its public part is read.
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


def _algorithms(jwk: Mapping[str, Any]) -> tuple[str, ...]:
    """What a key may check: what its kind can, and no more than its own `alg` says."""
    kind, curve = jwk.get("kty"), jwk.get("crv")
    able: tuple[str, ...] = ()
    if kind == "RSA":
        able = _RSA
    elif isinstance(curve, str) and kind in ("EC", "OKP"):
        able = (_CURVES if kind == "EC" else _EDWARDS).get(curve, ())
    own = jwk.get("alg")
    if own in ("Ed25519", "Ed448"):  # RFC 9864's names for what tokens still call EdDSA
        own = "EdDSA"
    return able if own is None else tuple(algorithm for algorithm in able if algorithm == own)


def _header(token: str) -> tuple[str | None, str] | None:
    """Key id and algorithm, as the token says; None where it says them in no way that can be read."""
    import jwt

    try:
        header = jwt.get_unverified_header(token)
    except Exception:  # noqa: BLE001 - a stranger wrote it
        return None
    kid, algorithm = header.get("kid"), header.get("alg")
    if not isinstance(algorithm, str) or not (kid is None or isinstance(kid, str)):
        return None
    return kid, algorithm


def _fault(fault: Exception) -> Fault:
    import jwt

    match fault:
        case jwt.ExpiredSignatureError():
            return Fault.EXPIRED
        case jwt.ImmatureSignatureError():
            return Fault.EARLY
        case jwt.InvalidIssuerError():
            return Fault.ISSUER
        case jwt.InvalidAudienceError():
            return Fault.AUDIENCE
        case _:
            return Fault.CLAIMS


def _claims(claims: Mapping[str, Any], wanted: Jwt) -> Claims | Fault:
    holder = next((claims[name] for name in ("sub", "client_id", "azp") if isinstance(claims.get(name), str)), "")
    if not holder.strip():
        return Fault.NOBODY
    until = claims["exp"]
    if type(until) not in (int, float):  # RFC 7519 section 2, "NumericDate": a number, and no text that reads like one
        return Fault.CLAIMS
    try:
        until = float(until) + wanted.leeway
    except OverflowError:
        return Fault.CLAIMS
    # Two issuers, or an issuer and a static key, may use one name for two callers.
    return Claims(f"{holder[:200]}@{wanted.issuer}", _scopes(claims, wanted.scopes), until)


def _scopes(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """A claim's scopes, as one text (RFC 8693 §4.2) or a list; what is neither gives none."""
    found = follow(claims, claim) if claim.startswith("/") else claims.get(claim)
    if isinstance(found, str):
        return frozenset(found.split(" ")) - {""}
    return frozenset(each for each in found if isinstance(each, str)) if isinstance(found, list) else frozenset()
