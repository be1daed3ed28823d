"""Reads records whose bodies are texts: from templates, or kept as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.column import FLAG, NUMBER, TEXT, PointColumn
from terrazzo_adapters.columns.name_tally import HourTally, tally_of
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.segments.kept import KeptBodies
from terrazzo_adapters.segments.numerals import NumberColumn
from terrazzo_adapters.segments.numeric import decode_integers
from terrazzo_adapters.segments.packing import Damaged
from terrazzo_adapters.segments.parts import SHAPES, Parts, template_part
from terrazzo_adapters.segments.summary import Summary, make_summary
from terrazzo_adapters.segments.template_names import DECODED, FIXED, NamedHole
from terrazzo_adapters.segments.templates import Column, StoredTemplate, decode_template
from terrazzo_adapters.segments.values import make_values

Places = NDArray[np.int64]
"""Records by their numbers in the segment, ascending."""

_LITERAL_NUMBERS = np.array([0.0, np.nan, 0.0, 1.0])  # by kind: a number, null, false, true
_LITERAL_KINDS = np.array([NUMBER, NUMBER, FLAG, FLAG], np.uint8)


class PayloadRecords:
    """Bodies from templates; points from their holes, and where that can't be from bodies."""

    def __init__(self, parts: Parts, times_us: NDArray[np.int64]) -> None:
        self._parts = parts
        self._count = parts.head.count
        self._times_us = times_us
        self._kept = KeptBodies(parts)
        self._templates: dict[int, StoredTemplate] = {}

    def bodies(self, start: int, stop: int) -> list[bytes]:
        """The bodies of some records; ``stop`` is exclusive."""
        if not self._parts.head.templates:
            return self._kept.between(start, stop)
        ids = self._ids[start:stop]
        kept, before = ids == 0, int(np.count_nonzero(self._ids[:start] == 0))
        bodies = np.empty(stop - start, object)
        bodies[kept] = self._kept.between(before, before + int(np.count_nonzero(kept)))
        for number in np.unique(ids[~kept]).tolist():
            first = int(np.count_nonzero(self._ids[:start] == number))
            places = np.flatnonzero(ids == number)
            bodies[places] = self._render(number, np.arange(first, first + len(places)))
        return bodies.tolist()

    def tally(self) -> HourTally:
        """How often each set of names occurs."""
        orders: Counter[tuple[str, ...]] = Counter()
        for number in range(1, self._parts.head.templates + 1):
            named = self._template(number).names
            if named is not None:
                orders[tuple(each.name for each in named)] += int(np.count_nonzero(self._ids == number))
        for points in self._decoded.values():
            orders[tuple(points)] += 1
        return tally_of(orders)

    def points(self, name: str) -> PointColumn:
        """One name's points, with the places of their records instead of times."""
        pieces = [self._of_template(number, hole) for number, hole in self._holes(name)]
        decoded = [(place, points[name]) for place, points in self._decoded.items() if name in points]
        pieces.append(_of_values(np.array([place for place, _ in decoded], np.int64), [value for _, value in decoded]))
        return _in_order([piece for piece in pieces if len(piece.times_us)])

    def summary(self, name: str) -> Summary | None:
        """One name's points in few numbers; None where no record carries it."""
        carried = [self._places(number) for number, _ in self._holes(name)]
        carried.append(np.array([place for place, points in self._decoded.items() if name in points], np.int64))
        places = np.sort(np.concatenate(carried))
        if not len(places):
            return None
        column = self.points(name)
        timed = PointColumn(self._times_us[column.times_us], column.kinds, column.numbers, column.texts)
        return make_summary(timed, carried=len(places), last_place=int(places[-1]))

    def _holes(self, name: str) -> list[tuple[int, NamedHole]]:
        """The templates that carry the name, and where."""
        found: list[tuple[int, NamedHole]] = []
        for number in range(1, self._parts.head.templates + 1):
            named = self._template(number).names or ()
            found += [(number, each) for each in named if each.name == name]
        return found

    def _of_template(self, number: int, named: NamedHole) -> PointColumn:
        places = self._places(number)
        if named.hole == FIXED:
            return _of_values(places, [named.value] * len(places))
        if named.hole == DECODED:
            bodies = self._render(number, None)
            return _of_values(places, [parse_points(body).get(named.name) for body in bodies])
        template = self._template(number)
        return _of_hole(places, self._parts.checked(template_part(number), named.hole, template.column))

    @cached_property
    def _decoded(self) -> Mapping[int, Mapping[str, Value]]:
        """The points of records whose names only their bodies tell, by place."""
        unnamed = [
            number for number in range(1, self._parts.head.templates + 1) if self._template(number).names is None
        ]
        chosen = np.isin(self._ids, [0, *unnamed])
        if chosen.all():
            return dict(enumerate(map(parse_points, self.bodies(0, self._count))))
        found: dict[int, Mapping[str, Value]] = {}
        for number in unnamed:
            places = self._places(number)
            found.update(zip(places.tolist(), map(parse_points, self._render(number, None)), strict=True))
        kept = self._places(0)
        found.update(zip(kept.tolist(), map(parse_points, self._kept.between(0, len(kept))), strict=True))
        return dict(sorted(found.items()))

    def _places(self, number: int) -> Places:
        return np.flatnonzero(self._ids == number)

    @cached_property
    def _ids(self) -> NDArray[np.int64]:
        """For each record the number of its template; 0: it is kept."""
        if not self._parts.head.templates:
            return np.zeros(self._count, np.int64)
        return self._parts.decoded(SHAPES, self._decode_ids)

    def _decode_ids(self, data: bytes) -> NDArray[np.int64]:
        ids = decode_integers(data, self._count)
        if not 0 <= ids.min() <= ids.max() <= self._parts.head.templates:
            raise Damaged("a template beyond the last")
        return ids

    def _render(self, number: int, places: NDArray[np.int64] | None) -> list[bytes]:
        return self._parts.checked(template_part(number), places, self._template(number).render)

    def _template(self, number: int) -> StoredTemplate:
        if number not in self._templates:
            times_us = self._times_us[self._ids == number]
            self._templates[number] = self._parts.decoded(
                template_part(number), lambda data: decode_template(data, times_us)
            )
        return self._templates[number]


def _of_values(places: Places, values: Sequence[Value]) -> PointColumn:
    return make_values(values).points(places)


def _of_hole(places: Places, hole: Column) -> PointColumn:
    if isinstance(hole, NumberColumn):
        numbers, kinds = hole.floats(), np.zeros(len(places), np.uint8)
        if hole.kinds.any():
            numbers, kinds = np.where(hole.kinds, _LITERAL_NUMBERS[hole.kinds], numbers), _LITERAL_KINDS[hole.kinds]
        column = PointColumn(places, kinds, numbers, [])
        return column.where(np.isfinite(numbers))
    texts = [word.decode() for word in hole.words]
    return PointColumn(places, np.full(len(places), TEXT, np.uint8), hole.numbers.astype(np.float64), texts)


def _in_order(pieces: Sequence[PointColumn]) -> PointColumn:
    """The pieces as one column, ordered by place."""
    if len(pieces) == 1:
        return pieces[0]
    texts: list[str] = []
    numbers = [np.zeros(0, np.float64)]
    for piece in pieces:
        numbers.append(np.where(piece.kinds == TEXT, piece.numbers + len(texts), piece.numbers))
        texts += piece.texts
    places = np.concatenate([np.zeros(0, np.int64), *(piece.times_us for piece in pieces)])
    kinds = np.concatenate([np.zeros(0, np.uint8), *(piece.kinds for piece in pieces)])
    order = np.argsort(places)
    return PointColumn(places[order], kinds[order], np.concatenate(numbers)[order], texts)
