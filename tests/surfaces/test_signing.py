"""Signed tokens: who a good one names, and that nothing but a right signature for this gateway, now, is one."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from gateway.contract.model import Jwt
from gateway.surfaces.signing import Claims, Fault, SigningKey, check, looks_signed, read_key_set
from tests.surfaces.tokens import AUDIENCE, ISSUER, claims, forged, key_set, private, public, token

WANTED = Jwt.model_construct(
    jwks="", issuer=ISSUER, audience=AUDIENCE, scopes="scope", leeway=30.0, algorithms=("RS256", "ES256", "EdDSA")
)


def keys(*names: str, **more: Any) -> tuple[SigningKey, ...]:
    found = read_key_set(key_set(*names, **more))
    assert isinstance(found, tuple), found
    return found


ALL = keys("rsa-1", "ec-1", "ed-1")


@pytest.mark.parametrize(("name", "algorithm"), [("rsa-1", "RS256"), ("ec-1", "ES256"), ("ed-1", "EdDSA")])
def test_a_token_of_each_kind_of_key_names_its_holder(name: str, algorithm: str) -> None:
    told = check(token(name, algorithm, scope="read write"), ALL, WANTED)
    assert isinstance(told, Claims)
    assert (told.name, told.scopes) == (f"ann@{ISSUER}", frozenset({"read", "write"}))
    assert time.time() < told.until < time.time() + 640


@pytest.mark.parametrize(
    ("claim", "given", "scopes"),
    [
        ("scope", {"scope": "a b  c"}, {"a", "b", "c"}),
        ("scope", {"scope": ["a", "b", 7, None]}, {"a", "b"}),
        ("scope", {"scope": {"a": 1}}, set()),
        ("scope", {"scope": None}, set()),
        ("scp", {"scp": ["x"]}, {"x"}),
        ("https://login.example/roles", {"https://login.example/roles": ["y"]}, {"y"}),
        ("/realm/roles", {"realm": {"roles": ["z"]}}, {"z"}),
        ("/realm/roles", {"realm": 7}, set()),
    ],
)
def test_scopes_are_read_from_the_declared_claim_as_text_or_list(
    claim: str, given: dict[str, Any], scopes: set[str]
) -> None:
    told = check(token(**given), ALL, WANTED.model_copy(update={"scopes": claim}))
    assert isinstance(told, Claims)
    assert told.scopes == scopes


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"exp": int(time.time()) - 60}, Fault.EXPIRED),
        ({"exp": None}, Fault.CLAIMS),
        ({"exp": "soon"}, Fault.CLAIMS),
        ({"exp": str(int(time.time()) + 86_400)}, Fault.CLAIMS),
        ({"exp": 1e400}, Fault.CLAIMS),
        ({"exp": True, "iat": None}, Fault.EXPIRED),
        ({"nbf": int(time.time()) + 86_400}, Fault.EARLY),
        ({"iat": int(time.time()) + 86_400}, Fault.EARLY),
        ({"iss": "https://other.example"}, Fault.ISSUER),
        ({"iss": None}, Fault.CLAIMS),
        ({"iss": [ISSUER]}, Fault.ISSUER),
        ({"aud": "https://other.example"}, Fault.AUDIENCE),
        ({"aud": [f"{AUDIENCE}/"]}, Fault.AUDIENCE),
        ({"aud": AUDIENCE[:-1]}, Fault.AUDIENCE),
        ({"aud": None}, Fault.CLAIMS),
        ({"aud": []}, Fault.CLAIMS),
        ({"sub": None}, Fault.NOBODY),
        ({"sub": "  "}, Fault.NOBODY),
    ],
)
def test_a_token_that_is_not_for_this_gateway_now_is_refused(given: dict[str, Any], fault: Fault) -> None:
    try:
        sent = token(**given)
    except TypeError:  # what the library would not sign
        sent = forged({"alg": "ES256", "kid": "ec-1"}, claims(**given))
        fault = Fault.SIGNATURE
    assert check(sent, ALL, WANTED) is fault


def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    just_over = token(exp=int(time.time()) - 10)
    assert isinstance(check(just_over, ALL, WANTED), Claims)
    assert check(just_over, ALL, WANTED.model_copy(update={"leeway": 1.0})) is Fault.EXPIRED


def test_a_client_without_a_subject_is_named_by_its_client_id() -> None:
    told = check(token(sub=None, client_id="robot"), ALL, WANTED)
    assert isinstance(told, Claims)
    assert told.name == f"robot@{ISSUER}"


def test_nobody_signs_with_none_or_with_a_public_key_as_a_shared_secret() -> None:
    wide = WANTED.model_copy(update={"algorithms": ("RS256", "HS256", "none")})  # no contract can say so
    pem = (
        private("rsa-1")
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    for shared in (pem, json.dumps(public("rsa-1")).encode(), b""):
        head, body, _ = forged({"alg": "HS256", "kid": "rsa-1"}, claims()).split(".")
        mac = hmac.digest(shared or b"0", f"{head}.{body}".encode(), hashlib.sha256)
        sent = forged({"alg": "HS256", "kid": "rsa-1"}, claims(), mac)
        assert check(sent, ALL, WANTED) is Fault.ALGORITHM
        assert check(sent, ALL, wide) is Fault.UNKNOWN_KEY, "the key itself does not check it"
    for word in ("none", "None", "NONE", ""):
        assert check(forged({"alg": word}, claims()), ALL, WANTED) is Fault.ALGORITHM
    assert check(forged({"alg": "none"}, claims()), ALL, wide) is Fault.UNKNOWN_KEY
    assert looks_signed(jwt.encode(claims(), "", "none")) is None, "an empty signature does not reach the check"


def test_a_key_checks_only_what_its_kind_and_its_own_alg_allow() -> None:
    assert check(token("rsa-1", "RS512"), ALL, WANTED) is Fault.ALGORITHM
    wide = WANTED.model_copy(update={"algorithms": ("RS256", "RS512", "ES256")})
    assert isinstance(check(token("rsa-1", "RS512"), ALL, wide), Claims)
    assert check(token("rsa-1", "RS512"), keys("rsa-1", alg="RS256"), wide) is Fault.UNKNOWN_KEY
    assert check(token("rsa-1", "RS256", {"kid": "ec-1"}), ALL, WANTED) is Fault.UNKNOWN_KEY


def test_a_token_without_a_key_id_is_checked_with_every_key_that_fits() -> None:
    assert isinstance(check(token("ec-2", headers={"kid": None}), keys("ec-1", "ec-2"), WANTED), Claims)
    assert check(token("ec-3", headers={"kid": None}), keys("ec-1", "ec-2"), WANTED) is Fault.SIGNATURE


def test_another_keys_signature_and_a_changed_body_are_refused() -> None:
    assert check(token("ec-2", headers={"kid": "ec-1"}), ALL, WANTED) is Fault.SIGNATURE
    head, _, signature = token().split(".")
    body = forged({}, claims(scope="admin")).split(".")[1]
    assert check(f"{head}.{body}.{signature}", ALL, WANTED) is Fault.SIGNATURE
    assert check(token("ec-9"), ALL, WANTED) is Fault.UNKNOWN_KEY


def test_a_header_that_must_be_understood_and_is_not_refuses() -> None:
    assert not isinstance(check(token(headers={"crit": ["exp"], "exp": 1}), ALL, WANTED), Claims)
    # a key that comes with the token, or from where it says, is nobody's
    for header in ({"jwk": public("ec-7")}, {"jku": "https://evil.example"}, {"x5u": "https://evil.example"}):
        assert check(token("ec-7", headers=header), ALL, WANTED) is Fault.UNKNOWN_KEY


def test_of_a_set_only_keys_that_check_signatures_are_taken() -> None:
    odd = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "a"},
        public("ec-1", use="enc"),
        public("ec-1", key_ops=["sign"]),
        public("weak-1"),
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "RSA", "n": "!", "e": "AQAB"},
        {"kty": "EC", "crv": ["P-256"]},
        public("ec-1", kid=7),
        7,
        None,
    ]
    assert isinstance(read_key_set(json.dumps({"keys": odd}).encode()), str)
    taken = read_key_set(json.dumps({"keys": [*odd, public("ec-1")]}).encode())
    assert [key.kid for key in taken if isinstance(key, SigningKey)] == ["ec-1"]


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": []}', b"\xff", b'{"keys": 1}'])
def test_a_text_that_is_no_key_set_is_said(text: bytes) -> None:
    assert isinstance(read_key_set(text), str)


def test_of_a_private_key_only_the_public_part_is_kept() -> None:
    own: Any = private("ec-1")
    jwk = jwt.algorithms.ECAlgorithm.to_jwk(own, as_dict=True)
    assert "d" in jwk
    found = read_key_set(json.dumps({"keys": [{**jwk, "kid": "ec-1"}]}).encode())
    assert isinstance(found, tuple)
    assert jwk["d"] not in repr(found)
    assert isinstance(check(token(), found, WANTED), Claims)


def test_whatever_a_stranger_writes_is_refused_and_nothing_breaks(request: pytest.FixtureRequest) -> None:
    count = 20_000 if request.config.getoption("--long") else 500
    chance = random.Random(7)
    good = token()
    odd: list[Any] = [None, True, -1, 1e308, [], {}, "x", [[]] * 3, "9" * 5000, {"a": {"b": 1}}, ["ES256"], b"\xff\xfe"]
    for _ in range(count):
        header = {
            name: chance.choice([*odd, "ES256", "ec-1"])
            for name in chance.sample(["alg", "kid", "crit", "b64", "typ"], 3)
        }
        payload = {name: chance.choice(odd) for name in chance.sample(["exp", "iat", "nbf", "iss", "aud", "sub"], 3)}
        mutated = list(good)
        mutated[chance.randrange(len(good))] = chance.choice("ABab01-_.")
        sent = (
            forged(_writable(header), _writable(payload), chance.randbytes(64))
            if chance.random() < 0.6
            else "".join(mutated)
        )
        told = check(sent, ALL, WANTED)
        assert isinstance(told, Fault) or sent == good or sent.split(".")[:2] == good.split(".")[:2]
    deep = forged(b'{"alg":' + b"[" * 5000 + b"]" * 5000 + b"}", claims())
    assert check(deep, ALL, WANTED) is Fault.MALFORMED


def _writable(given: dict[str, Any]) -> Any:
    return {name: value for name, value in given.items() if not isinstance(value, bytes)} or b"\xff"
