"""Reads records that have a column for each name: MessagePack maps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.columns.name_tally import HourTally, tally_of
from terrazzo_adapters.segments.columns import Column, decode_column
from terrazzo_adapters.segments.kept import KeptBodies
from terrazzo_adapters.segments.mosaic import EMPTY_MAP, Entry, render_maps
from terrazzo_adapters.segments.parts import SHAPES, Parts, SegmentDamaged, value_part
from terrazzo_adapters.segments.shapes import Shapes, decode_shapes
from terrazzo_adapters.segments.summary import Summary
from terrazzo_adapters.segments.values import Values

Places = NDArray[np.int64]
"""Records by their numbers in the segment, ascending."""


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
        self._ranks: dict[str, Places] = {}  # where each record's value is among the name's, if it carries it

    def bodies(self, start: int, stop: int) -> list[bytes]:
        """The bodies of some records; ``stop`` is exclusive."""
        rendered = self._shapes.rendered
        before, within = int(np.count_nonzero(~rendered[:start])), rendered[start:stop]
        bodies = np.empty(stop - start, object)
        bodies[~within] = self._kept.between(before, before + int(np.count_nonzero(~within)))
        ids = self._shapes.ids[start:stop]
        leaders = self._shapes.leaders(np.unique(ids[within]).tolist())
        for leader in dict.fromkeys(leaders.values()):
            led = [number for number, each in leaders.items() if each == leader]
            places = np.flatnonzero(np.isin(ids, led)) + start
            bodies[places - start] = self._render(leader, places)
        return bodies.tolist()

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

    def _render(self, leader: int, places: Places) -> list[bytes]:
        """The bodies of records of a shape, and of others that it leads."""
        names = [self._names[place] for place in self._shapes.shapes[leader].names]
        if not names:
            return [EMPTY_MAP] * len(places)
        return render_maps([self._entry(name, places) for name in names])

    def _entry(self, name: str, places: Places) -> Entry:
        """A name in some records."""
        values, carriers = self._values_of(name), self._shapes.carriers(self._place_of[name])
        if carriers is None:
            return Entry(name, values, places, None)
        if name not in self._ranks:
            self._ranks[name] = np.cumsum(carriers) - 1
        there = carriers[places]
        return Entry(name, values, self._ranks[name][places], None if there.all() else there)

    @cached_property
    def _shapes(self) -> Shapes:
        return self._parts.decoded(SHAPES, lambda data: decode_shapes(data, self._count, len(self._names)))

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._parts.decoded(value_part(name), lambda data: decode_column(data, self._count))
        return self._columns[name]

    def _values_of(self, name: str) -> Values:
        if name not in self._values:
            values = self._parts.checked(value_part(name), self._column(name), Column.decode)
            if len(values) != len(self._carriers(name)):
                raise SegmentDamaged(value_part(name), "counts that don't fit")
            self._values[name] = values
        return self._values[name]


NO_POINTS = PointColumn(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.float64), [])
