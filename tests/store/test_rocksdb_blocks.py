"""Several records in one entry: whoever asks sees records, wherever a range, a cut or a late record goes through."""

from __future__ import annotations

import asyncio
import os
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from length import rounds
from open_stores import open_rocks
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.keyvalue.long_values import packed, unpacked
from terrazzo_adapters.keyvalue.notes import note_key, noted
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.rocksdb.blocks import SPAN_US, Rows, pack, pieces, rows, up

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


async def filled(store: RocksStore, given_commits, size: int = 0) -> list[Record]:
    """Appends; what is there then, in order of arrival."""
    numbers, there = count(), []
    for commit in given_commits:
        records = [Record(series, time_us, body(next(numbers), size)) for series, time_us in commit]
        await store.append(records)
        there += records
    return there


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, times, st.sampled_from([0, 20_000]))
def test_every_question_is_answered_record_by_record(given_commits, start_us, end_us, size):
    async def life(store: RocksStore) -> None:
        there = in_order(await filled(store, given_commits, size))
        inside = [record for record in there if start_us <= record.time_us <= end_us]
        assert await scanned(store, start_us, end_us) == inside
        page = await store.page(PAIR, start_us, end_us, offset=1, limit=3)
        assert (page.records, page.total) == (inside[::-1][1:4], len(inside))
        assert await store.latest(PAIR, 100) == there[::-1]
        assert await store.first_after(PAIR, start_us) == next((r for r in there if r.time_us > start_us), None)

    alone(life)


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, times, st.integers(1, 5), st.sampled_from([0, 20_000]))
def test_pieces_have_what_is_read_one_by_one(given_commits, start_us, end_us, size, body_size):
    async def life(store: RocksStore) -> None:
        await filled(store, given_commits, body_size)
        view = store._engine.database.rdict.snapshot()
        for series_id in (1, 2):
            whole = list(up(view, series_id, start_us, end_us))
            assert [
                each for piece in pieces(view, series_id, start_us, end_us) for each in zip(*piece, strict=True)
            ] == whole
            assert [each for some in rows(view, series_id, start_us, end_us) for each in each_of(some)] == whole

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("terrazzo_adapters.rocksdb.blocks._PIECE_RECORDS", size)
        patched.setattr("terrazzo_adapters.rocksdb.blocks._ROWS", size + 1)
        alone(life)


def each_of(some: Rows) -> list[tuple[bytes, bytes]]:
    """Orders and bodies one by one."""
    ends = range(some.stride, len(some.orders) + 1, some.stride)
    return list(zip([some.orders[end - 16 : end] for end in ends], some.bodies, strict=True))


@pytest.mark.parametrize("many_in_a_commit", [False, True])
async def test_who_decodes_many_records_holds_few_long_ones_at_a_time(tmp_path: Path, many_in_a_commit: bool) -> None:
    store = await open_rocks(tmp_path)
    records = [Record(SERIES, T0 + number, os.urandom(50_000)) for number in range(300)]
    for first in range(0, 300, 300 if many_in_a_commit else 1):
        await store.append(records[first : first + (300 if many_in_a_commit else 1)])
    view = store._engine.database.rdict.snapshot()
    found = list(rows(view, 1, T0, T0 + 299))
    assert [body for some in found for body in some.bodies] == [record.body for record in records]
    assert max(sum(map(len, some.bodies)) for some in found) < 6_000_000
    del view
    await store.close()


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, commits, st.sampled_from([0, 20_000]))
def test_a_cut_through_a_block_leaves_what_is_behind_it(given_commits, cut_us, later, size):
    async def life(store: RocksStore) -> None:
        there = await filled(store, given_commits, size)
        await store.drop_before(cut_us)
        left = [record for record in there if record.time_us >= cut_us] + await filled(store, later)
        assert await scanned(store) == in_order(left)
        assert (await store.page(PAIR, 0, END, offset=0, limit=1)).total == len(left)
        assert await store.series("") == sorted({record.series for record in left})

    alone(life)


@small_blocks
@settings(max_examples=rounds(40, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(commits, times, times, st.lists(times, max_size=6), st.sampled_from([0, 20_000]))
def test_a_replaced_part_of_a_block_leaves_the_rest(given_commits, start_us, end_us, new_times, size):
    async def life(store: RocksStore) -> None:
        there = await filled(store, given_commits, size)
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
    assert key_sizes(T0, 1, 4, size=15_000) == [21, 21, 21, 21]


def test_a_long_text_many_times_over_costs_a_commit_little():
    text = os.urandom(2_000).hex().encode()
    repeated, random = b",".join([text] * 200), os.urandom(100_000)
    ((key, value), (other_key, other)) = pack(1, [(T0, 1, repeated), (T0 + 1, 2, random)])
    assert (len(key), len(other_key)) == (22, 21)
    assert len(value) < 10_000, "it was 800,000 bytes, each time"
    assert other == random, "what can't be shortened stays as it is"
    notes = noted({"state/1": repeated, "state/2": b"short", "state/3": None})
    assert len(notes[note_key("state/1")] or b"") < 10_000
    assert (notes[note_key("state/2")], notes[note_key("state/3")]) == (b"short", None)
    frame = packed(repeated)
    assert unpacked(packed(frame)) == frame, "though it looks like what is shortened"


def test_notes_come_back_as_they_were_and_long_ones_are_not_kept_in_memory():
    repeated = {"state/1": os.urandom(1_000) * 100}
    notes = {**repeated, **{f"state/{number}": os.urandom(100_000) for number in (2, 3)}, "state/9": b"short"}

    async def life(store: RocksStore) -> None:
        for _ in range(2):
            await store.append([], notes=notes)
        assert await store.notes("state/") == notes
        kept = store._engine._catalogue.notes.values()
        assert sum(map(len, kept)) < 10_000, "those of before are read when they are needed"

    alone(life)


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
