"""A process that appends mosaic records, late ones among them, makes columns all the time, and says what is stored."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from open_stores import make_columns, open_rocks
from terrazzo.ports.store import Record

SERIES = "m/1"
BUCKET_US = 900_000_000
BATCH = 20


def record(number: int) -> Record:
    """Record ``number`` of them all: its time jumps to and fro over a few hours."""
    time_us = 1_700_000_000_000_000 + number * 7_919 % 1_000 * 15_000_000
    rare = {"RARE": number} if number % 17 == 0 else {}
    return Record(SERIES, time_us, msgspec.msgpack.encode({"T": number, **rare}))


async def append_for_ever(folder: Path) -> None:
    store = await open_rocks(folder)
    batch = (await store.page([SERIES], 0, 2**62, offset=0, limit=1)).total // BATCH
    while True:
        records = [record(number) for number in range(batch * BATCH, (batch + 1) * BATCH)]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.append(records))
            tasks.create_task(make_columns(store))
        batch += 1
        print(batch, flush=True)


if __name__ == "__main__":
    asyncio.run(append_for_ever(Path(sys.argv[1])))
