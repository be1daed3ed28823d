"""What came lately is in memory: who asks right after loading goes through no entries, and is told the same."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from open_stores import open_rocks, seal
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.rocksdb import RocksStore, blocks
from terrazzo_adapters.rocksdb.unsealed.recent import BURST, Recent, Run, reading

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000 // HOUR * HOUR
SERIES = "m/1"
COUNT = 400


def loaded(first: int = 0, count: int = COUNT) -> list[Record]:
    """One each minute."""
    times = [T0 + number * 60_000_000 for number in range(first, first + count)]
    return [Record(SERIES, time_us, msgspec.msgpack.encode({"T": float(time_us % 97)})) for time_us in times]


class Entries:
    """Counts who goes through RocksDB's entries for many records."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read, rows = 0, blocks.rows

        def counted(*given: Any) -> Any:
            self.read += 1
            return rows(*given)

        monkeypatch.setattr(blocks, "rows", counted)


async def answers(store: RocksStore) -> list[Any]:
    """Of all kinds of questions that many records are decoded for."""
    end_us = T0 + 99 * HOUR
    cut_us = T0 + 90 * 60_000_000
    buckets = await store.resample(SERIES, ["T"], T0, end_us, bucket_us=HOUR, fn="sum")
    page = await store.page([SERIES], cut_us, end_us, offset=0, limit=3, keys=["T"])
    curves = await store.extremes(SERIES, ["T"], cut_us, end_us, bucket_us=HOUR)
    return [buckets, page, curves, [each async for each in store.digests(SERIES, ["T"], T0, cut_us, undivided=none)]]


def none(starts_us: Any, length_us: int) -> Any:
    return starts_us < 0


async def answers_of_entries(store: RocksStore) -> list[Any]:
    """The same without memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store._engine.recent, "runs", lambda *_: ())
        return await answers(store)


@pytest.fixture
async def store(tmp_path: Path):
    opened = await open_rocks(tmp_path)
    yield opened
    await opened.close()


async def test_who_asks_right_after_loading_reads_no_entries(store: RocksStore, monkeypatch) -> None:
    entries = Entries(monkeypatch)
    for first in range(0, COUNT, 100):
        await store.append(loaded(first, 100))
    told = await answers(store)
    assert entries.read == 0
    assert repr(told) == repr(await answers_of_entries(store))
    assert entries.read > 0


async def test_records_of_commits_that_lie_among_each_other_are_in_order(store: RocksStore) -> None:
    every = loaded()
    await store.append(every[::2])
    await store.append(every[1::2])
    await store.append(every[::4])  # once more, of the same times
    assert repr(await answers(store)) == repr(await answers_of_entries(store))
    assert (await store.page([SERIES], T0, T0 + 99 * HOUR, offset=0, limit=1, keys=["T"])).total == 500


async def test_what_came_one_by_one_is_read_from_the_entries(store: RocksStore, monkeypatch) -> None:
    await store.append(loaded())
    await store.append(loaded(30, 1))
    entries = Entries(monkeypatch)
    assert repr(await answers(store)) == repr(await answers_of_entries(store))
    assert entries.read > 0
    assert store._engine.recent.bytes > 0, "of the other hours all is there"


async def test_an_hour_that_had_records_before_is_read_from_the_entries(tmp_path: Path, monkeypatch) -> None:
    store = await open_rocks(tmp_path)
    await store.append(loaded(0, 10))
    await store.close()
    store = await open_rocks(tmp_path)
    await store.append(loaded(10, 10))
    entries = Entries(monkeypatch)
    assert repr(await answers(store)) == repr(await answers_of_entries(store))
    assert entries.read > 0
    await store.close()


@pytest.mark.parametrize("block", [16, 100])
async def test_what_is_sealed_is_not_in_memory_any_more(store: RocksStore, block: int) -> None:
    await store.append(loaded())
    expected = repr((await answers(store))[:3])
    await seal(store, block=block, cutoff_us=T0 + 3 * HOUR)
    assert repr((await answers(store))[:3]) == expected
    await store.append(loaded())
    assert repr(await answers(store)) == repr(await answers_of_entries(store))


async def test_what_is_replaced_or_dropped_is_gone(store: RocksStore) -> None:
    await store.append(loaded())
    new = loaded(60, 60)[::3]
    assert await store.replace(SERIES, T0 + HOUR, T0 + 2 * HOUR - 1, new, given=Seen([SERIES], 60))
    assert repr(await answers(store)) == repr(await answers_of_entries(store))
    assert (await answers(store))[0].total == 7  # hours
    await store.append(loaded(COUNT, 60))
    await store.drop_before(T0 + 2 * HOUR)
    assert repr(await answers(store)) == repr(await answers_of_entries(store))
    await store.append(loaded(0, 60))
    assert repr(await answers(store)) == repr(await answers_of_entries(store))


async def test_questions_beside_commits_have_what_their_snapshot_has(store: RocksStore) -> None:
    async def ask() -> None:
        while not loading.done():
            total = (await store.page([SERIES], T0, T0 + 99 * HOUR, offset=0, limit=1, keys=["T"])).total
            assert total % 20 == 0, "a part of a commit"

    async def load() -> None:
        for first in range(0, COUNT, 20):
            await store.append(loaded(first, 20))

    loading = asyncio.create_task(load())
    await asyncio.gather(loading, ask(), ask())
    assert (await store.page([SERIES], T0, T0 + 99 * HOUR, offset=0, limit=1, keys=["T"])).total == COUNT


RUN = [(5, 1, b"a"), (6, 2, b"bb")]
LATER = [(5, 3, b"c")]


def test_what_comes_at_full_speed_for_long_is_not_kept() -> None:
    now_s = [0.0]
    recent = Recent(1 << 30, clock=lambda: now_s[0])
    run = [(number, number, b"x") for number in range(BURST // 2)]
    for _ in range(3):
        recent.add([(1, run)])
    assert len(told(recent, 1)) == 2
    now_s[0] = 1.0
    recent.add([(1, run)])
    assert len(told(recent, 1)) == 2, "a second is not enough"
    now_s[0] = 60.0
    recent.add([(1, run)])
    assert len(told(recent, 1)) == 3


@pytest.mark.parametrize("sizes", [[3_000] * 20, [10] * 5 + [100_000] + [10] * 5])
def test_long_bodies_are_not_kept(sizes: list[int]) -> None:
    recent = Recent(1 << 30)
    recent.add([(1, [(number, number, bytes(size)) for number, size in enumerate(sizes)])])
    assert told(recent, 1) == []
    assert recent.bytes == 0


def told(recent: Recent, series_id: int, removals: int | None = None) -> list[Run]:
    """What there is of a series for a snapshot of now, or of before so many removals."""
    return list(recent.runs(series_id, recent._removals if removals is None else removals))


class TestRecent:
    """Mostly of the series 7."""

    def test_runs_are_in_the_order_of_commits(self) -> None:
        recent = Recent(1 << 20)
        recent.add([(7, RUN), (8, LATER)])
        recent.add([(7, LATER)])
        assert recent.read(lambda: list(reading().runs(7))) == [Run.of(RUN), Run.of(LATER)]
        assert told(recent, 8) == [Run.of(LATER)]
        assert reading() is None, "nobody reads"

    def test_what_was_removed_since_the_snapshot_is_not_taken_for_what_came_after(self) -> None:
        recent = Recent(1 << 20)
        recent.add([(7, RUN), (8, RUN)])

        def read() -> object:
            before = list(reading().runs(7))
            with recent.removing((7 << 32, 7 << 32)):
                pass
            recent.add([(7, RUN[::-1])])
            return before, list(reading().runs(7)), list(reading().runs(8))

        assert recent.read(read) == ([Run.of(RUN)], [], [Run.of(RUN)])
        assert told(recent, 7) == [Run.of(RUN[::-1])]

    def test_a_snapshot_of_the_middle_of_a_removal_finds_nothing_of_later(self) -> None:
        recent = Recent(1 << 20)
        with recent.removing((7 << 32, 7 << 32)):
            before = recent._removals
        recent.add([(7, RUN)])
        assert told(recent, 7, before) == []
        assert told(recent, 7) == [Run.of(RUN)]

    def test_what_lies_in_other_hours_than_what_is_removed_stays(self) -> None:
        recent = Recent(1 << 20)
        runs = [[(hour * HOUR, hour, b"x" * 9), (hour * HOUR + HOUR - 1, hour, b"y")] for hour in range(5)]
        recent.add([(7, run) for run in runs])
        with recent.removing((7 << 32 | 1, 7 << 32 | 2)):
            pass
        assert told(recent, 7) == [Run.of(runs[number]) for number in (0, 3, 4)]
        assert recent.bytes == sum(run.size for run in told(recent, 7))

    def test_memory_is_bounded(self) -> None:
        recent = Recent(10_000)
        for number in range(100):
            recent.add([(number, [(5, number, b"x" * 1_000)])])
            assert recent.bytes <= 10_000
        assert (told(recent, 0) == [], told(recent, 99) != []) == (True, True)
        recent.add([(7, [(5, 200 + number, b"x" * 1_000) for number in range(20)])])
        assert recent.bytes == 0

    def test_of_each_series_the_oldest_is_given_up(self) -> None:
        recent = Recent(10_000)
        for number in range(100):
            recent.add([(series_id, [(5, number, b"x" * 1_000)]) for series_id in (7, 8)])
        assert [[run.arrival for run in told(recent, series_id)][-1] for series_id in (7, 8)] == [99, 99]
        assert abs(len(told(recent, 7)) - len(told(recent, 8))) <= 1

    def test_what_is_counted_is_what_it_takes(self) -> None:
        recent = Recent(1 << 20)
        records = [(number, number, b"x" * 100) for number in range(1_000)]
        for first in range(0, 1_000, 20):
            recent.add([(7, records[first : first + 20])])
        taken = sum(sum(map(sys.getsizeof, (run, *run))) for run in told(recent, 7))
        assert 0.8 < recent.bytes / taken < 1.2
