"""Reads records that have a column for each name: MessagePack maps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.columns.name_tally import HourTally, tally_of
from terrazzo_adapters.segments.columns import Column, decode_column
from terrazzo_adapters.segments.kept import KeptBodies
from terrazzo_adapters.segments.mosaic import EMPTY_MAP, Entry, render_maps
from terrazzo_adapters.segments.parts import SHAPES, Parts, SegmentDamaged, exact_part, value_part
from terrazzo_adapters.segments.shapes import Shapes, decode_shapes
from terrazzo_adapters.segments.summary import Summary
from terrazzo_adapters.segments.values import Values, frozen_values

Places = NDArray[np.int64]
"""Records by their numbers in the segment, ascending."""


_MOST_RANKS = 4 << 20  # names by records that are looked at at once
_FEW = 128  # records: to make so many one by one is faster than to render them together

_ALL: Set[str] = frozenset()

_encode = msgspec.msgpack.Encoder().encode


class _Ranks(NamedTuple):
    """Of records from ``start`` on (rows) which names (columns) they carry, and which value of the name is theirs."""

    start: int
    carried: NDArray[np.bool_]
    ranks: Places


class NamedRecords:
    """Bodies from the values of their names, or kept; columns as they are."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._count = parts.head.count
        self._names = parts.head.names or []
        self._place_of = {name: place for place, name in enumerate(self._names)}
        self._kept = KeptBodies(parts)
        self._columns: dict[str, Column] = {}
        self._values: dict[str, Values] = {}

    def bodies(self, start: int, stop: int) -> list[bytes]:
        """The bodies of some records; ``stop`` is exclusive."""
        return self.bodies_at(np.arange(start, stop))

    def bodies_at(self, places: Places, only: Set[str] = _ALL) -> list[bytes]:
        """The bodies of some records.

        Args:
            only: the names that are asked for: others may be left out. Empty: none is.
        """
        if not len(places):
            return []
        start, stop = int(places[0]), int(places[-1]) + 1
        if len(places) > 1 and (stop - start) * len(self._names) > _MOST_RANKS:
            half = len(places) // 2
            return self.bodies_at(places[:half], only) + self.bodies_at(places[half:], only)
        rendered = self._shapes.rendered[places]
        bodies = np.empty(len(places), object)
        if not rendered.all():
            bodies[~rendered] = self._kept_at(places[~rendered])
        ids = self._shapes.ids[places]
        if only:
            bodies[rendered] = self._parts_of_each(ids[rendered].tolist(), places[rendered], only)
            return bodies.tolist()
        ranks = _Ranks(start, *self._shapes.ranks(start, stop))
        if len(places) <= _FEW:
            bodies[rendered] = self._each(ids[rendered].tolist(), places[rendered], ranks)
            return bodies.tolist()
        leaders = self._shapes.leaders(np.unique(ids[rendered]).tolist())
        for leader in dict.fromkeys(leaders.values()):
            led = [number for number, each in leaders.items() if each == leader]
            chosen = np.flatnonzero(np.isin(ids, led))
            bodies[chosen] = self._render(leader, places[chosen], ranks)
        return bodies.tolist()

    def _kept_at(self, places: Places) -> list[bytes]:
        start, stop = int(places[0]), int(places[-1]) + 1
        before, kept = int(np.count_nonzero(~self._shapes.rendered[:start])), ~self._shapes.rendered[start:stop]
        numbers = kept.cumsum()[places - start] - 1
        found = self._kept.between(before, before + int(np.count_nonzero(kept)))
        return [found[number] for number in numbers.tolist()]

    def carrying(self, keys: Set[str], start: int, stop: int) -> Places:
        """Which of the records from ``start`` to ``stop``, exclusive, carry at least one of the names."""
        return self._shapes.carrying([self._place_of[key] for key in keys if key in self._place_of], start, stop)

    def count_carrying(self, keys: Set[str], start: int, stop: int) -> int:
        """How many of the records from ``start`` to ``stop``, exclusive, carry at least one of the names."""
        places = [self._place_of[key] for key in keys if key in self._place_of]
        return self._shapes.count_carrying(places, start, stop) if places else 0

    def tally(self) -> HourTally:
        """How often each set of names occurs."""
        orders: Counter[tuple[str, ...]] = Counter()
        for shape, count in zip(self._shapes.shapes, np.bincount(self._shapes.ids).tolist(), strict=False):
            orders[tuple(self._names[place] for place in shape.names)] += count
        return tally_of(orders)

    def points(self, name: str) -> PointColumn:
        """One name's points, with the places of their records instead of times."""
        if name not in self._place_of:
            return NO_POINTS
        return self._values_of(name).points(self._carriers(name))

    def summary(self, name: str) -> Summary | None:
        """One name's points in few numbers; None where no record carries it."""
        return self._column(name).summary if name in self._place_of else None

    def _carriers(self, name: str) -> Places:
        carriers = self._shapes.carriers(self._place_of[name])
        return np.arange(self._count) if carriers is None else np.flatnonzero(carriers)

    def _each(self, ids: Sequence[int], places: Places, ranks: _Ranks) -> list[bytes]:
        """The bodies of few records; ``ids``: their shapes."""
        rows = places - ranks.start
        carried, numbers = ranks.carried[rows], ranks.ranks[rows]
        values: dict[int, Iterator[Value]] = {}
        for name in np.flatnonzero(carried.any(axis=0)).tolist():
            values[name] = iter(self._values_of(self._names[name]).at(numbers[carried[:, name], name]))
        shapes, names = self._shapes.shapes, self._names
        return [_encode({names[name]: next(values[name]) for name in shapes[shape].names}) for shape in ids]

    def _parts_of_each(self, ids: Sequence[int], places: Places, only: Set[str]) -> list[bytes]:
        """The bodies of records as if they carried these names alone; ``ids``: their shapes."""
        if not ids:
            return []
        names = self._shapes.known(sorted(self._place_of[name] for name in only if name in self._place_of))
        start, stop = int(places[0]), int(places[-1]) + 1
        ranks = _Ranks(start, *self._shapes.ranks(start, stop, names))
        rows = places - start
        found: list[dict[str, Value]] = [{} for _ in ids]
        for column, place in enumerate(names):
            name, some = self._names[place], ranks.carried[rows, column].nonzero()[0]
            values = self._values_of(name).at(ranks.ranks[rows[some], column])
            for number, value in zip(some.tolist(), values, strict=True):
                found[number][name] = value
        return list(map(_encode, found))

    def _render(self, leader: int, places: Places, ranks: _Ranks) -> list[bytes]:
        """The bodies of records of a shape, and of others that it leads."""
        names = self._shapes.shapes[leader].names
        if not names:
            return [EMPTY_MAP] * len(places)
        rows = places - ranks.start
        return render_maps([self._entry(name, ranks.carried[rows, name], ranks.ranks[rows, name]) for name in names])

    def _entry(self, place: int, there: NDArray[np.bool_], ranks: Places) -> Entry:
        """A name in some records."""
        name = self._names[place]
        return Entry(name, self._values_of(name), ranks, None if there.all() else there)

    @cached_property
    def _shapes(self) -> Shapes:
        def decode(data: bytes) -> Shapes:
            return decode_shapes(data, self._count, len(self._names))

        return self._parts.once(SHAPES, lambda: self._parts.decoded(SHAPES, decode), Shapes.nbytes)

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._parts.decoded(value_part(name), lambda data: decode_column(data, self._count))
        return self._columns[name]

    def _values_of(self, name: str) -> Values:
        if name not in self._values:
            self._values[name] = self._parts.once(exact_part(name), lambda: self._decoded(name), Values.nbytes)
        return self._values[name]

    def _decoded(self, name: str) -> Values:
        values = self._parts.checked(value_part(name), self._column(name), Column.decode)
        if len(values) != len(self._carriers(name)):
            raise SegmentDamaged(value_part(name), "counts that don't fit")
        return frozen_values(values)


NO_POINTS = PointColumn(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.float64), [])
