"""A process that writes, seals, merges, replaces and deletes without end, until it is killed.

``sealing_child.py FOLDER STEP``: the number of each step, from STEP on, is said when it is done; what is done in a step
follows from its number, so that the parent can do it, too.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import msgspec

from open_stores import open_rocks, seal
from terrazzo.ports.store import Record, Seen, TimeSeriesStore

SERIES = ["m/1", "g/T1/r"]
T0 = 1_700_000_000_000_000
STEP = 10_000_000
SPAN = 4_000
"""Records have times within so many steps."""


def make_records(step: int) -> list[Record]:
    """What a step appends: some in a row, some anywhere, some of one time."""
    chance = random.Random(step)
    first = chance.randrange(SPAN)
    places = [first + each for each in range(chance.randrange(1, 60))]
    places += [chance.randrange(SPAN) for _ in range(chance.randrange(6))]
    places += [first] * chance.randrange(3)
    return [make_record(chance.choice(SERIES), place, step * 1_000 + number) for number, place in enumerate(places)]


def make_record(series: str, place: int, number: int) -> Record:
    points = {"A": number / 4, **({"B": number} if number % 3 else {})}
    encode = msgspec.msgpack.encode if series.startswith("m/") else msgspec.json.encode
    return Record(series, T0 + place * STEP, encode(points))


def make_step(step: int) -> tuple[str, Any]:
    """What is done in step number ``step``."""
    chance = random.Random(-step)
    kind = chance.choices(["append", "seal", "replace", "drop"], [60, 30, 7, 3])[0]
    if kind == "append":
        return kind, make_records(step)
    if kind == "seal":
        return kind, (chance.choice([4, 16, 50]), chance.choice([1, 4, 16]))
    if kind == "drop":
        return kind, T0 + chance.randrange(SPAN // 8) * STEP
    series, start = chance.choice(SERIES), chance.randrange(SPAN)
    end = start + chance.randrange(SPAN // 4)
    new = [make_record(series, chance.randint(start, end), step * 1_000 + n) for n in range(chance.randrange(20))]
    return kind, (series, T0 + start * STEP, T0 + end * STEP, new)


async def do_step(store: TimeSeriesStore, step: int) -> None:
    kind, what = make_step(step)
    if kind == "append":
        await store.append(what, notes={"step": b"%d" % step})
    elif kind == "seal":
        await seal(store, block=what[0], least=what[1])  # type: ignore[arg-type]
    elif kind == "drop":
        await store.drop_before(what)
    else:
        series, start_us, end_us, new = what
        assert await store.replace(series, start_us, end_us, new, given=Seen([], 0))


async def work_for_ever(folder: Path, step: int) -> None:
    store = await open_rocks(folder)
    while True:
        await do_step(store, step)
        print(step, flush=True)
        step += 1


if __name__ == "__main__":
    asyncio.run(work_for_ever(Path(sys.argv[1]), int(sys.argv[2])))
