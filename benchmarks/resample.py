"""A 60 s mean over 50,000 mosaic records: the embedded store beside a real InfluxDB 1.x on the same data, in one run.

Run: ``python benchmarks/resample.py [--records 50000] [--rounds 15]``; needs Debian's ``influxdb``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from terrazzo.ports.store import Record
from terrazzo.runtime.supervisor import Supervisor
from terrazzo.times import now_us
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore
from terrazzo_adapters.rocksdb import RocksStore

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from influx_server import InfluxServer
from open_stores import make_columns

SERIES = "m/17"
VARIABLES = [f"VAR{number:02}" for number in range(20)]
BUCKET_US = 60_000_000
HOUR_US = 3_600_000_000
DATABASE = "bench"

Ask = Callable[[], Awaitable[int]]
"""Asks once; how many buckets came."""


def make_records(count: int, period_us: int) -> list[Record]:
    """An object that reports all its variables, up to the end of an hour: the most that an open hour can have."""
    start_us = now_us() // HOUR_US * HOUR_US - count * period_us
    return [Record(SERIES, start_us + n * period_us, body(n)) for n in range(count)]


def body(number: int) -> bytes:
    """20 variables that drift."""
    values = {name: round(20 + 5 * math.sin(number / 500 + place), 3) for place, name in enumerate(VARIABLES)}
    return msgspec.msgpack.encode(values)


def batches(records: list[Record]) -> Iterator[list[Record]]:
    """As they are stored."""
    for first in range(0, len(records), 1000):
        yield records[first : first + 1000]


async def median_ms(ask: Ask, rounds: int) -> tuple[float, float, int]:
    """Median and least time, and the number of buckets."""
    took_ms, buckets = [], 0
    for _ in range(rounds):
        began_s = time.perf_counter()
        buckets = await ask()
        took_ms.append((time.perf_counter() - began_s) * 1e3)
    return statistics.median(took_ms), min(took_ms), buckets


def influxql(url: str, keys: list[str], start_us: int, end_us: int) -> Ask:
    """InfluxDB's own aggregation, asked over HTTP by a connection that stays open."""
    import http.client

    host, port = urllib.parse.urlsplit(url).netloc.split(":")
    connection = http.client.HTTPConnection(host, int(port))
    columns = ", ".join(f'mean("{key}")' for key in keys)
    statement = (
        f'SELECT {columns} FROM "mosaic" WHERE "object" = \'17\' AND time >= {start_us * 1000}'
        f" AND time <= {end_us * 1000 + 999} GROUP BY time({BUCKET_US}u) fill(none)"
    )
    path = "/query?" + urllib.parse.urlencode({"q": statement, "db": DATABASE, "epoch": "u"})

    async def ask() -> int:
        connection.request("GET", path)
        answer: dict[str, Any] = msgspec.json.decode(connection.getresponse().read())
        return len(answer["results"][0]["series"][0]["values"])

    return ask


def through_port(store: RocksStore | InfluxStore, keys: list[str], start_us: int, end_us: int) -> Ask:
    """The platform's question."""

    async def ask() -> int:
        return (await store.resample(SERIES, keys, start_us, end_us, bucket_us=BUCKET_US, fn="mean")).total

    return ask


async def compare(folder: Path, *, count: int, period_us: int, rounds: int) -> None:
    """Loads both, asks both in turn, prints."""
    records = make_records(count, period_us)
    span = records[0].time_us, records[-1].time_us
    print(f"\n{count:,} records of {len(VARIABLES)} variables, one each {period_us / 1e6:g} s; a mean of each 60 s")
    server = InfluxServer(folder / "influxd")
    server.start()
    tasks = Supervisor(on_stop=sys.exit)
    rocks = await RocksStore.open(folder / "store", tasks=tasks)
    settings = InfluxSettings(url=server.url, database=DATABASE)
    influx = await InfluxStore.open(settings, spool=folder / "spool", tasks=tasks)
    try:
        for batch in batches(records):
            await rocks.append(batch)
            await influx.append(batch)
        for keys in (VARIABLES[:1], VARIABLES[:5], VARIABLES):
            await report(f"{len(keys)} variables, InfluxQL", influxql(server.url, keys, *span), rounds)
            if len(keys) == 1:
                await report("1 variables, embedded, columns not made yet", through_port(rocks, keys, *span), 3)
                began_s = time.perf_counter()
                await make_columns(rocks)
                print(f"made the columns in {(time.perf_counter() - began_s) * 1e3:.0f} ms")
            await report(f"{len(keys)} variables, embedded", through_port(rocks, keys, *span), rounds)
        late = msgspec.structs.replace(records[-1], time_us=records[-1].time_us + 1)
        await rocks.append([late])
        await report("1 variables, embedded, one full hour unmade", through_port(rocks, VARIABLES[:1], *span), rounds)
        await report("1 variables, store.kind = influxdb", through_port(influx, VARIABLES[:1], *span), 3)
    finally:
        await influx.close()
        await rocks.close()
        server.stop()


async def report(name: str, ask: Ask, rounds: int) -> None:
    """One row."""
    median, least, buckets = await median_ms(ask, rounds)
    print(f"{name:45}: {median:8.2f} ms median, {least:8.2f} least, {buckets:,} buckets")


async def run(arguments: argparse.Namespace) -> None:
    """Two densities."""
    for period_us in (1_000_000, 60_000_000):
        with tempfile.TemporaryDirectory(prefix="terrazzo-bench-") as folder:
            await compare(Path(folder), count=arguments.records, period_us=period_us, rounds=arguments.rounds)


def main() -> None:
    """Reads the arguments and runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=15)
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
