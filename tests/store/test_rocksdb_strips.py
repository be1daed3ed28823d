"""Long questions over sealed history: from figures that were put together once, and always the present ones."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from open_stores import open_rocks, seal
from terrazzo.ports.store import Figures, Record, Seen
from terrazzo_adapters.columns.points import carrying, parse_points, values_reader
from terrazzo_adapters.columns.strip import Stone, Strip, beside, lay
from terrazzo_adapters.rocksdb import RocksStore, charts, extents
from terrazzo_adapters.segments import rollups

HOUR = 3_600_000_000
DAY = 24 * HOUR
T0 = 1_700_000_000_000_000 // DAY * DAY
STEP = 60_000_000
SERIES = "m/1"


def record(place: int, factor: float = 1.0, beside_us: int = 0) -> Record:
    points = {"A": place * factor, "on": place % 3 == 0, **({"few": place} if place % 50 == 0 else {})}
    return Record(SERIES, T0 + place * STEP + beside_us, msgspec.msgpack.encode(points))


@pytest.fixture
async def store(tmp_path: Path):
    store = await open_rocks(tmp_path / "store")
    await store.append([record(place) for place in range(3 * 1_440)])
    await sealed(store)
    yield store
    await store.close()


async def sealed(store: RocksStore) -> None:
    await seal(store, block=300, hour_points=rollups.LEAST_POINTS)


async def sums(
    store: RocksStore, key: str = "A", *, from_us: int = T0, to_us: int = T0 + 3 * DAY - 1
) -> Sequence[object]:
    found = await store.resample(SERIES, [key], from_us, to_us, bucket_us=DAY, fn="sum", origin_us=T0)
    return found.columns[key][::-1]


def expected(places: Sequence[int], factor: float = 1.0) -> float:
    return sum(place * factor for place in places)


DAYS = [range(day * 1_440, (day + 1) * 1_440) for day in range(3)]


def none_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a segment was opened")

    monkeypatch.setattr(charts, "open_segment", refuse)


async def test_a_second_question_opens_no_segment(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await sums(store)
    assert first == [expected(day) for day in DAYS]
    with monkeypatch.context() as patch:
        none_opened(patch)
        assert await sums(store) == first
        curve = await store.extremes(SERIES, ["A"], T0, T0 + 3 * DAY - 1, bucket_us=DAY, origin_us=T0)
        assert curve["A"].values == [each for day in DAYS for each in (day[0], day[-1])]
    assert await sums(store, from_us=T0 + DAY) == first[1:], "a part of what was put together"


async def test_what_takes_a_segments_place_is_asked_for(store: RocksStore) -> None:
    await sums(store)
    gone = (await store.page([SERIES], T0 + DAY, T0 + DAY + HOUR, offset=0, limit=0)).total
    again = [record(place, 2.0) for place in range(1_440, 1_501)]
    assert await store.replace(SERIES, T0 + DAY, T0 + DAY + HOUR, again, given=Seen([SERIES], gone))
    for _ in range(2):
        found = await sums(store)
        assert found == [expected(DAYS[0]), expected(DAYS[1]) + expected(range(1_440, 1_501)), expected(DAYS[2])]
        await sealed(store)
    await store.append([record(5, 1.0, beside_us=7)])
    assert (await sums(store))[0] == expected(DAYS[0]) + 5
    await store.drop_before(T0 + DAY // 2)
    assert (await sums(store))[0] == expected(range(720, 1_440))


async def test_names_that_few_records_carry_are_read_as_points(store: RocksStore) -> None:
    for _ in range(2):
        assert await sums(store, "few") == [expected([each for each in day if each % 50 == 0]) for day in DAYS]
        assert await sums(store, "on") == [480.0] * 3
        assert await sums(store, "none") == []


async def test_segments_of_an_earlier_version(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    database = store._engine.database

    def entries(view: object) -> list[extents.Extent]:
        return list(extents.extents_up(view, 1, 0, 2**62))

    for extent in database.read(entries):
        database.rdict[extent.key] = extent._replace(mark=b"").value()
    first = await sums(store)
    assert first == [expected(day) for day in DAYS]
    assert all(len(extent.value()) == 22 for extent in database.read(entries)), "they stay as they are"
    none_opened(monkeypatch)
    assert await sums(store) == first


async def test_a_question_ends_with_whoever_asked(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, began, goes_on = 0, threading.Event(), threading.Event()

    def open_slowly(view, extent, read=charts.open_segment):
        nonlocal opened
        opened += 1
        began.set()
        assert goes_on.wait(20)
        return read(view, extent)

    monkeypatch.setattr(charts, "open_segment", open_slowly)
    asking = asyncio.create_task(sums(store))
    assert await asyncio.to_thread(began.wait, 20)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    goes_on.set()
    again = [store.page([SERIES], T0, T0, offset=0, limit=1) for _ in range(4)]  # more than there are threads
    await asyncio.gather(*again)
    assert opened == 1, "it went on to the next segment"
    assert await sums(store) == [expected(day) for day in DAYS]


def stone(number: int, hours: int, kind: int = 0) -> Stone:
    values = np.arange(hours, dtype=np.float64) + 10 * number
    times = np.arange(hours, dtype=np.int64) * HOUR + number * DAY
    figures = Figures(kind, times, np.ones(hours, np.int64), values, np.stack([values] * 4), np.stack([times] * 4))
    return Stone(b"%d" % number, number * DAY + hours, figures)


@given(st.integers(0, 6), st.integers(0, 6), st.randoms())
def test_a_strip_has_what_its_stones_have(first: int, other: int, chance: random.Random) -> None:
    stones = [stone(number, chance.randrange(4)) for number in range(12)]
    strip = lay(beside(lay(stones[first : first + 4]), stones[other : other + 5]))
    assert isinstance(strip, Strip)
    row = stones[other : other + 5]
    found = strip.find([each.mark for each in row], row[0].end_us)
    assert found is not None
    assert found.sums.tolist() == [value for each in row for value in each.figures.sums.tolist()]
    assert found.times_us.shape == (4, len(found.sums))
    assert strip.find([b"another"], row[0].end_us) is None
    assert strip.find([*(each.mark for each in row), b"more"], row[0].end_us) is None
    assert {each.mark for each in strip.stones()} >= {each.mark for each in row}
    assert strip.nbytes() > 0


def test_numbers_and_booleans_are_no_strip() -> None:
    assert lay([stone(1, 2), stone(2, 2, kind=1)]) is None
    assert lay([stone(1, 2), stone(2, 0, kind=1)]) is not None


values = st.one_of(st.none(), st.booleans(), st.integers(-5, 2**64 - 1), st.floats(width=32), st.text(max_size=3))
names = st.sampled_from(["A", "B", "C.D", 'a "quoted" one'])
maps = st.dictionaries(names, st.one_of(values, st.dictionaries(st.sampled_from("DE"), values)), max_size=4)
bodies = st.one_of(st.builds(msgspec.msgpack.encode, maps), st.binary(max_size=4))


@given(st.lists(bodies, max_size=6), st.sets(names, min_size=1))
def test_bodies_that_are_decoded_together_say_what_each_says(found: list[bytes], keys: set[str]) -> None:
    points = [parse_points(body) for body in found]
    assert list(carrying(found, keys)) == [not keys.isdisjoint(each) for each in points]


flat = st.builds(msgspec.msgpack.encode, st.dictionaries(names, values, max_size=4))


@given(st.lists(flat, max_size=6), st.lists(names, min_size=1, unique=True))
def test_values_that_are_decoded_together_are_those_of_each(found: list[bytes], keys: list[str]) -> None:
    read = values_reader(tuple(keys))(found)
    one_by_one = [values_reader(tuple(keys))([body]) for body in found]
    assert repr([list(each) for each in read]) == repr(
        [[one[place][0] for one in one_by_one] for place in range(len(keys))]
    )


def test_many_bodies_and_large_ones_are_decoded_in_pieces() -> None:
    found = [msgspec.msgpack.encode({"A": place, "text": "x" * (place % 5 * 2_000)}) for place in range(3_000)]
    found[2_000] = b"\x81\xa1A"
    found[10] = msgspec.msgpack.encode({"A": 10, "text": "x" * (2 << 20)})
    (column,) = values_reader(("A",))(found)
    assert column == [None if place == 2_000 else place for place in range(3_000)]
    assert list(carrying(found, {"A"})) == [place != 2_000 for place in range(3_000)]
