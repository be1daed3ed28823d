"""How much of the disk series take: as told, beside what their files have."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from open_stores import make_columns, open_rocks, seal
from terrazzo.ports.store import Record
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.rocksdb.disk import sizes
from terrazzo_adapters.rocksdb.disk.sizes import Packing

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000 // HOUR * HOUR
WITHIN = 0.25
"""As docs/configuration.md promises."""


def owner(series: str) -> int:
    return int(series[2])


def reports(company: int, count: int, step_us: int, number: int = 0) -> list[Record]:
    chance = random.Random(company * 100 + number)
    return [
        Record(
            f"g/{company}{number}/r",
            T0 + place * step_us,
            msgspec.json.encode(
                {"Temperature": chance.gauss(20, 3), "State": chance.choice(["on", "off"]), "n": place}
            ),
        )
        for place in range(count)
    ]


def mosaic(company: int, count: int) -> list[Record]:
    chance = random.Random(company)
    bodies = (msgspec.msgpack.encode({f"V{n}": chance.random() for n in range(6)}) for _ in range(count))
    return [Record(f"m/{company}1", T0 + place * 30_000_000, body) for place, body in enumerate(bodies)]


async def sizes_of(store: RocksStore) -> Mapping[int, int]:
    return await store.sizes(owner)


def files(store: RocksStore) -> int:
    """The bytes of its files with records, all of which are written and cleaned up."""
    database = store._engine.database
    database.flush()
    database.compact(b"a", b"z")
    return sum(path.stat().st_size for path in database.path.glob("*.sst"))


@pytest.mark.parametrize("is_sealed", [False, True])
async def test_what_is_told_is_about_what_files_have(tmp_path: Path, is_sealed: bool) -> None:
    store = await open_rocks(tmp_path / "store")
    try:
        for company, count in ((1, 8_000), (2, 2_000)):
            await store.append(reports(company, count, 10_000_000))
            await store.append(reports(company, count // 10, 50_000, number=1))  # blocks
            await store.append(mosaic(company, count // 4))
        await make_columns(store)
        if is_sealed:
            await seal(store, block=1_000)
        real = files(store)
        told = await sizes_of(store)
        assert sum(told.values()) == pytest.approx(real, rel=WITHIN)
        assert told[1] == pytest.approx(4 * told[2], rel=WITHIN)
        await store.drop_before(2**62, series=["g/10/r", "g/11/r", "m/11"])
        less = await sizes_of(store)
        assert 1 not in less
        assert less[2] == pytest.approx(told[2], rel=2 * WITHIN), "what is deleted and not cleaned up yet is nobody's"
        assert sum(less.values()) == pytest.approx(files(store), rel=2 * WITHIN)
    finally:
        await store.close()


async def test_many_pieces_are_as_one_and_restarts_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_rocks(tmp_path / "store")
    for number in range(5):
        await store.append(reports(1 + number % 2, 300, 60_000_000, number=number))
    told = await sizes_of(store)
    monkeypatch.setattr(sizes, "_PIECE_S", 0.0)
    assert await sizes_of(store) == told
    await store.close()
    store = await open_rocks(tmp_path / "store")
    try:
        assert await sizes_of(store) == pytest.approx(dict(told), rel=0.9), "from its log into files, packed"
        assert (await sizes_of(store)).keys() == {1, 2}
    finally:
        await store.close()


async def test_records_of_all_sizes_are_looked_at(tmp_path: Path) -> None:
    """Long ones among short ones, all within some minutes of an hour."""
    store = await open_rocks(tmp_path / "store")
    try:
        chance = random.Random(5)
        records = [
            Record(
                "g/10/r",
                T0 + place * 250_001,
                b'{"t":"%s"}' % chance.randbytes(2_000 if place % 3 else 20).hex().encode(),
            )
            for place in range(3_000)
        ]
        await store.append(records)
        bodies = sum(len(each.body) for each in records)
        assert (await sizes_of(store))[1] == pytest.approx(bodies, rel=WITHIN)
    finally:
        await store.close()


async def test_an_empty_store_has_none(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path / "store")
    try:
        assert store.has_sizes
        assert await sizes_of(store) == {}
    finally:
        await store.close()


def test_what_rocksdb_says_of_its_files() -> None:
    told = (
        "# entries=3; raw key size=100; raw value size=900; data block size=300; index block size (x? 1)=20; name=N/A; "
    )
    assert Packing.of(told) == Packing(1_000, 320)
    assert Packing.of(None) == Packing.of("") == Packing.of("raw key size=N/A") == Packing(0, 0)


@pytest.mark.parametrize(
    ("packing", "sealed", "rows", "part"),
    [
        (Packing(0, 0), 0, 500, 1.0),  # nothing is in files yet
        (Packing(1_000, 250), 0, 1_000, 0.25),
        (Packing(1_000, 250), 0, 2_000, 0.625),  # half of it
        (Packing(1_500, 750), 500, 1_000, 0.25),  # beside segments, which are not packed again
        (Packing(1_000, 5_000), 0, 1_000, 1.0),
        (Packing(400, 400), 500, 0, 1.0),
    ],
)
def test_how_much_of_a_byte_is_on_the_disk(packing: Packing, sealed: int, rows: int, part: float) -> None:
    assert packing.of_rows(sealed, rows) == part
