"""The simulation's models against the real engines, by the same random calls."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sim_disk import KeyValueImage, PowerFailed, SimDisk, SimStateDatabase, put
from sim_store import SimStore, StoreImage

from open_stores import open_rocks
from terrazzo.ports.store import Record
from terrazzo_broker.persistence.database import StateDatabase

_SERIES = ["g/T1/r", "g/T1/a", "m/17", "m/18"]
_TIMES = [1_700_000_000_000_000 + each for each in (0, 1, 2, 250_000, 3_600_000_000, 7_200_000_001)]
_KEYS = ["P", "Q", "R"]


def _record(chance: random.Random) -> Record:
    body = {key: chance.randint(0, 9) for key in chance.sample(_KEYS, chance.randint(1, 3))}
    return Record(chance.choice(_SERIES), chance.choice(_TIMES), msgspec.msgpack.encode(body))


def _question(chance: random.Random) -> tuple[str, list[Any], dict[str, Any]]:
    mosaics = [name for name in _SERIES if name.startswith("m/")]
    some = chance.sample(_SERIES, chance.randint(1, 3))
    start_us, end_us = chance.choice(_TIMES), chance.choice(_TIMES)
    return chance.choice(
        (
            ("latest", [some, chance.randint(1, 6)], {}),
            ("latest", [[mosaics[0]], chance.randint(1, 6)], {"keys": [chance.choice(_KEYS)]}),
            ("latest_each", [mosaics[0], _KEYS], {}),
            ("first_after", [some, start_us], {}),
            ("page", [some, start_us, end_us], {"offset": chance.randint(0, 3), "limit": chance.randint(1, 5)}),
            ("series", [chance.choice(("", "g/", "g/T1/", "m/1"))], {}),
            ("notes", [chance.choice(("", "a", "b"))], {}),
        )
    )


@pytest.mark.parametrize("seed", range(3))
async def test_the_store_answers_as_rocksdb_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    image, disk = StoreImage(), SimDisk(random.Random(0))
    disk.work_s = lambda: 0.0  # type: ignore[method-assign]
    real, model = await open_rocks(tmp_path / "series"), SimStore(image, disk)
    try:
        for _ in range(60):
            if chance.random() < 0.4:
                records = [_record(chance) for _ in range(chance.randint(1, 6))]
                notes = {chance.choice("ab") + str(chance.randint(0, 3)): chance.choice((b"1", b"2", None))}
                for store in (real, model):
                    await store.append(records, notes=notes)
                continue
            name, given, more = _question(chance)
            assert await getattr(model, name)(*given, **more) == await getattr(real, name)(*given, **more), name
        for series in _SERIES:
            found = [
                [each async for piece in store.scan([series], 0, 2**62) for each in piece] for store in (real, model)
            ]
            assert found[0] == found[1]
    finally:
        await real.close()


@pytest.mark.parametrize("seed", range(3))
def test_the_brokers_storage_answers_as_rocksdb_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    real, model = StateDatabase(tmp_path / "real"), SimStateDatabase(SimDisk(random.Random(0)), tmp_path)
    for each in (real, model):
        each.open()
    for _ in range(60):
        keys = [bytes((chance.randrange(8),)) for _ in range(4)]
        values = {key: chance.choice((b"x", b"y", None)) for key in keys}
        ranges = [(min(keys), max(keys))] if chance.random() < 0.2 else []
        for each in (real, model):
            each.commit(values, ranges)
        assert model.get(keys[0]) == real.get(keys[0])
        if chance.random() < 0.2:
            for each in (real, model):
                each.close()
                each.open()
        assert list(model.items()) == list(real.items())
    real.close()


def test_a_crash_keeps_a_beginning_of_what_was_not_synced() -> None:
    kept = set()
    for seed in range(30):
        image = KeyValueImage()
        image.unsynced = [({bytes((number,)): b"x"}, []) for number in range(3)]
        image.crash(random.Random(seed))
        assert list(image.durable) == [bytes((number,)) for number in range(len(image.durable))]
        kept.add(len(image.durable))
    assert kept == {0, 1, 2, 3}


def test_ranges_are_deleted_after_values_are_put() -> None:
    kept = {b"a": b"1"}
    put(kept, {b"b": b"2", b"c": b"3"}, [(b"a", b"c")])
    assert kept == {b"c": b"3"}


def test_what_was_appended_when_the_power_failed_is_refused() -> None:
    disk = SimDisk(random.Random(0))
    store = SimStore(StoreImage(), disk)
    disk.crash()
    with pytest.raises(PowerFailed):
        asyncio.run(store.append([Record("g/a/r", 1, b"{}")]))
