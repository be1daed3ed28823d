"""Several records in one entry: whoever asks sees records, wherever a range, a cut or a late record goes through."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from length import rounds
from open_stores import open_rocks
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.rocksdb.blocks import SPAN_US, pack, pieces, up

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000 // HOUR * HOUR
END = T0 + 10 * HOUR
SERIES = "g/T1/r"
PAIR = [SERIES, "m/17"]

# Around the ends of blocks and of hours.
times = st.builds(
    lambda hour, edge: T0 + hour * HOUR + edge,
    st.integers(0, 2),
    st.sampled_from([0, 1, 2, 1_000, SPAN_US - 1, SPAN_US, SPAN_US + 1, 2 * SPAN_US, HOUR - SPAN_US, HOUR - 1]),
)
commits = st.lists(st.lists(st.tuples(st.sampled_from(PAIR), times), min_size=1, max_size=12), min_size=1, max_size=6)


small_blocks = pytest.mark.usefixtures("blocks_of_two")


@pytest.fixture
def blocks_of_two(monkeypatch) -> None:
    """Whatever can be put together is."""
    monkeypatch.setattr("terrazzo_adapters.rocksdb.blocks._LEAST_RECORDS", 2)


def body(number: int, size: int = 0) -> bytes:
    return b'{"n":%d,"x":"%s"}' % (number, b"x" * size)


def in_order(records: list[Record]) -> list[Record]:
    """Oldest first; of one time as they came."""
    return sorted(records, key=lambda record: record.time_us)


async def scanned(store: RocksStore, start_us: int = 0, end_us: int = END) -> list[Record]:
    return [record for piece in [each async for each in store.scan(PAIR, start_us, end_us)] for record in piece]


def alone(life) -> None:
    """Runs it with a store of its own."""

    async def live(folder: str) -> None:
        store = await open_rocks(Path(folder) / "store")
        try:
            await life(store)
        finally:
            await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(folder))


async def filled(store: RocksStore, given_commits) -> list[Record]:
    """Appends; what is there then, in order of arrival."""
    numbers, there = count(), []
    for commit in given_commits:
        records = [Record(series, time_us, body(next(numbers))) for series, time_us in commit]
        await store.append(records)
        there += records
    return there


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, times)
def test_every_question_is_answered_record_by_record(given_commits, start_us, end_us):
    async def life(store: RocksStore) -> None:
        there = in_order(await filled(store, given_commits))
        inside = [record for record in there if start_us <= record.time_us <= end_us]
        assert await scanned(store, start_us, end_us) == inside
        page = await store.page(PAIR, start_us, end_us, offset=1, limit=3)
        assert (page.records, page.total) == (inside[::-1][1:4], len(inside))
        assert await store.latest(PAIR, 100) == there[::-1]
        assert await store.first_after(PAIR, start_us) == next((r for r in there if r.time_us > start_us), None)

    alone(life)


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, times, st.integers(1, 5))
def test_pieces_have_what_is_read_one_by_one(given_commits, start_us, end_us, size):
    async def life(store: RocksStore) -> None:
        await filled(store, given_commits)
        view = store._engine.database.rdict.snapshot()
        for series_id in (1, 2):
            whole = list(up(view, series_id, start_us, end_us))
            assert [
                each for piece in pieces(view, series_id, start_us, end_us) for each in zip(*piece, strict=True)
            ] == whole

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("terrazzo_adapters.rocksdb.blocks._PIECE_RECORDS", size)
        alone(life)


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, commits)
def test_a_cut_through_a_block_leaves_what_is_behind_it(given_commits, cut_us, later):
    async def life(store: RocksStore) -> None:
        there = await filled(store, given_commits)
        await store.drop_before(cut_us)
        left = [record for record in there if record.time_us >= cut_us] + await filled(store, later)
        assert await scanned(store) == in_order(left)
        assert (await store.page(PAIR, 0, END, offset=0, limit=1)).total == len(left)
        assert await store.series("") == sorted({record.series for record in left})

    alone(life)


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, times, st.lists(times, max_size=6))
def test_a_replaced_part_of_a_block_leaves_the_rest(given_commits, start_us, end_us, new_times):
    async def life(store: RocksStore) -> None:
        there = await filled(store, given_commits)
        new = [Record("m/17", at, body(-1)) for at in new_times if start_us <= at <= end_us]
        seen = Seen([SERIES], sum(1 for r in there if r.series == SERIES and start_us <= r.time_us <= end_us))
        assert await store.replace("m/17", start_us, end_us, new, given=seen)
        left = [r for r in there if r.series == SERIES or not start_us <= r.time_us <= end_us] + new
        assert await scanned(store) == in_order(left)
        assert (await store.page(["m/17"], 0, END, offset=0, limit=1)).total == len(
            [record for record in left if record.series == "m/17"]
        )

    alone(life)


def key_sizes(first_us: int, step_us: int, number: int, size: int = 0) -> list[int]:
    """The lengths of the keys that so many records get, 22 for a block."""
    run = [(first_us + step_us * each, each, body(each, size)) for each in range(number)]
    return [len(key) for key, _ in pack(1, run)]


def test_a_commit_of_many_records_becomes_few_entries():
    assert key_sizes(T0, 1, 300) == [22, 22, 22]


def test_a_few_records_are_entries_of_their_own():
    assert key_sizes(T0, 1, 1) == [21]
    assert key_sizes(T0, 1, 3) == [21, 21, 21]
    assert key_sizes(T0, 1, 4) == [22]
    assert key_sizes(T0, 1, 128 + 3) == [22, 21, 21, 21]


def test_large_bodies_are_not_put_together():
    assert key_sizes(T0, 1, 4, size=10_000) == [21, 21, 21, 21]
    assert key_sizes(T0, 1, 5, size=8_000) == [22, 21]
    assert key_sizes(T0, 1, 4, size=40_000) == [21, 21, 21, 21]


def test_records_far_apart_have_entries_of_their_own():
    assert key_sizes(T0, SPAN_US // 3 + 1, 5) == [21, 21, 21, 21, 21]
    assert key_sizes(T0, SPAN_US // 3, 5) == [22, 21]


def test_no_block_reaches_into_the_next_hour():
    assert key_sizes(T0 + HOUR - 5, 1, 10) == [22, 22]
    assert key_sizes(T0 + HOUR - 2, 1, 6) == [21, 21, 22]


def test_a_scan_goes_on_in_the_middle_of_a_block(monkeypatch):
    monkeypatch.setattr("terrazzo_adapters.rocksdb.reads._PIECE_RECORDS", 7)

    async def life(store: RocksStore) -> None:
        there = await filled(store, [[(SERIES, T0 + number // 3) for number in range(200)]])
        assert await scanned(store) == there

    alone(life)
