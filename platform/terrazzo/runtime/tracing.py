"""Tracing, where ``tracing.endpoint`` names a collector: what parts make traces with, and the figures of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec
from prometheus_client.registry import Collector

from terrazzo.commands.traces import CommandTraces
from terrazzo.config.tracing import TracingSection
from terrazzo.ingest.commit_traces import CommitTraces
from terrazzo.ports.tasks import Tasks
from terrazzo.ports.tracing import Tracer, Tracing
from terrazzo.runtime.assembly.collectors import LabelledCollector
from terrazzo.runtime.lifetime import Lifetime


class SendingTracer(Tracer, Protocol):
    """A tracer that sends its spans. ``stats``: how many were sent, failed and dropped."""

    @property
    def stats(self) -> Any: ...

    def start(self, tasks: Tasks) -> None: ...

    def close(self) -> Awaitable[None]: ...


class TracingParts(msgspec.Struct, frozen=True):
    """What the parts trace with; nothing where tracing is off."""

    requests: Tracing | None = None
    commits: CommitTraces | None = None
    commands: CommandTraces | None = None
    collectors: Sequence[Collector] = ()


def open_tracing(
    section: TracingSection, lifetime: Lifetime, new_tracer: Callable[[TracingSection], SendingTracer]
) -> TracingParts:
    """Starts sending, before other parts exist: at the stop they end their traces first."""
    if not section.endpoint:
        return TracingParts()
    tracer = new_tracer(section)
    tracer.start(lifetime.tasks)
    lifetime.push_async_callback(tracer.close)
    tracing = Tracing(tracer, section.sample)
    commits, commands = CommitTraces(tracing), CommandTraces(tracing)
    stats = tracer.stats
    spans = LabelledCollector(
        "terrazzo_trace_spans_total",
        "result",
        "Spans that the collector has, that it did not take, and that found no room in the queue (tracing.queue_spans)",
        lambda: {"sent": stats.sent, "failed": stats.failed, "dropped": stats.dropped},
    )
    left_out = LabelledCollector(
        "terrazzo_trace_left_out_total",
        "kind",
        "Messages and commands that were to be traced, and were too many at a time",
        lambda: {"message": commits.stats.left_out, "command": commands.stats.left_out},
    )
    return TracingParts(tracing, commits, commands, (spans, left_out))
