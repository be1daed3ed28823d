"""An analysis on a real store and database, with a clock that the test sets; and statistics computed the slow way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from migrated import seed
from open_stores import open_influx, open_rocks
from terrazzo.analysis.analysis import Analysis
from terrazzo.analysis.late_records import LateMarks
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.analysis import BALANCE_RESULT, STATISTICS_PERIOD
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.metadata.entities import Entities
from terrazzo.ports.store import Record, TimeSeriesStore
from terrazzo.times import from_datetime, parse_time
from terrazzo_adapters.influxdb import InfluxSettings

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


def at(text: str) -> int:
    """``2026-03-01 08:00:00`` in UTC."""
    return parse_time(text)


class AnalysisStand:
    """One company with one object; ``now_us`` is what the analysis takes for the time.

    On RocksDB, or with the address of an InfluxDB there.
    """

    def __init__(self, folder: Path, zone: tzinfo, influx: str = "") -> None:
        self.folder, self.zone, self.influx = folder, zone, influx
        self.now_us = at("2026-03-01 00:00:00")
        self.marks = LateMarks()

    async def open(self) -> None:
        self.database = await Database.open("", data_dir=seed(self.folder))
        self.entities = Entities.open(self.database, Registry(), Secrets.open(self.folder))
        self.store = await self._open_store()
        await self.open_analysis()

    async def _open_store(self) -> TimeSeriesStore:
        if not self.influx:
            return await open_rocks(self.folder / "series")
        where = InfluxSettings(url=self.influx, database=f"{self.folder.parent.name}-{self.folder.name}")
        return await open_influx(where, spool=self.folder / "spool")

    async def open_analysis(self, **options: Any) -> None:
        """As a start does, on what is there."""
        self.marks = LateMarks()
        self.analysis = await Analysis.open(
            self.store,
            self.database,
            self.entities,
            marks=self.marks,
            zone=self.zone,
            clock=lambda: self.now_us,
            **options,
        )

    async def close(self) -> None:
        await self.store.close()
        await self.database.close()

    async def new_object(self) -> int:
        if not (await self.entities.companies.page(SYSTEM)).total:
            await self.entities.companies.create(SYSTEM, {"name": "c"})
        return int((await self.entities.objects.create(SYSTEM, {"name": "o"}))["id"])

    async def start(self, kind: str, objects: Sequence[int], script: Any = None, **values: Any) -> int:
        """A running script's id."""
        repository = getattr(self.entities, kind)
        given = {"name": "s", "object_list": [str(each) for each in objects], **values}
        made = await repository.create(SYSTEM, given | ({"script": script} if script is not None else {}))
        await repository.set_active(SYSTEM, made["id"], True)
        return int(made["id"])

    async def report(self, object_id: int, records: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        """Stores records as the ingest does: with the marks that they need, in one commit."""
        rows = [Record(f"m/{object_id}", time_us, msgspec.msgpack.encode(values)) for time_us, values in records]
        notes = self.marks.on_sealed(rows)
        await self.store.append(rows, notes=notes)
        self.marks.on_committed()

    async def results(self, script_id: int, kind: int, table: sa.Table) -> dict[tuple[int, str], str]:
        """``data`` by beginning and variable."""
        async with self.database.reading() as connection:
            query = sa.select(table).where(table.c.script_id == script_id, table.c.type == kind)
            rows = (await connection.execute(query)).all()
        return {(row.start_time, row.var_name): row.data for row in rows}

    async def periods(self, script_id: int, kind: int) -> dict[int, dict[str, Any]]:
        """Variables by beginning."""
        table = STATISTICS_PERIOD
        where = (table.c.script_id == script_id, table.c.type == kind)
        async with self.database.reading() as connection:
            rows = (await connection.execute(sa.select(table).where(*where))).all()
        assert len({(row.object_id, row.start_time) for row in rows}) == len(rows)
        return {row.start_time: {each["var_name"]: each["value"] for each in json.loads(row.data)} for row in rows}

    async def balances(self, script_id: int) -> list[Any]:
        """All windows, oldest first."""
        query = sa.select(BALANCE_RESULT).where(BALANCE_RESULT.c.project_id == script_id)
        async with self.database.reading() as connection:
            return list((await connection.execute(query.order_by(BALANCE_RESULT.c.start_time))).all())


@asynccontextmanager
async def analysis_stand(folder: Path, zone: tzinfo = UTC, influx: str = "") -> AsyncIterator[AnalysisStand]:
    stand = AnalysisStand(folder, zone, influx)
    await stand.open()
    try:
        yield stand
    finally:
        await stand.close()


# The slow way: from all records at once, a variable at a time

History = Sequence[tuple[int, Mapping[str, Any]]]
"""Records in order of time, then of arrival."""


def plainly(fn: str, code: str, history: History, start_us: int, end_us: int) -> Any:
    """A function of a code over ``start_us <= time < end_us``."""
    if fn.startswith("duration"):
        return held_s(code, float(fn.split("==")[1].rstrip(")")), history, start_us, end_us)
    inside = [values[code] for time_us, values in history if start_us <= time_us < end_us and code in values]
    points = [value for value in inside if value is not None]
    numbers = [float(value) for value in points if not isinstance(value, str)]
    if fn in ("first", "last"):
        return (points[0] if fn == "first" else points[-1]) if points else None
    if fn == "count":
        return len(points)
    if not numbers:
        return None
    return {
        "avg": lambda: sum(numbers) / len(numbers),
        "sum": lambda: sum(numbers),
        "min": lambda: min(numbers),
        "max": lambda: max(numbers),
        "delta": lambda: numbers[-1] - numbers[0],
    }[fn]()


def held_s(code: str, wanted: float, history: History, start_us: int, end_us: int) -> float:
    """How long a code was a value."""
    its = [(time_us, values[code]) for time_us, values in history if code in values]
    held_us = 0
    for number, (since_us, value) in enumerate(its):
        until_us = its[number + 1][0] if number + 1 < len(its) else 2**62
        if value is not None and not isinstance(value, str) and float(value) == wanted:
            held_us += max(0, min(until_us, end_us) - max(since_us, start_us))
    return held_us / 1_000_000


def starts(kind: int, first_us: int, until_us: int, zone: tzinfo) -> list[tuple[int, int]]:
    """The hours (1), days, months or years (4) from the one that contains ``first_us`` to those over at ``until_us``.

    For zones whose offsets are whole hours, and whose clocks don't change at midnight.
    """
    found: list[tuple[int, int]] = []
    start_us = _begin(kind, first_us, zone)
    while (end_us := _next(kind, start_us, zone)) <= until_us:
        found.append((start_us, end_us))
        start_us = end_us
    return found


def _begin(kind: int, time_us: int, zone: tzinfo) -> int:
    if kind == 1:
        return time_us - time_us % HOUR_US
    local = datetime.fromtimestamp(time_us // 1_000_000, UTC).astimezone(zone)
    kept = {2: (local.month, local.day), 3: (local.month, 1), 4: (1, 1)}[kind]
    return from_datetime(datetime(local.year, *kept, tzinfo=zone))


def _next(kind: int, start_us: int, zone: tzinfo) -> int:
    far_us = {1: HOUR_US, 2: 26 * HOUR_US, 3: 32 * DAY_US, 4: 367 * DAY_US}[kind]
    return _begin(kind, start_us + far_us, zone)
