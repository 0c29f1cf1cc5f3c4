"""A real Prometheus scrapes a running gateway: its target is up, the rules give values, no panel's query fails."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_prometheus import DEPLOY, GROUPS, RULES, expressions, filled_in
from tests.rig import accepted, backend, http
from tests.test_serve import agent, one_exchange, serving

PROMETHEUS = shutil.which("prometheus")
CONTRACT = """
version: 1
gateway: {tools: {listen: "127.0.0.1:0"}, admin: {listen: "127.0.0.1:0"}}
backends: {api: {url: URL, passthrough: "127.0.0.1:0"}}
endpoints:
  people.list:
    request: GET /people
    description: Lists people.
    output: {type: object, properties: {people: {type: string}, more: {type: string}}}
    tool: {name: list_people, safety_tier: read, view: {output: {type: object, properties: {people: {type: string}}}}}
"""


ASK = b"GET /people HTTP/1.1\r\nHost: x\r\n\r\n"


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    async def get(self, path: str, **asked: str) -> Any:
        """What its HTTP API answers, errors too."""

        def read() -> Any:
            url = f"{self._url}{path}?{urllib.parse.urlencode(asked)}"
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as fault:
                if fault.code == 503:  # in plain words: it listens and is still starting
                    raise
                return json.load(fault)

        return await asyncio.to_thread(read)

    async def values(self, query: str) -> list[float]:
        told = await self.get("/api/v1/query", query=query)
        assert told["status"] == "success", f"{query}: {told}"
        found = told["data"]["result"]
        return [float(each["value"][1]) for each in found] if told["data"]["resultType"] == "vector" else found


@asynccontextmanager
async def scraping(folder: Path, admin: str) -> AsyncIterator[Prometheus]:
    """The sample's configuration and the rules, with the gateway's own address and a quicker clock."""
    assert PROMETHEUS is not None
    config = yaml.safe_load((DEPLOY / "compose" / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
    config["rule_files"] = ["*.rules.yaml"]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [admin]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        group.pop("interval", None)
    (folder / "toolview.rules.yaml").write_text(yaml.safe_dump(rules))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        PROMETHEUS,
        *("--config.file=prometheus.yaml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"),
        cwd=folder, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        await process.wait()


async def test_its_target_is_up_the_rules_give_values_and_no_panel_fails(tmp_path: Path) -> None:
    if PROMETHEUS is None:
        if os.environ.get("CI"):
            pytest.fail("CI has no prometheus; .ci/run installs it")
        pytest.skip("there is no Prometheus to scrape with; `apt-get install prometheus` gives one")
    async with (
        backend(http({"people": "all", "more": "of it"})) as api,
        serving(accepted(tmp_path, CONTRACT.replace("URL", api.url))) as gateway,
        scraping(tmp_path, str(gateway.addresses["admin"])) as prometheus,
    ):
        recorded = [rule["record"] for group in GROUPS for rule in group["rules"] if "record" in rule]
        async with asyncio.timeout(60):
            while True:  # it tells nobody when it has scraped
                try:
                    await agent(gateway.addresses["tools"], "list_people", {})
                    await agent(gateway.addresses["tools"], "list_people", {"no": "such argument"})
                    await one_exchange(gateway.addresses["passthrough.api"], ASK)
                    targets = (await prometheus.get("/api/v1/targets"))["data"]["activeTargets"]
                    if [each["health"] for each in targets] == ["up"]:
                        missing = [name for name in recorded if not await prometheus.values(name)]
                        if not missing:
                            break
                except OSError:  # it does not listen yet, or is still starting
                    pass
                await asyncio.sleep(0.2)
        rules = (await prometheus.get("/api/v1/rules"))["data"]["groups"]
        assert {rule["health"] for group in rules for rule in group["rules"]} == {"ok"}
        assert (await prometheus.get("/api/v1/alerts"))["data"]["alerts"] == []
        for _, expression in expressions():
            await prometheus.values(filled_in(expression))
