"""Disk while an object's past is replaced piece by piece, as a replay does, and afterwards.

``python benchmarks/replays.py [--records N] [--settle S]`` puts an object's records into an embedded store that seals,
waits until they are sealed, replaces them by themselves, 2,000 at a time with as much rest as that took, and prints
what the folder takes at each tenth, and how much is sealed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from itertools import islice
from math import inf
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import msgspec
from history_load import changed, messages

from open_stores import open_rocks
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.rocksdb import RocksStore

MOSAIC = "m/1"
PIECE = 2_000
STILL_S = 12.0  # nothing was sealed for so long: it is done


def records(count: int) -> list[Record]:
    """Of one terminal's messages."""
    said = list(islice(messages("new-1", 2 * count, seed=1), count))
    found = changed("new-1", said, [inf] * 10)
    return [Record(MOSAIC, time_ms * 1_000, msgspec.msgpack.encode(record)) for time_ms, record in found if record]


def disk_mib(folder: Path) -> float:
    """What the files take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


async def settled(store: RocksStore, *, most_s: float) -> float:
    """Until nothing has been sealed for a while; the seconds until the last was."""
    began = still = time.monotonic()
    last = -1
    while time.monotonic() - still < STILL_S and time.monotonic() - began < most_s:
        if store.stats().sealed_records != last:
            last, still = store.stats().sealed_records, time.monotonic()
        await asyncio.sleep(0.5)
    return still - began


async def run(folder: Path, arguments: argparse.Namespace) -> None:
    """Loads, replaces, prints."""
    store, every = await open_rocks(folder, seals=True), records(arguments.records)
    for first in range(0, len(every), 500):
        await store.append(every[first : first + 500])
    await settled(store, most_s=arguments.settle)
    print("| | disk, MiB | sealed since |\n|---|---:|---:|")
    before = store.stats().sealed_records
    print(f"| {len(every):,} records, {before:,} sealed | {disk_mib(folder):.1f} | |", flush=True)
    most = 0.0
    for number, first in enumerate(range(0, len(every), PIECE)):
        piece, began = every[first : first + PIECE], time.perf_counter()
        await store.replace(MOSAIC, piece[0].time_us, piece[-1].time_us, piece, given=Seen([], 0))
        most = max(most, disk_mib(folder))
        await asyncio.sleep(time.perf_counter() - began)
        if number % max(1, len(every) // PIECE // 10) == 0:
            sealed = store.stats().sealed_records - before
            print(f"| replaced {first + len(piece):,} | {disk_mib(folder):.1f} | {sealed:,} |", flush=True)
    print(f"| the most meanwhile | {most:.1f} | {store.stats().sealed_records - before:,} |", flush=True)
    after_s = await settled(store, most_s=arguments.settle)
    print(f"| {after_s:.0f} s later | {disk_mib(folder):.1f} | {store.stats().sealed_records - before:,} |", flush=True)
    await store.close()


def main() -> None:
    """Reads the arguments, runs, cleans up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--settle", type=float, default=120.0, help="seconds of waiting, at most")
    with tempfile.TemporaryDirectory(prefix="terrazzo-bench-") as name:
        asyncio.run(run(Path(name), parser.parse_args()))


if __name__ == "__main__":
    main()
