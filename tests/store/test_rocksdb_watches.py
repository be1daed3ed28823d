"""A watch ends with whatever changes its range, so that an answer that is remembered is what the store would say."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from open_stores import open_rocks
from terrazzo.ports.store import Record, Seen, StoreUnavailable
from terrazzo_adapters.rocksdb import watches
from terrazzo_adapters.rocksdb.store import RocksStore
from terrazzo_adapters.rocksdb.watches import Watches

SERIES = ("m/1", "m/2")
times = st.integers(0, 6)
spans = st.tuples(times, times).map(sorted)
steps = st.lists(
    st.tuples(st.just("append"), st.tuples(st.sampled_from(SERIES), times))
    | st.tuples(st.just("watch"), st.tuples(st.sampled_from(SERIES), spans))
    | st.tuples(st.just("replace"), st.tuples(st.sampled_from(SERIES), spans))
    | st.tuples(st.just("drop"), st.tuples(st.sampled_from([None, "m/1"]), times)),
    max_size=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=steps)
def test_a_range_that_is_watched_is_as_it_was(tmp_path_factory: Any, plan: list[tuple[str, Any]]) -> None:
    asyncio.run(compare(tmp_path_factory.mktemp("watches"), plan))


async def compare(folder: Path, plan: list[tuple[str, Any]]) -> None:
    store = await open_rocks(folder)
    watched = []
    for number, (step, (series, argument)) in enumerate(plan):
        if step == "append":
            await store.append([Record(series, argument, b"%d" % number)])
        elif step == "watch":
            watch = store.watch(series, *argument)
            watched.append((watch, series, argument, await content(store, series, argument)))
        elif step == "replace":
            there = len(await content(store, series, argument))
            new = [Record(series, argument[0], b"%d" % number)]
            await store.replace(series, *argument, new, given=Seen([series], there))
        else:
            await store.drop_before(argument, series=None if series is None else [series])
        for watch, its_series, span, before in watched:
            if watch.is_current:
                assert await content(store, its_series, span) == before
    await store.close()


async def content(store: RocksStore, series: str, span: list[int]) -> list[Record]:
    return (await store.page([series], *span, offset=0, limit=1_000)).records


async def test_what_comes_elsewhere_leaves_it(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path)
    watch = store.watch("m/1", 10, 20)
    await store.append([Record("m/1", 9, b"a"), Record("m/1", 21, b"b"), Record("m/2", 15, b"c")])
    await store.replace("m/1", 21, 30, [], given=Seen(["m/1"], 1))
    await store.drop_before(10)
    await store.drop_before(40, series=["m/2"])
    assert watch.is_current
    await store.append([Record("m/1", 20, b"d")])
    assert not watch.is_current
    await store.close()


async def test_of_a_commit_that_failed_nobody_knows_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_rocks(tmp_path)
    watch = store.watch("m/1", 10, 20)

    def fails(*_: object) -> None:
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(store._engine, "append", fails)
    with pytest.raises(StoreUnavailable):
        await store.append([Record("m/2", 1, b"a")])
    assert not watch.is_current
    await store.close()


def test_of_one_series_the_oldest_end_and_of_all_what_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "_OF_SERIES", 3)
    monkeypatch.setattr(watches, "_MOST", 6)
    every = Watches()
    of_one = [every.begin("m/1", 0, n) for n in range(5)]
    assert [each.is_current for each in of_one] == [False, False, True, True, True]
    for number in range(100):
        every.begin(f"g/{number}", 0, 1)  # and nobody has it
    assert [each.is_current for each in of_one] == [False, False, True, True, True]
    held = [every.begin(f"n/{number}", 0, 1) for number in range(20)]
    assert sum(each.is_current for each in [*held, *of_one]) <= 6, "as many as may be; the others are read anew"
    assert held[-1].is_current
    every.on_append([Record("n/19", 1, b"")])
    assert not held[-1].is_current
