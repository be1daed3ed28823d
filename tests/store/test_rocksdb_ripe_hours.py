"""Columns of hours are made where nothing else will take the place of their rows."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from open_stores import open_rocks, seal
from terrazzo.ports.store import Record
from terrazzo_adapters.rocksdb import store as store_module

HOUR_US = 3_600_000_000


def records(series: str) -> list[Record]:
    return [Record(series, n * HOUR_US // 4, msgspec.msgpack.encode({"v": float(n)})) for n in range(16)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours are due as soon as they are over."""
    monkeypatch.setattr(store_module, "_QUIET_S", 0.0)


async def test_an_hour_that_is_sealed_after_it_was_listed_is_left_alone(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path)
    await store._making.stop()
    await store.append([*records("m/1"), *records("m/2")])
    listed = store._engine.ripe(quiet_s=0, idle_s=0)
    assert len(listed) == 8
    made = []

    async def noted(slot: int) -> None:
        made.append(slot)
        if len(made) == 1:  # the others, meanwhile
            await seal(store)

    store._make_hour = noted  # type: ignore[method-assign]
    await store._make_ripe_columns()
    assert made == listed[:1]
    await store.close()


async def test_while_sealing_has_a_backlog_none_are_made(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path, seals=True)
    assert store._sealing is not None
    await store._sealing.stop()
    await store._making.stop()
    await store.append(records("m/1"))
    store._sealer.stats.backlog = 100_000
    await store._make_ripe_columns()
    assert len(store._engine.ripe(quiet_s=0, idle_s=0)) == 4
    store._sealer.stats.backlog = 0
    await store._make_ripe_columns()
    assert store._engine.ripe(quiet_s=0, idle_s=0) == []
    await store.close()
