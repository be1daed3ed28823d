"""What operators ask of the past, of the store on an InfluxDB server, beside the same asked of that server directly.

``python benchmarks/influxdb_store.py [--messages 40000] [--rounds 15]`` puts the records that an object has of two
terminals' messages (``unsealed.py``) into an InfluxDB 1.x through the store, then asks the store's port and the server
in turn, on a kept connection each, and prints medians in ms and their ratios. What both find is compared by its number.
Needs Debian's ``influxdb``.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from history_load import DATABASE, PERIOD_MS, START_MS
from unsealed import HOUR_US, MOSAIC, commits

from influx_server import InfluxServer
from open_stores import open_influx
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore

TOGETHER = 2_000  # messages of a terminal in a commit
START_US = START_MS * 1_000

Ask = Callable[[], Awaitable[int]]
"""Asks the store once; how many values came."""


class Direct:
    """The server, asked over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(self, statement: str) -> int:
        """How many rows came."""
        told = urllib.parse.urlencode({"q": statement, "db": DATABASE, "epoch": "ms"})
        self._connection.request("GET", f"/query?{told}")
        answer = self._connection.getresponse()
        found = json.loads(answer.read())
        return sum(len(series["values"]) for result in found["results"] for series in result.get("series", ()))

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def of_each(function: str, keys: Sequence[str]) -> str:
    """A function of each of some variables."""
    return ", ".join(f'{function}("{key}")' for key in keys)


def questions(store: InfluxStore, end_us: int) -> dict[str, tuple[Ask, str]]:
    """By name: what the store is asked, and the statement that the server is."""
    five, span = [f"V{1 + n % 2}_{n}" for n in range(5)], (START_US, end_us - 1)
    where = f"FROM mosaic WHERE object = '1' AND time >= {START_US}u AND time < {end_us}u"
    step_us = (end_us - START_US) // 500 // 1_000 * 1_000

    async def means(keys: list[str]) -> int:
        return len((await store.resample(MOSAIC, keys, *span, bucket_us=HOUR_US, fn="mean")).starts_us)

    async def page(keys: list[str]) -> int:
        found = await store.page([MOSAIC], *span, offset=0, limit=50, keys=keys, whole=False)
        return len(found.records) + bool(found.total)

    async def newest() -> int:
        return bool(await store.latest_each(MOSAIC, five))

    async def chart() -> int:
        curves = await store.extremes(MOSAIC, five[:1], *span, bucket_us=step_us, origin_us=START_US)
        return len({(time_us - START_US) // step_us for time_us in curves[five[0]].times_us})

    def averages(keys: list[str]) -> str:
        return f"SELECT {of_each('mean', keys)} {where} GROUP BY time(1h) fill(none)"

    one = f'"{five[0]}"'
    return {
        "means by the hour, 1 variable": (lambda: means(five[:1]), averages(five[:1])),
        "means by the hour, 5 variables": (lambda: means(five), averages(five)),
        "chart of 2,000 points": (
            chart,
            f"SELECT first({one}), min({one}), max({one}), last({one}) {where}"
            f" GROUP BY time({step_us}u, {START_US % step_us}u) fill(none)",
        ),
        "page of 50, total": (
            lambda: page([]),
            f"SELECT * {where} ORDER BY time DESC LIMIT 50; SELECT count(arrival) {where}",
        ),
        "page of 50 by key, total": (
            lambda: page(five[:1]),
            f"SELECT {one} {where} ORDER BY time DESC LIMIT 50; SELECT count({one}) {where}",
        ),
        "newest value of 5 variables": (newest, f"SELECT {of_each('last', five)} {where}"),
    }


async def run(folder: Path, arguments: argparse.Namespace) -> None:
    """Loads, asks in turn, prints."""
    with InfluxServer(folder / "influxdb") as server:
        settings: dict[str, Any] = {"url": server.url, "database": DATABASE}
        store = await open_influx(InfluxSettings(**settings), spool=folder / "spool")
        for records in commits(arguments.messages, TOGETHER):
            await store.append([record for record in records if record.series == MOSAIC])
        assert store.is_whole, "records wait in the spool"
        direct = Direct(server.port)
        print("| question | store, ms | InfluxDB, ms | ratio |\n|---|---:|---:|---:|")
        for name, (ask, statement) in questions(store, START_US + arguments.messages // 2 * PERIOD_MS * 1_000).items():
            ours, theirs = [], []
            for _ in range(arguments.rounds + 1):
                began = time.perf_counter()
                mine = await ask()
                between = time.perf_counter()
                its = direct.ask(statement)
                theirs.append(time.perf_counter() - between)
                ours.append(between - began)
                assert mine == its, (name, mine, its)
            spent = statistics.median(ours[1:]) * 1e3, statistics.median(theirs[1:]) * 1e3
            print(f"| {name} | {spent[0]:.1f} | {spent[1]:.1f} | {spent[0] / spent[1]:.2f} |", flush=True)
        direct.close()
        await store.close()


def main() -> None:
    """Reads the arguments, runs, cleans up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=40_000, help="of both terminals together")
    parser.add_argument("--rounds", type=int, default=15)
    with tempfile.TemporaryDirectory(prefix="terrazzo-bench-") as name:
        asyncio.run(run(Path(name), parser.parse_args()))


if __name__ == "__main__":
    main()
