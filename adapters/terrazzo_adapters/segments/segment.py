"""Reads a segment, as little of it as is asked for."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.column import PointColumn, build_columns
from terrazzo_adapters.columns.name_tally import HourTally, make_tally
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.segments.chunks import decode_chunk
from terrazzo_adapters.segments.columns import Column, decode_column
from terrazzo_adapters.segments.head import decode_head
from terrazzo_adapters.segments.mosaic import render
from terrazzo_adapters.segments.packing import Damaged
from terrazzo_adapters.segments.shapes import Shapes, decode_shapes
from terrazzo_adapters.segments.summary import Summary, make_summary
from terrazzo_adapters.segments.times import Orders, decode_times
from terrazzo_adapters.segments.values import Values

S = TypeVar("S")
T = TypeVar("T")

HEAD, TIMES, SHAPES = b"", b"t", b"s"
_NO_POINTS = PointColumn(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.float64), [])


def body_part(number: int) -> bytes:
    """The name of the part with the bodies of one chunk."""
    return b"b%d" % number


def value_part(name: str) -> bytes:
    """The name of the part with one name's values."""
    return b"v" + name.encode()


class SegmentDamaged(Exception):
    """A part of a segment is missing, or is not what was written; the others may still be read."""

    def __init__(self, part: bytes, reason: str) -> None:
        super().__init__(f"part {part!r} of a segment: {reason}")
        self.part = part
        self.reason = reason


class Segment:
    """A segment of ``count`` records. Each part is read once, when it is needed first.

    Whatever reads a part may raise ``SegmentDamaged``.
    """

    def __init__(self, read: Callable[[bytes], bytes | None]) -> None:
        """Reads the head.

        Args:
            read: gives a part by its name, None if there is none.

        Raises:
            SegmentDamaged: the head is damaged, or of a later version.
        """
        self._read = read
        self._head = self._decoded(HEAD, self._raw(HEAD), decode_head)
        self._columns: dict[str, Column] = {}
        self._values: dict[str, Values] = {}
        self._chunk_read: tuple[int, list[bytes]] = (-1, [])  # the last one: readers go forward
        self.count = self._head.count
        self.first_us = self._head.first_us
        self.last_us = self._head.last_us
        self.first_arrival = self._head.first_arrival
        self.last_arrival = self._head.last_arrival
        self.is_mosaic = self._head.is_mosaic
        """Whether it has columns."""

    @property
    def times_us(self) -> NDArray[np.int64]:
        """The records' times, in UTC microseconds."""
        return self._orders.times_us

    @property
    def arrivals(self) -> NDArray[np.uint64]:
        """The records' arrival numbers."""
        return self._orders.arrivals

    @cached_property
    def tally(self) -> HourTally:
        """How often each set of names occurs."""
        if self._head.tally is not None:
            return self._head.tally
        names = self._head.names
        if names is None:
            return make_tally(parse_points(body) for body in self.bodies(0, self.count))
        carried = [[names[place] for place in shape.names] for shape in self._shapes.shapes]
        return make_tally(carried[number] for number in self._shapes.ids.tolist())

    @cached_property
    def names(self) -> Sequence[str]:
        """The names that the records carry, sorted."""
        if self._head.names is not None:
            return self._head.names
        return sorted(self.tally.names)

    def bodies(self, start: int, stop: int) -> list[bytes]:
        """The bodies of the records from ``start`` to ``stop``, exclusive, byte for byte."""
        start, stop = max(0, start), min(stop, self.count)
        if start >= stop:
            return []
        if not self.is_mosaic:
            return self._kept(start, stop)
        rendered = self._shapes.rendered
        before, within = int(np.count_nonzero(~rendered[:start])), rendered[start:stop]
        bodies = np.empty(stop - start, object)
        bodies[~within] = self._kept(before, before + int(np.count_nonzero(~within)))
        for number in np.unique(self._shapes.ids[start:stop][within]).tolist():
            places = np.flatnonzero(self._shapes.ids[start:stop] == number) + start
            bodies[places - start] = self._render(number, places)
        return bodies.tolist()

    def column(self, name: str) -> PointColumn:
        """One name's points, in order; empty where there are none."""
        if self._head.names is None:
            points = [parse_points(body) for body in self.bodies(0, self.count)]
            records = zip(self.times_us.tolist(), points, strict=True)
            return build_columns(records, [name]).get(name, _NO_POINTS)
        place = self._place(name)
        if place is None:
            return _NO_POINTS
        carriers = self._shapes.carriers(place)
        return self._values_of(name).points(self.times_us if carriers is None else self.times_us[carriers])

    def summary(self, name: str) -> Summary | None:
        """One name's points in few numbers; None where no record carries it."""
        if self._head.names is not None:
            return None if self._place(name) is None else self._column(name).summary
        carriers = [place for place, body in enumerate(self.bodies(0, self.count)) if name in parse_points(body)]
        if not carriers:
            return None
        return make_summary(self.column(name), carried=len(carriers), last_place=carriers[-1])

    def _place(self, name: str) -> int | None:
        assert self._head.names is not None
        return self._head.names.index(name) if name in self._head.names else None

    def _render(self, number: int, places: NDArray[np.intp]) -> list[bytes]:
        """The bodies of records of one shape."""
        assert self._head.names is not None
        carried = self._shapes.shapes[number].names
        names = [self._head.names[place] for place in carried]
        columns = [self._values_at(place, places) for place in carried]
        return render(names, columns, len(places))

    def _values_at(self, name: int, places: NDArray[np.intp]) -> list[Value]:
        assert self._head.names is not None
        values, carriers = self._values_of(self._head.names[name]), self._shapes.carriers(name)
        return values.at(places if carriers is None else (np.cumsum(carriers) - 1)[places])

    def _kept(self, start: int, stop: int) -> list[bytes]:
        """Of the bodies that are kept as they are, those from ``start`` to ``stop``."""
        found: list[bytes] = []
        first = 0
        for number, count in enumerate(self._head.chunks):
            if first < stop and start < first + count:
                found += self._chunk(number, count)[max(0, start - first) : stop - first]
            first += count
        if len(found) != stop - start:
            raise SegmentDamaged(HEAD, "counts that don't fit")
        return found

    @cached_property
    def _orders(self) -> Orders:
        return self._part(TIMES, lambda data: decode_times(data, self.count))

    @cached_property
    def _shapes(self) -> Shapes:
        return self._part(SHAPES, lambda data: decode_shapes(data, self.count, len(self._head.names or ())))

    def _chunk(self, number: int, count: int) -> list[bytes]:
        if self._chunk_read[0] != number:
            self._chunk_read = number, self._part(body_part(number), lambda data: decode_chunk(data, count))
        return self._chunk_read[1]

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._part(value_part(name), lambda data: decode_column(data, self.count))
        return self._columns[name]

    def _values_of(self, name: str) -> Values:
        if name not in self._values:
            column = self._column(name)
            values = self._decoded(value_part(name), column, Column.decode)
            place = self._place(name)
            assert place is not None
            carriers = self._shapes.carriers(place)
            if len(values) != (self.count if carriers is None else np.count_nonzero(carriers)):
                raise SegmentDamaged(value_part(name), "counts that don't fit")
            self._values[name] = values
        return self._values[name]

    def _part(self, name: bytes, decode: Callable[[bytes], T]) -> T:
        data = self._raw(name)
        if zlib.crc32(data) != self._head.parts.get(name):
            raise SegmentDamaged(name, "checksum")
        return self._decoded(name, data, decode)

    def _raw(self, name: bytes) -> bytes:
        data = self._read(name)
        if data is None:
            raise SegmentDamaged(name, "is missing")
        return data

    @staticmethod
    def _decoded(name: bytes, stored: S, decode: Callable[[S], T]) -> T:
        try:
            return decode(stored)
        except Damaged as error:
            raise SegmentDamaged(name, str(error)) from error
