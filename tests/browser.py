"""A headless Chromium for tests, driven over its own debugging protocol: what it loaded, said and shows.

Written here on aiohttp's WebSocket client, which the gateway has anyway: a driver would be one more thing to install.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import aiohttp
import pytest

#: How long anything may take, in seconds; only a fault waits so long.
PATIENCE = 60.0
_SPECIAL = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowDown": 40}


def chromium() -> str:
    """The browser's path; where there is none the test is left out, and the reason says how to have it."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if (path := shutil.which(name)) is not None:
            return path
    if os.environ.get("CI"):
        pytest.fail("CI has no Chromium; .ci/run installs it")
    pytest.skip("there is no Chromium to show the console in; `apt-get install chromium` gives one")


@dataclass
class Page:
    """One tab: every request it made and everything it complained of."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _answers: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    _number: int = 0

    async def send(self, method: str, **parameters: Any) -> Any:
        """One command of the protocol, and what it answered."""
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        message = {"id": self._number, "method": method, "params": parameters}
        await self.socket.send_json({**message, "sessionId": self.session} if self.session else message)
        return await asyncio.wait_for(answer, PATIENCE)

    async def listen(self) -> None:
        """Take in what the browser says, until it is gone."""
        async for message in self.socket:
            told = json.loads(message.data)
            if (answer := self._answers.pop(told.get("id", 0), None)) is not None and not answer.done():
                if "error" in told:
                    answer.set_exception(AssertionError(f"the browser refused: {told['error']}"))
                else:
                    answer.set_result(told["result"])
            self._note(told.get("method", ""), told.get("params", {}))

    def _note(self, method: str, told: dict[str, Any]) -> None:
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(told["args"]))
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    async def open(self, url: str) -> None:
        """Go to an address."""
        await self.send("Page.navigate", url=url)

    async def js(self, expression: str) -> Any:
        """What an expression is in the page, as JSON; a promise is awaited."""
        told = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true in the page, and answer it; asked at each of the page's frames."""
        wait = f"""new Promise((yes, no) => {{
            const last = setTimeout(() => no(new Error("never true")), {PATIENCE * 1000 - 5000});
            const look = () => {{
                const value = (() => {{ try {{ return {expression} }} catch {{ return null }} }})();
                if (value) {{ clearTimeout(last); yes(value) }} else requestAnimationFrame(look)
            }};
            look();
        }})"""
        for _ in range(3):
            try:
                return await self.js(wait)
            except AssertionError as fault:
                if "navigated" not in str(fault) and "context" not in str(fault):  # the page changed under the question
                    raise
        raise AssertionError("the page does not come to rest")

    async def key(self, key: str, *, shift: bool = False) -> None:
        """Press one key."""
        code = _SPECIAL.get(key, 0)
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        more = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        shifted = {"modifiers": 8} if shift else {}
        await self.send(
            "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **more, **shifted
        )
        await self.send("Input.dispatchKeyEvent", type="keyUp", **more, **shifted)

    async def type(self, text: str) -> None:
        """Write into what has the focus."""
        await self.send("Input.insertText", text=text)

    async def look(self, scheme: str, width: int = 1280, height: int = 900) -> None:
        """Show the page as on a screen of that size, `light` or `dark`."""
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def screenshot(self) -> bytes:
        """The whole page as PNG."""
        told = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(told["data"])

    async def tree(self) -> list[dict[str, Any]]:
        """What a screen reader is told: every node of the accessibility tree."""
        told = await self.send("Accessibility.getFullAXTree")
        return [node for node in told["nodes"] if not node.get("ignored")]


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """A fresh browser whose profile lies in `folder`; gives the address at which it is driven."""
    process = subprocess.Popen(
        [
            chromium(),
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
            *(
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--disable-component-update",
            ),
            *("--disable-sync", "--force-color-profile=srgb", "--lang=en-GB", "--remote-debugging-port=0"),
            *(f"--user-data-dir={folder}", "about:blank"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "TZ": "UTC"},
    )
    assert process.stderr is not None
    draining: threading.Thread | None = None
    try:
        url = _address(process.stderr)
        draining = threading.Thread(target=process.stderr.read)  # a full pipe would stop it
        draining.start()
        yield url
    finally:
        process.kill()
        process.wait()
        if draining is not None:
            draining.join()
        process.stderr.close()


@asynccontextmanager
async def tab(url: str) -> AsyncIterator[Page]:
    """An empty tab of a started browser, which shares nothing with any other."""
    async with aiohttp.ClientSession() as http, http.ws_connect(url, max_msg_size=0) as socket:
        page = Page(socket)
        listening = asyncio.create_task(page.listen())
        try:
            alone = (await page.send("Target.createBrowserContext"))["browserContextId"]
            target = await page.send("Target.createTarget", url="about:blank", browserContextId=alone)
            attached = await page.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
            page.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
                await page.send(f"{domain}.enable")
            yield page
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


def _address(stderr: IO[str]) -> str:
    """Chromium says on which port it listens, among other things."""
    for line in stderr:
        if "DevTools listening on " in line:
            return line.split("DevTools listening on ")[1].strip()
    raise AssertionError("the browser ended before it listened")
