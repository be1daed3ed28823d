"""Records that came lately, many of a series in one commit, as they came: whoever asks right after loading them has
them without going through RocksDB's entries, of which each costs as much as decoding a record.

An hour of a series is kept from its first record on, so that it is all there is as long as it has as many records as
the hour's counter in a reader's snapshot says, and none was removed. What removes records says so before and after its
commit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock, local
from typing import NamedTuple, TypeVar

from terrazzo_adapters.rocksdb.batch import SeriesHour
from terrazzo_adapters.rocksdb.blocks import Arrivals
from terrazzo_adapters.rocksdb.keys import HOUR_US

T = TypeVar("T")

_RECORD_BYTES = 200  # of Python's own: a tuple, two numbers, and what bytes take beside themselves
_MOST_REMOVED = 100_000


class _Hour:
    """The records of one hour, in the order of commits. ``count``: how many."""

    __slots__ = ("bytes", "count", "runs")

    def __init__(self) -> None:
        self.runs: list[Arrivals] = []
        self.count = self.bytes = 0


class Reading(NamedTuple):
    """A reader: what it may take of, and how many removals there were when its snapshot was made."""

    recent: Recent
    removals: int


_reader = local()


class Recent:
    """At most ``most_bytes`` of records. One thread commits and adds; any may read."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._hours: OrderedDict[SeriesHour, _Hour] = OrderedDict()
        self._removals = 0  # of records, since the start
        self._removed: dict[int, int] = {}  # the last one of each series
        self._removed_all = 0  # the last one of all series
        self.bytes = 0

    def add(
        self, runs: Iterable[tuple[int, Arrivals]], counts: Mapping[SeriesHour, int], added: Mapping[SeriesHour, int]
    ) -> None:
        """Takes a commit's records of some series, in order of time each, once it is stored.

        Args:
            counts: how many records the hours of the commit have now; ``added``: of the commit, in all series.
        """
        new = [(slot, part) for series_id, run in runs for slot, part in _by_hour(series_id, run)]
        if not new and not self._hours:
            return
        with self._lock:
            for slot in self._hours.keys() & added.keys() - {slot for slot, _ in new}:
                self._drop(slot)  # a few came beside them
            for slot, run in new:
                self._keep(slot, run, counts[slot])
            while self.bytes > self._most_bytes:
                self._drop(next(iter(self._hours)))

    def _keep(self, slot: SeriesHour, run: Arrivals, count: int) -> None:
        hour = self._hours.get(slot)
        if hour is None:
            if count != len(run):
                return
            hour = self._hours[slot] = _Hour()
        hour.runs.append(run)
        hour.count += len(run)
        if hour.count != count:
            self._drop(slot)
            return
        size = sum([len(body) for _, _, body in run]) + _RECORD_BYTES * len(run)
        hour.bytes += size
        self.bytes += size

    def _drop(self, slot: SeriesHour) -> None:
        self.bytes -= self._hours.pop(slot).bytes

    @contextmanager
    def removing(self, hours: tuple[SeriesHour, SeriesHour] | None = None) -> Iterator[None]:
        """Around a commit that removes records, whatever comes of it.

        Args:
            hours: the first and the last one of a series of which they are removed; None: of any.
        """
        self._forget(hours)
        try:
            yield
        finally:
            self._forget(hours)

    def _forget(self, hours: tuple[SeriesHour, SeriesHour] | None) -> None:
        with self._lock:
            self._removals += 1
            if hours is None or len(self._removed) >= _MOST_REMOVED:
                self._hours.clear()
                self._removed.clear()
                self._removed_all, self.bytes = self._removals, 0
                return
            self._removed[hours[0] >> 32] = self._removals
            for slot in [slot for slot in self._hours if hours[0] <= slot <= hours[1]]:
                self._drop(slot)

    def read(self, work: Callable[[], T]) -> T:
        """Does ``work``, which makes a snapshot and reads it: meanwhile ``found`` finds what is in it."""
        _reader.reading = Reading(self, self._removals)
        try:
            return work()
        finally:
            _reader.reading = None

    def runs(self, slot: SeriesHour, count: int, removals: int) -> list[Arrivals] | None:
        """The records of an hour of which a snapshot has so many; None: they are not all here.

        Args:
            removals: how many there had been when the snapshot was made, at most.
        """
        with self._lock:
            hour = self._hours.get(slot)
            if hour is None or max(self._removed_all, self._removed.get(slot >> 32, 0)) > removals:
                return None
            runs: list[Arrivals] = []
            for run in hour.runs:
                if count <= 0:
                    break
                runs.append(run)
                count -= len(run)
            return None if count else runs


def found(slot: SeriesHour, count: int) -> Sequence[Arrivals] | None:
    """What the snapshot that this thread reads has in an hour: ``count`` records; None: not all of them are here."""
    reading: Reading | None = getattr(_reader, "reading", None)
    return None if reading is None else reading.recent.runs(slot, count, reading.removals)


def _by_hour(series_id: int, run: Arrivals) -> Iterator[tuple[SeriesHour, Arrivals]]:
    """A run's records by the hours that they lie in."""
    start = 0
    while start < len(run):
        hour = run[start][0] // HOUR_US
        end_us = (hour + 1) * HOUR_US
        stop = len(run) if run[-1][0] < end_us else bisect_left(run, (end_us,), start)
        yield series_id << 32 | hour, run[start:stop] if start or stop < len(run) else run
        start = stop
