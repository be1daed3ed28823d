"""Records become segments, and nobody can tell but by the disk: ranges, late records, cursors, damage, the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import open_stores
from open_stores import open_rocks, seal
from terrazzo.cli import running
from terrazzo.cli.checks import check_sealing, check_segments
from terrazzo.cli.finding import Level
from terrazzo.config.sections import load_config
from terrazzo.ports.store import Record, Seen, StoreUnavailable
from terrazzo_adapters.rocksdb import RocksStore, reads
from terrazzo_adapters.rocksdb import sealing as sealing_module
from terrazzo_adapters.rocksdb.encoder import Encoder, EncodingFailed
from terrazzo_adapters.rocksdb.extents import extents_up
from terrazzo_adapters.rocksdb.sealing import Job, Rule, next_job, next_merge
from terrazzo_adapters.segment_process.chunk import Chunk
from waiting import until

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000 // HOUR * HOUR
STEP = 30_000_000
END = T0 + 1_000_000 * STEP


def mosaic(place: int, series: str = "m/1", **values: object) -> Record:
    return Record(series, T0 + place * STEP, msgspec.msgpack.encode(values or {"A": place * 1.5}))


def grid(place: int, number: int = 0) -> Record:
    return Record("g/T1/r", T0 + place * STEP, b'{"n":%d,"p":%d}' % (number, place))


def kinds(store: RocksStore) -> Counter[str]:
    """How many entries of each kind there are."""
    return store._engine.database.read(lambda view: Counter(chr(key[0]) for key, _ in view.items()))


def job(store: RocksStore, rule: Rule, find=next_job, series_id: int = 1) -> Job | None:
    return store._engine.database.read(find, series_id, 0, rule)


async def every(store: RocksStore, series: str) -> list[Record]:
    return [each for piece in [p async for p in store.scan([series], 0, 2**62)] for each in piece]


@pytest.fixture
async def store(tmp_path: Path):
    store = await open_rocks(tmp_path / "store")
    yield store
    await store.close()


async def test_segments_take_the_place_of_records(store: RocksStore) -> None:
    records = [mosaic(place) for place in range(300)]
    await store.append(records)
    await open_stores.make_columns(store)
    await seal(store, block=64)
    there = kinds(store)
    assert there["s"] == 2
    assert there["p"] > there["s"]
    assert not there["r"] + there["c"] + there["k"] + there["v"] + there["d"], there
    assert await every(store, "m/1") == records
    assert (await store.latest(["m/1"], 1)) == records[-1:]


async def test_names_are_told_of_a_part_of_a_segment(store: RocksStore) -> None:
    records = [mosaic(0, A=1.0), mosaic(1, B=1.0), mosaic(2, C=None), mosaic(3, D=1.0)]
    await store.append(records)
    await seal(store, block=4)
    inside = [record.time_us for record in records[1:3]]
    assert await store.names("m/1", *inside) == ["B", "C"]
    assert await store.names("m/1", 0, records[0].time_us) == ["A"]
    assert await store.names("m/1", 0, records[-1].time_us) == ["A", "B", "C", "D"]


async def test_a_scan_goes_on_across_a_sealing(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "_PIECE_RECORDS", 3)
    records = [grid(place // 2, place) for place in range(40)]
    await store.append(records)
    found: list[Record] = []
    block = 1
    async for piece in store.scan(["g/T1/r"], T0, END):
        found += piece
        await seal(store, block=block)
        block = block % 9 + 1
        await store.append([grid(0, 1000 + block)])  # behind the cursor: not seen, and nothing else is missed
    assert found == records
    assert (await store.page(["g/T1/r"], T0, END, offset=0, limit=0)).total == 40 + 14


async def test_what_comes_while_a_range_is_sealed_keeps_it_from_being_sealed(store: RocksStore) -> None:
    records = [grid(place) for place in range(8)]
    await store.append(records)
    engine, job = store._engine, Job(1, T0, T0 + 3 * STEP, 4, tight=False)

    def made(view: object) -> sealing_module.SealedRange:
        return sealing_module.seal(
            view, job, lambda chunk, tight: open_stores._HERE.encode(chunk, mosaic=False, tight=tight)
        )

    generation = engine.begin_seal(job)
    sealed = engine.database.read(made)
    await store.append([grid(3, 1)])
    assert not engine.keep_sealed(sealed, generation)
    assert not kinds(store)["s"]
    generation = engine.begin_seal(job)
    sealed = engine.database.read(made)
    await store.append([grid(5, 1)])  # of the same hour, and not of the range
    assert engine.keep_sealed(sealed, generation)
    assert kinds(store)["s"] == 1
    for change in (lambda: store.replace("g/T1/r", T0, T0, [], given=Seen([], 0)), lambda: store.drop_before(T0 + 1)):
        generation = engine.begin_seal(job)
        sealed = engine.database.read(made)
        await change()
        assert not engine.keep_sealed(sealed, generation)
    assert await every(store, "g/T1/r") == [*records[1:4], grid(3, 1), *records[4:6], grid(5, 1), *records[6:]]


async def test_a_replacement_elsewhere_keeps_no_range_from_being_sealed(store: RocksStore) -> None:
    records = [grid(place) for place in range(12)]
    await store.append([*records, *(mosaic(place) for place in range(12))])
    engine, job = store._engine, Job(1, T0 + STEP, T0 + 4 * STEP, 4, tight=False)

    def made(view: object) -> sealing_module.SealedRange:
        return sealing_module.seal(
            view, job, lambda chunk, tight: open_stores._HERE.encode(chunk, mosaic=False, tight=tight)
        )

    async def sealed_beside(series: str, first: int, last: int, new: list[Record]) -> bool:
        begun = engine.begin_seal(job)
        sealed = engine.database.read(made)
        assert await store.replace(series, T0 + first * STEP, T0 + last * STEP, new, given=Seen([], 0))
        return engine.keep_sealed(sealed, begun)

    assert not await sealed_beside("g/T1/r", 4, 6, [grid(4, 7)])
    assert await sealed_beside("g/T1/r", 6, 7, [grid(6, 7)])
    assert kinds(store)["s"] == 1
    assert await sealed_beside("m/1", 0, 9, [])
    assert not await sealed_beside("g/T1/r", 0, 1, []), "the segment, of which a part is replaced, ends in the range"
    assert await every(store, "g/T1/r") == [*records[2:4], grid(4, 7), grid(6, 7), *records[8:]]
    assert await every(store, "m/1") == [mosaic(place) for place in (10, 11)]
    assert (await store.page(["g/T1/r"], T0, END, offset=0, limit=0)).total == 8


async def test_what_replacements_write_is_sealed_as_what_is_appended(store: RocksStore) -> None:
    assert await store.replace("m/1", T0, END, [mosaic(place) for place in range(200)], given=Seen([], 0))
    assert store._engine.fresh.full(200) == [1]


async def test_only_a_full_block_or_what_is_old_is_sealed(store: RocksStore) -> None:
    await store.append([grid(place) for place in range(100)])
    assert job(store, Rule(cutoff_us=T0, block=100)) is None
    assert job(store, Rule(cutoff_us=T0 + 15 * STEP, block=100)) is None, "fewer than are worth a segment"
    assert job(store, Rule(cutoff_us=T0 + 16 * STEP, block=100)) == Job(1, T0, T0 + 15 * STEP, 100, tight=False)
    assert job(store, Rule(cutoff_us=T0, block=80)) == Job(1, T0, T0 + 79 * STEP, 80, tight=False)
    assert job(store, Rule(cutoff_us=T0, block=81)) is None, "the newest ones stay beyond a block"


async def test_late_records_wait_until_they_are_enough(store: RocksStore) -> None:
    await store.append([grid(place) for place in range(320)])
    await seal(store, block=400, least=16)
    rule = Rule(cutoff_us=END, block=400)
    await store.append([grid(7, number) for number in range(1, 20)])
    assert job(store, rule) is None
    await store.append([grid(7, 20)])
    assert job(store, rule) == Job(1, T0, T0 + 319 * STEP, 400, tight=False)
    await seal(store, block=400, least=16)
    assert not kinds(store)["r"]
    found = await store.page(["g/T1/r"], T0 + 7 * STEP, T0 + 7 * STEP, offset=0, limit=3)
    assert found.total == 21
    assert found.records == [grid(7, number) for number in (20, 19, 18)]


async def test_small_segments_are_merged_and_large_ones_packed(store: RocksStore) -> None:
    sizes = []
    for day in range(40):
        await store.append([grid(day * 10 + place) for place in range(5)])
        await seal(store, block=100, least=5)
        sizes.append(kinds(store)["s"])
    assert max(sizes) <= 7, sizes
    assert await every(store, "g/T1/r") == [grid(day * 10 + place) for day in range(40) for place in range(5)]
    await store.append([mosaic(place) for place in range(400)])
    await seal(store, block=100, least=5, cutoff_us=0)  # as they fill up
    assert job(store, Rule(cutoff_us=0, block=100), next_merge, 2) is None, "late ones may come yet"
    assert job(store, Rule(cutoff_us=END, block=100), next_merge, 2) == Job(2, T0, T0 + 299 * STEP, 400, tight=True)


async def test_so_many_records_of_one_time_stay_as_they_are(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing_module, "_MOST_RECORDS", 20)
    records = [grid(0), *[grid(1, number) for number in range(30)], grid(2), grid(3)]
    await store.append(records)
    await seal(store, block=2)
    assert kinds(store)["s"]
    assert store._sealer.stats.failures
    assert await every(store, "g/T1/r") == records


def first_bodies(view: Any) -> tuple[bytes, bytes]:
    """The first part that bodies are made of: neither the head nor the times."""
    return next(entry for entry in view.items() if entry[0][:1] == b"p" and entry[0][13:] not in (b"", b"t"))


async def test_a_damaged_part_costs_its_records_and_no_others(store: RocksStore) -> None:
    records = [grid(place) for place in range(64)]
    await store.append(records)
    await seal(store, block=16, cutoff_us=0)
    key, value = store._engine.database.read(first_bodies)
    store._engine.database.rdict[key] = value[:-3] + bytes([value[-3] ^ 1]) + value[-2:]
    left = await every(store, "g/T1/r")
    assert left == records[16:]
    assert store.stats().damaged_segments
    assert (await store.page(["g/T1/r"], T0, END, offset=0, limit=0)).total == 64
    await store.append([grid(0, number) for number in range(1, 40)])
    await seal(store, block=16)
    assert store._engine.database.rdict.get(key), "what can't be read is not made anew without it"
    with pytest.raises(StoreUnavailable, match="can't be replaced"):
        await store.replace("g/T1/r", T0 + STEP, T0 + 2 * STEP, [], given=Seen([], 0))
    await store.drop_before(END)
    assert await store.series("") == []


def test_the_process_makes_what_is_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = [(T0 + n).to_bytes(8) + n.to_bytes(8) for n in range(50)]
    bodies = [msgspec.msgpack.encode({"A": n / 4}) for n in range(50)]
    encoder, chunk = Encoder(), Chunk(b"".join(orders), bodies)
    assert (chunk.first_us, chunk.last_us) == (T0, T0 + 49)
    try:
        parts = encoder.encode(chunk, mosaic=True, tight=False)
        assert parts == open_stores._HERE.encode(chunk, mosaic=True, tight=False)
        with pytest.raises(EncodingFailed, match="not in order"):
            encoder.encode(Chunk(b"".join(orders[::-1]), bodies), mosaic=True, tight=False)
        encoder._process.kill()
        with pytest.raises(EncodingFailed, match="has ended"):
            encoder.encode(chunk, mosaic=True, tight=True)
        assert encoder.encode(chunk, mosaic=False, tight=True)
        encoder.close()
        with pytest.raises(EncodingFailed):
            encoder.encode(chunk, mosaic=False, tight=True)
    finally:
        encoder.end()


async def test_what_is_old_is_sealed_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo_adapters.rocksdb.store._LOOK_S", 0.01)
    for name in ("_SWEEP_S", "_FIRST_SWEEP_S"):
        monkeypatch.setattr(f"terrazzo_adapters.rocksdb.sealer.{name}", 0.01)
    monkeypatch.setattr("terrazzo_adapters.rocksdb.sweep._PIECE", 3)
    store = await open_rocks(tmp_path)
    series = [f"m/{number}" for number in range(1, 6)]
    records = [mosaic(place, name) for name in series for place in range(0, 2000, 50)]
    await store.append([*records, *(Record("g/T1/r", 2**62 + n, b"{}") for n in range(20))])
    await store.close()
    store = await open_rocks(tmp_path, seals=True)
    async with asyncio.timeout(60):
        await until(lambda: kinds(store)["s"] == 5, "all that is old is sealed", timeout_s=60)
        await until(lambda: store._sealer.stats.unsealed_records == 20, "what is not old is counted")
        await until(lambda: store._sealer._encoder._process is None, "the process ends when there is no work")
    assert store._sealer.stats.sealed_records == len(records)
    assert [await every(store, name) for name in series] == [
        [r for r in records if r.series == name] for name in series
    ]
    await store.close()


@pytest.mark.parametrize(
    ("damaged", "waits", "looked", "levels"),
    [
        (0, 0, 0, []),
        (0, 0, 1, []),
        (0, 0, 0.25, [Level.OK]),
        (0, 1, 0.5, [Level.WARN]),
        (2, 1, 1, [Level.FAIL, Level.WARN]),
    ],
)
def test_doctor_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, damaged: int, waits: int, looked: float, levels: list[Level]
) -> None:
    figures = "".join(
        f"# TYPE terrazzo_store_{name} gauge\nterrazzo_store_{name} {value}\n"
        for name, value in (
            ("damaged_segments", damaged),
            ("sealing_waits_for_disk", waits),
            ("sealing_looked_ratio", looked),
            ("unsealed_records", 12_345),
        )
    )
    monkeypatch.setattr(running, "ask", lambda *_: figures.encode())
    findings = list(check_sealing(load_config(None, {})))
    assert [each.level for each in findings] == levels
    if looked == 0.25:
        assert findings[0].found == "time series are being packed: 25% of all series looked at"
    influx = {"TERRAZZO_STORE__KIND": "influxdb", "TERRAZZO_STORE__URL": "http://localhost:8086"}
    assert list(check_sealing(load_config(None, influx))) == []


async def test_doctor_names_what_cannot_be_read(tmp_path: Path) -> None:
    config = load_config(None, {"TERRAZZO_DATA__DIR": str(tmp_path), "TERRAZZO_HTTP__PORT": "1"})
    assert list(check_segments(config)) == [], "there is none yet"
    store = await open_rocks(config.store_dir)
    await store.append([mosaic(place, A=place, B=f"text {place}") for place in range(64)])
    await seal(store, block=16, cutoff_us=0)
    key, value = store._engine.database.read(first_bodies)
    await store.close()
    (finding,) = check_segments(config)
    assert (finding.level, finding.found) == (Level.OK, "the 3 that were read in 10 s or less are whole")
    store = await open_rocks(config.store_dir)
    store._engine.database.rdict[key] = value[:-3] + bytes([value[-3] ^ 1]) + value[-2:]
    await store.close()
    (finding,) = check_segments(config)
    assert finding.level == Level.FAIL
    assert finding.found.startswith("m/1 from 2023-11-14T22:00:00+00:00 to 2023-11-14T22:07:30+00:00: part ")
    for file in config.store_dir.glob("*.log"):
        file.unlink()
    (config.store_dir / "CURRENT").write_text("nothing\n")
    (finding,) = check_segments(config)
    assert finding.level == Level.FAIL


async def test_what_sealing_is_behind_with_is_counted(store: RocksStore) -> None:
    store._sealer._encoder = open_stores._HERE
    await store.append([mosaic(place) for place in range(6_000)])
    await store.append([mosaic(place, "m/2") for place in range(100)])
    await store._sealer._work_until(0.0)
    assert store.stats().sealing_backlog == 6_000, "no series without a full block"
    await store._sealer.work()
    assert store.stats().sealing_backlog == 0
    assert store.stats().sealed_records == 6_000, "a block, and the rest is old"


async def test_large_records_make_segments_of_a_few_megabytes(
    store: RocksStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing_module, "_BLOCK_BYTES", 20_000)
    records = [Record("g/T1/r", T0 + place * STEP, b"%04d" % place + b"x" * 996) for place in range(100)]
    await store.append(records)
    assert job(store, Rule(cutoff_us=0, block=80)) == Job(1, T0, T0 + 19 * STEP, 80, tight=False)
    await seal(store, block=80)
    extents = store._engine.database.read(lambda view: list(extents_up(view, 1, 0, END)))
    assert [extent.total for extent in extents] == [20] * 5
    assert await every(store, "g/T1/r") == records


async def test_without_a_process_it_gives_up_for_a_while(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo_adapters.rocksdb.encoder._COMMAND", ("false",))
    monkeypatch.setattr("terrazzo_adapters.rocksdb.sealer._FIRST_SWEEP_S", 0)
    records = [mosaic(place, f"m/{number}") for number in range(9) for place in range(20)]
    await store.append(records)
    store._sealer._next_sweep_s = 0
    with pytest.raises(EncodingFailed):
        await store._sealer.work()
    assert store.stats().sealing_failures == 3
    assert kinds(store)["s"] == 0
    monkeypatch.undo()
    await store._sealer.work()
    assert kinds(store)["s"] == 9
    assert [each for number in range(9) for each in await every(store, f"m/{number}")] == records


async def test_nothing_is_sealed_while_the_disk_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo_adapters.rocksdb.sealer._FIRST_SWEEP_S", 0)
    store = await RocksStore.open(tmp_path, tasks=open_stores.supervisor(), seals=False, least_free_bytes=2**60)
    await store.append([grid(place) for place in range(100)])
    await store._sealer.work()
    assert store.stats().sealing_waits_for_disk
    assert not kinds(store)["s"]
    store._sealer._least_free_bytes = 0
    await store._sealer.work()
    assert not store._sealer.stats.short_of_disk
    assert kinds(store)["s"] == 1
    await store.close()


def test_the_process_that_makes_segments_loads_no_store() -> None:
    program = "import sys, terrazzo_adapters.segment_process.encode_process; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"rocksdict", "asyncio", "ssl", "sqlalchemy"} & set(loaded.split())
