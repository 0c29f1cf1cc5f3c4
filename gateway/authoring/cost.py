"""`toolview tools --cost` and `--compact`: what listing each tool costs, and what a call costs by its examples.

Examples run through the very path of a call, with the sample answer where the backend's would be; nothing is sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, replace
from typing import Any

from gateway import json_text
from gateway.backend.exchange import Answer, Request
from gateway.call.outcome import Call
from gateway.call.run import Full, run_call
from gateway.catalog.descriptors import Described, described, listing
from gateway.contract.model import Contract, Endpoint, Example, Hooks
from gateway.generation import TOOL_SURFACES, Generation, index
from gateway.projection import Projected, Projection, ProjectionFault
from gateway.projection.runner import ProjectionRunner
from gateway.record import record

Json = Any

#: The catalog lists what MCP lists.
_LISTED = "mcp"


@record
class ListingCost:
    """Bytes that one tool adds to each list; `tool` is None for the whole list."""

    tool: str | None
    standard: int
    compact: int
    mcp: int


@record
class CallCost:
    """Bytes of one example: what is sent, what the backend answers, and what the caller reads of it."""

    tool: str
    title: str
    arguments: int
    full: int
    shown: int
    #: `ok`, or the code by which the example fails.
    code: str


@record
class Costs:
    listed: tuple[ListingCost, ...]
    total: ListingCost
    called: tuple[CallCost, ...]


async def costs(contract: Contract) -> Costs:
    """What the tools of a contract cost whoever lists and calls them."""
    generation = index(contract)
    found = _described(generation)
    catalog = generation.catalog(_LISTED, None)
    shown = contract.gateway.mcp.output_schema
    on_mcp = {tool.name: tool.mcp(output_schema=shown, card=True) for tool in catalog.tools}
    rows = [
        ListingCost(name, len(one.standard), len(one.compact), len(json_text.encode(on_mcp[name])))
        for name, one in found.items()
    ]
    whole = json_text.encode({"tools": list(on_mcp.values())})
    total = ListingCost(
        None, len(listing(found.values(), compact=False)), len(listing(found.values(), compact=True)), len(whole)
    )
    return Costs(tuple(rows), total, tuple([each async for each in _called(contract)]))


def compact_listing(contract: Contract) -> bytes:
    """The compact list, as the catalog answers it to somebody who may see every tool."""
    return listing(_described(index(contract)).values(), compact=True)


def as_text(found: Costs) -> str:
    """For people: a tool a line, the whole list, and the examples."""
    rows = [["tool", "standard", "compact", "mcp"]]
    rows += [_row(each) for each in (*found.listed, found.total)]
    lines = ["Bytes that listing a tool costs:", *_table(rows)]
    if found.called:
        calls = [["tool", "arguments", "full", "shown", "", "example"]]
        calls += [
            [each.tool, f"{each.arguments:,}", f"{each.full:,}", f"{each.shown:,}", _share(each), each.title]
            for each in found.called
        ]
        lines += ["", "Bytes that a call costs, by its examples:", *_table(calls)]
    else:
        lines += ["", "No endpoint has `examples` with an answer, so nothing is known of calls."]
    return "\n".join(lines)


def as_json(found: Costs) -> str:
    """For programs."""
    return json.dumps(asdict(found), ensure_ascii=False)


def _described(generation: Generation) -> dict[str, Described]:
    """Every tool that is listed, by its name."""
    contract = generation.contract
    tools = generation.catalog(_LISTED, None).by_name
    return {
        each.tool.name: described(
            each,
            tools[each.tool.name],
            contract.backends[each.backend],
            characters=contract.gateway.catalog.description,
        )
        for each in generation.visible(_LISTED, None)
        if each.tool is not None
    }


async def _called(contract: Contract) -> AsyncIterator[CallCost]:
    """The examples, one after another. Hooks are the operator's own and may act, so none is run."""
    quiet = replace(contract, gateway=replace(contract.gateway, hooks=Hooks(None, None)))
    generation = index(quiet)
    runner = ProjectionRunner(contract.gateway.limits.projection)
    await runner.start(generation.projections())
    try:
        for endpoint, example in _examples(contract):
            yield await _call(generation, endpoint, example, runner)
    finally:
        await runner.close()


def _examples(contract: Contract) -> Iterator[tuple[Endpoint, Example]]:
    for endpoint in contract.endpoints.values():
        if endpoint.tool is not None:
            yield from ((endpoint, example) for example in endpoint.examples if example.has_answer)


async def _call(generation: Generation, endpoint: Endpoint, example: Example, runner: ProjectionRunner) -> CallCost:
    assert endpoint.tool is not None
    body = json_text.encode(example.answer)

    async def send(_: Request) -> Answer:
        return Answer(example.status, {"content-type": "application/json"}, body, len(body))

    async def project(projection: Projection, full: Full) -> Projected | ProjectionFault:
        return await runner.run(projection, full.text, full.value, full.prepared.accepted, full.prepared.call.surface)

    surface = next(on for on in TOOL_SURFACES if on in endpoint.expose)
    arguments = dict(example.arguments)
    outcome = await run_call(Call(endpoint.tool.name, arguments, surface, "cost"), generation, send, project)
    told = outcome.body if outcome.failure is None else json_text.encode(outcome.envelope())
    return CallCost(
        tool=endpoint.tool.name,
        title=example.title or "",
        arguments=len(json_text.encode(arguments)),
        full=len(body),
        shown=len(told or b""),
        code="ok" if outcome.failure is None else outcome.failure.code,
    )


def _row(cost: ListingCost) -> list[str]:
    return [cost.tool or "the whole list", f"{cost.standard:,}", f"{cost.compact:,}", f"{cost.mcp:,}"]


def _share(cost: CallCost) -> str:
    if cost.code != "ok":
        return cost.code
    return f"{round(100 * cost.shown / cost.full)} %" if cost.full else ""


def _table(rows: list[list[str]]) -> list[str]:
    """Columns as wide as they need, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 or column == 5 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
