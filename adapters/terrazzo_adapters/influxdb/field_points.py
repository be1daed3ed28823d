"""Numbers and booleans of mosaic records from their fields: a tenth of what reading and parsing the bodies takes.

Texts are shortened in their fields, and no text is told from null, so that whoever needs these reads records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from terrazzo.ports.store import Value
from terrazzo_adapters.influxdb.naming import FLAG, field_name, identifier
from terrazzo_adapters.influxdb.queries import SeriesSource
from terrazzo_adapters.influxdb.server import Server

if TYPE_CHECKING:
    from terrazzo_adapters.columns.column import PointColumn

_ROWS = 9_000  # of one answer: of 10,000 InfluxDB 1.6.7 says that there are more


class Rows(NamedTuple):
    """The next rows of a range: times in nanoseconds, then of each name the number and the boolean.

    ``is_last``: no others follow.
    """

    rows: Sequence[Sequence[Any]]
    is_last: bool


async def next_rows(server: Server, source: SeriesSource, keys: Sequence[str], after_ns: int) -> Rows | None:
    """The rows behind one in the range; None where two have one time, whose order only records tell.

    Args:
        after_ns: the time of that row; negative: from the beginning.
    """
    columns = ", ".join(identifier(field_name(key, suffix)) for key in keys for suffix in ("", FLAG))
    start_us = max(source.start_us, after_ns // 1_000)
    where = source.where(start_us, source.end_us)
    answer = await server.query(f"SELECT {columns} {where} ORDER BY time ASC LIMIT {_ROWS}")
    rows = [row for series in answer for row in series["values"]]
    is_last = len(rows) < _ROWS
    if rows and rows[0][0] == after_ns:
        del rows[0]
    before_us = after_ns // 1_000
    for row in rows:
        if row[0] // 1_000 == before_us:
            return None
        before_us = row[0] // 1_000
    return Rows(rows, is_last)


def columns_of(rows: Sequence[Sequence[Any]], keys: Sequence[str]) -> dict[str, PointColumn]:
    """The points of each name that has some."""
    from terrazzo_adapters.columns.column import build_columns  # its library is heavy

    def points(row: Sequence[Any]) -> dict[str, Value]:
        return {key: _value(row[2 * place + 1], row[2 * place + 2]) for place, key in enumerate(keys)}

    return build_columns(((row[0] // 1_000, points(row)) for row in rows), keys)


def _value(number: float | None, flag: bool | None) -> Value:
    return flag if number is None else float(number)
