"""What was decoded of segments is found again, within its bound, and never for another segment."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from open_stores import open_rocks, seal
from terrazzo.ports import at_work
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.rocksdb import RocksStore, charts
from terrazzo_adapters.rocksdb.extents import extents_up, open_segment
from terrazzo_adapters.rocksdb.segment_cache import SegmentCache, counted_for
from terrazzo_adapters.segments.parts import Parts

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000 // HOUR * HOUR
SPAN = (T0, T0 + 99 * HOUR)


def records(factor: float) -> list[Record]:
    return [
        Record("m/1", T0 + place * 60_000_000, msgspec.msgpack.encode({"A": place * factor, "B": "x"}))
        for place in range(600)
    ]


@pytest.fixture
async def store(tmp_path: Path):
    store = await open_rocks(tmp_path / "store")
    await store.append(records(1.5))
    await seal(store, block=200)
    yield store
    await store.close()


async def ask(store: RocksStore) -> list[object]:
    hours = await store.resample("m/1", ["A"], *SPAN, bucket_us=HOUR, origin_us=T0)
    cut = await store.resample("m/1", ["A"], *SPAN, bucket_us=HOUR, origin_us=T0 + HOUR // 2)
    page = await store.page(["m/1"], T0 + 1, T0 + 5 * HOUR, offset=3, limit=2, keys=["B"])
    return [hours, cut, page]


async def test_a_second_question_decodes_no_columns(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first, before = await ask(store), store.stats()
    assert before.segment_cache_misses
    assert 0 < before.memory["segments"] <= 16 * 2**20

    def refuse(_parts: Parts, name: bytes, _decode: object) -> None:
        assert name[:1] not in (b"h", b"t"), f"{name!r} was decoded again"
        raise AssertionError(name)

    monkeypatch.setattr(Parts, "decoded", refuse)
    hours = await store.resample("m/1", ["A"], *SPAN, bucket_us=HOUR, origin_us=T0)
    cut = await store.resample("m/1", ["A"], *SPAN, bucket_us=HOUR, origin_us=T0 + HOUR // 2)
    assert [hours, cut] == first[:2]
    after = store.stats()
    assert after.segment_cache_misses == before.segment_cache_misses
    assert after.segment_cache_hits > before.segment_cache_hits


async def test_a_segment_in_the_place_of_another_is_read_anew(store: RocksStore) -> None:
    first = await ask(store)
    assert await store.replace("m/1", *SPAN, records(2.5), given=Seen(["m/1"], 600))
    await seal(store, block=200)
    second = await ask(store)
    assert second != first
    assert second[0].columns["A"][-1] == pytest.approx(29.5 * 2.5)
    assert await store.replace("m/1", *SPAN, records(1.5), given=Seen(["m/1"], 600))
    assert await ask(store) == first, "nothing is sealed"
    await seal(store, block=200)
    assert await ask(store) == first


async def test_nobody_changes_what_is_kept(store: RocksStore) -> None:
    def look(view) -> None:
        extent = next(extents_up(view, 1, *SPAN))
        segment = open_segment(view, extent)
        rollup = segment.rollup("A")
        assert rollup is not None
        for array in (*segment.column("A")[:3], *segment.column("B")[:3], *rollup[1:], segment.times_us):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        assert charts.column_piece(view, "m/1", ["A"], *SPAN).columns

    store._engine.database.read(look)


sizes = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 80_000)), max_size=60)


@given(sizes=sizes, most=st.integers(0, 400_000))
def test_its_bound_holds(sizes: list[tuple[int, int]], most: int) -> None:
    cache, place = SegmentCache(most), (1, T0)
    for number, size in sizes:
        cache.of(place, b"head").keep(b"%d" % number, np.zeros(1), size)
        assert cache.stats().bytes <= most
    found = [number for number in range(31) if cache.of(place, b"head").find(b"%d" % number) is not None]
    assert cache.stats().hits == len(found)
    assert all(cache.of(place, b"other").find(b"%d" % number) is None for number in found)
    cache.resize(most)
    assert cache.stats().bytes == 0


kept_for = st.tuples(st.integers(0, 3), st.integers(0, 20), st.sampled_from([100, 2_000, 40_000]))
given_up = st.tuples(st.integers(0, 3), st.none(), st.integers(0, 100_000))


@given(life=st.lists(st.one_of(kept_for, kept_for, given_up), max_size=50))
def test_what_is_kept_counts_by_company_and_each_gives_up_its_own(life: list[tuple[int, int | None, int]]) -> None:
    cache = SegmentCache(500_000)
    for owner, number, size in life:
        before = cache.by_owner()
        if number is None:
            freed = cache.give_up(owner, size)
            had, has = before.get(owner, (0, 0))[0], cache.by_owner().get(owner, (0, 0))[0]
            assert had - has == freed >= min(had, size)
            assert {**cache.by_owner(), owner: 0} == {**before, owner: 0}
        else:
            counted_for(owner, partial(cache.of((1, T0), b"").keep, b"%d" % number, number, size))()
        assert sum(each for each, _ in cache.by_owner().values()) == cache.stats().bytes
        assert all(parts > 0 for _, parts in cache.by_owner().values())


async def test_what_a_question_decodes_is_its_companys(store: RocksStore) -> None:
    before = store.kept()
    assert set(before) == {0}, "what sealing decoded is nobody's"
    work = at_work.begin(at_work.Work("get_mosaic_list", 7))
    await ask(store)
    at_work.end(work)
    kept = store.kept()
    assert kept[0] == before[0]
    assert kept[0][0] + kept[7][0] == store.stats().memory["segments"]
    assert 0 < store.give_up(7, 1) < kept[7][0]
    assert store.give_up(7, 2**40) > 0
    assert store.kept() == before


def test_what_was_used_last_stays_and_what_is_large_takes_nothing_from_the_rest() -> None:
    cache = SegmentCache(800_000)
    memory = cache.of((1, T0), b"")
    for number in range(20):
        memory.keep(b"small %d" % number, number, 15_000)
        assert memory.find(b"small 0") == 0
    for number in range(20):
        memory.keep(b"large %d" % number, number, 90_000)
    assert memory.find(b"small 0") == 0
    assert memory.find(b"small 19") == 19
    assert memory.find(b"large 19") == 19
    assert memory.find(b"large 0") is None
    memory.keep(b"too large", 1, 300_000)
    assert memory.find(b"too large") is None
    assert memory.find(b"large 19") == 19
