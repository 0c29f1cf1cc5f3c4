"""As node/client.mjs, with the Python SDK 1.x, which lives in a folder of its own; knows nothing of this project."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys

sys.path.insert(0, sys.argv[1])
mcp = importlib.import_module("mcp")
http = importlib.import_module("mcp.client.streamable_http")


async def main(url: str, *named: str) -> None:
    results = {}
    heard: list[float] = []
    released = []
    async with http.streamablehttp_client(url) as (read, write, _), mcp.ClientSession(read, write) as session:
        opened = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        for name, _, given in (each.partition("=") for each in named if each != "slow"):
            try:
                result = await session.call_tool(name, json.loads(given or "{}"))  # validates structuredContent
                results[name] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            except mcp.McpError as error:
                results[name] = {"thrown": str(error), "code": error.error.code}
            except RuntimeError as error:
                results[name] = {"thrown": str(error)}
        if "slow" in named:
            who = {"who": "python-1"}

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append(progress)
                if len(heard) == 1:
                    # Apart, since some versions read nothing while they wait for this function.
                    released.append(asyncio.create_task(session.call_tool("release", who)))

            slow = await session.call_tool("slow", who, progress_callback=hear)
            await released[0]
            results["slow"] = slow.model_dump(mode="json", by_alias=True, exclude_none=True)
        cards = {}
        for resource in (await session.list_resources()).resources if opened.capabilities.resources else []:
            (page,) = (await session.read_resource(resource.uri)).contents
            cards[str(resource.uri)] = page.model_dump(mode="json", by_alias=True)
    said = {"cards": cards, "version": opened.protocolVersion, "instructions": opened.instructions}
    print(json.dumps({"tools": tools, "results": results, "heard": heard, **said}))


asyncio.run(main(*sys.argv[2:]))
