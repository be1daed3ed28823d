"""Long questions are answered from rollups by hour, and nobody can tell: late records, deletions, zones, damage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mosaic_oracle import MosaicOracle, as_points, curves_as_points, same_buckets

from length import rounds
from open_stores import open_rocks, seal
from terrazzo.ports.store import Figures, Fn, Points, Record, Seen
from terrazzo_adapters.columns.rollup import in_one_bucket
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.segments import Segment, rollups

HOUR = 3_600_000_000
DAY = 24 * HOUR
T0 = 1_698_537_600_000_000  # 2023-10-29 00:00 UTC: in Berlin a day of 25 hours, in St John's a week later
OFFSETS_MIN = {"UTC": 0, "Europe/Berlin": 60, "Asia/Kolkata": 330, "Asia/Shanghai": 480, "America/St_Johns": -150}
KEYS = ["A", "B", "on", "text", "mixed"]
FUNCTIONS: list[Fn | None] = [None, "mean", "min", "max", "sum", "last"]


def record(time_us: int, **values: object) -> Record:
    return Record("m/1", time_us, msgspec.msgpack.encode(values))


def steady(place: int, period_us: int = 40_000_000) -> Record:
    """One each 40 s, with a name of each kind, some of them not in each record."""
    values: dict[str, object] = {"A": (place * 37 % 1009) / 100, "on": place % 5 == 0, "text": f"t{place % 3}"}
    if place % 3:
        values["B"] = [-0.0, 0.0, place, None, 1e300][place % 5]
    values["mixed"] = [place, "x", True][place % 3]
    return record(T0 + place * period_us, **values)


async def check(store: RocksStore, oracle: MosaicOracle, start_us: int, end_us: int, bucket_us: int, origin_us: int):
    for fn in FUNCTIONS:
        how = {"fn": fn, "origin_us": origin_us, "offset": 0, "limit": 1000, "bucket_us": bucket_us}
        found = await store.resample("m/1", KEYS, start_us, end_us, **how)
        assert same_buckets(found, oracle.resample("m/1", KEYS, start_us, end_us, **how)), (fn, bucket_us, origin_us)
    how = {"bucket_us": bucket_us, "origin_us": origin_us}
    curves = await store.extremes("m/1", KEYS, start_us, end_us, **how)
    assert curves_as_points(curves) == oracle.extremes("m/1", KEYS, start_us, end_us, **how)
    undivided = partial(in_one_bucket, **how)
    for key, points in oracle.columns("m/1", KEYS, start_us, end_us).items():
        found = [piece[key] async for piece in store.digests("m/1", [key], start_us, end_us, undivided=undivided)]
        assert stretches(found, bucket_us, origin_us) == outlines(points, bucket_us, origin_us), (key, bucket_us)


Outline = tuple[int, object, object, object, object]
"""How many points there are, and the first, lowest, highest and last with their times."""


def stretches(pieces: Sequence[Points | Figures], bucket_us: int, origin_us: int) -> dict[int, Outline]:
    """What the pieces say of each bucket."""
    found: dict[int, list[tuple[int, list[Any]]]] = {}
    for piece in pieces:
        if isinstance(piece, Figures):
            value_of = bool if piece.kind else float
            rows = zip(piece.times_us.T.tolist(), piece.values.T.tolist(), strict=True)
            points = [[(at, value_of(value)) for at, value in zip(*row, strict=True)] for row in rows]
            every = zip(piece.starts_us.tolist(), piece.counts.tolist(), points, strict=True)
        else:
            every = [(point[0], 1, [point] * 4) for point in as_points(piece)]
        for start_us, count_of, four in every:
            found.setdefault((start_us - origin_us) // bucket_us, []).append((count_of, four))
    return {
        bucket: (
            sum(count_of for count_of, _ in parts),
            parts[0][1][0],
            lowest([four[1] for _, four in parts], 1),
            lowest([four[2] for _, four in parts], -1),
            parts[-1][1][3],
        )
        for bucket, parts in found.items()
    }


def outlines(points: Sequence[tuple[int, Any]], bucket_us: int, origin_us: int) -> dict[int, Outline]:
    """The same of the points themselves."""
    found: dict[int, list[tuple[int, Any]]] = {}
    for at, value in points:
        plain = float(value) if type(value) is int else value
        found.setdefault((at - origin_us) // bucket_us, []).append((at, plain))
    return {
        bucket: (len(every), every[0], lowest(every, 1), lowest(every, -1), every[-1])
        for bucket, every in found.items()
    }


def lowest(points: Sequence[tuple[int, Any]], sign: int) -> object:
    """The earliest of the lowest numbers, or of the highest."""
    numeric = [point for point in points if not isinstance(point[1], str)]
    return min(numeric, key=lambda point: (sign * point[1], point[0]), default=None)


@pytest.fixture
async def store(tmp_path: Path):
    store = await open_rocks(tmp_path / "store")
    yield store
    await store.close()


def refuse(_segment: Segment, name: str) -> None:
    raise AssertionError(f"the column of {name} was read")


async def test_a_question_over_days_reads_no_column(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    records, oracle = [steady(place) for place in range(4000)], MosaicOracle()
    await store.append(records)
    oracle.append(records)
    await seal(store, block=400, hour_points=rollups.LEAST_POINTS)
    monkeypatch.setattr(Segment, "column", refuse)
    keys = ["A", "on"]
    for fn in FUNCTIONS:
        for bucket_us in (HOUR, DAY):
            how = {"fn": fn, "origin_us": T0 - 7 * HOUR, "offset": 0, "limit": 99, "bucket_us": bucket_us}
            found = await store.resample("m/1", keys, T0, T0 + 9 * DAY, **how)
            assert same_buckets(found, oracle.resample("m/1", keys, T0, T0 + 9 * DAY, **how))
            assert found.total == (45 if bucket_us == HOUR else 3)
    curves = await store.extremes("m/1", keys, T0, T0 + 9 * DAY, bucket_us=6 * HOUR, origin_us=T0)
    assert curves_as_points(curves) == oracle.extremes("m/1", keys, T0, T0 + 9 * DAY, 6 * HOUR, T0)
    with pytest.raises(AssertionError, match="the column of A was read"):
        await store.resample("m/1", keys, T0, T0 + 9 * DAY, bucket_us=HOUR, origin_us=T0 + HOUR // 2)


@pytest.mark.parametrize("origin_us", [T0, T0 + HOUR // 2])
async def test_a_chart_of_what_terminals_sent_decodes_no_segment_twice(
    store: RocksStore, monkeypatch: pytest.MonkeyPatch, origin_us: int
) -> None:
    bodies = [b'{"T": %d.%d, "in": {"p": %d}}' % (place % 90, place % 7, place * 37 % 101) for place in range(4000)]
    await store.append([Record("g/t1/r", T0 + place * 40_000_000, body) for place, body in enumerate(bodies)])
    asked = ("g/t1/r", ["T", "in.p"], T0, T0 + 9 * DAY)
    how = {"bucket_us": 6 * HOUR, "origin_us": origin_us}
    before = await store.extremes(*asked, **how), await store.resample(*asked, fn="max", **how)
    await seal(store, block=400)
    assert (await store.extremes(*asked, **how), await store.resample(*asked, fn="max", **how)) == before
    monkeypatch.setattr(Segment, "column", refuse)
    assert (await store.extremes(*asked, **how), await store.resample(*asked, fn="max", **how)) == before


@pytest.mark.parametrize("zone", OFFSETS_MIN)
async def test_hours_and_days_of_a_zone(store: RocksStore, zone: str) -> None:
    records, oracle = [steady(place) for place in range(0, 3000, 2)], MosaicOracle()
    await store.append(records)
    oracle.append(records)
    await seal(store, block=300)
    midnight_us = T0 - OFFSETS_MIN[zone] * 60_000_000
    await check(store, oracle, T0 + 5 * HOUR + 1, T0 + 29 * HOUR, DAY, midnight_us)
    for bucket_us in (HOUR, 5 * HOUR, DAY):
        await check(store, oracle, T0 - DAY, T0 + 9 * DAY, bucket_us, midnight_us)


async def test_what_came_late_is_counted_with_its_hour(store: RocksStore) -> None:
    records, oracle = [steady(place) for place in range(1000)], MosaicOracle()
    late = [
        record(T0 + 3 * HOUR, A=-7.0, B=1.0),  # where another is
        record(T0 + 4 * HOUR + 1, A=99.0),
        record(T0 + 5 * HOUR + 2, on="now a text"),
        record(T0 + 10**9, A=None),
    ]
    for batch in (records, late):
        await store.append(batch)
        oracle.append(batch)
        await seal(store, block=100, least=5)
    assert store._engine.database.read(lambda view: any(key[:1] == b"r" for key, _ in view.items())), "an overlay"
    for bucket_us, origin_us in ((HOUR, T0), (DAY, T0), (DAY, T0 + HOUR // 2)):
        await check(store, oracle, T0, T0 + 9 * DAY, bucket_us, origin_us)
    await seal(store, block=100)
    await check(store, oracle, T0, T0 + 9 * DAY, HOUR, T0)


async def test_deletions_go_through_hours(store: RocksStore) -> None:
    records, oracle = [steady(place) for place in range(1000)], MosaicOracle()
    await store.append(records)
    oracle.append(records)
    await seal(store, block=200)
    cut_us = T0 + HOUR + 1_234_567_890
    for each in (store, oracle):
        dropped = each.drop_before(cut_us)
        if dropped is not None:
            await dropped
    await check(store, oracle, T0, T0 + 9 * DAY, HOUR, T0)
    start_us, end_us = T0 + 4 * HOUR + 7, T0 + 5 * HOUR + HOUR // 3
    new = [record(start_us + place * 50_000_000, A=place / 7) for place in range(60)]
    given = Seen(["m/1"], oracle.page(["m/1"], start_us, end_us, offset=0, limit=0).total)
    assert await store.replace("m/1", start_us, end_us, new, given=given)
    oracle.replace("m/1", start_us, end_us, new)
    await check(store, oracle, T0, T0 + 9 * DAY, HOUR, T0)
    await seal(store, block=200)
    await check(store, oracle, T0, T0 + 9 * DAY, HOUR, T0)


async def test_a_damaged_rollup_costs_time_only(store: RocksStore) -> None:
    records, oracle = [steady(place) for place in range(500)], MosaicOracle()
    await store.append(records)
    oracle.append(records)
    await seal(store, block=500)
    rdict = store._engine.database.rdict
    damaged = [(key, value) for key, value in rdict.items() if key[:1] == b"p" and key[13:14] == b"h"]
    assert {key[14:] for key, _ in damaged} == {b"A", b"B", b"on"}
    for key, value in damaged:
        rdict[key] = value[:-1] + bytes([value[-1] ^ 1])
    await check(store, oracle, T0, T0 + 9 * DAY, HOUR, T0)
    assert store.stats().damaged_segments


values = st.one_of(
    st.integers(-5, 5),
    st.floats(-100, 100, allow_subnormal=False, width=32),
    st.sampled_from([-0.0, float("inf"), float("nan"), 2**60, 1e15]),
    st.sampled_from(["", "on"]),
    st.booleans(),
    st.none(),
)
gaps_us = st.sampled_from([0, 1, 59_999_999, HOUR // 4, HOUR // 2, HOUR - 1, HOUR, 7 * HOUR])
runs = st.tuples(
    st.integers(0, 60 * HOUR).map(lambda after_us: T0 + after_us),
    st.lists(gaps_us, min_size=1, max_size=4),
    st.lists(st.dictionaries(st.sampled_from(KEYS), values, max_size=3), min_size=1, max_size=12),
)
steps = st.one_of(
    st.tuples(st.just("append"), runs),
    st.tuples(st.just("append"), runs),
    st.tuples(st.just("seal"), st.sampled_from([3, 8, 20]), st.sampled_from([1, 3])),
    st.tuples(st.just("drop"), st.integers(0, 20 * HOUR)),
    st.tuples(
        st.just("check"),
        st.integers(-1, 40 * HOUR),
        st.integers(0, 90 * HOUR),
        st.sampled_from([HOUR, 3 * HOUR, DAY, 30 * DAY, HOUR // 2, 5 * HOUR + 1]),
        st.sampled_from([offset * 60_000_000 for offset in OFFSETS_MIN.values()]),
    ),
)


@settings(max_examples=rounds(25, 600), deadline=None, suppress_health_check=list(HealthCheck))
@given(life=st.lists(steps, max_size=8))
def test_a_random_life_is_summed_up_as_it_is(tmp_path_factory: pytest.TempPathFactory, life: list[tuple]) -> None:
    asyncio.run(live(tmp_path_factory.mktemp("store"), life))


async def live(path: Path, life: list[tuple]) -> None:
    store, oracle, numbers = await open_rocks(path), MosaicOracle(), count()
    try:
        for action, *arguments in [*life, ("seal", 8, 1), ("check", -1, 90 * HOUR, HOUR, 0)]:
            if action == "append":
                (start_us, gaps, bodies), time_us = arguments[0], arguments[0][0]
                batch = []
                for body, place in zip(bodies, numbers, strict=False):
                    time_us += gaps[place % len(gaps)]
                    batch.append(record(time_us, **body))
                assert start_us <= time_us
                await store.append(batch)
                oracle.append(batch)
            elif action == "seal":
                await seal(store, block=arguments[0], hour_points=arguments[1])
            elif action == "drop":
                await store.drop_before(T0 + arguments[0])
                oracle.drop_before(T0 + arguments[0])
            else:
                start_us, length_us, bucket_us, offset_us = arguments
                await check(store, oracle, T0 + start_us, T0 + start_us + length_us, bucket_us, T0 - offset_us)
    finally:
        await store.close()
