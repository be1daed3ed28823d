"""A process that writes to a RocksDB store and says what was acknowledged. Run as ``rocksdb_child.py MODE FOLDER``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from open_stores import open_rocks, seal
from terrazzo.ports.store import Record, StoreFull, StoreUnavailable
from terrazzo_adapters.rocksdb import RocksStore

SERIES = ["g/T1/r", "g/T2/r", "m/1"]
BATCH = 50


def batch(number: int) -> list[Record]:
    """Batch ``number``: its records carry their own number as time and body, and random ballast."""
    first = number * BATCH
    return [
        Record(SERIES[n % 3], n, b'{"n":%d,"b":"%s"}' % (n, os.urandom(200).hex().encode()))
        for n in range(first, first + BATCH)
    ]


async def append_for_ever(folder: Path) -> None:
    store = await open_rocks(folder)
    number = await stored_batches(store)
    while True:
        await store.append(batch(number))
        number += 1
        print(number, flush=True)


async def stored_batches(store: RocksStore) -> int:
    total = (await store.page(SERIES, 0, 2**60, offset=0, limit=1)).total
    assert total % BATCH == 0, f"{total} records: part of a batch was stored"
    return total // BATCH


async def survive_a_full_disk(folder: Path, fill: Callable[[], None], make_room: Callable[[], None]) -> None:
    store = await open_rocks(folder)
    fill()
    number = 0
    refusals = []
    while len(refusals) < 3:
        try:
            await store.append(batch(number))
            number += 1
        except StoreFull as error:
            refusals.append(str(error))
    print("refused", refusals[0], flush=True)
    try:
        await store.check()
    except StoreFull as error:
        print("check", error, flush=True)
    make_room()
    await store.check()
    assert await stored_batches(store) == number
    await store.append(batch(number))
    await store.close()
    store = await open_rocks(folder)
    assert await stored_batches(store) == number + 1
    await store.close()
    print("stored", number + 1, flush=True)


async def seal_on_a_full_disk(folder: Path) -> None:
    """Nothing is lost, and it goes on when there is room."""
    store = await open_rocks(folder / "db")
    for number in range(60):
        await store.append(batch(number))
    refusals = 0
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    for _ in range(3):
        try:
            await seal(store, block=200)
        except StoreUnavailable:
            refusals += 1
    assert not store._sealer.stats.sealed_records, "the disk wasn't full"
    ballast.unlink()
    await store.check()
    assert await stored_batches(store) == 60
    await seal(store, block=200)
    assert store._sealer.stats.sealed_records == 60 * BATCH
    assert await stored_batches(store) == 60
    await store.append(batch(60))
    await store.close()
    store = await open_rocks(folder / "db")
    assert await stored_batches(store) == 61
    records = await store.latest(SERIES, 61 * BATCH)
    assert [record.body[:9] for record in records] == [(b'{"n":%d,"b"' % n)[:9] for n in reversed(range(61 * BATCH))]
    await store.close()
    print("refused", refusals, flush=True)


def with_ballast(folder: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    ballast = folder / "ballast"
    ballast.write_bytes(os.urandom(8 << 20))
    return (lambda: None), ballast.unlink


def with_a_file_size_limit() -> tuple[Callable[[], None], Callable[[], None]]:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    return (
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard)),
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)),
    )


def main(mode: str, folder: Path) -> None:
    if mode == "for-ever":
        asyncio.run(append_for_ever(folder))
    elif mode == "full-disk":
        asyncio.run(survive_a_full_disk(folder / "db", *with_ballast(folder)))
    elif mode == "full-disk-sealing":
        asyncio.run(seal_on_a_full_disk(folder))
    elif mode == "file-limit":
        asyncio.run(survive_a_full_disk(folder / "db", *with_a_file_size_limit()))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
