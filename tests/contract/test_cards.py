"""The file of `tool.ui`: which page a tool has, what is no card, and what moves when one changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.contract.cards import LARGEST_CARD
from gateway.contract.model import Card, Contract
from gateway.generation import index
from tests.rig import accepted, contract_at

PAGE = "<!doctype html>\n<title>People</title>\n"
CONTRACT = """
    version: 1
    backends: {api: {url: http://127.0.0.1:9}}
    endpoints:
      a:
        request: GET /a
        description: Says a.
        tool: {name: a, safety_tier: read, ui: {RESOURCE}}
      b:
        request: GET /b
        description: Says b.
        expose: [mcp]
        tool: {name: b, safety_tier: read, ui: {resource: "./ui//card.html", visibility: [app]}}
"""


def written(resource: str, more: str = "") -> str:
    return CONTRACT.replace("RESOURCE", f"resource: {resource!r}{more}")


def card_of(contract: Contract, endpoint: str = "a") -> Card:
    tool = contract.endpoints[endpoint].tool
    assert tool is not None
    assert tool.ui is not None
    return tool.ui


def sentence(folder: Path, resource: str, files: dict[str, str] | None = None) -> str:
    """What a resource is refused with."""
    loaded = contract_at(folder, written(resource), {"ui/card.html": PAGE, **(files or {})})
    assert not isinstance(loaded, Contract), resource
    (refusal,) = loaded
    assert refusal.path == "endpoints.a.tool.ui.resource"
    return refusal.message


def test_a_card_is_its_file_and_tools_may_share_one(tmp_path: Path) -> None:
    contract = accepted(tmp_path, written("ui/card.html"), {"ui/card.html": "\ufeff" + PAGE})
    assert card_of(contract) == Card("ui/card.html", "ui://toolview/ui/card.html", PAGE, ("model", "app"))
    assert card_of(contract, "b") == Card("ui/card.html", "ui://toolview/ui/card.html", PAGE, ("app",))
    assert contract.files == (str(tmp_path / "gateway.yaml"), str(tmp_path / "ui/card.html"))
    assert contract.warnings == ()


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("ä %2F.html", "ui://toolview/%C3%A4%20%252F.html"),
        ("a?b#c.html", "ui://toolview/a%3Fb%23c.html"),
        ("..card.html", "ui://toolview/..card.html"),
    ],
)
def test_a_name_is_spelled_so_that_a_uri_can_carry_it(tmp_path: Path, name: str, uri: str) -> None:
    contract = accepted(tmp_path, written(name), {"ui/card.html": PAGE, name: PAGE})
    assert card_of(contract).uri == uri


@pytest.mark.parametrize(
    "page",
    [PAGE, "<!DOCTYPE  HTML>", "\n\t<!-- a -->\n<!-- <b> -->\n<HTML lang=en>", "<html>", "<!doctype html>\r\n\u2028"],
)
def test_a_page_begins_as_html_does(tmp_path: Path, page: str) -> None:
    assert card_of(accepted(tmp_path, written("c.html"), {"ui/card.html": PAGE, "c.html": page})).html


@pytest.mark.parametrize(
    "page",
    [
        "",
        "  ",
        "card",
        "<p>",
        "<!doctype htmlx>",
        "<!-- <html>",
        "<svg/>",
        "<!doctype html>\0",
        "<!-- -->" * 5000 + "x",
    ],
    ids=lambda page: page[:20],
)
def test_what_is_no_page_is_refused(tmp_path: Path, page: str) -> None:
    message = sentence(tmp_path, "c.html", {"c.html": page})
    assert message == "this file is no HTML page; begin it with `<!doctype html>`"


@pytest.mark.parametrize("resource", ["../card.html", "ui/../ui/card.html", "/etc/hostname", ".."])
def test_a_card_stays_in_the_folder(tmp_path: Path, resource: str) -> None:
    assert sentence(tmp_path, resource).startswith("a card stays in the contract's folder;")


@pytest.mark.parametrize("resource", ["https://x.example/card.html", "//x.example/card.html", "ui://x", "file:///card"])
def test_a_card_is_never_on_the_network(tmp_path: Path, resource: str) -> None:
    assert "never read from the network" in sentence(tmp_path, resource)


@pytest.mark.parametrize("resource", ["no.html", "ui", ".", "a\0b", "pipe", "out.html", "loop.html"])
def test_what_is_no_file_of_the_folder_is_not_there(tmp_path: Path, resource: str) -> None:
    folder = tmp_path / "contract"
    folder.mkdir()
    (tmp_path / "secret.html").write_text(PAGE)
    (folder / "out.html").symlink_to("../secret.html")
    (folder / "loop.html").symlink_to("loop.html")
    os.mkfifo(folder / "pipe")
    message = sentence(folder, resource.replace("\0", "%00"))
    assert message.startswith("there is no such file in the contract's folder")


def test_a_name_that_no_file_can_have_cannot_be_read(tmp_path: Path) -> None:
    assert sentence(tmp_path, "x" * 5000) == "this file cannot be read; mend its rights, or the path"


def test_a_link_inside_the_folder_is_named_as_it_is_written(tmp_path: Path) -> None:
    """Kubernetes mounts each file as a link into a folder of another name each time."""
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "c.html").write_text(PAGE)
    (tmp_path / "c.html").symlink_to("..2026/c.html")
    contract = accepted(tmp_path, written("c.html"), {"ui/card.html": PAGE})
    assert card_of(contract).uri == "ui://toolview/c.html"
    assert str(tmp_path / "c.html") in contract.files


def test_a_card_has_a_largest_size_and_is_utf_8(tmp_path: Path) -> None:
    largest = PAGE + "x" * (LARGEST_CARD - len(PAGE))
    assert len(card_of(accepted(tmp_path, written("c.html"), {"ui/card.html": PAGE, "c.html": largest})).html) > 2**20
    assert sentence(tmp_path, "c.html", {"c.html": largest + "x"}).startswith("this file is larger than 2097152 bytes")
    (tmp_path / "latin.html").write_bytes(b"<!doctype html>\xe9")
    assert sentence(tmp_path, "latin.html") == "this file is not UTF-8; save it so"


def test_a_card_that_nobody_sees_is_refused(tmp_path: Path) -> None:
    loaded = contract_at(tmp_path, written("ui/card.html", ", visibility: []"), {"ui/card.html": PAGE})
    assert not isinstance(loaded, Contract)
    assert [(each.path, each.message) for each in loaded] == [
        ("endpoints.a.tool.ui.visibility", "nobody sees this tool; write `[model]`, `[app]` or both")
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("GET /a", "GET /a\n        expose: [agent]"), "a card is shown by MCP clients alone"),
        (
            ("'ui/card.html'}}", "'ui/card.html', visibility: [app]}}\n        expose: [mcp, agent]"),
            "this leaves the model out",
        ),
        (("'ui/card.html'", "far.html"), "this page loads something from the network"),
    ],
)
def test_a_card_that_will_not_do_what_is_meant_is_warned_of(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    far = PAGE + '<a href="https://x.example/">x</a><script defer src = "//cdn.example/a.js"></script>'
    contract = accepted(tmp_path, written("ui/card.html").replace(*change), {"ui/card.html": PAGE, "far.html": far})
    assert [warning.message.partition(",")[0].partition(" alone")[0] for warning in contract.warnings] == [
        told.partition(" alone")[0]
    ]


def test_a_link_that_a_person_follows_is_no_load(tmp_path: Path) -> None:
    page = PAGE + '<a href="https://x.example/">x</a><img src="data:image/png;base64,//8=">'
    assert accepted(tmp_path, written("ui/card.html"), {"ui/card.html": page}).warnings == ()


def test_a_page_that_changes_moves_the_contracts_digest_and_no_catalogs(tmp_path: Path) -> None:
    before = accepted(tmp_path, written("ui/card.html"), {"ui/card.html": PAGE})
    after = accepted(tmp_path, written("ui/card.html"), {"ui/card.html": PAGE + "<p>"})
    assert before.digest != after.digest
    assert index(before).catalog("mcp", None).digest == index(after).catalog("mcp", None).digest


def test_a_tool_for_cards_alone_that_names_no_surface_is_not_warned_of(tmp_path: Path) -> None:
    text = written("ui/card.html").replace("'ui/card.html'", "'ui/card.html', visibility: [app]")
    assert accepted(tmp_path, text, {"ui/card.html": PAGE}).warnings == ()
