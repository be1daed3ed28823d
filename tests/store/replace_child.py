"""A process that replaces a mosaic series again and again, until it is killed.

``replace_child.py URL DATABASE SPOOL FIRST``: generations from FIRST on, each said when it is done.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from store_locations import InfluxLocation

from terrazzo.ports.store import Record, Seen

SERIES = "m/1"
REPORTS = "g/T1/r"
T0 = 1_700_000_000_000_000
DAY = 86_400_000_000
DAYS = 40
INSIDE = (T0 + DAY, T0 + (DAYS - 2) * DAY)
"""The range that is replaced; the first day and the last ones stay."""


def outside() -> list[Record]:
    return [Record(SERIES, T0, b'{"A":-1}'), Record(SERIES, T0 + (DAYS - 1) * DAY, b'{"A":-2}')]


def generation(number: int) -> list[Record]:
    """Each has others, and another count."""
    count = 30 + 17 * (number % 3)
    step_us = (INSIDE[1] - INSIDE[0]) // count
    return [Record(SERIES, INSIDE[0] + n * step_us, b'{"A":%d,"n":%d}' % (number, n)) for n in range(count)]


async def replace_for_ever(location: InfluxLocation, first: int) -> None:
    store = await location.open()
    number = first
    print("open", flush=True)
    while True:
        assert await store.replace(SERIES, *INSIDE, generation(number), given=Seen([REPORTS], 0))
        print("done", number, flush=True)
        number += 1


if __name__ == "__main__":
    url, database, spool, first = sys.argv[1:]
    asyncio.run(replace_for_ever(InfluxLocation(url, database, Path(spool)), int(first)))
