"""Questions over records that came a moment ago, which nothing has sealed or put into columns yet.

``python benchmarks/unsealed.py [--messages N] [--commit N] [--reopened] [--rounds N]`` puts the messages of two
terminals of ten points each into an embedded store, and the records that an object of twenty variables has of them, so
many of a terminal in each commit; then asks over the port, and prints the process's processor time for each question,
least of the rounds. ``--reopened`` opens the store anew before, so that nothing is in memory. The last line is a hash
of all answers: it is the same for every version.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from math import inf
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import msgspec
from history_load import PERIOD_MS, START_MS, changed, messages

from open_stores import open_rocks
from terrazzo.ports.store import Record, TimeSeriesStore

UIDS = ("new-1", "new-2")
POINTS = 10
HOUR_US = 3_600_000_000
MOSAIC, GRID = "m/1", "g/new-1/r"

Question = Callable[[], Awaitable[object]]


def commits(count: int, together: int) -> Iterator[list[Record]]:
    """The records of both terminals' messages, ``together`` of each in a commit."""
    last = dict.fromkeys(UIDS, [inf] * POINTS)
    said = {uid: messages(uid, count // 2, seed=1) for uid in UIDS}
    for _ in range(0, count // 2, together):
        found: list[Record] = []
        for uid in UIDS:
            some = list(islice(said[uid], together))
            for message in some:
                points = {f"P{number}": value for number, value in enumerate(message.values)}
                body = msgspec.json.encode({"Time": message.time_ms, **points})
                found.append(Record(f"g/{uid}/r", message.time_ms * 1_000, body))
            for time_ms, record in changed(uid, some, last[uid]):
                if record:
                    found.append(Record(MOSAIC, time_ms * 1_000, msgspec.msgpack.encode(record)))
            last[uid] = some[-1].values
        yield found


def questions(store: TimeSeriesStore, end_us: int) -> dict[str, Question]:
    """What is asked, by name."""
    start_us, step_us = START_MS * 1_000, (end_us - START_MS * 1_000) // 500
    five = [f"V1_{number}" for number in range(5)]
    return {
        "object, 1 variable by hour": lambda: store.resample(MOSAIC, five[:1], start_us, end_us, bucket_us=HOUR_US),
        "object, 5 variables by hour": lambda: store.resample(MOSAIC, five, start_us, end_us, bucket_us=HOUR_US),
        "object, chart of 1 variable": lambda: store.extremes(MOSAIC, five[:1], start_us, end_us, bucket_us=step_us),
        "object, page of 50 by key, total": lambda: store.page(
            [MOSAIC], start_us, end_us, offset=0, limit=50, keys=five[:1]
        ),
        "object, page of 50, total": lambda: store.page([MOSAIC], start_us, end_us, offset=0, limit=50),
        "terminal, 1 point by hour": lambda: store.resample(GRID, ["P3"], start_us, end_us, bucket_us=HOUR_US),
        "terminal, chart of 1 point": lambda: store.extremes(GRID, ["P3"], start_us, end_us, bucket_us=step_us),
        "terminal, page of 50 by key, total": lambda: store.page(
            [GRID], start_us, end_us, offset=0, limit=50, keys=["P3"]
        ),
    }


async def run(folder: Path, arguments: argparse.Namespace) -> None:
    """Loads, asks, prints."""
    store = await open_rocks(folder)
    for records in commits(arguments.messages, arguments.commit):
        await store.append(records)
    if arguments.reopened:
        await store.close()
        store = await open_rocks(folder)
    end_us = (START_MS + arguments.messages // 2 * PERIOD_MS) * 1_000
    asked, least, answers = questions(store, end_us), {}, hashlib.sha256()
    for name, ask in asked.items():
        answers.update(repr(await ask()).encode())
        least[name] = inf
        for _ in range(arguments.rounds):
            began = time.process_time()
            await ask()
            least[name] = min(least[name], time.process_time() - began)
    await store.close()
    print("| question | ms of the processor |\n|---|---:|")
    for name, spent_s in least.items():
        print(f"| {name} | {spent_s * 1e3:.2f} |")
    print(f"answers: {answers.hexdigest()[:16]}")


def main() -> None:
    """Reads the arguments, runs, cleans up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000, help="of both terminals together")
    parser.add_argument("--commit", type=int, default=100, help="messages of a terminal in one commit")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--reopened", action="store_true")
    with tempfile.TemporaryDirectory(prefix="terrazzo-bench-") as name:
        asyncio.run(run(Path(name), parser.parse_args()))


if __name__ == "__main__":
    main()
