"""Spans for a collector that speaks OTLP over HTTP, made and sent by OpenTelemetry's SDK."""

from terrazzo_adapters.opentelemetry.span_queue import SpanQueue, SpanStats
from terrazzo_adapters.opentelemetry.tracer import OtelTracer, TracerSettings

__all__ = ["OtelTracer", "SpanQueue", "SpanStats", "TracerSettings"]
