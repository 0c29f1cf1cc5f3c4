"""An issuer for tests: keys of every kind, tokens signed with them, and a key set as its server would give it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER = "https://issuer.example"
AUDIENCE = "https://gateway.example/mcp"

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def private(name: str) -> Private:
    """One key for each name that begins with its kind: `rsa…`, `weak…`, `ec…`, `ed…`."""
    if name.startswith("rsa"):
        return rsa.generate_private_key(65537, 2048)
    if name.startswith("weak"):
        return rsa.generate_private_key(65537, 1024)
    if name.startswith("ed"):
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def public(name: str, **more: Any) -> dict[str, Any]:
    """The public half of a key as a JWK."""
    key: Any = private(name).public_key()
    kind: Any = {
        "rsa": jwt.algorithms.RSAAlgorithm,
        "wea": jwt.algorithms.RSAAlgorithm,
        "ec-": jwt.algorithms.ECAlgorithm,
        "ed-": jwt.algorithms.OKPAlgorithm,
    }[name[:3]]
    return {**kind.to_jwk(key, as_dict=True), "kid": name, **more}


def key_set(*names: str, **more: Any) -> bytes:
    return json.dumps({"keys": [public(name, **more) for name in names]}).encode()


def claims(**more: Any) -> dict[str, Any]:
    """The claims of a good token; None takes one out."""
    now = int(time.time())
    told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, "scope": "read", **more}
    return {name: value for name, value in told.items() if value is not None}


def token(name: str = "ec-1", algorithm: str = "ES256", headers: Mapping[str, Any] | None = None, **more: Any) -> str:
    """A token that a key signed; a header that is None is left out."""
    told: dict[str, Any] = {"kid": name, **(headers or {})}
    given = {key: value for key, value in told.items() if value is not None}
    return jwt.encode(claims(**more), private(name), algorithm, headers=given)


def forged(header: Any, payload: Any, signature: bytes = b"x") -> str:
    """Any three parts as they would stand in a token."""

    def part(value: Any) -> str:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    return ".".join([part(header), part(payload), part(signature)])
