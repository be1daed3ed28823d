"""The segments of a series in a range, either way, beside a plain list; and how many cursors a question places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rocksdict import Options, Rdict

from open_stores import open_rocks, seal
from terrazzo.ports.store import Record
from terrazzo_adapters.rocksdb import reads
from terrazzo_adapters.rocksdb.extents import Extent, extents_down, extents_up
from terrazzo_adapters.rocksdb.keys import LATEST_US

T0 = 1_700_000_000_000_000
STEP = 30_000_000
SERIES_IDS = (1, 2, 3)
TIMES_US = st.integers(0, 40)

laid = st.fixed_dictionaries({each: st.lists(TIMES_US, unique=True, max_size=12) for each in SERIES_IDS})
"""By series the times at which segments begin and end, two for each."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rdict]:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    database = Rdict(str(tmp_path_factory.mktemp("extents")), options)
    yield database
    database.close()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(laid=laid, neighbours=st.sets(st.sampled_from([b"a", b"z"])), ends=st.tuples(TIMES_US, TIMES_US))
def test_segments_of_a_range(database: Rdict, laid: dict[int, list[int]], neighbours: set[bytes], ends: Any) -> None:
    for key in list(database.keys()):
        del database[key]
    for key in neighbours:
        database[key] = b""
    every: dict[int, list[Extent]] = {}
    for series_id, times_us in laid.items():
        pairs = zip(sorted(times_us)[::2], sorted(times_us)[1::2], strict=False)
        every[series_id] = [Extent(series_id, *pair, 1, 0, 1, True, b"12345678") for pair in pairs]
        for extent in every[series_id]:
            database[extent.key] = extent.value()
    start_us, end_us = sorted(ends)
    for series_id, extents in every.items():
        for last_us in (end_us, LATEST_US):
            wanted = [each for each in extents if each.last_us >= start_us and each.first_us <= last_us]
            assert list(extents_up(database, series_id, start_us, last_us)) == wanted
            assert list(extents_down(database, series_id, start_us, last_us)) == wanted[::-1]


class CountingView:
    """A snapshot that counts the cursors that are placed on it."""

    def __init__(self, view: Any) -> None:
        self._view = view
        self.cursors = 0

    def __getattr__(self, name: str) -> Any:
        self.cursors += name in ("items", "keys", "iter")
        return getattr(self._view, name)


async def test_a_page_of_what_is_sealed_places_few_cursors(tmp_path: Path) -> None:
    """Each costs as much as some tens of records, and more while range deletions are in memory."""
    store = await open_rocks(tmp_path)
    bodies = [msgspec.msgpack.encode({"A": place * 1.5}) for place in range(256)]
    records = [Record("m/1", T0 + place * STEP, body) for place, body in enumerate(bodies)]
    await store.append(records)
    await seal(store, block=256)

    def ask(view: Any) -> int:
        counting: Any = CountingView(view)
        found = reads.page(counting, ["m/1"], T0 + 9 * STEP, T0 + 99 * STEP, offset=0, limit=50, keys={"A"})
        assert found.records == records[50:100][::-1]
        assert found.total == 91
        return int(counting.cursors)

    assert store._engine.database.read(ask) <= 5
    assert store._engine.database.read(ask) <= 3, "the segment was read before"
    await store.close()
