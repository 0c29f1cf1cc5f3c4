"""Placeholders are resolved first, refused by name, and never seen again."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from gateway.__main__ import main
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.secrets import Secret

PLANTED = "pl4nted-s3cret"
ENVIRONMENT = {
    "TOKEN": PLANTED,
    "PORT": "8099",
    "CALLS": "7",
    "OPEN": "true",
    "EMPTY": "",
    "URL": f"http://{PLANTED}.example",
}

CONTRACT = """
version: 1
gateway:
  tools: {listen: "127.0.0.1:${PORT}"}
  limits: {calls: "${CALLS}"}
  console: ${OPEN:-false}
  ledger: redis://:${TOKEN}@host
backends:
  api:
    url: ${URL}
    timeout: ${WAIT:-5s}
    headers: {X-Token: "Bearer ${TOKEN}", X-File: "${file:FILE}", X-Literal: literal-s3cret, X-Text: "$${TOKEN}"}
    auth: {basic: {username: "${TOKEN}", password: "${TOKEN}"}}
endpoints:
  things:
    request: GET /things
    description: Lists things.
    output: {type: object}
"""


def write(folder: Path, text: str = CONTRACT) -> Path:
    (folder / "token").write_text(f"{PLANTED}\n")
    file = folder / "gateway.yaml"
    file.write_text(text.replace("FILE}", f"{folder}/token}}"))
    return file


def test_placeholders_are_resolved_in_texts_numbers_and_switches(tmp_path: Path) -> None:
    contract = load(write(tmp_path), ENVIRONMENT)
    assert isinstance(contract, Contract), contract
    assert contract.gateway.tools.listen.port == 8099
    assert contract.gateway.limits.calls == 7
    assert contract.gateway.console is True
    backend = contract.backends["api"]
    assert backend.url == f"http://{PLANTED}.example"
    assert backend.timeout == 5.0
    assert backend.headers == {
        "X-Token": f"Bearer {PLANTED}",
        "X-File": PLANTED,
        "X-Literal": "literal-s3cret",
        "X-Text": "${TOKEN}",
    }
    assert backend.auth is not None
    assert backend.auth.basic is not None
    assert backend.auth.basic.password == PLANTED


def test_a_loaded_contract_shows_no_secret(tmp_path: Path) -> None:
    contract = load(write(tmp_path), ENVIRONMENT)
    assert isinstance(contract, Contract)
    for shown in (repr(contract), str(contract.backends), json.dumps(contract.written), str(contract.warnings)):
        assert PLANTED not in shown
    assert "literal-s3cret" not in json.dumps(contract.written)
    assert contract.written["backends"]["api"]["url"] == "${URL}"
    assert contract.written["backends"]["api"]["timeout"] == "${WAIT:-…}"


def test_the_digest_does_not_move_with_a_secret(tmp_path: Path) -> None:
    one = load(write(tmp_path), ENVIRONMENT)
    other = load(write(tmp_path), {**ENVIRONMENT, "TOKEN": "another"})
    literal = load(write(tmp_path, CONTRACT.replace("literal-s3cret", "rotated")), ENVIRONMENT)
    moved = load(write(tmp_path, CONTRACT.replace("Lists things", "Lists all things")), ENVIRONMENT)
    assert isinstance(one, Contract)
    assert isinstance(other, Contract)
    assert isinstance(literal, Contract)
    assert isinstance(moved, Contract)
    assert one.digest == other.digest == literal.digest != moved.digest


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ('url: "ftp://${TOKEN}"', "url"),
        ('url: "http://${TOKEN}:x@host"', "url"),
        ('url: "http://a/?${TOKEN}"', "url"),
        ('{url: "http://a", timeout: "${TOKEN}"}', "timeout"),
        ('{url: "http://a", passthrough: "${TOKEN}"}', "passthrough.listen"),
        ('{url: "http://a", passthrough: {listen: "127.0.0.1:1", only: "${TOKEN}"}}', "passthrough.only"),
        ('{url: "http://a", limits: {answer: "${TOKEN}", concurrency: 1}}', "limits.answer"),
        ('{url: "http://a", headers: {X: "${TOKEN} é"}}', "headers.X"),
        ('{url: "http://a", errors: {code: "${TOKEN}"}}', "errors.code"),
        ('{url: "http://a", tls: {ca: "/nowhere/${TOKEN}"}}', "tls.ca"),
        ('{url: "http://a", forward_headers: ["${TOKEN} x"]}', "forward_headers[0]"),
        ('{url: "http://a", breaker: {failures: "${TOKEN}"}}', "breaker.failures"),
        ('{url: "http://a", tls: {verify: "${TOKEN}"}}', "tls.verify"),
    ],
)
def test_a_refusal_of_a_resolved_value_does_not_show_it(tmp_path: Path, line: str, broken: str) -> None:
    group = line if line.startswith("{") else f"{{{line}}}"
    text = f"version: 1\nbackends:\n  api: {group}\nendpoints:\n  a: {{request: GET /a, description: A.}}\n"
    loaded = load(write(tmp_path, text), ENVIRONMENT)
    assert not isinstance(loaded, Contract)
    assert [refusal.path for refusal in loaded] == [f"backends.api.{broken}"]
    assert PLANTED not in str(loaded[0])


@pytest.mark.parametrize(
    ("placeholder", "sentence"),
    [
        ("${NOWHERE}", "the environment variable NOWHERE is not set; set it, or write `${NOWHERE:-default}`"),
        ("${EMPTY}", "the environment variable EMPTY is empty; set it, or write `${EMPTY:-default}`"),
        ("${file:/nowhere}", "the secret file `/nowhere` is not there; create it, or mend the path"),
        ("${file:/dev/zero}", "the secret file `/dev/zero` is not there; create it, or mend the path"),
        ("${A B}", "a placeholder is written `${NAME}`, `${NAME:-default}` or `${file:/path}`"),
        ("${}", "a placeholder is written `${NAME}`, `${NAME:-default}` or `${file:/path}`"),
        ("a ${TOKEN", "`${` is not closed; write `${NAME}`, or `$${` for the text itself"),
    ],
)
def test_a_placeholder_that_gives_nothing_is_refused_by_name(tmp_path: Path, placeholder: str, sentence: str) -> None:
    loaded = load(write(tmp_path, CONTRACT.replace("Bearer ${TOKEN}", placeholder)), ENVIRONMENT)
    assert not isinstance(loaded, Contract)
    assert [refusal.message for refusal in loaded] == [sentence]
    assert loaded[0].path == "backends.api.headers.X-Token"


def test_elsewhere_a_placeholder_stays_text_and_is_warned_of(tmp_path: Path) -> None:
    text = CONTRACT.replace("description: Lists things.", 'description: "${TOKEN}"')
    contract = load(write(tmp_path, text), ENVIRONMENT)
    assert isinstance(contract, Contract)
    assert contract.endpoints["things"].description == "${TOKEN}"
    assert any("only read under `gateway` and `backends`" in warning.message for warning in contract.warnings)


@pytest.mark.parametrize("show", [repr, lambda secret: repr([secret]), lambda secret: f"{secret!r}"])
def test_a_secret_does_not_show_itself(show: Any) -> None:
    assert PLANTED not in show(Secret(PLANTED))


def test_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(PLANTED))


@pytest.mark.parametrize(
    "command", [["check"], ["check", "--format", "json"], ["tools"], ["schema"]], ids=lambda command: "-".join(command)
)
@pytest.mark.parametrize("broken", [False, True])
def test_no_command_prints_a_secret(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: list[str],
    broken: bool,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    text = CONTRACT.replace("timeout: ${WAIT:-5s}", "timeout: ${TOKEN}") if broken else CONTRACT
    file = write(tmp_path, text)
    main([command[0], *([] if command == ["schema"] else [str(file)]), *command[1:]])
    shown = capfd.readouterr()
    assert shown.out or shown.err
    assert PLANTED not in shown.out + shown.err
