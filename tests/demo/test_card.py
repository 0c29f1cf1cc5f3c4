"""The example's card in a real browser, as a host shows it: its handshake, the answer drawn, text that stays text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.contract.load import load
from gateway.contract.model import Contract
from tests.browser import started, tab

CONFIG = Path(__file__).parents[2] / "config" / "gateway.yaml"
#: What MCP Apps asks of a host where a page declares no other origin.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "media-src 'self' data:; connect-src 'none'"
)
#: A host with one page in a sandbox: it keeps what the page says, and answers the one question with the style it has.
HOST = """(async (html) => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts allow-same-origin";
    window.said = [];
    window.say = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
    window.addEventListener("message", ({ data }) => {
        window.said.push(data);
        const styles = { variables: { "--color-text-primary": "rgb(1, 2, 3)" } };
        if (data.method === "ui/initialize") say({ id: data.id, result: { hostContext: { theme: "dark", styles } } });
    });
    frame.srcdoc = html;
    document.body.append(frame);
    window.shown = (selector) => [...frame.contentDocument.querySelectorAll(selector)].map((each) => each.textContent);
    window.ink = () => getComputedStyle(frame.contentDocument.body).color;
})(%s)"""
ANN = {"name": "Ann <img src=x onerror=alert(1)>", "title": "Lead", "office": "Zürich", "email": "ann@x.example"}


async def test_the_card_of_the_example_draws_the_answer_and_loads_nothing(tmp_path: Path) -> None:
    contract = load(CONFIG)
    assert isinstance(contract, Contract)
    tool = contract.endpoints["people.list"].tool
    assert tool is not None
    assert tool.ui is not None
    page = tool.ui.html.replace("<meta", f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta', 1)
    result = {"structuredContent": {"total": 9, "people": [ANN]}, "content": [], "isError": False}
    with started(tmp_path) as address:
        async with tab(address) as browser:
            await browser.js(HOST % json.dumps(page))
            await browser.until("said.some(({method}) => method === 'ui/notifications/initialized')")
            opening, *_ = await browser.js("said")
            assert opening["params"]["protocolVersion"] == "2026-01-26"
            assert await browser.js("ink()") == "rgb(1, 2, 3)"
            await browser.js(f"say({json.dumps({'method': 'ui/notifications/tool-result', 'params': result})})")
            await browser.until("said.some(({method}) => method === 'ui/notifications/size-changed')")
            assert await browser.js("shown('caption')") == ["1 of 9 people"]
            assert await browser.js("shown('td')") == [*ANN.values()]
            failed = {"content": [{"type": "text", "text": "{}"}], "isError": True}
            await browser.js(f"say({json.dumps({'method': 'ui/notifications/tool-result', 'params': failed})})")
            await browser.until("shown('caption')[0] === 'The call failed.'")
            await browser.js("say({id: 7, method: 'ping'})")
            await browser.until("said.some(({id, result}) => id === 7 && result)")
            # Chromium's word to this host, whose sandbox is as MCP Apps has it but of one origin with the page.
            assert [told for told in browser.complaints if "allow-same-origin" not in told] == []
            assert [url for url in browser.requests if not url.startswith(("about:", "data:"))] == []


@pytest.mark.parametrize("key", sorted(ANN))
def test_what_the_card_draws_is_in_the_view(key: str) -> None:
    contract = load(CONFIG)
    assert isinstance(contract, Contract)
    tool = contract.endpoints["people.list"].tool
    assert tool is not None
    assert tool.view is not None
    assert tool.view.output is not None
    kept = tool.view.output.cut({"total": 1, "people": [{key: "x"}]})
    assert kept == {"total": 1, "people": [{key: "x"}]}
