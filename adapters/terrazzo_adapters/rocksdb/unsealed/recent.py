"""Records that came lately, many of a series in one commit, as they came: whoever asks right after loading them has
them without going through RocksDB's entries, of which each costs as much as decoding a record.

Whether all records of an hour are here is told by their number, which the hour's counter in a reader's snapshot has:
none was removed, as what removes records says so before and after its commit.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from struct import pack
from threading import Lock, local
from typing import NamedTuple, TypeVar

from terrazzo_adapters.rocksdb.batch import SeriesHour
from terrazzo_adapters.rocksdb.blocks import Arrivals
from terrazzo_adapters.rocksdb.keys import HOUR_US

T = TypeVar("T")

_RUN_BYTES = 400  # of Python's own: a tuple, three numbers, and what three pieces of bytes take beside themselves
_BETWEEN = b"\n"  # as ``columns.bodies`` has it, whose library is heavy
_MOST_REMOVED = 100_000
BURST = 40_000  # records that are kept of a load; at full speed for long it would cost each commit a fifteenth
_LONG_BYTES = 2_048  # of a body: those that long cost little beside what they are, and would fill the memory
_PER_S = 2_000  # of them that may be kept again each second


class Run(NamedTuple):
    """Records of one commit and one series, in order of time, then arrival, as three pieces of memory.

    ``times_us`` and ``sizes``: 8 and 4 bytes for each in the machine's order; ``bodies``: with a line feed between two.
    ``arrival``: the number of one of them, as a snapshot has all of a commit or nothing.
    """

    arrival: int
    first_us: int
    last_us: int
    times_us: bytes
    sizes: bytes
    bodies: bytes

    @classmethod
    def of(cls, records: Arrivals) -> Run:
        """These records."""
        times_us, arrivals, bodies = zip(*records)  # noqa: B905 - the hot path, and all are triples
        sizes = pack(f"{len(bodies)}I", *map(len, bodies))
        every_us = pack(f"{len(bodies)}q", *times_us)
        return cls(arrivals[0], times_us[0], times_us[-1], every_us, sizes, _BETWEEN.join(bodies))

    @property
    def size(self) -> int:
        """How many bytes of memory it takes."""
        return len(self.times_us) + len(self.sizes) + len(self.bodies) + _RUN_BYTES

    def is_between(self, start_us: int, end_us: int) -> bool:
        """Whether it has some of a range, perhaps."""
        return self.first_us <= end_us and self.last_us >= start_us


class Recent:
    """At most ``most_bytes`` of records. One thread commits and adds; any may read."""

    def __init__(self, most_bytes: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock  # seconds
        self._allowed, self._counted_s = float(BURST), clock()
        self._lock = Lock()
        self._series: OrderedDict[int, deque[Run]] = OrderedDict()  # in each in the order of commits
        self._removals = 0  # of records, since the start
        self._removed: dict[int, int] = {}  # the last one of each series
        self._removed_all = 0  # the last one of all series
        self.bytes = 0

    def add(self, new: Sequence[tuple[int, Arrivals]]) -> None:
        """Takes a commit's records of some series, in order of time each, once it is stored; not beyond ``BURST``."""
        if not new or not self._is_allowed(sum([len(records) for _, records in new])):
            return
        with self._lock:
            for series_id, records in new:
                if len(records[0][2]) + len(records[-1][2]) > 2 * _LONG_BYTES:
                    continue
                run = Run.of(records)
                if len(run.bodies) > _LONG_BYTES * len(records):
                    continue
                runs = self._series.get(series_id)
                if runs is None:
                    runs = self._series[series_id] = deque()
                runs.append(run)
                self.bytes += run.size
            while self.bytes > self._most_bytes:
                self._give_up_one()

    def _is_allowed(self, count: int) -> bool:
        now_s = self._clock()
        self._allowed = min(BURST, self._allowed + (now_s - self._counted_s) * _PER_S)
        self._counted_s = now_s
        if count > self._allowed:
            return False
        self._allowed -= count
        return True

    def _give_up_one(self) -> None:
        """The oldest run of a series: of each in turn."""
        series_id, runs = self._series.popitem(last=False)
        self.bytes -= runs.popleft().size
        if runs:
            self._series[series_id] = runs

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
                self._series.clear()
                self._removed.clear()
                self._removed_all, self.bytes = self._removals, 0
                return
            first, last = hours
            series_id = first >> 32
            self._removed[series_id] = self._removals
            start_us, end_us = (first & 0xFFFFFFFF) * HOUR_US, ((last & 0xFFFFFFFF) + 1) * HOUR_US - 1
            runs = self._series.pop(series_id, ())
            left = deque(run for run in runs if not run.is_between(start_us, end_us))
            self.bytes -= sum(run.size for run in runs) - sum(run.size for run in left)
            if left:
                self._series[series_id] = left

    def read(self, work: Callable[[], T]) -> T:
        """Does ``work``, which makes a snapshot and reads it: meanwhile ``reading`` finds what is in it."""
        _reader.reading = Reading(self, self._removals)
        try:
            return work()
        finally:
            _reader.reading = None

    def runs(self, series_id: int, removals: int) -> Sequence[Run]:
        """What there is of a series, in the order of commits, some of which a snapshot may not have yet.

        Args:
            removals: how many there had been when the snapshot was made, at most: nothing, if there were more since.
        """
        with self._lock:
            is_as_before = max(self._removed_all, self._removed.get(series_id, 0)) <= removals
            return tuple(self._series.get(series_id, ())) if is_as_before else ()


class Reading(NamedTuple):
    """A reader: what it may take of, and how many removals there were when its snapshot was made."""

    recent: Recent
    removals: int

    def runs(self, series_id: int) -> Sequence[Run]:
        """As ``Recent.runs``."""
        return self.recent.runs(series_id, self.removals)


_reader = local()


def reading() -> Reading | None:
    """Of the snapshot that this thread reads; None: nothing may be taken from memory."""
    found: Reading | None = getattr(_reader, "reading", None)
    return found
