"""InfluxQL from digests: what rows would answer, with late points, deletions and clocks that change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from math import isclose
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
import pytest_asyncio

from length import rounds
from open_stores import open_rocks, seal
from terrazzo.api.operations.influx import reading
from terrazzo.api.operations.influx.measurements import SeriesRef
from terrazzo.compute_thread import ComputeThread
from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.select import ResultSeries
from terrazzo.influxql.statements import parse_query
from terrazzo.influxql.syntax import Select
from terrazzo.memory_shares import MemoryShares
from terrazzo.ports.store import Record
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.segments import Segment, rollups

HOUR = 3_600_000_000
DAY = 24 * HOUR
T0 = 1_698_278_400_000_000  # 2023-10-26 00:00 UTC; on the 29th clocks in Berlin are put back
CHANGES = {
    "UTC": T0,
    "Asia/Kolkata": T0,
    "Europe/Berlin": T0,
    "America/St_Johns": T0 + 7 * DAY,  # 2023-11-02; put back on the 5th
    "Australia/Lord_Howe": 1_695_945_600_000_000,  # 2023-09-29; put forward by half an hour on the 30th, 15:30 UTC
}
DAYS = 5


class Reader:
    """Reads SELECTs of two series of a store, as digests where it may."""

    def __init__(self, store: RocksStore) -> None:
        limits = SimpleNamespace(influx_points=10_000_000)
        self.series: Counter[str] = Counter()
        self._services = SimpleNamespace(
            store=store, limits=limits, influx_series=self.series, computing=ComputeThread()
        )

    async def find(self, _source: Any, _database: str) -> list[SeriesRef]:
        """Each measurement is both series."""
        return [SeriesRef("M", {"object_id": number}, f"m/{number}") for number in ("1", "2")]

    async def answer(self, question: str) -> list[ResultSeries] | str:
        """The series of an answer; the text of an error."""
        holding = MemoryShares().holding("queries", 1)
        reader = reading.SelectReader(
            self._services, self, holding, is_gone=lambda: False, now_ns=(T0 + 9 * DAY) * 1000
        )
        (select,) = parse_query(question)
        assert isinstance(select, Select)
        try:
            return await reader.answer(select, "mosaic")
        except QueryError as error:
            return str(error)

    async def both(self, question: str) -> tuple[Any, Any]:
        """From digests, and from rows."""
        found = await self.answer(question)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reading, "takes_digests", lambda *_: False)
            return found, await self.answer(question)


def records(number: int, t0: int, period_us: int = 40_000_000) -> list[Record]:
    source, found, value = random.Random(number), [], 20.0
    for place in range(DAYS * DAY // period_us):
        value = round(value + source.gauss(0, 1), 2)
        values: dict[str, Any] = {"a": value, "on": place % 7 == number}
        if place % 3:
            values["b"] = [place % 50, -0.0, None, 0.5][place % 4]
        if place % 900 == 5:
            values["mixed"] = [1.0, "x", True][place // 900 % 3]
        if place % 100 == 11:
            values["few"] = place
        found.append(Record(f"m/{number}", t0 + place * period_us, msgspec.msgpack.encode(values)))
    return found


async def fill(store: RocksStore, t0: int) -> None:
    """Two series, sealed; some points late, some not sealed, some deleted."""
    for number in (1, 2):
        every = records(number, t0)
        await store.append(every[:-500])
        await seal(store, block=700, hour_points=rollups.LEAST_POINTS)
        late = [
            Record(f"m/{number}", t0 + 3 * DAY + place * HOUR, msgspec.msgpack.encode({"a": 99.5})) for place in (0, 7)
        ]
        await store.append([*every[-500:], *late])
    await store.drop_before(t0 + HOUR + 1_234_567)


def random_question(source: random.Random, t0: int, zone: str) -> str:
    functions = ["mean", "sum", "count", "min", "max", "first", "last", "spread"]
    fields = [source.choice(["a", "a", "b", "on", "few", "none"]) for _ in range(source.choice([1, 1, 2, 5]))]
    columns = [f'{source.choice(functions)}("{field}")' for field in fields]
    form = source.choice(["plain", "plain", "plain", "windows", "derivative", "sum"])
    if form == "derivative":
        columns = [f"non_negative_derivative({columns[0]}, 1h)"]
    elif form == "sum":
        columns = [f"{columns[0]} * 2 + abs({columns[-1]})"]
    start_us = t0 + source.randrange(-3 * HOUR, 4 * DAY)
    end_us = start_us + source.randrange(HOUR, 5 * DAY)
    question = f'SELECT {", ".join(columns)} FROM "M" WHERE time >= {start_us}u AND time <= {end_us}u'
    question += source.choice(["", "", " AND object_id = '1'", " AND object_id =~ /1|2/"])
    groups = []
    if form != "plain" or source.random() < 0.7:
        length = source.choice(["10m", "15m", "20m", "30m", "1h", "90m", "6h", "1d", "1d", "2d"])
        groups.append(f"time({length}{source.choice(['', '', ', 15m', ', -7h'])})")
    groups += source.choice([[], [], ["object_id"], ["*"]])
    question += f" GROUP BY {', '.join(groups)}" if groups else ""
    if groups and groups[0].startswith("time"):
        question += source.choice(["", " fill(none)", " fill(previous)", " fill(linear)", " fill(3.5)"])
    question += source.choice(["", "", " ORDER BY time DESC"]) + source.choice(["", "", " LIMIT 7"])
    return question + ("" if zone == "UTC" else f" tz('{zone}')")


def plain(found: list[ResultSeries]) -> list[Any]:
    return [
        (each.name, each.tags, each.columns, each.times.tolist(), [vector.values() for vector in each.vectors])
        for each in found
    ]


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, list | tuple) and isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if type(found) in (int, float) and type(expected) in (int, float):
        return isclose(found, expected, rel_tol=1e-12, abs_tol=1e-9)
    return bool(found == expected) and type(found) is type(expected)


@pytest_asyncio.fixture(scope="module", params=CHANGES, loop_scope="module")
async def zoned(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Reader, str]]:
    store = await open_rocks(tmp_path_factory.mktemp("store"))
    try:
        await fill(store, CHANGES[request.param])
        yield Reader(store), request.param
    finally:
        await store.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_digests_answer_as_rows_do(zoned: tuple[Reader, str]) -> None:
    reader, zone = zoned
    source = random.Random(zone)
    for _ in range(rounds(60, 3000)):
        question = random_question(source, CHANGES[zone], zone)
        found, expected = await reader.both(question)
        if isinstance(found, str) or isinstance(expected, str):
            assert found == expected, question
        else:
            assert same(plain(found), plain(expected)), f"{question}\n{plain(found)}\n{plain(expected)}"
    assert reader.series["digest"] > 40
    assert reader.series["rows"] > 40


@pytest.mark.asyncio(loop_scope="module")
async def test_days_are_those_of_the_clocks(zoned: tuple[Reader, str]) -> None:
    reader, zone = zoned
    t0, clocks = CHANGES[zone], ZoneInfo(zone)
    expected: Counter[str] = Counter()
    for record in records(1, t0):
        if record.time_us >= t0 + HOUR + 1_234_567:
            expected[str(datetime.fromtimestamp(record.time_us // 1_000_000, clocks).date())] += 1
    for place in (0, 7):
        expected[str(datetime.fromtimestamp((t0 + 3 * DAY + place * HOUR) // 1_000_000, clocks).date())] += 1
    asked = f"WHERE time >= {t0}u AND time <= {t0 + 6 * DAY}u AND object_id = '1' GROUP BY time(1d) fill(none)"
    (found,) = await reader.answer(f'SELECT count("a") FROM "M" {asked} tz(\'{zone}\')')
    midnights = [datetime.fromtimestamp(time_ns // 10**9, clocks) for time_ns in found.times.tolist()]
    assert all((each.hour, each.minute) == (0, 0) for each in midnights)
    assert {
        str(each.date()): count for each, count in zip(midnights, found.vectors[0].values(), strict=True)
    } == expected


def refuse(_segment: Segment, name: str) -> None:
    raise AssertionError(f"the column of {name} was read")


@pytest.mark.parametrize("zone", CHANGES)
async def test_days_of_any_zone_read_no_column_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    t0, store = CHANGES[zone], await open_rocks(tmp_path / "store")
    try:
        await store.append(records(1, t0))
        await seal(store, block=400, hour_points=rollups.LEAST_POINTS)
        question = (
            f'SELECT mean("a"), max("on") FROM "M" WHERE time >= {t0}u AND time < {t0 + 5 * DAY}u GROUP BY time(1d)'
        )
        reader, question = Reader(store), question + ("" if zone == "UTC" else f" tz('{zone}')")
        if zone in ("UTC", "Europe/Berlin"):
            monkeypatch.setattr(Segment, "column", refuse)
        first = await reader.answer(question)
        monkeypatch.setattr(Segment, "column", refuse)
        second = await reader.answer(question)
        assert plain(first) == plain(second)
        assert len(first[0].times) in (5, 6)
        with pytest.raises(AssertionError, match="the column of a was read"):
            await reader.answer(question.replace("time(1d)", "time(1m)"))
    finally:
        await store.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_digest_does_not_say_is_read_as_rows(zoned: tuple[Reader, str]) -> None:
    reader, _ = zoned
    for asked, read in [
        ('mean("a")', "digest"),
        ('mean("a"), last("few")', "digest"),
        ('count("mixed")', "rows"),
        ('median("a")', "rows"),
        ('mean("a"), percentile("b", 9)', "rows"),
        ('first("a"), "b"', "rows"),
        ("mean(*)", "rows"),
        ('count(distinct("b"))', "rows"),
        ('count("object_id")', "rows"),
    ]:
        reader.series.clear()
        assert not isinstance(await reader.answer(f'SELECT {asked} FROM "M"'), str)
        assert set(reader.series) - ({"digest"} if read == "rows" else set()) == {read}, asked
    reader.series.clear()
    await reader.answer('SELECT mean("a") FROM "M" WHERE "b" > 3')
    await reader.answer('SELECT mean("m") FROM (SELECT max("a") AS m FROM "M" GROUP BY time(1h))')
    assert reader.series == {"rows": 2, "digest": 2}
    reader.series.clear()
    for length, read in [("14m", "rows"), ("15m", "digest")]:
        await reader.answer(f'SELECT mean("a") FROM "M" GROUP BY time({length})')
        assert reader.series.pop(read) == 2


async def test_all_points_count_towards_the_limit(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path / "store")
    try:
        await store.append(records(1, T0))
        reader = Reader(store)
        reader._services.limits.influx_points = 1_000
        assert "limits.influx_points" in str(await reader.answer('SELECT mean("a") FROM "M"'))
        await seal(store, block=400, hour_points=rollups.LEAST_POINTS)
        found = await reader.answer('SELECT count("a") FROM "M"')
        assert found[0].vectors[0].values() == [DAYS * DAY // 40_000_000]
    finally:
        await store.close()
