"""``OtelTracer``: the port ``Tracer`` on OpenTelemetry's SDK."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from terrazzo.ports.tasks import Tasks
from terrazzo.ports.tracing import HEADER, Attributes
from terrazzo_adapters.opentelemetry.span_queue import SpanQueue, SpanStats

_KINDS = {
    "server": trace.SpanKind.SERVER,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}
_TIMEOUT_S = 5  # of one request to the collector, with the SDK's own retries
_contexts = TraceContextTextMapPropagator()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracerSettings:
    """The keys of ``[tracing]`` that say where spans go, and what they are said to be of."""

    endpoint: str
    service_name: str
    version: str
    attributes: Mapping[str, str]
    headers: Mapping[str, str]
    queue_spans: int


class OtelTracer:
    """Makes spans, and has them sent.

    Args:
        exporter: where they go; without one to ``settings.endpoint``.
    """

    def __init__(self, settings: TracerSettings, exporter: SpanExporter | None = None) -> None:
        logging.getLogger("opentelemetry").setLevel(
            logging.CRITICAL
        )  # what isn't taken is told, once a minute, by the queue
        if exporter is None:
            exporter = OTLPSpanExporter(settings.endpoint, headers=dict(settings.headers), timeout=_TIMEOUT_S)
        self.queue = SpanQueue(exporter, most=settings.queue_spans)
        named = {**settings.attributes, SERVICE_NAME: settings.service_name, SERVICE_VERSION: settings.version}
        provider = TracerProvider(
            sampler=ParentBased(ALWAYS_ON), resource=Resource.create(named), shutdown_on_exit=False
        )
        provider.add_span_processor(self.queue)
        self._tracer = provider.get_tracer("terrazzo", settings.version)

    @property
    def stats(self) -> SpanStats:
        """How many spans were sent, failed and dropped."""
        return self.queue.stats

    def start(self, tasks: Tasks) -> None:
        """Starts sending."""
        self.queue.start(tasks)

    async def close(self) -> None:
        """Sends what waits, and ends."""
        await self.queue.close()

    def begin(self, name: str, start_us: int, *, kind: str, parent: str, attributes: Attributes) -> OtelSpan:
        """A span that is sampled unless its parent is not."""
        context = _contexts.extract({HEADER: parent}, Context()) if parent else Context()
        span = self._tracer.start_span(name, context, _KINDS[kind], attributes=attributes, start_time=start_us * 1_000)
        return OtelSpan(self._tracer, span)


class OtelSpan:
    """A span of the SDK."""

    __slots__ = ("_span", "_tracer")

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer = tracer
        self._span = span

    @property
    def traceparent(self) -> str:
        """What others name as their parent."""
        carrier: dict[str, str] = {}
        _contexts.inject(carrier, trace.set_span_in_context(self._span, Context()))
        return carrier.get(HEADER, "")

    def child(self, name: str, start_us: int, end_us: int) -> None:
        """Adds a part that is over."""
        context = trace.set_span_in_context(self._span, Context())
        self._tracer.start_span(name, context, start_time=start_us * 1_000).end(end_us * 1_000)

    def end(self, time_us: int, *, error: str = "", attributes: Attributes | None = None) -> None:
        """Ends it."""
        if attributes:
            self._span.set_attributes(dict(attributes))
        if error:
            self._span.set_status(trace.StatusCode.ERROR, error)
        self._span.end(time_us * 1_000)
