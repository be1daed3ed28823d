"""The stores' tasks, ended by a fault in the middle: that is shown, they are begun anew, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from store_locations import InfluxLocation

from influx_gate import Gate
from open_stores import open_rocks, supervisor
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.influxdb.delivery import BatchDelivery
from terrazzo_adapters.influxdb.spool import RecordSpool
from terrazzo_adapters.rocksdb.store import RocksStore
from waiting import until

T0 = 1_700_000_000_000_000
HOUR_US = 3_600_000_000
SERIES = "g/T1/r"
SPOOL, COLUMNS = "influxdb spool", "rocksdb columns"


def batch(number: int) -> list[Record]:
    return [Record(SERIES, T0 + number * 10 + each, b'{"n":%d}' % (number * 10 + each)) for each in range(10)]


class Planted:
    """Raises once where it stands: before the work, or after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: type, name: str, *, after: bool, is_async: bool) -> None:
        self.is_due = False
        work = getattr(place, name)

        def fail_if(due: bool) -> None:
            if due and self.is_due:
                self.is_due = False
                raise RuntimeError("planted")

        async def awaited(*arguments: Any, **options: Any) -> Any:
            fail_if(not after)
            found = await work(*arguments, **options)
            fail_if(after)
            return found

        def called(*arguments: Any, **options: Any) -> Any:
            fail_if(not after)
            found = work(*arguments, **options)
            fail_if(after)
            return found

        monkeypatch.setattr(place, name, awaited if is_async else called)


async def test_an_hour_without_columns_keeps_no_other_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_S", "_QUIET_S"):
        monkeypatch.setattr(f"terrazzo_adapters.rocksdb.store.{name}", 0.01)
    build = RocksStore._build_hour
    built: set[int] = set()

    def build_but_one(store: RocksStore, slot: int) -> Any:
        if slot % (1 << 32) == T0 // HOUR_US:  # the oldest, and thereby the first
            raise RuntimeError("planted")
        built.add(slot)
        return build(store, slot)

    monkeypatch.setattr(RocksStore, "_build_hour", build_but_one)
    tasks = supervisor()
    store = await open_rocks(tmp_path, tasks)
    records = [Record("m/1", T0 + n * HOUR_US, msgspec.msgpack.encode({"T": n})) for n in range(5)]
    await store.append(records)
    await until(lambda: tasks.degraded() == {COLUMNS: "RuntimeError"}, "the fault is shown")
    assert not tasks.not_ready(), "charts are slower, nothing else is"
    await until(lambda: len(built) == 4, "the other hours have columns")
    await until(lambda: tasks.tasks[COLUMNS].restarts >= 2, "it goes on trying")
    assert (await store.page(["m/1"], 0, 2**62, offset=0, limit=9)).total == 5
    await store.close()
    assert not tasks.tasks[COLUMNS].is_running


PLACES = [
    (RecordSpool, "first", False, False),
    (BatchDelivery, "prepare", False, True),
    (BatchDelivery, "deliver", False, True),
    (BatchDelivery, "deliver", True, True),
    (RecordSpool, "remove_first", False, False),
    (RecordSpool, "remove_first", True, False),
]


@pytest.mark.parametrize(("place", "name", "after", "is_async"), PLACES)
async def test_the_spool_is_sent_whatever_fails(
    new_influx_location: Callable[[], InfluxLocation],
    monkeypatch: pytest.MonkeyPatch,
    place: type,
    name: str,
    after: bool,
    is_async: bool,
) -> None:
    planted = Planted(monkeypatch, place, name, after=after, is_async=is_async)
    location, tasks = new_influx_location(), supervisor()
    async with Gate(location.url) as gate:
        location.url = gate.url
        store = await location.open(tasks=tasks)
        await store.append(batch(0))
        gate.stop_at(1, after=False, answers=True)
        await store.append(batch(1))
        await store.append(batch(2))
        assert store.stats().spooled_records == 20
        planted.is_due = True
        gate.open()
        await until(lambda: tasks.not_ready() == {SPOOL: "RuntimeError"}, "what was acknowledged is not sent")
        await until(lambda: store.is_whole and tasks.tasks[SPOOL].is_running, "it was begun anew")
        assert tasks.tasks[SPOOL].restarts == 1
        found = await store.page([SERIES], 0, 2**60, offset=0, limit=99)
        assert found.records == [each for number in (2, 1, 0) for each in reversed(batch(number))]
        assert found.total == 30
        assert store.stats().spool_bytes == 0
        await store.close()


async def test_who_waits_for_room_goes_on_after_a_fault(
    new_influx_location: Callable[[], InfluxLocation], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Planted(monkeypatch, RecordSpool, "remove_first", after=True, is_async=False)
    location, tasks = new_influx_location(), supervisor()
    location.spool_bytes = 1
    async with Gate(location.url) as gate:
        location.url = gate.url
        store = await location.open(tasks=tasks)
        gate.stop_at(1, after=False, answers=True)
        await store.append(batch(0))
        waiting = asyncio.create_task(store.append(batch(1)), name="waits")
        done, _ = await asyncio.wait({waiting}, timeout=0.1)
        assert not done
        planted.is_due = True
        gate.open()
        async with asyncio.timeout(15):
            await waiting
        await until(lambda: store.is_whole, "both are sent")
        assert tasks.tasks[SPOOL].failures == 1
        assert (await store.page([SERIES], 0, 2**60, offset=0, limit=99)).total == 20
        await store.close()


@pytest.mark.parametrize("notes", [{}, {"name": b"value"}], ids=["records", "records and notes"])
async def test_what_a_cancelled_append_left_in_the_spool_is_sent(
    new_influx_location: Callable[[], InfluxLocation], monkeypatch: pytest.MonkeyPatch, notes: dict[str, bytes]
) -> None:
    """Nobody appends afterwards, which would have it noticed by chance."""
    location = new_influx_location()
    async with Gate(location.url) as gate:
        location.url = gate.url
        store = await location.open()
        await store.append(batch(0))
        put, deliver = RecordSpool.put, BatchDelivery.deliver
        is_there = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow_put(spool: RecordSpool, *arguments: Any) -> None:
            loop.call_soon_threadsafe(is_there.set)
            asyncio.run(asyncio.sleep(0.2))
            put(spool, *arguments)

        async def hanging_deliver(delivery: BatchDelivery, points: Any) -> Any:
            monkeypatch.setattr(BatchDelivery, "deliver", deliver)
            is_there.set()
            await asyncio.Event().wait()

        if notes:
            monkeypatch.setattr(BatchDelivery, "deliver", hanging_deliver)
        else:
            gate.stop_at(1, after=False, answers=True)
            monkeypatch.setattr(RecordSpool, "put", slow_put)
        appending = asyncio.create_task(store.append(batch(1), notes=notes), name="append")
        await is_there.wait()
        appending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await appending
        gate.open()
        await until(lambda: store.stats().spooled_records == 10, "it is in the spool")
        await until(lambda: store.is_whole, "it is sent")
        assert (await store.page([SERIES], 0, 2**60, offset=0, limit=99)).total == 20
        await store.close()


async def test_a_replacement_whose_caller_is_gone_says_what_went_wrong(
    new_influx_location: Callable[[], InfluxLocation],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await new_influx_location().open()
    await store.append(batch(0))
    is_there, may_fail = asyncio.Event(), asyncio.Event()

    async def failing_carry_out(*_: Any) -> Any:
        is_there.set()
        await may_fail.wait()
        monkeypatch.undo()
        raise RuntimeError("planted")

    monkeypatch.setattr("terrazzo_adapters.influxdb.replacement.carry_out", failing_carry_out)
    wanted = [Record(SERIES, T0, b'{"n":99}')]
    replacing = asyncio.create_task(
        store.replace(SERIES, T0, T0 + 99, wanted, given=Seen([SERIES], 10)), name="replaces"
    )
    await is_there.wait()
    replacing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await replacing
    with caplog.at_level(logging.WARNING, "terrazzo_adapters.influxdb.writer"):
        may_fail.set()
        await until(lambda: "RuntimeError: planted" in caplog.text, "it is said")
    await until(lambda: not store._writer.has_begun_replacement, "it is carried out all the same")
    assert (await store.page([SERIES], 0, 2**60, offset=0, limit=99)).records == wanted
    await store.close()
