"""What of memory and of the disk is whose, for ``/metrics``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.domain.disk.series_figures import SeriesFigures
from terrazzo.memory_shares import MemoryShares
from terrazzo.ports.store import StoreStats
from terrazzo.runtime.heap import heap

MOST_COMPANIES = 20  # in /metrics


class MemoryCollector(Collector):
    """What of memory is whose."""

    def __init__(self, memory: MemoryShares) -> None:
        self._memory = memory

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        memory = self._memory
        kinds = GaugeMetricFamily("terrazzo_memory_bytes", "Memory of what waits or is kept, by kind", labels=["kind"])
        for kind, size in memory.by_kind().items():
            kinds.add_metric([kind], size)
        companies = GaugeMetricFamily(
            "terrazzo_memory_company_bytes",
            "Memory of what waits or is kept, of the companies that have most",
            labels=["company"],
        )
        for owner, size in memory.largest(MOST_COMPANIES):
            companies.add_metric([str(owner)], size)
        ceiling = GaugeMetricFamily(
            "terrazzo_memory_ceiling_bytes", "The most memory for what waits or is kept, limits.memory_mib in bytes"
        )
        ceiling.add_metric([], memory.most_bytes)
        tight = GaugeMetricFamily(
            "terrazzo_memory_tight",
            "1 while less than a quarter of that memory is free: who has its share gets no more",
        )
        tight.add_metric([], float(memory.is_tight))
        refused = CounterMetricFamily(
            "terrazzo_memory_refused_total",
            "Requests for memory refused to companies past their share, by kind",
            labels=["kind"],
        )
        for kind, count in memory.stats.refused.items():
            refused.add_metric([kind], count)
        given = CounterMetricFamily(
            "terrazzo_memory_given_up_bytes_total",
            "Bytes that the largest owners gave up when memory was short, by kind",
            labels=["kind"],
        )
        for kind, size in memory.stats.given_up.items():
            given.add_metric([kind], size)
        return kinds, companies, ceiling, tight, refused, given


class SeriesCollector(Collector):
    """What of the disk time series of each company take."""

    def __init__(self, largest: Callable[[int], Sequence[SeriesFigures]]) -> None:
        self._largest = largest

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        told = "Disk of time series, of the companies that have as much as they may, and of those that have most"
        companies = GaugeMetricFamily("terrazzo_series_company_bytes", told, labels=["company"])
        for figures in self._largest(MOST_COMPANIES):
            companies.add_metric([str(figures.company_id)], figures.bytes)
        yield companies


class ProcessMemoryCollector(Collector):
    """What the process has of memory beside what is whose: with ``process_resident_memory_bytes``, where it went."""

    def __init__(self, store: Callable[[], StoreStats]) -> None:
        self._store = store

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        store = GaugeMetricFamily(
            "terrazzo_store_memory_bytes",
            "Memory of the time-series store: what is not in files yet, read blocks, and what its open files need",
            labels=["part"],
        )
        for part, size in self._store().memory.items():
            store.add_metric([part], size)
        parts = GaugeMetricFamily(
            "terrazzo_heap_bytes",
            "What the C library has allocated, keeps free, and has mapped for what is large",
            labels=["part"],
        )
        for part, size in heap().items():
            parts.add_metric([part], size)
        blocks = GaugeMetricFamily("terrazzo_python_blocks", "Blocks of up to 512 bytes that Python's objects have")
        blocks.add_metric([], sys.getallocatedblocks())
        return store, parts, blocks
