"""The embedded store: records/s of durable appends, the event loop's longest gap meanwhile, and page queries.

Run: ``python benchmarks/store.py [--sealing] [--records 1000000] [--path DIR]`` (a folder on the disk in question).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import uvloop

from terrazzo.ports.store import Record
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.rocksdb import RocksStore

BODY_BYTES = 118
TERMINALS = 200
SEALED_SERIES = 20
START_US = 1_700_000_000_000_000
PERIOD_US = 1_000_000


def make_batches(records: int, size: int, series: int) -> Iterator[list[Record]]:
    """Batches as terminals make them: each series once a second, bodies that hardly compress."""
    digits = os.urandom(1 << 20).hex().encode()
    bodies = [b'{"P":"%s"}' % digits[start : start + BODY_BYTES - 8] for start in range(0, 2_000_000, 20)]
    names = [f"g/T{number:05}/r" for number in range(series)]
    for first in range(0, records, size):
        yield [
            Record(names[n % series], START_US + n // series * PERIOD_US + n % series, bodies[n % len(bodies)])
            for n in range(first, first + size)
        ]


def bytes_on_disk(path: Path) -> int:
    """All files under ``path`` together."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


class Gaps:
    """Measures how long the event loop was not at its post."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    async def watch(self) -> None:
        """Runs until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.worst_s = max(self.worst_s, time.perf_counter() - before - 0.001)


async def measure_appends(path: Path, *, records: int, size: int, series: int) -> None:
    """Appends one batch after the other and prints what it cost."""
    store = await RocksStore.open(path, tasks=Supervisor(on_stop=sys.exit))
    batches = list(make_batches(records, size, series))
    gaps = Gaps()
    watch = asyncio.create_task(gaps.watch(), name="gaps")
    waits = []
    cpu_s, began = time.process_time(), time.perf_counter()
    for batch in batches:
        before = time.perf_counter()
        await store.append(batch)
        waits.append(time.perf_counter() - before)
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
    watch.cancel()
    await store.close()
    p99_ms = statistics.quantiles(waits, n=100)[98] * 1e3
    print(
        f"append {size:5} a batch, {series:5} series: {records / took_s:9,.0f} records/s, "
        f"{took_s / records * 1e6:.2f} us a record, {cpu_s / records * 1e6:.2f} us CPU; commit p50 "
        f"{statistics.median(waits) * 1e3:.1f} ms, p99 {p99_ms:.1f} ms; loop gap at most {gaps.worst_s * 1e3:.1f} ms; "
        f"{bytes_on_disk(path) / records:.0f} bytes a record on disk"
    )


def make_smooth(records: int, size: int, series: int) -> Iterator[list[Record]]:
    """Batches of mosaic and grid records of ten points that walk slowly, half of each kind."""
    chance, points = random.Random(1), [[50.0] * 10 for _ in range(series)]
    for first in range(0, records, size):
        batch = []
        for n in range(first, first + size, 2):
            at, time_us = n // 2 % series, START_US + n // 2 // series * 30 * PERIOD_US
            points[at] = [round(point + chance.gauss(0, 0.05), 2) for point in points[at]]
            named = {f"P{number}": point for number, point in enumerate(points[at])}
            batch.append(Record(f"m/{at}", time_us, msgspec.msgpack.encode(named)))
            batch.append(Record(f"g/T{at:05}/r", time_us, msgspec.json.encode({"time": time_us // 1000, **named})))
        yield batch


async def append_at(store: RocksStore, batches: Iterable[Sequence[Record]], per_s: float) -> tuple[float, float]:
    """Appends at a pace; the records/s that it came to, and the CPU seconds of this process for each record."""
    done, cpu_s, began = 0, time.process_time(), time.perf_counter()
    for batch in batches:
        await asyncio.sleep(began + done / per_s - time.perf_counter())
        await store.append(batch)
        done += len(batch)
    return done / (time.perf_counter() - began), (time.process_time() - cpu_s) / done


async def measure_sealing(path: Path, *, records: int, size: int, series: int) -> None:
    """Appends at full rate without sealing, at half of it without and beside it, and waits until most is sealed."""
    batches = list(make_smooth(records, size, series))
    full = 1e9
    for name, seals, part in (("alone", False, 1.0), ("alone, half rate", False, 0.5), ("beside sealing", True, 0.5)):
        folder = path / name
        store = await RocksStore.open(folder, tasks=Supervisor(on_stop=sys.exit), seals=seals)
        gaps = Gaps()
        watch = asyncio.create_task(gaps.watch(), name="gaps")
        children_s = _children_s()
        found, cpu_s = await append_at(store, batches, full * part)
        full = found if part == 1 else full
        watch.cancel()
        sealed = store.stats().sealed_records
        began = time.perf_counter()
        while seals and store.stats().sealed_records < records * 0.8 and time.perf_counter() - began < 300:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        worked_off_s = time.perf_counter() - began
        await store.close()
        print(
            f"{name:17} {found:9,.0f} records/s, {cpu_s * 1e6:.1f} us CPU a record; loop gap at most "
            f"{gaps.worst_s * 1e3:.0f} ms; {sealed:,} sealed meanwhile, most of the rest within {worked_off_s:.0f} s; "
            f"process that packs {(_children_s() - children_s) / records * 1e6:.1f} us a record; "
            f"{bytes_on_disk(folder) / records:.1f} bytes a record on disk; {_resident_mib():.0f} MiB resident"
        )


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


async def measure_queries(path: Path, records: int) -> None:
    """Prints the time of the queries that operators make, over the store that was just filled."""
    store = await RocksStore.open(path, tasks=Supervisor(on_stop=sys.exit))
    one, everything = ["g/T00007/r"], [f"g/T{number:05}/r" for number in range(TERMINALS)]
    end_us = START_US + records // TERMINALS * PERIOD_US
    questions: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        ("latest of one series", lambda: store.latest(one, 1)),
        ("latest 20 of 200 series", lambda: store.latest(everything, 20)),
        ("first page of one series", lambda: store.page(one, START_US, end_us, offset=0, limit=20)),
        (
            "last page of one series",
            lambda: store.page(one, START_US, end_us, offset=records // TERMINALS - 20, limit=20),
        ),
        ("first page of 200 series", lambda: store.page(everything, START_US, end_us, offset=0, limit=20)),
        ("last page of 200 series", lambda: store.page(everything, START_US, end_us, offset=records - 20, limit=20)),
        ("page of 1000 of 200 series", lambda: store.page(everything, START_US, end_us, offset=0, limit=1000)),
    ]
    for name, ask in questions:
        times = []
        for _ in range(5):
            before = time.perf_counter()
            await ask()
            times.append(time.perf_counter() - before)
        print(f"{name:27}: {statistics.median(times) * 1e3:8.2f} ms")
    await store.close()


async def run(path: Path, records: int) -> None:
    """All of it, on fresh folders under ``path``."""
    for size, series in ((500, TERMINALS), (2000, 2000), (2000, TERMINALS)):
        shutil.rmtree(path, ignore_errors=True)
        await measure_appends(path, records=records, size=size, series=series)
    await measure_queries(path, records)
    print(
        f"resident memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB, batches included"
    )


def main() -> None:
    """Reads the arguments, runs, cleans up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--sealing", action="store_true", help="appends beside sealing instead")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="terrazzo-bench-", dir=arguments.path))
    try:
        records = arguments.records // 2000 * 2000
        if arguments.sealing:
            uvloop.run(measure_sealing(folder, records=records, size=2000, series=SEALED_SERIES))
        else:
            uvloop.run(run(folder / "store", records))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
