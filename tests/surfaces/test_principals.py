"""Static keys: who a header speaks for, and that nothing else lets anyone in."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import cast

import pytest

from gateway.contract.model import ApiKey, Auth, Contract
from gateway.surfaces.principals import Doorman, Principals, metadata_url


def key(name: str, secret: str, *scopes: str) -> ApiKey:
    return ApiKey(name=name, sha256=hashlib.sha256(secret.encode()).hexdigest(), scopes=scopes)


PEOPLE = Principals(Auth(keys=(key("ann", "k-ann", "read", "write"), key("bob", "k-böb"))))


@pytest.mark.parametrize("header", ["Bearer k-ann", "bearer k-ann", "BEARER  k-ann", " Bearer k-ann "])
def test_a_key_is_its_holder(header: str) -> None:
    principal = PEOPLE.of([header])
    assert principal is not None
    assert (principal.name, principal.scopes) == ("ann", frozenset({"read", "write"}))


def test_a_key_beyond_ascii_is_compared_by_its_bytes() -> None:
    principal = PEOPLE.of(["Bearer k-böb"])
    assert principal is not None
    assert (principal.name, principal.scopes) == ("bob", frozenset())


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        ["k-ann"],
        ["Basic k-ann"],
        ["Bearer k-anne"],
        ["Bearer K-ANN"],
        ["Bearer k-ann k-ann"],
        ["Bearer \udcff"],
        ["Bearer k-ann", "Bearer k-ann"],
        ["Bearer " + hashlib.sha256(b"k-ann").hexdigest()],
    ],
)
def test_anything_else_is_nobody(headers: list[str]) -> None:
    assert PEOPLE.of(headers) is None


def test_auth_without_keys_lets_nobody_in() -> None:
    assert Principals(Auth()).of(["Bearer k-ann"]) is None


def test_a_changed_contract_changes_who_may_speak() -> None:
    def contract(auth: Auth | None) -> Contract:
        return cast("Contract", SimpleNamespace(gateway=SimpleNamespace(auth=auth), endpoints={}))

    served = [contract(None)]
    doorman = Doorman(lambda: served[0])
    assert doorman.principals() is None
    served[0] = contract(Auth(keys=(key("ann", "k-ann"),)))
    first = doorman.principals()
    assert first is not None
    assert first is doorman.principals()
    served[0] = contract(Auth(keys=(key("bob", "k-bob"),)))
    second = doorman.principals()
    assert second is not None
    assert second.of(["Bearer k-ann"]) is None
    served[0] = contract(None)
    assert doorman.principals() is None


@pytest.mark.parametrize(
    ("resource", "url"),
    [
        ("https://gw.example", "https://gw.example/.well-known/oauth-protected-resource"),
        ("https://gw.example/", "https://gw.example/.well-known/oauth-protected-resource"),
        ("https://gw.example:8443/mcp", "https://gw.example:8443/.well-known/oauth-protected-resource/mcp"),
        ("https://gw.example/a/b", "https://gw.example/.well-known/oauth-protected-resource/a/b"),
    ],
)
def test_metadata_stand_between_a_resources_host_and_path(resource: str, url: str) -> None:
    assert metadata_url(resource) == url
