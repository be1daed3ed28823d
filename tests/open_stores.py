"""Stores on their own, without a platform: their tasks run under a supervisor that fails the test instead of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.rocksdb.sealing import Rule
from terrazzo_adapters.segment_process.chunk import Chunk
from terrazzo_adapters.segments import Packing, encode, rollups


def supervisor() -> Supervisor:
    """One whose tasks may fail, but not so that the process should end."""
    return Supervisor(on_stop=_refuse_to_stop)


def _refuse_to_stop() -> None:
    raise AssertionError("a task of the store would have ended the process")


async def open_rocks(path: str | Path, tasks: Supervisor | None = None, *, seals: bool = False) -> RocksStore:
    """The embedded store in a folder. Unless it ``seals``, records stay unsealed until ``seal``."""
    return await RocksStore.open(path, tasks=tasks or supervisor(), seals=seals)


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


async def seal(
    store: RocksStore, *, block: int = 4, least: int = 1, cutoff_us: int = 2**62, hour_points: int = 1
) -> None:
    """Seals whatever there is, in blocks so small that every edge is met, in this process.

    ``hour_points``: with so many an hour a name has a rollup.
    """
    sealer = store._sealer
    sealer._encoder = _Here(hour_points)
    rule = Rule(cutoff_us=cutoff_us, block=block, least=least)
    for series_id in store._engine.database.read(_all_ids):
        await sealer.seal_series(series_id, rule)


class _Here:
    """Makes segments without a process, which takes a second to start; by ``hour_points`` if there are any.

    Several make them at once, so that what is patched is patched by one after the other.
    """

    _patching = threading.Lock()

    def __init__(self, hour_points: int | None = None) -> None:
        self._hour_points = hour_points

    def encode(self, chunk: Chunk, *, mosaic: bool, tight: bool) -> Mapping[bytes, bytes]:
        with self._patching, pytest.MonkeyPatch.context() as patch:
            if self._hour_points is not None:
                patch.setattr(rollups, "LEAST_POINTS", self._hour_points)
            return encode(chunk.records(), mosaic=mosaic, packing=Packing.TIGHT if tight else Packing.CHEAP)

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass


_HERE = _Here()


def _all_ids(view: Any) -> list[int]:
    return sorted({int.from_bytes(value) for key, value in view.items(from_key=b"n") if key[:1] == b"n"})
