"""Where a store under test lives: it can be opened, closed and opened again on the same data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from open_stores import open_influx, open_rocks
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore


@dataclass
class RocksLocation:
    """A folder."""

    path: Path

    async def open(self) -> TimeSeriesStore:
        return await open_rocks(self.path)


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
