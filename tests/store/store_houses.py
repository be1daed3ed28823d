"""Where a store under test lives: it can be opened, closed and opened again on the same data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from terrazzo.ports.store import TimeSeriesStore
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore
from terrazzo_adapters.rocksdb import RocksStore


@dataclass
class RocksHouse:
    """A folder."""

    path: Path

    async def open(self) -> TimeSeriesStore:
        return await RocksStore.open(self.path)


@dataclass
class InfluxHouse:
    """A database of a server, and a spool."""

    url: str
    database: str
    spool: Path
    spool_bytes: int = 1 << 20

    async def open(self, *, writer: str = "", **settings: str) -> InfluxStore:
        given = InfluxSettings(url=self.url, database=self.database, **settings)
        return await InfluxStore.open(given, spool=self.spool, spool_bytes=self.spool_bytes, writer=writer)
