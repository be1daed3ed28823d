"""Where a store under test lives: it can be opened, closed and opened again on the same data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from terrazzo.store import TimeSeriesStore
from terrazzo_adapters.rocksdb import RocksStore


@dataclass
class RocksHouse:
    """A folder."""

    path: Path

    async def open(self) -> TimeSeriesStore:
        return await RocksStore.open(self.path)
