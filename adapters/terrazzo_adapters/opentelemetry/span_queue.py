"""``SpanQueue``: spans that wait to be sent. It is bounded: one that is one too many is dropped, and counted."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress

import msgspec
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_GATHER_S = 1.0  # before spans are sent, so that many go together
_AT_ONCE = 512
_STOP_S = 3.0


class SpanStats(msgspec.Struct):
    """Counters for ``/metrics``: spans that the collector has, that it didn't take, that found no room in the queue."""

    sent: int = 0
    failed: int = 0
    dropped: int = 0


class SpanQueue(SpanProcessor):
    """Takes spans on the event loop, and sends them on a thread."""

    def __init__(self, exporter: SpanExporter, *, most: int) -> None:
        self.stats = SpanStats()
        self._exporter = exporter
        self._most = most
        self._spans: deque[ReadableSpan] = deque()
        self._wake = asyncio.Event()
        self._task: Task | None = None
        self._failure_log = SparseLog(_log, interval_s=60.0)

    def start(self, tasks: Tasks) -> None:
        """Starts the task that sends."""
        self._task = tasks.spawn("spans", self._send, OnFailure.RESTART)

    @property
    def waiting(self) -> int:
        """How many wait to be sent."""
        return len(self._spans)

    def on_end(self, span: ReadableSpan) -> None:
        """A span has ended; the SDK calls this for those that are sampled."""
        if len(self._spans) >= self._most:
            self.stats.dropped += 1
            return
        self._spans.append(span)
        self._wake.set()

    async def close(self) -> None:
        """Sends what waits, for three seconds at the most."""
        if self._task is not None:
            await self._task.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await self._send_all()
        self.stats.dropped += len(self._spans)
        self._spans.clear()
        await asyncio.to_thread(self._exporter.shutdown)

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER_S)
            self._wake.clear()
            await self._send_all()

    async def _send_all(self) -> None:
        while self._spans:
            batch = [self._spans.popleft() for _ in range(min(_AT_ONCE, len(self._spans)))]
            if await asyncio.to_thread(self._export, batch):
                self.stats.sent += len(batch)
            else:
                self.stats.failed += len(batch)
                self._failure_log.warning("tracing.endpoint: %d spans were not taken", len(batch))

    def _export(self, batch: list[ReadableSpan]) -> bool:
        try:
            return self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception:  # noqa: BLE001 - whatever a network or a collector does, spans are lost and counted
            return False
