"""A process that appends one batch with a note: ``notes_child.py URL DATABASE SPOOL``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from store_locations import InfluxLocation

from terrazzo.ports.store import Record

SERIES = "m/1"
T0 = 1_700_000_000_000_000
BATCH = [Record(SERIES, T0 + n // 2, b'{"A":%d}' % n) for n in range(6)]
NOTES = {"late/1": b"6"}


async def append(location: InfluxLocation) -> None:
    store = await location.open()
    await store.append(BATCH, notes=NOTES)
    print("done", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    url, database, spool = sys.argv[1:]
    asyncio.run(append(InfluxLocation(url, database, Path(spool))))
