"""One span a call with its request and projection inside, W3C context in and out, and nothing where it is off."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from gateway.call.outcome import Outcome
from gateway.contract.values import Address
from gateway.gateway import Gateway
from gateway.serve import Serving
from gateway.telemetry import traces
from gateway.telemetry.log import TRACE_ID
from gateway.telemetry.traces import CallSpans, exporter_asked, spans_of
from tests.rig import Received, accepted, backend, http
from tests.test_serve import fetch

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
CONTRACT = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}}
    backends: {api: {url: URL}}
    endpoints:
      rows:
        request: GET /rows
        description: Lists rows.
        input: {type: object, properties: {text: {type: string}}}
        output: {type: object, properties: {rows: {type: array, items: {type: integer}}}}
        tool: {name: list_rows, view: {project: {jmespath: "{rows: full.rows[:1]}"}}}
"""
AGENT = "/agent/tools/list_rows"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> CallSpans:
    """What follows the calls of every gateway that a test starts."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    made = CallSpans(provider)
    monkeypatch.setattr("gateway.serve._spans_asked", lambda: made)
    return made


async def called(
    folder: Path, answer: bytes | None, body: bytes = b"{}", headers: str = "", path: str = AGENT, status: int = 200
) -> Received | None:
    """One call of a whole gateway; what its backend was sent."""
    async with backend(lambda _: answer) as api:
        serving = Serving(accepted(folder, CONTRACT.replace("URL", api.url)))
        assert await serving.start() is None
        try:
            assert (await fetch(serving.addresses["tools"], "POST", path, body, headers))[0] == status
        finally:
            await serving.stop(1)
    return api.received[0] if api.received else None


def named(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def ids(span: ReadableSpan) -> tuple[str, str, str | None]:
    """Trace, span and parent, in hex."""
    context = span.get_span_context()
    assert context is not None
    parent = None if span.parent is None else format(span.parent.span_id, "016x")
    return format(context.trace_id, "032x"), format(context.span_id, "016x"), parent


@pytest.mark.usefixtures("spans")
async def test_a_call_is_a_span_of_the_callers_trace_with_its_backend_and_projection_inside(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    sent = await called(tmp_path, http({"rows": [1, 2]}), headers=f"traceparent: {TRACEPARENT}\r\n")
    found = named(exporter)
    assert set(found) == {"execute_tool list_rows", "GET api", "project"}
    call, request, project = found["execute_tool list_rows"], found["GET api"], found["project"]
    assert ids(call)[0] == ids(request)[0] == ids(project)[0] == TRACE
    assert ids(call)[2] == PARENT
    assert ids(request)[2] == ids(project)[2] == ids(call)[1]
    assert (call.kind, request.kind, project.kind) == (SpanKind.SERVER, SpanKind.CLIENT, SpanKind.INTERNAL)
    assert call.attributes is not None
    about = dict(call.attributes)
    assert len(str(about.pop("gen_ai.tool.call.id"))) == 16
    assert about == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "list_rows", "toolview.surface": "agent",
        "toolview.code": "ok", "toolview.full_bytes": 16, "toolview.view_bytes": 12,
    }  # fmt: skip
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert sent is not None
    assert [value for name, value in sent.headers if name.lower() == "traceparent"] == [
        f"00-{TRACE}-{ids(request)[1]}-01"
    ]
    assert call.start_time is not None
    assert request.start_time is not None
    assert call.start_time <= request.start_time


@pytest.mark.usefixtures("spans")
async def test_over_mcp_the_context_of_a_calls_meta_counts(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    meta = f'{{"traceparent": "{TRACEPARENT}"}}'
    params = f'{{"name": "list_rows", "arguments": {{}}, "_meta": {meta}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'.encode()
    headers = "Content-Type: application/json\r\nAccept: application/json\r\n"
    await called(tmp_path, http({"rows": []}), body, headers, "/mcp")
    call = named(exporter)["execute_tool list_rows"]
    assert ids(call)[0] == TRACE
    assert ids(call)[2] == PARENT


@pytest.mark.usefixtures("spans")
@pytest.mark.parametrize("given", ["", "traceparent: nonsense\r\n", f"traceparent: 00-{'0' * 32}-{PARENT}-01\r\n"])
async def test_without_a_context_that_can_be_read_a_trace_of_its_own_begins(
    tmp_path: Path, exporter: InMemorySpanExporter, given: str
) -> None:
    sent = await called(tmp_path, http({"rows": []}), headers=given)
    call = named(exporter)["execute_tool list_rows"]
    assert call.parent is None
    assert sent is not None
    assert (sent.header("traceparent") or "").startswith(f"00-{ids(call)[0]}-")


@pytest.mark.usefixtures("spans")
async def test_a_caller_that_asks_for_no_sampling_is_not_recorded_and_the_backend_is_told_so(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    sent = await called(tmp_path, http({"rows": []}), headers=f"traceparent: 00-{TRACE}-{PARENT}-00\r\n")
    assert named(exporter) == {}
    assert sent is not None
    header = sent.header("traceparent") or ""
    assert header.startswith(f"00-{TRACE}-")
    assert header.endswith("-00")


@pytest.mark.usefixtures("spans")
@pytest.mark.parametrize(
    ("answer", "path", "body", "status", "kinds"),
    [
        (http({}, status=503), AGENT, b"{}", 502, {"execute_tool list_rows": "BACKEND_ERROR", "GET api": "503"}),
        (None, AGENT, b"{}", 502, {"execute_tool list_rows": "BACKEND_CLOSED", "GET api": "closed"}),
        (http({}), AGENT, b'{"made": 1}', 400, {"execute_tool list_rows": "VALIDATION_ERROR"}),
        (http({}), "/agent/tools/made_up", b"{}", 404, {"execute_tool unknown": "UNKNOWN_TOOL"}),
    ],
)
async def test_a_failed_call_is_a_span_in_error_with_its_code(
    tmp_path: Path,
    exporter: InMemorySpanExporter,
    answer: bytes | None,
    path: str,
    body: bytes,
    status: int,
    kinds: Any,
) -> None:
    await called(tmp_path, answer, body, path=path, status=status)
    found = named(exporter)
    assert {name: span.attributes["error.type"] for name, span in found.items() if span.attributes} == kinds
    assert not [span for span in found.values() if span.status.is_ok]


@pytest.mark.usefixtures("spans")
async def test_a_span_holds_no_argument_and_no_answer(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    await called(tmp_path, http({"rows": [424242]}), b'{"text": "planted-argument"}')
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "list_rows" in told
    assert "planted-argument" not in told
    assert "424242" not in told


@pytest.mark.usefixtures("exporter")
async def test_the_log_line_of_a_call_names_its_trace_and_the_next_one_does_not_inherit_it(
    tmp_path: Path, spans: CallSpans
) -> None:
    seen: list[str | None] = []

    def observe(_: Outcome) -> None:
        seen.append(TRACE_ID.get())

    async with backend(http({"rows": []})) as api:
        serving = Serving(accepted(tmp_path, CONTRACT.replace("URL", api.url)), observe)
        assert await serving.start() is None
        gateway: Gateway = serving.gateway
        await gateway.invoke("list_rows", {})
        after = TRACE_ID.get()
        await gateway.invoke("list_rows", {})
        await serving.stop(1)
    assert None not in seen
    assert len(set(seen)) == 2
    assert after is None
    assert spans is not None


@pytest.mark.parametrize(
    ("environment", "exporter"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "x"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": " Console "}, "console"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, None),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, None),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "console"),
    ],
)
def test_the_standard_variables_say_whether_there_are_traces(environment: dict[str, str], exporter: str | None) -> None:
    assert exporter_asked(environment) == exporter


def test_without_the_extra_a_gateway_that_is_asked_for_traces_says_what_it_lacks_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert spans_of({"OTEL_TRACES_EXPORTER": "console"}) is None
    assert "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http" in caplog.text


def test_where_it_is_off_nothing_of_the_library_is_imported() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    script = "import sys, gateway.serve as serve; serve._spans_asked(); print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60, env=plain
    )
    assert "gateway.telemetry.metrics" in ran.stdout
    assert "gateway.telemetry.traces" not in ran.stdout
    assert "opentelemetry" not in ran.stdout


async def test_a_served_gateway_sends_its_spans_to_a_collector_before_it_ends(tmp_path: Path) -> None:
    taken: list[tuple[str, str]] = []
    bodies: list[bytes] = []

    async def collect(request: web.BaseRequest) -> web.Response:
        taken.append((request.path, request.headers["Content-Type"]))
        bodies.append(await request.read())
        return web.Response(body=b"", content_type="application/x-protobuf")

    collector = web.Server(collect)
    listening = await asyncio.get_running_loop().create_server(collector, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with backend(http({"rows": [1]})) as api:
        accepted(tmp_path, CONTRACT.replace("URL", api.url))
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "NO_PROXY": "*"}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "serve", str(tmp_path / "gateway.yaml")),
            env=environment,
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            tools = await asyncio.wait_for(_tools_address(process), 60)
            assert (await fetch(tools, "POST", AGENT, b"{}"))[0] == 200
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.communicate(), 60)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
    listening.close()
    await collector.shutdown(1)
    assert process.returncode == 0
    assert set(taken) == {("/v1/traces", "application/x-protobuf")}
    sent = b"".join(bodies)
    assert b"execute_tool list_rows" in sent
    assert b"GET api" in sent
    assert b"service.name" in sent
    assert b"toolview" in sent


@pytest.mark.parametrize("workers", ["0", "1"])
async def test_what_has_ended_is_sent_as_the_end_begins_so_that_a_second_signal_loses_no_span(
    tmp_path: Path, workers: str
) -> None:
    arrived, sent, release = asyncio.Event(), asyncio.Event(), asyncio.Event()
    bodies: list[bytes] = []
    asked = 0

    async def collect(request: web.BaseRequest) -> web.Response:
        bodies.append(await request.read())
        sent.set()
        return web.Response(body=b"", content_type="application/x-protobuf")

    async def second_hangs(_: Any) -> bytes:
        nonlocal asked
        asked += 1
        if asked == 2:
            arrived.set()
            await release.wait()
        return http({"rows": [1]})

    collector = web.Server(collect)
    listening = await asyncio.get_running_loop().create_server(collector, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with backend(second_hangs) as api:
        accepted(tmp_path, CONTRACT.replace("URL", api.url))
        never = {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}  # nothing is sent by the clock
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "serve", str(tmp_path / "gateway.yaml"), "--workers", workers),
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "NO_PROXY": "*", **never},
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            tools = await asyncio.wait_for(_tools_address(process), 60)
            assert (await fetch(tools, "POST", AGENT, b"{}"))[0] == 200
            hanging = asyncio.create_task(fetch(tools, "POST", AGENT, b"{}"))
            await asyncio.wait_for(arrived.wait(), 60)
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(sent.wait(), 60)
            assert not hanging.done()
            while process.returncode is None:  # one that comes at once is taken for the first
                await asyncio.sleep(0.05)
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
            release.set()
    await asyncio.gather(hanging, return_exceptions=True)
    listening.close()
    await collector.shutdown(1)
    assert b"execute_tool list_rows" in b"".join(bodies)


async def test_the_end_is_sent_once() -> None:
    class Counted(InMemorySpanExporter):
        ends = 0

        def shutdown(self) -> None:
            self.ends += 1

    exporter, provider = Counted(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = traces.CallSpans(provider)
    spans.flush()
    await asyncio.gather(spans.close(5), spans.close(5))
    await spans.close(5)
    assert exporter.ends == 1


async def _tools_address(process: asyncio.subprocess.Process) -> Address:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        told: dict[str, Any] = json.loads(line)
        if told.get("listener") == "tools":
            host, _, port = told["address"].rpartition(":")
            return Address(host, int(port))
    raise AssertionError("it ended before it listened")


async def test_a_collector_that_is_gone_does_not_hold_up_the_end(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(InMemorySpanExporter):
        def shutdown(self) -> None:
            released.wait(30)

    released = threading.Event()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Stuck()))
    await traces.CallSpans(provider).close(0.01)
    released.set()
    assert "not taken in time" in caplog.text
