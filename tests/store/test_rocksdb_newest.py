"""The newest records in memory are what the database would say, whatever is appended, dropped and asked between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from open_stores import open_rocks
from terrazzo.ports.store import Record
from terrazzo_adapters.rocksdb.newest import MOST_BYTES, MOST_SERIES, Newest

SERIES = ("g/t1/r", "g/t1/a", "g/t2/r")
appends = st.lists(st.tuples(st.sampled_from(SERIES), st.integers(0, 5), st.booleans()), min_size=1, max_size=4)
steps = st.lists(
    st.tuples(st.just("append"), appends)
    | st.tuples(st.just("ask"), st.sampled_from(SERIES))
    | st.tuples(st.just("drop"), st.integers(0, 6)),
    max_size=20,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=steps)
def test_the_newest_is_the_newest(tmp_path_factory: Any, plan: list[tuple[str, Any]]) -> None:
    asyncio.run(compare(tmp_path_factory.mktemp("newest"), plan))


async def compare(folder: Path, plan: list[tuple[str, Any]]) -> None:
    store = await open_rocks(folder)
    stored: list[Record] = []
    for step, argument in plan:
        if step == "append":
            batch = [
                Record(series, time_us, b"%d" % (len(stored) + n) * (MOST_BYTES if is_long else 1))
                for n, (series, time_us, is_long) in enumerate(argument)
            ]
            await store.append(batch)
            stored += batch
        elif step == "drop":
            await store.drop_before(argument)
            stored = [record for record in stored if record.time_us >= argument]
        else:
            own = [(record.time_us, arrival) for arrival, record in enumerate(stored) if record.series == argument]
            expected = [stored[max(own)[1]]] if own else []
            assert await store.latest([argument], 1) == expected
            assert await store.latest([argument], 1) == expected, "and again, from memory"
    await store.close()


async def test_appends_and_questions_at_once(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path)
    promised = -1

    async def append() -> None:
        nonlocal promised
        for number in range(300):
            await store.append([Record("g/t1/r", number, b"%d" % number)])
            promised = number

    async def ask() -> None:
        while promised < 299:
            floor = promised
            found = await store.latest(["g/t1/r"], 1)
            assert floor < 0 or found[0].time_us >= floor, "what was acknowledged is seen"
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(append(), name="append")
        for _ in range(4):
            group.create_task(ask(), name="ask")
    await store.close()


def test_memory_is_bounded() -> None:
    newest = Newest()
    for number in range(MOST_SERIES + 5):
        newest.fill(Record(f"g/{number}/r", 1, b"{}"), newest.generation)
    assert len(newest) == 5
    newest.fill(Record("g/long/r", 1, b"x" * (MOST_BYTES + 1)), newest.generation)
    assert newest.get("g/long/r") is None


def test_what_was_read_before_a_commit_is_not_held() -> None:
    newest = Newest()
    before = newest.generation
    newest.on_append([Record("g/t1/r", 2, b"new")])
    newest.fill(Record("g/t1/r", 1, b"old"), before)
    assert newest.get("g/t1/r") is None
