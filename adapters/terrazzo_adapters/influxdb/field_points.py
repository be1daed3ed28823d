"""Numbers and booleans of mosaic records from their fields: a tenth of what reading and parsing the bodies takes.

Texts are shortened in their fields, and no text is told from null, so that whoever needs these reads records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from terrazzo.ports.store import Value
from terrazzo_adapters.influxdb.naming import FLAG, field_name, identifier
from terrazzo_adapters.influxdb.queries import SeriesSource
from terrazzo_adapters.influxdb.server import Answer, Server, rows_of

if TYPE_CHECKING:
    from terrazzo_adapters.columns.column import PointColumn

_VALUES = 19_999  # of one answer, or so: of 10,000 rows and of twice as many InfluxDB 1.6.7 says that there are more
_LEAST_ROWS = 3  # of an answer: the first one is known


class FieldColumns(NamedTuple):
    """The points of the next rows of a range, of each name that has some.

    ``last_ns``: the time of the last row. ``is_last``: no others follow.
    """

    columns: dict[str, PointColumn]
    last_ns: int
    is_last: bool


def halves(source: SeriesSource) -> list[SeriesSource]:
    """The two halves of a range, which a server reads at the same time."""
    middle_us = (source.start_us + source.end_us) // 2
    earlier = replace(source, end_us=middle_us)
    return [earlier, replace(source, start_us=middle_us + 1)] if middle_us < source.end_us else [earlier]


async def next_rows(server: Server, source: SeriesSource, keys: Sequence[str], after_ns: int) -> Answer:
    """Asks for the rows behind one in the range.

    Args:
        after_ns: the time of that row; negative: from the beginning.
    """
    columns = ", ".join(identifier(field_name(key, suffix)) for key in keys for suffix in ("", FLAG))
    where = source.where(max(source.start_us, after_ns // 1_000), source.end_us)
    return await server.answer(f"SELECT {columns} {where} ORDER BY time ASC LIMIT {_most_rows(keys)}")


def _most_rows(keys: Sequence[str]) -> int:
    return max(_LEAST_ROWS, _VALUES // len(keys))


def columns_of(answer: Answer, keys: Sequence[str], after_ns: int) -> FieldColumns | None:
    """What ``next_rows`` was answered; None where only records tell: two rows have one time, say."""
    import numpy as np  # heavy

    from terrazzo_adapters.columns.column import build_column

    rows, are_all = rows_of(answer, _row_type(len(keys)))
    is_last = len(rows) < _most_rows(keys) and are_all
    if rows and rows[0].time_ns == after_ns:
        del rows[0]
    if not rows:  # a server that gives one row at a time tells nothing here
        return FieldColumns({}, after_ns, is_last) if is_last else None
    times_us = np.array([row.time_ns for row in rows], np.int64) // 1_000
    if times_us[0] == after_ns // 1_000 or not np.diff(times_us).all():
        return None
    columns = {key: build_column(times_us, _values(rows, place)) for place, key in enumerate(keys)}
    return FieldColumns({key: each for key, each in columns.items() if len(each.times_us)}, rows[-1].time_ns, is_last)


@lru_cache(maxsize=64)
def _row_type(keys: int) -> type[Any]:
    """A row of an answer: its time, and of each of so many names the number and the boolean."""
    fields = [
        (name, kind | None) for place in range(keys) for name, kind in zip(_fields(place), (float, bool), strict=True)
    ]
    return msgspec.defstruct("Row", [("time_ns", int), *fields], array_like=True, gc=False)


def _fields(place: int) -> tuple[str, str]:
    return f"number_{place}", f"flag_{place}"


def _values(rows: Sequence[Any], place: int) -> Sequence[Value]:
    """The values of a name, the numbers as floats."""
    numbers, flags = (map(attrgetter(field), rows) for field in _fields(place))
    return [number if flag is None else flag for number, flag in zip(numbers, flags, strict=True)]
