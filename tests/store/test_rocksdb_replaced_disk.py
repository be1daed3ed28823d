"""What a replay has replaced doesn't stay on disk: files are rewritten once it is over and sealed."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

import open_stores
from open_stores import open_rocks
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.rocksdb import RocksStore, replacement, sealer
from terrazzo_adapters.rocksdb.keys import part_key
from terrazzo_adapters.rocksdb.replacement import Replaced, ReplacedSeries

T0 = 1_700_000_000_000_000
STEP = 30_000_000
COUNT = 16_384
PIECE = 2_000
FEW, WORTH, MANY = replacement._WORTH_CHANGES - 1, replacement._WORTH_CHANGES, replacement._MOST_CHANGES


def smooth(count: int) -> list[Record]:
    """Records of ten points that change little by little."""
    random_steps, points, found = random.Random(1), [50.0] * 10, []
    for place in range(count):
        points = [round(point + random_steps.gauss(0, 0.05), 2) for point in points]
        body = msgspec.msgpack.encode({f"V1_{number}": point for number, point in enumerate(points)})
        found.append(Record("m/1", T0 + place * STEP, body))
    return found


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RocksStore]:
    store = await open_rocks(tmp_path / "store")
    store._sealer._encoder = open_stores._HERE
    yield store
    await store.close()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay is over with its last piece."""
    monkeypatch.setattr(replacement, "_QUIET_S", 0.0)


def disk(store: RocksStore) -> int:
    """Bytes of files; RocksDB's own story aside."""
    files = [path for path in store._engine.database.path.iterdir() if not path.name.startswith("LOG")]
    return sum(path.stat().st_size for path in files)


async def load_and_seal(store: RocksStore) -> list[Record]:
    """Records in segments, on a disk with nothing else on it."""
    records = smooth(COUNT)
    for first in range(0, COUNT, PIECE):
        await store.append(records[first : first + PIECE])
    await store._sealer.work()
    store._engine.database.compact(b"", b"\xff")
    return records


async def replace_all(store: RocksStore, records: list[Record]) -> None:
    for first in range(0, len(records), PIECE):
        piece = records[first : first + PIECE]
        assert await store.replace("m/1", piece[0].time_us, piece[-1].time_us, piece, given=Seen([], 0))


@pytest.mark.usefixtures("at_once")
async def test_a_replay_leaves_as_much_on_disk_as_was_there_before(store: RocksStore) -> None:
    records = await load_and_seal(store)
    before = disk(store)
    await replace_all(store, records)
    assert disk(store) > 4 * before, "rows, their log, and the segments"
    await store._sealer.work()
    assert disk(store) < 2 * before, "a part of a block is never sealed at once"
    assert [each for piece in [p async for p in store.scan(["m/1"], 0, 2**62)] for each in piece] == records


async def test_while_a_replay_goes_on_nothing_is_rewritten(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_QUIET_S", 3_600.0)
    rewritten: list[tuple[bytes, bytes]] = []
    records = await load_and_seal(store)
    monkeypatch.setattr(store._engine.database, "compact", lambda start, end: rewritten.append((start, end)))
    await replace_all(store, records)
    await store._sealer.work()
    assert not rewritten
    monkeypatch.setattr(replacement, "_MOST_CHANGES", COUNT)
    await store._sealer.work()
    assert len(rewritten) == 2, "so much is rewritten meanwhile: the range's records, and the parts of segments"
    assert rewritten[1] <= (part_key(1, T0), part_key(1, records[-1].time_us + STEP))
    await store._sealer.work()
    assert len(rewritten) == 2
    await replace_all(store, records)
    await store._sealer.work()
    assert len(rewritten) == 4


@pytest.mark.usefixtures("at_once")
async def test_after_rewriting_it_rests(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_WORTH_CHANGES", 1)
    monkeypatch.setattr(sealer, "_REST", 1e9)
    rewritten: list[bytes] = []
    monkeypatch.setattr(store._engine.database, "compact", lambda start, end: rewritten.append(start))
    for series in ("m/1", "m/2"):
        await store.append([Record(series, T0, b"\x80")])
        assert await store.replace(series, T0, T0, [], given=Seen([], 0))
    for wanted in (2, 2):
        await store._sealer.work()
        assert len(rewritten) == wanted, "one series, and the other has to wait"
    store._sealer._rests_until_s = 0.0
    await store._sealer.work()
    assert len(rewritten) == 4
    assert rewritten[0][:5] != rewritten[2][:5]


@pytest.mark.parametrize(
    ("changes", "after_s", "is_idle", "is_due"),
    [
        (FEW, 1e9, True, False),
        (WORTH, 4.9, True, False),
        (WORTH, 5.0, True, True),
        (WORTH, 1e9, False, False),
        (MANY, 0.0, False, True),
    ],
)
def test_what_is_worth_rewriting(changes: int, after_s: float, is_idle: bool, is_due: bool) -> None:
    series = ReplacedSeries()
    series.add(Replaced(1, T0, T0, changes, 100.0))
    found = series.take(100.0 + after_s, is_idle=is_idle)
    assert (found is not None) == is_due
    assert (series.take(1e10, is_idle=True) is None) == (is_due or changes < WORTH)


def test_pieces_of_a_replay_are_one_range_and_series_are_bounded() -> None:
    series = ReplacedSeries()
    series.add(Replaced(7, 300, 400, FEW, 1.0))
    series.add(Replaced(7, 100, 200, 1, 2.0))
    assert series.take(100.0, is_idle=True) == Replaced(7, 100, 400, WORTH, 2.0)
    for series_id in range(replacement._MOST_SERIES + 1):
        series.add(Replaced(series_id, 0, 0, MANY, 1.0))
    found = []
    while (each := series.take(100.0, is_idle=True)) is not None:
        found.append(each.series_id)
    assert found == list(range(1, replacement._MOST_SERIES + 1))
