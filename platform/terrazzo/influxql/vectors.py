"""Values of one name in arrays, and rows of several names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Points, Value

NUMBER, FLAG, TEXT, NONE = 0, 1, 2, 3
"""What a value is."""

Times = NDArray[np.int64]
"""Nanoseconds since 1970."""

Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

_EXACT = 2.0**53  # up to here a float tells every whole number
_MOST_EQUAL = 1 << 10  # records of one time that are told apart


class Vector(NamedTuple):
    """Values by row. ``numbers`` has true and false as 1 and 0, and texts by their index in ``texts``."""

    kinds: NDArray[np.uint8]
    numbers: NDArray[np.float64]
    texts: Sequence[str] = ()

    def take(self, places: Places | Mask | slice) -> Vector:
        """Some of the values."""
        return Vector(self.kinds[places], self.numbers[places], self.texts)

    @property
    def is_there(self) -> Mask:
        """Where there is a value."""
        return np.asarray(self.kinds != NONE)

    @property
    def is_numeric(self) -> Mask:
        """Where there is a number, or true or false, which count as 1 and 0."""
        return np.asarray(self.kinds <= FLAG)

    def values(self) -> list[Value]:
        """The values, whole numbers without a decimal point."""
        if (self.kinds == NUMBER).all():
            return _plain(self.numbers)
        found: list[Value] = [None] * len(self.kinds)
        numbers = _plain(self.numbers)
        for place, kind in enumerate(self.kinds.tolist()):
            if kind == NUMBER:
                found[place] = numbers[place]
            elif kind == FLAG:
                found[place] = bool(numbers[place])
            elif kind == TEXT:
                found[place] = self.texts[int(self.numbers[place])]
        return found


def _plain(numbers: NDArray[np.float64]) -> list[Value]:
    finite = np.isfinite(numbers)
    with np.errstate(invalid="ignore"):
        whole = finite & (np.floor(numbers) == numbers) & (np.abs(numbers) <= _EXACT)
    if whole.all():
        return numbers.astype(np.int64).tolist()  # type: ignore[no-any-return]
    if finite.all() and not whole.any():
        return numbers.tolist()  # type: ignore[no-any-return]
    return [
        (int(number) if is_whole else number) if is_finite else None
        for number, is_whole, is_finite in zip(numbers.tolist(), whole.tolist(), finite.tolist(), strict=True)
    ]


def of_numbers(numbers: NDArray[np.float64], is_there: Mask | None = None) -> Vector:
    """Numbers; what isn't finite, or not ``is_there``, is no value."""
    there = np.isfinite(numbers)
    if is_there is not None:
        there &= is_there
    return Vector(np.where(there, NUMBER, NONE).astype(np.uint8), np.where(there, numbers, 0.0))


def nothing(count: int) -> Vector:
    """So many rows without a value."""
    return Vector(np.full(count, NONE, np.uint8), np.zeros(count))


def constant(value: Value, count: int) -> Vector:
    """So many times the same value."""
    if value is None:
        return nothing(count)
    if isinstance(value, str):
        return Vector(np.full(count, TEXT, np.uint8), np.zeros(count), (value,))
    kind = FLAG if isinstance(value, bool) else NUMBER
    return Vector(np.full(count, kind, np.uint8), np.full(count, float(value)))


def joined(vectors: Sequence[Vector]) -> Vector:
    """The values of one after those of the other."""
    if len(vectors) == 1:
        return vectors[0]
    texts: list[str] = []
    numbers = []
    for vector in vectors:
        shift = len(texts)
        numbers.append(
            np.where(vector.kinds == TEXT, vector.numbers + shift, vector.numbers) if shift else vector.numbers
        )
        texts += vector.texts
    return Vector(np.concatenate([vector.kinds for vector in vectors]), np.concatenate(numbers), texts)


class Rows(NamedTuple):
    """Rows in the order of time. ``owners``: the index in ``tags`` of the series that each is of."""

    times: Times
    columns: Mapping[str, Vector]
    owners: NDArray[np.int32]
    tags: Sequence[Mapping[str, str]]

    def column(self, name: str) -> Vector:
        """The values of a field, none where there is no such field."""
        found = self.columns.get(name)
        return nothing(len(self.times)) if found is None else found

    def tag(self, name: str) -> Vector:
        """The values of a tag, empty where a series has none of the name."""
        texts = [tags.get(name, "") for tags in self.tags]
        kinds = np.full(len(self.times), TEXT, np.uint8)
        return Vector(kinds, self.owners.astype(np.float64), texts)

    def take(self, places: Places | Mask | slice) -> Rows:
        """Some of the rows."""
        columns = {name: column.take(places) for name, column in self.columns.items()}
        return Rows(self.times[places], columns, self.owners[places], self.tags)


class Table(NamedTuple):
    """The rows of one series of a measurement."""

    name: str
    tags: Mapping[str, str]
    rows: Rows


def table_of(name: str, tags: Mapping[str, str], points: Mapping[str, Sequence[Points]]) -> Table:
    """A series from the points of its fields, piece by piece, oldest first.

    What fields have at one time is one row; a second value of a field at that time is in a row of its own.
    """
    fields = {field: _joined_points(pieces) for field, pieces in points.items() if pieces}
    times, placed = aligned({field: times for field, (times, _) in fields.items()})
    columns = {}
    for field, (_, vector) in fields.items():
        columns[field] = _spread(vector, placed[field], len(times))
    return Table(name, tags, Rows(times * 1_000, columns, np.zeros(len(times), np.int32), [tags]))


def _joined_points(pieces: Sequence[Points]) -> tuple[Times, Vector]:
    vector = joined([Vector(piece.kinds, piece.numbers, piece.texts) for piece in pieces])
    return np.concatenate([piece.times_us for piece in pieces]) if len(pieces) > 1 else pieces[0].times_us, vector


def _spread(vector: Vector, places: Places | None, count: int) -> Vector:
    if places is None:
        return vector
    found = nothing(count)
    found.kinds[places] = vector.kinds
    found.numbers[places] = vector.numbers
    return Vector(found.kinds, found.numbers, vector.texts)


def aligned(times_of: Mapping[str, Times]) -> tuple[Times, dict[str, Places | None]]:
    """Rows for columns that have their own times, which ascend: the times of the rows, and the row of each value.

    None: value and row have the same place. The second value of one time is in a row of its own.
    """
    if not times_of:
        return np.zeros(0, np.int64), {}
    first = next(iter(times_of.values()))
    if all(len(times) == len(first) and (times is first or (times == first).all()) for times in times_of.values()):
        return first, dict.fromkeys(times_of)
    keys = {name: np.stack((times, _repeats(times)), axis=1) for name, times in times_of.items()}
    if not any(key[:, 1].any() for key in keys.values()):
        every = np.unique(np.concatenate(list(times_of.values())))
        found: dict[str, Places | None] = {name: np.searchsorted(every, times) for name, times in times_of.items()}
        return every, found
    return _aligned_repeats(keys)


def _aligned_repeats(keys: Mapping[str, NDArray[np.int64]]) -> tuple[Times, dict[str, Places | None]]:
    every, inverse = np.unique(np.concatenate(list(keys.values())), axis=0, return_inverse=True)
    places: dict[str, Places | None] = {}
    start = 0
    inverse = inverse.reshape(-1)
    for name, key in keys.items():
        places[name] = inverse[start : start + len(key)]
        start += len(key)
    return np.ascontiguousarray(every[:, 0]), places


def _repeats(times: Times) -> NDArray[np.int64]:
    """The how manieth of its time each is, from 0."""
    starts = run_starts(times)
    lengths = np.diff(np.append(starts, len(times)))
    return np.minimum(np.arange(len(times)) - np.repeat(starts, lengths), _MOST_EQUAL)


def run_starts(ids: NDArray[np.int64]) -> Places:
    """The index at which each run of equal ids begins."""
    if not len(ids):
        return np.zeros(0, np.intp)
    return np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))


def merged(tables: Sequence[Table]) -> Rows:
    """The rows of several series in the order of time; of one time in the order of the series."""
    if len(tables) == 1:
        return tables[0].rows
    names = dict.fromkeys(name for table in tables for name in table.rows.columns)
    times = np.concatenate([table.rows.times for table in tables])
    order = np.argsort(times, kind="stable")
    columns = {name: joined([table.rows.column(name) for table in tables]).take(order) for name in names}
    owners, tags = _owners(tables)
    return Rows(times[order], columns, owners[order], tags)


def _owners(tables: Sequence[Table]) -> tuple[NDArray[np.int32], list[Mapping[str, str]]]:
    owners: list[NDArray[np.int32]] = []
    tags: list[Mapping[str, str]] = []
    for table in tables:
        owners.append(np.asarray(table.rows.owners + len(tags), np.int32))
        tags += table.rows.tags
    return np.concatenate(owners), tags
