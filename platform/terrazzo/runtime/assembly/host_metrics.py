"""The machine below the platform, and the bounds that its figures are held against, as metrics."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class HostCollector(Collector):
    """The disk of the data folder, the clock, and configured limits.

    Args:
        limits: by their keys in the section ``limits``.
        clock: UTC microseconds.
    """

    def __init__(self, data_dir: Path, limits: Mapping[str, float], clock: Callable[[], int]) -> None:
        self._data_dir = data_dir
        self._limits = limits
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        with suppress(OSError):  # a disk that fails has no size; what it does is in the parts' figures
            disk = shutil.disk_usage(self._data_dir)
            yield GaugeMetricFamily(
                "terrazzo_disk_free_bytes", "Bytes that are free on the disk of the data folder", value=disk.free
            )
            yield GaugeMetricFamily(
                "terrazzo_disk_size_bytes", "Bytes of the disk of the data folder", value=disk.total
            )
        yield GaugeMetricFamily(
            "terrazzo_clock_seconds", "Unix time of the platform's clock", value=self._clock() / 1e6
        )
        limits = GaugeMetricFamily("terrazzo_limit", "Configured limits, by their key in [limits]", labels=["key"])
        for key, value in self._limits.items():
            limits.add_metric([key], value)
        yield limits
