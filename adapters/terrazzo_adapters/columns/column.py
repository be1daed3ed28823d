"""One name's points in arrays: in memory, and as one value on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value

NUMBER, FLAG, TEXT = 0, 1, 2

_NARROW = ("i1", "i2", "i4", "f4")
_OFFSET_LIMIT = 2**32
_NUMBERS = {int, float}
_KINDS = {int: NUMBER, float: NUMBER, bool: FLAG, str: TEXT}


class PointColumn(NamedTuple):
    """Points in order of time, then arrival: times in UTC microseconds.

    ``numbers`` holds booleans as 0 or 1 and texts by their index in ``texts``.
    """

    times_us: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    numbers: NDArray[np.float64]
    texts: Sequence[str]

    def between(self, start_us: int, end_us: int) -> PointColumn:
        """The points of a range, both ends inclusive."""
        times_us = self.times_us
        if not len(times_us) or (start_us <= times_us[0] and times_us[-1] <= end_us):
            return self
        part = slice(np.searchsorted(times_us, start_us, "left"), np.searchsorted(times_us, end_us, "right"))
        return PointColumn(times_us[part], self.kinds[part], self.numbers[part], self.texts)

    def numeric(self) -> PointColumn:
        """The points that are numbers or booleans."""
        return self.where(self.kinds != TEXT)

    def where(self, chosen: NDArray[np.bool_]) -> PointColumn:
        """The points for which ``chosen``, as long as the column, is true."""
        if chosen.all():
            return self
        return PointColumn(self.times_us[chosen], self.kinds[chosen], self.numbers[chosen], self.texts)


class StoredColumn(msgspec.Struct, array_like=True):
    """A column on disk: times as offsets of 4 bytes, numbers in the narrowest type that holds them exactly."""

    offsets: bytes
    kinds: bytes  # empty: all are numbers
    form: str
    numbers: bytes
    texts: list[str]


_decoder = msgspec.msgpack.Decoder(StoredColumn)


def build_columns(records: Iterable[tuple[int, Mapping[str, Value]]], keys: Iterable[str]) -> dict[str, PointColumn]:
    """The columns of ``keys`` from the records' times (UTC microseconds) and points, in order; no empty ones."""
    times: list[int] = []
    every: list[Mapping[str, Value]] = []
    for time_us, points in records:
        times.append(time_us)
        every.append(points)
    times_us = np.array(times, np.int64)
    columns = {key: build_column(times_us, [points.get(key) for points in every]) for key in keys}
    return {key: column for key, column in columns.items() if len(column.times_us)}


def joined(columns: Sequence[PointColumn]) -> PointColumn:
    """The points of all, those of a later column behind the others; of one column the column."""
    if len(columns) == 1:
        return columns[0]
    texts: list[str] = []
    numbers: list[NDArray[np.float64]] = []
    for column in columns:
        numbers.append(np.where(column.kinds == TEXT, column.numbers + len(texts), column.numbers))
        texts += column.texts
    times_us = np.concatenate([column.times_us for column in columns])
    kinds = np.concatenate([column.kinds for column in columns])
    return PointColumn(times_us, kinds, np.concatenate(numbers), texts)


def build_column(times_us: NDArray[np.int64], values: Sequence[Value]) -> PointColumn:
    """The column of one name; ``values`` has null where the record has no point of it."""
    try:
        return _build(times_us, values)
    except OverflowError:  # whole numbers that no float holds are no points, as infinities are none
        return _build(times_us, [None if isinstance(value, int) and _is_beyond(value) else value for value in values])


def _is_beyond(value: int) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    return False


def _build(times_us: NDArray[np.int64], values: Sequence[Value]) -> PointColumn:
    types = set(map(type, values))
    if type(None) in types:
        there = np.array([value is not None for value in values], np.bool_)
        return _build(times_us[there], [value for value in values if value is not None])
    if types <= _NUMBERS:
        column = PointColumn(times_us, np.zeros(len(values), np.uint8), np.array(values, np.float64), [])
        return column.where(np.isfinite(column.numbers))
    places_of: dict[str, int] = {}
    kinds = [_KINDS[type(value)] for value in values]
    numbers = [
        places_of.setdefault(value, len(places_of)) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
        for value in values
    ]
    column = PointColumn(times_us, np.array(kinds, np.uint8), np.array(numbers, np.float64), list(places_of))
    return column.where(np.isfinite(column.numbers))


def encode_column(column: PointColumn, base_us: int) -> bytes:
    """The column as stored on disk; all times must be less than ``_OFFSET_LIMIT`` after ``base_us``."""
    offsets = column.times_us - base_us
    assert not len(offsets) or (offsets[0] >= 0 and offsets[-1] < _OFFSET_LIMIT)
    form = _narrowest(column.numbers)
    kinds = column.kinds.tobytes() if column.kinds.any() else b""
    return msgspec.msgpack.encode(
        StoredColumn(
            offsets.astype("<u4").tobytes(), kinds, form, column.numbers.astype(f"<{form}").tobytes(), [*column.texts]
        )
    )


def parse_column(value: bytes, base_us: int) -> PointColumn:
    """The reverse of ``encode_column``, with the same ``base_us``."""
    stored = _decoder.decode(value)
    times_us = np.frombuffer(stored.offsets, "<u4").astype(np.int64) + base_us
    kinds = np.frombuffer(stored.kinds, np.uint8) if stored.kinds else np.zeros(len(times_us), np.uint8)
    numbers = np.frombuffer(stored.numbers, f"<{stored.form}").astype(np.float64)
    return PointColumn(times_us, kinds, numbers, stored.texts)


def _narrowest(numbers: NDArray[np.float64]) -> str:
    with np.errstate(invalid="ignore", over="ignore"):
        for form in _NARROW:
            if np.array_equal(numbers.astype(f"<{form}").astype(np.float64), numbers):
                return form
    return "f8"


def plain_values(column: PointColumn, places: NDArray[Any]) -> list[Value]:
    """The points at these places (indexes into the column) as Python values."""
    kinds, numbers = column.kinds[places], column.numbers[places].tolist()
    if not kinds.any():
        return list(numbers)
    return [_plain(kind, number, column.texts) for kind, number in zip(kinds.tolist(), numbers, strict=True)]


def _plain(kind: int, number: float, texts: Sequence[str]) -> Value:
    if kind == TEXT:
        return texts[int(number)]
    return bool(number) if kind == FLAG else number
