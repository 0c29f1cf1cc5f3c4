"""The console in a real browser: it loads without a complaint, asks no other host, and is used by keyboard alone.

`pytest tests/surfaces/console/test_page.py --screenshots` writes its pictures under docs/.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.values import Address
from gateway.demo import backend as demo
from gateway.serve import Serving
from tests.browser import Page, started, tab
from tests.rig import contract_at
from tests.test_serve import agent, serving

ROOT = Path(__file__).parents[3]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_people", {"team": "platform"}),
    ("list_people", {"team": "support"}),
    ("search_people", {"query": "data"}),
    ("get_person", {"team": "platform", "id": "1958243588086276471"}),
    ("get_person", {"team": "platform", "id": "1"}),
    ("broken_report", {}),
    ("list_people", {}),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("profile")) as url:
        yield url


@pytest.fixture
async def page(browser: str) -> AsyncIterator[Page]:
    async with tab(browser) as opened:
        await opened.look("light")
        yield opened


@asynccontextmanager
async def directory(**admin: Any) -> AsyncIterator[Serving]:
    """The worked example on free ports, with its demo API."""
    loaded = load(ROOT / "config" / "gateway.yaml", {})
    assert isinstance(loaded, Contract)
    runner, port = await demo.start("127.0.0.1", 0)
    own = {"listen": Address("127.0.0.1", 0)}
    listeners: dict[str, Any] = {
        "tools": loaded.gateway.tools.model_copy(update=own),
        "admin": loaded.gateway.admin.model_copy(update={**own, **admin}),
    }
    backend = loaded.backends["directory"]
    assert backend.passthrough is not None
    passthrough = backend.passthrough.model_copy(update=own)
    backend = replace(backend, url=f"http://127.0.0.1:{port}", passthrough=passthrough)
    contract = replace(loaded, gateway=replace(loaded.gateway, **listeners), backends={"directory": backend})
    try:
        async with serving(contract) as served:
            yield served
    finally:
        await runner.cleanup()


def console(served: Serving) -> str:
    return f"http://127.0.0.1:{served.addresses['admin'].port}/console"


async def run(page: Page, tool: str, arguments: dict[str, Any]) -> None:
    """Pick a tool, write its arguments and press the button."""
    await page.js(f"pick({json.dumps(tool)})")
    await page.js(f"document.querySelector('#arguments').value = {json.dumps(json.dumps(arguments))}")
    await page.js("document.querySelector('#run').click()")


async def focused(page: Page) -> str:
    """What has the focus: its id, else its words."""
    return str(await page.js("document.activeElement.id || document.activeElement.textContent.trim()"))


async def test_it_shows_what_is_served_and_what_it_saves_without_a_complaint_or_a_question_elsewhere(
    page: Page, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    async with directory() as served:
        for tool, arguments in CALLS:
            await agent(served.addresses["tools"], tool, arguments)
        await page.open(console(served))
        await page.until("document.querySelectorAll('#plot rect').length === 6")
        row = await page.js("document.querySelector('#tool-rows tr[data-key=list_people]').innerText")
        tiles = await page.js("document.querySelector('#tiles').innerText")
        described = await page.js("document.querySelector('#plot title').textContent")
        backends = await page.js("document.querySelector('#backend-rows').innerText")
        await run(page, "list_people", {"team": "platform"})
        await page.until("!document.querySelector('#result').hidden && !document.querySelector('#run').disabled")
        said = await page.js("document.querySelector('#try-said').textContent")
        full = await page.js("document.querySelector('#full').textContent")
        struck = await page.js(
            "[...document.querySelectorAll('#full del')].slice(0, 2).map((line) => line.textContent)"
        )
        card = await page.js("document.querySelector('#card').textContent")
        pictures = {}
        for scheme in ("light", "dark"):
            await page.look(scheme)
            await page.js("document.activeElement.blur(); scrollTo(0, 0)")
            pictures[scheme] = await page.screenshot()
        back = await page.js("getComputedStyle(document.body).backgroundColor")
    assert page.complaints == []
    own = console(served).removesuffix("/console")
    assert {url for url in page.requests if not url.startswith(own + "/")} <= {"about:blank"}
    assert "VALIDATION_ERROR 1" in row
    assert "3" in tiles
    assert "list_people: full " in described
    assert "not checked" in backends
    assert "closed" in backends
    assert said.startswith("Answered in ")
    assert "55,295 bytes full" in said
    assert '"id": 1958243588086276471,' in full, "every digit"
    assert '"id": "1958243588086276471",' in card
    assert [line.split("dropped: ")[1].strip() for line in struck] == ['"team": "platform",', '"phone": "+1-555-0159",']
    assert pictures["light"] != pictures["dark"]
    assert back != "rgb(246, 247, 245)"
    if pytestconfig.getoption("--screenshots"):
        for scheme, picture in pictures.items():
            (ROOT / "docs" / f"console-{scheme}.png").write_bytes(picture)


async def test_a_tool_is_tried_by_keyboard_alone(page: Page) -> None:
    async with directory() as served:
        await page.open(console(served))
        await page.until("document.querySelectorAll('#tool-rows button').length === 6")
        seen: list[str] = []
        while not seen or seen[-1] != "run":
            await page.key("Tab")
            seen.append(await focused(page))
            assert len(seen) < 60, seen
        # create_person comes second and writes: its call waits for a yes
        await page.key("Tab", shift=True)
        while await focused(page) != "tool":
            await page.key("Tab", shift=True)
        for letter in "cr":
            await page.key(letter)
        await page.until("document.querySelector('#tool').value === 'create_person'")
        gated = await page.js("!document.querySelector('#try-form').checkValidity()")
        await page.js("document.querySelector('#tool').value = 'get_person'; picked()")
        while await focused(page) != "arguments":
            await page.key("Tab")
        await page.js("document.activeElement.select()")
        await page.type("{broken")
        while await focused(page) != "run":
            await page.key("Tab")
        await page.key("Enter")
        await page.until("document.querySelector('#arguments').getAttribute('aria-invalid') === 'true'")
        assert await focused(page) == "arguments", "the focus goes where the fault is"
        assert "no JSON object" in await page.js("document.querySelector('#arguments-fault').textContent")
        await page.js("document.activeElement.select()")
        await page.type('{"team": "platform", "id": "1958243588086276471"}')
        while await focused(page) != "run":
            await page.key("Tab")
        await page.key(" ")
        await page.until("!document.querySelector('#result').hidden && !document.querySelector('#run').disabled")
        said = await page.js("document.querySelector('#try-said').textContent")
    assert seen[0] == "Skip to the figures"
    assert seen[1:7] == ["Now", "Savings", "Tools", "Try it", "Backends", "Contract"]
    order = [name for name in seen if name in ("pause", "filter", "tool", "arguments", "run")]
    assert order == ["pause", "filter", "tool", "arguments", "run"]
    assert gated, "a tool that writes asks first"
    assert said.startswith("Answered in ")
    assert page.complaints == []


async def test_a_screen_reader_finds_landmarks_names_and_what_changes(page: Page) -> None:
    async with directory() as served:
        await page.open(console(served))
        await page.until("document.querySelectorAll('#tool-rows button').length === 6")
        nodes = await page.tree()
        live = await page.js("[...document.querySelectorAll('[aria-live]')].map((each) => each.id)")
        text = await page.js("document.querySelector('#status').textContent")
        unnamed = await page.js(
            "[...document.querySelectorAll('input,select,textarea')].filter((each) => !each.labels.length).length"
        )
    names = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes}
    for landmark in [("banner", ""), ("main", ""), ("contentinfo", ""), ("navigation", "Sections")]:
        assert landmark in names
    regions = {name for role, name in names if role == "region"}
    assert {"Now", "What views save", "Tools", "Try it", "Backends", "Contract"} <= regions
    assert ("button", "Try list_people") in names
    assert ("rowheader", "list_people") in names
    controls = {"button", "textbox", "combobox", "checkbox", "radio", "link", "searchbox"}
    assert not [role for role, name in names if role in controls and not name], "each control says what it is"
    assert unnamed == 0
    assert {"status", "try-said", "arguments-fault"} <= set(live)
    assert text.startswith("Serving contract ")


async def test_words_stand_out_from_what_is_behind_them_in_both_schemes(page: Page) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 for text."""
    paper = ["--ink", "--soft", "--bad", "--accent"]
    pairs = [(ink, "--paper") for ink in paper] + [(ink, "--back") for ink in paper]
    pairs += [("--accent-ink", "--accent"), ("--dropped", "--bad-tint"), ("--bad", "--bad-tint")]
    async with directory() as served:
        await page.open(console(served))
        await page.until("document.readyState === 'complete'")
        for scheme in ("light", "dark"):
            await page.look(scheme)
            for ink, behind in pairs:
                style = "getComputedStyle(document.body).getPropertyValue(name).trim()"
                hexes = await page.js(f"['{ink}', '{behind}'].map((name) => {style})")
                lighter, darker = sorted(map(_luminance, hexes), reverse=True)
                assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (scheme, ink, behind)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


async def test_a_refused_reload_is_told_with_its_refusals(page: Page, tmp_path: Path) -> None:
    refusals = contract_at(tmp_path, "version: 2\nnonsense: <img src=x onerror=alert(1)>")
    assert isinstance(refusals, tuple)
    async with directory() as served:
        await page.open(console(served))
        await page.until("document.querySelector('#status').textContent.startsWith('Serving')")
        served.gateway.refuse_reload(refusals)
        await page.js("look()")
        await page.until("!document.querySelector('#refused').hidden")
        told = await page.js("document.querySelector('#refusals').innerText")
        status = await page.js("document.querySelector('#status').textContent")
    assert status.startswith(f"The last reload was refused ({len(refusals)} faults)")
    for refusal in refusals:
        assert refusal.message in told
    assert page.complaints == []


async def test_a_listener_that_asks_for_a_key_gets_it_from_the_page_and_the_page_keeps_it_nowhere(page: Page) -> None:
    from gateway.contract.model import ApiKey, Auth

    async with directory(listen=Address("0.0.0.0", 0)) as served:
        generation = served.gateway.generation
        gateway = generation.contract.gateway
        key = ApiKey(name="ops", sha256=hashlib.sha256(b"k1").hexdigest())
        object.__setattr__(gateway, "auth", Auth(keys=(key,)))  # the listener reads it anew for each request
        await page.open(console(served))
        await page.until("document.activeElement.id === 'key-text'")
        await page.type("wrong")
        await page.key("Enter")
        await page.until("document.querySelector('#key-fault').textContent !== ''")
        complaints = list(page.complaints)
        await page.js("document.querySelector('#key-text').focus()")
        await page.type("k1")
        await page.key("Enter")
        await page.until("document.querySelectorAll('#tool-rows button').length === 6")
        await run(page, "list_people", {"team": "support"})
        await page.until("document.querySelector('#try-said').textContent.startsWith('Answered')")
        kept = await page.js("[document.cookie, localStorage.length, sessionStorage.length, location.href]")
        hidden = await page.js("document.querySelector('#key').hidden")
    assert kept == ["", 0, 0, console(served)]
    assert hidden
    assert all("401" in complaint for complaint in complaints)
    assert page.complaints == complaints, "nothing more once the key is known"
