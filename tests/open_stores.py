"""Stores on their own, without a platform: their tasks run under a supervisor that fails the test instead of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore
from terrazzo_adapters.rocksdb import RocksStore


def supervisor() -> Supervisor:
    """One whose tasks may fail, but not so that the process should end."""
    return Supervisor(on_stop=_refuse_to_stop)


def _refuse_to_stop() -> None:
    raise AssertionError("a task of the store would have ended the process")


async def open_rocks(path: str | Path, tasks: Supervisor | None = None) -> RocksStore:
    """The embedded store in a folder."""
    return await RocksStore.open(path, tasks=tasks or supervisor())


async def open_influx(
    settings: InfluxSettings, *, spool: Path, tasks: Supervisor | None = None, **options: Any
) -> InfluxStore:
    """The store on an InfluxDB server."""
    return await InfluxStore.open(settings, spool=spool, tasks=tasks or supervisor(), **options)


async def make_columns(store: RocksStore) -> None:
    """Makes the columns of all hours that lack them, the present one too, without waiting for quiet."""
    while hours := store._engine.ripe(quiet_s=0, idle_s=0):
        for slot in hours:
            await store._make_hour(slot)
