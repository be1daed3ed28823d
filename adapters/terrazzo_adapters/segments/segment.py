"""Reads a segment, as little of it as is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Figures
from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.columns.name_tally import HourTally
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.segments.named_records import NamedRecords
from terrazzo_adapters.segments.parts import TIMES, Memory, Parts, made_part, rollup_part, value_part
from terrazzo_adapters.segments.payload_records import PayloadRecords
from terrazzo_adapters.segments.rollups import decode_rollup, frozen, make_rollup
from terrazzo_adapters.segments.summary import Summary
from terrazzo_adapters.segments.times import Orders, decode_times

_ALL: Set[str] = frozenset()
_TEXT_BYTES = 49  # of a text, beside its characters
_NO_TIMES = np.zeros(0, np.int64)
_NO_FIGURES = Figures(0, _NO_TIMES, _NO_TIMES, np.zeros(0), np.zeros((4, 0)), np.zeros((4, 0), np.int64))


class Segment:
    """A segment of ``count`` records. Each part is read once, when it is needed first.

    Whatever reads a part may raise ``SegmentDamaged``.
    """

    def __init__(self, read: Callable[[bytes], bytes | None], memory: Memory | None = None) -> None:
        """Reads the head, unless it is in the memory.

        Args:
            read: gives a part by its name, None if there is none.
            memory: what was decoded of this segment before.

        Raises:
            SegmentDamaged: the head is damaged, or of a later version.
        """
        self._parts = Parts(read, memory)
        self._head = self._parts.head
        self.count = self._head.count
        self.first_us = self._head.first_us
        self.last_us = self._head.last_us
        self.first_arrival = self._head.first_arrival
        self.last_arrival = self._head.last_arrival
        self.is_mosaic = self._head.is_mosaic
        """Whether it has a column for each name."""

    @property
    def times_us(self) -> NDArray[np.int64]:
        """The records' times, in UTC microseconds."""
        return self._orders.times_us

    @cached_property
    def arrivals(self) -> NDArray[np.uint64]:
        """The records' arrival numbers."""
        return self._parts.checked(TIMES, self._orders, Orders.arrivals)

    @cached_property
    def tally(self) -> HourTally:
        """How often each set of names occurs."""
        return self._head.tally if self._head.tally is not None else self._records.tally()

    @cached_property
    def names(self) -> Sequence[str]:
        """The names that the records carry, sorted."""
        return self._head.names if self._head.names is not None else sorted(self.tally.names)

    def count_carrying(self, keys: Set[str], start: int, stop: int) -> int:
        """How many of the records from ``start`` to ``stop``, exclusive, carry at least one of the names."""
        start, stop = max(0, start), min(stop, self.count)
        if start >= stop or keys.isdisjoint(self.names):
            return 0
        if isinstance(self._records, NamedRecords) and (self._head.tally is None or stop - start < self.count):
            return self._records.count_carrying(keys, start, stop)
        if 2 * (stop - start) <= self.count:
            return _carrying(self.bodies(start, stop), keys)
        return self.tally.carrying(keys) - _carrying(self.bodies(0, start) + self.bodies(stop, self.count), keys)

    def bodies(self, start: int, stop: int) -> list[bytes]:
        """The bodies of the records from ``start`` to ``stop``, exclusive, byte for byte."""
        start, stop = max(0, start), min(stop, self.count)
        return self._records.bodies(start, stop) if start < stop else []

    def bodies_at(self, places: NDArray[np.int64], only: Set[str] = _ALL) -> list[bytes]:
        """The bodies of some records, by their numbers, which ascend; ``only`` as in ``NamedRecords.bodies_at``."""
        if isinstance(self._records, NamedRecords):
            return self._records.bodies_at(places, only)
        start, stop = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        found = self.bodies(start, stop)
        return found if len(found) == len(places) else [found[place - start] for place in places.tolist()]

    def carrying(self, keys: Set[str], start: int, stop: int) -> NDArray[np.int64] | None:
        """Which of some records (``stop`` is exclusive) carry at least one of the names; None: only bodies tell."""
        return self._records.carrying(keys, start, stop) if isinstance(self._records, NamedRecords) else None

    def column(self, name: str) -> PointColumn:
        """One name's points, in order; empty where there are none."""
        return self._parts.once(value_part(name), lambda: self._column(name), self._size)

    def _column(self, name: str) -> PointColumn:
        points = self._records.points(name)
        whole = len(points.times_us) == self.count
        times_us = self.times_us if whole else self.times_us[points.times_us]
        for array in (times_us, points.kinds, points.numbers):
            array.flags.writeable = False
        return PointColumn(times_us, points.kinds, points.numbers, points.texts)

    def _size(self, column: PointColumn) -> int:
        times_us, kinds, numbers, texts = column
        arrays = (kinds, numbers) if times_us is self.times_us else (times_us, kinds, numbers)
        return sum(each.nbytes for each in arrays) + sum(_TEXT_BYTES + len(each) for each in texts)

    def summary(self, name: str) -> Summary | None:
        """One name's points in few numbers; None where no record carries it."""
        return self._records.summary(name)

    def rollup(self, name: str) -> Figures | None:
        """One name's points by UTC hour, as they are stored; None where they aren't."""
        part = rollup_part(name)
        if not self._parts.has(part):
            return None
        return self._parts.once(
            part,
            lambda: self._parts.decoded(part, lambda data: decode_rollup(data, self.count)),
            _bytes_of,
        )

    def made_rollup(self, name: str, slot_us: int) -> Figures | None:
        """One name's points by hours, or parts of them, made of its column and kept as if they were stored.

        None where they would not say all, or there are too few points.
        """
        found = self._parts.once(made_part(name, slot_us), lambda: self._made_rollup(name, slot_us), _bytes_of)
        return found if len(found.starts_us) else None

    def _made_rollup(self, name: str, slot_us: int) -> Figures:
        made = make_rollup(self.column(name), slot_us) if name in self.names else None
        return _NO_FIGURES if made is None else frozen(made)

    @cached_property
    def _orders(self) -> Orders:
        return self._parts.once(
            TIMES,
            lambda: self._parts.decoded(TIMES, lambda data: decode_times(data, self.count)),
            lambda orders: orders.times_us.nbytes + len(orders.numbers),
        )

    @cached_property
    def _records(self) -> NamedRecords | PayloadRecords:
        return NamedRecords(self._parts) if self.is_mosaic else PayloadRecords(self._parts, self.times_us)


def _bytes_of(figures: Figures) -> int:
    return sum(each.nbytes for each in figures[1:])


def _carrying(bodies: Iterable[bytes], keys: Set[str]) -> int:
    return sum(1 for body in bodies if not keys.isdisjoint(parse_points(body)))
