"""Calendar days in a time zone, and counts of rows by day."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.times import from_datetime, to_datetime

MOST_DAYS = 365  # with more, a month and day would name two days
QUARTER_US = 15 * 60 * 1_000_000  # zones differ from UTC by quarters of an hour


class Days(msgspec.Struct, frozen=True):
    """Consecutive days, the earliest first; starts and end in UTC microseconds."""

    names: tuple[str, ...]  # MM/DD
    starts_us: tuple[int, ...]
    end_us: int

    def place(self, time_us: int) -> int:
        """The index of the day that a time (UTC microseconds) lies in."""
        return bisect_right(self.starts_us, time_us) - 1


def last_days(count: int, *, now_us: int, zone: tzinfo) -> Days:
    """The last ``count`` days in ``zone``, today included."""
    today = to_datetime(now_us, zone).date()
    dates = [today - timedelta(days=back) for back in range(count - 1, -2, -1)]
    starts = [from_datetime(datetime(each.year, each.month, each.day, tzinfo=zone)) for each in dates]
    return Days(tuple(f"{each:%m/%d}" for each in dates[:-1]), tuple(starts[:-1]), starts[-1])


async def tally_by_day(
    connection: AsyncConnection,
    moment: sa.Column[Any],
    days: Days,
    where: Sequence[sa.ColumnElement[bool]],
    *by: sa.Column[Any],
) -> dict[tuple[Any, ...], int]:
    """Counts rows by day and by the values of the columns ``by``.

    Args:
        moment: the column of the time by which they are counted (UTC microseconds).

    Returns:
        ``(day, *values)`` to count, without zeros; ``day`` is an index in ``days``.
    """
    quarter = moment // QUARTER_US  # the database counts, whatever the zone: few rows come back
    within = (moment >= days.starts_us[0], moment < days.end_us)
    query = sa.select(quarter, *by, sa.func.count()).where(*within, *where).group_by(quarter, *by)
    counts: dict[tuple[Any, ...], int] = {}
    for number, *values, count in await connection.execute(query):
        key = (days.place(int(number) * QUARTER_US), *values)
        counts[key] = counts.get(key, 0) + count
    return counts
