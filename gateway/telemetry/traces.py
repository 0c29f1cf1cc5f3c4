"""OpenTelemetry spans where the environment asks for them: a call's, its request's and its projection's.

The library is an extra (`otel`), imported only where spans are made. A span holds no argument and no answer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from contextvars import Token
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway import __version__
from gateway.backend.exchange import Answer, NoAnswer, Request, Send
from gateway.call.outcome import Call, Code, Outcome
from gateway.call.run import Full, Project
from gateway.projection import Projected, Projection, ProjectionFault
from gateway.record import record
from gateway.telemetry.log import TRACE_ID

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

log = logging.getLogger("toolview.traces")

#: Milliseconds for what is sent as the end begins.
_FLUSH = 5000
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


def exporter_asked(environment: Mapping[str, str]) -> str | None:
    """Which exporter OpenTelemetry's own variables ask for, `otlp` or `console`; None where none, or another, is.

    Unlike the specification's default, nothing is sent where nothing is said: no collector is looked for unasked.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    wanted = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    wanted = wanted or ("otlp" if any(environment.get(name) for name in _ENDPOINTS) else "none")
    if wanted == "none":
        return None
    if wanted not in ("otlp", "console"):
        log.warning("no traces: `OTEL_TRACES_EXPORTER` is `otlp`, `console` or `none` here")
        return None
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), "http/protobuf")
    if wanted == "otlp" and protocol.strip().lower() != "http/protobuf":
        log.warning("no traces: OTLP is spoken as `http/protobuf` here; point the endpoint at a collector's 4318")
        return None
    return wanted


#: The extra `otel` by its parts: a name that a package index has, whatever Toolview itself was installed from.
_LIBRARIES = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"


def spans_of(environment: Mapping[str, str]) -> CallSpans | None:
    """What follows calls, where the environment asks for it; else None, and nothing of the library is imported."""
    wanted = exporter_asked(environment)
    if wanted is None:
        return None
    try:
        return CallSpans(_provider(environment, _exporter(wanted)))
    except ImportError:
        log.warning("no traces: the environment asks for them, and they need `pip install %s`", _LIBRARIES)
        return None


def _exporter(wanted: str) -> SpanExporter:
    if wanted == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _provider(environment: Mapping[str, str], exporter: SpanExporter) -> TracerProvider:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = {"service.version": __version__}
    if not environment.get("OTEL_SERVICE_NAME") and "service.name=" not in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    ):
        own["service.name"] = "toolview"
    provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class _Begun(NamedTuple):
    """A call under way: its span, and what to put back when it ends."""

    span: Span
    context: Token[Context]
    trace_id: Token[str | None]


class CallSpans:
    """Spans of one provider; the trace of the caller's `traceparent` goes on through the gateway to the backend."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("toolview", __version__)
        self._api = _Api.imported()
        self._closed = False

    def begin(self, call: Call) -> _Begun:
        """A call begins; until it ends, whatever runs for it is inside its span."""
        api = self._api
        given = {name: call.headers[name] for name in ("traceparent", "tracestate") if name in call.headers}
        parent = api.propagator.extract(given, api.Context())
        waited = int((time.perf_counter() - call.began) * 1e9)
        span = self._tracer.start_span(
            "execute_tool", parent, kind=api.SpanKind.SERVER, start_time=time.time_ns() - waited
        )
        trace_id = format(span.get_span_context().trace_id, "032x")
        return _Begun(span, api.attach(api.set_span_in_context(span, parent)), TRACE_ID.set(trace_id))

    def end(self, begun: _Begun, outcome: Outcome) -> None:
        """It ended: what an `Outcome` says of itself, and none of what it carried."""
        TRACE_ID.reset(begun.trace_id)
        self._api.detach(begun.context)
        span = begun.span
        if span.is_recording():
            span.update_name(f"execute_tool {outcome.tool}")
            span.set_attributes(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": outcome.tool,
                    "gen_ai.tool.call.id": outcome.call.call_id,
                    "toolview.surface": outcome.call.surface,
                    "toolview.code": outcome.code,
                    "toolview.full_bytes": outcome.full_bytes,
                    "toolview.view_bytes": outcome.view_bytes,
                }
            )
            if not outcome.ok and outcome.code != Code.INPUT_REQUIRED.word:  # a question is no error
                self._failed(span, outcome.code)
        span.end()

    def sending(self, send: Send) -> Send:
        """A `Send` with a span around it, whose own id the backend gets as the `traceparent`."""

        async def traced(request: Request) -> Answer | NoAnswer:
            about = {"http.request.method": request.method, "toolview.backend": request.backend}
            with self._inside(f"{request.method} {request.backend}", self._api.SpanKind.CLIENT, about) as span:
                answer = await send(self._handed_on(request))
                if isinstance(answer, NoAnswer):
                    self._failed(span, answer.silence.value)
                    return answer
                span.set_attribute("http.response.status_code", answer.status)
                span.set_attribute("http.response.body.size", answer.wire_bytes)
                if answer.status >= 400:
                    self._failed(span, str(answer.status))
                return answer

        return traced

    def projecting(self, project: Project) -> Project:
        """The running of projections with a span around each."""

        async def traced(projection: Projection, full: Full) -> Projected | ProjectionFault:
            with self._inside("project", self._api.SpanKind.INTERNAL, {}) as span:
                projected = await project(projection, full)
                if isinstance(projected, ProjectionFault):
                    self._failed(span, projected.reason.value)
                return projected

        return traced

    def flush(self) -> None:
        """Begin to send what has ended so far, beside the caller: whoever is told to end may be cut off any moment."""
        threading.Thread(target=self._provider.force_flush, args=(_FLUSH,), daemon=True).start()

    async def close(self, patience: float) -> None:
        """Send what is left, once, for so many seconds at most: a collector that is gone does not hold up the end."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def flush() -> None:
            self._provider.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=flush, daemon=True).start()
        try:
            await asyncio.wait_for(done.wait(), patience)
        except TimeoutError:
            log.warning("the last traces were not taken in time")

    def _inside(self, name: str, kind: Any, about: dict[str, str]) -> Any:
        return self._tracer.start_as_current_span(
            name, kind=kind, attributes=about, record_exception=False, set_status_on_exception=False
        )

    def _handed_on(self, request: Request) -> Request:
        carrier: dict[str, str] = {}
        self._api.propagator.inject(carrier)
        kept = tuple(header for header in request.headers if header[0].lower() != "traceparent")
        return replace(request, headers=(*kept, ("traceparent", carrier["traceparent"])))

    def _failed(self, span: Span, kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._api.StatusCode.ERROR)


@record
class _Api:
    """The names that are used of the library, imported when the first span is wanted and not before."""

    Context: Any
    SpanKind: Any
    StatusCode: Any
    attach: Any
    detach: Any
    propagator: Any
    set_span_in_context: Any

    @classmethod
    def imported(cls) -> _Api:
        from opentelemetry.context import Context, attach, detach
        from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        return cls(Context, SpanKind, StatusCode, attach, detach, TraceContextTextMapPropagator(), set_span_in_context)
