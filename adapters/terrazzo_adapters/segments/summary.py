"""One name's points in few numbers."""

from __future__ import annotations

import msgspec
import numpy as np

from terrazzo_adapters.columns.column import TEXT, PointColumn


class Summary(msgspec.Struct, array_like=True, frozen=True):
    """Of one name in a segment. Times are UTC microseconds; of equal numbers the earliest counts.

    Numbers are the points that are numbers or booleans (0 and 1); the figures of an empty set of numbers are 0.
    ``carried``: records that carry the name, with null too; ``last_place``: the last of them, counted from 0.
    """

    carried: int
    last_place: int
    texts: int  # points that are texts
    count: int  # numbers
    sum: float
    min: float
    min_us: int
    max: float
    max_us: int
    first: float
    first_us: int
    last: float
    last_us: int


def make_summary(column: PointColumn, *, carried: int, last_place: int) -> Summary:
    """The summary of a column's points."""
    numeric = column.numeric()
    texts = int(np.count_nonzero(column.kinds == TEXT))
    times_us, numbers = numeric.times_us, numeric.numbers
    if not len(numbers):
        return Summary(carried, last_place, texts, 0, 0.0, 0.0, 0, 0.0, 0, 0.0, 0, 0.0, 0)
    lowest, highest = int(numbers.argmin()), int(numbers.argmax())
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(numbers.sum())
    return Summary(
        carried=carried,
        last_place=last_place,
        texts=texts,
        count=len(numbers),
        sum=total,
        min=float(numbers[lowest]),
        min_us=int(times_us[lowest]),
        max=float(numbers[highest]),
        max_us=int(times_us[highest]),
        first=float(numbers[0]),
        first_us=int(times_us[0]),
        last=float(numbers[-1]),
        last_us=int(times_us[-1]),
    )
