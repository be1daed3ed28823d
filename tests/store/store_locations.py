"""Where a store under test lives: it can be opened, closed and opened again on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from open_stores import open_influx, open_rocks, seal
from terrazzo.ports.store import NO_NOTES, Notes, Record, Seen, TimeSeriesStore
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore


@dataclass
class RocksLocation:
    """A folder."""

    path: Path

    async def open(self) -> TimeSeriesStore:
        return await open_rocks(self.path)


@dataclass
class SealedLocation(RocksLocation):
    """A folder where each commit is sealed at once, in segments of few records."""

    async def open(self) -> TimeSeriesStore:
        store = await open_rocks(self.path)
        append, replace = store.append, store.replace

        async def append_and_seal(records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
            await append(records, notes=notes)
            await seal(store)

        async def replace_and_seal(*what: Any, given: Seen) -> bool:
            is_replaced = await replace(*what, given=given)
            await seal(store)
            return is_replaced

        store.append, store.replace = append_and_seal, replace_and_seal  # type: ignore[method-assign]
        return store


@dataclass
class InfluxLocation:
    """A database of a server, and a spool."""

    url: str
    database: str
    spool: Path
    spool_bytes: int = 1 << 20

    async def open(self, *, tasks: Supervisor | None = None, writer: str = "", **settings: str) -> InfluxStore:
        given = InfluxSettings(url=self.url, database=self.database, **settings)
        return await open_influx(given, spool=self.spool, spool_bytes=self.spool_bytes, tasks=tasks, writer=writer)
