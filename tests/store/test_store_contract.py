"""What every time-series store answers, case by case."""

from __future__ import annotations

import asyncio

import pytest

from terrazzo.ports.store import Page, Record, StoreUnavailable

T0 = 1_700_000_000_000_000
HOUR = 3_600_000_000


def record(time_us: int, number: int = 0, series: str = "g/T1/r") -> Record:
    return Record(series, time_us, b'{"n":%d}' % number)


async def test_an_empty_store_knows_nothing(store):
    assert await store.series("") == []
    assert await store.latest(["g/T1/r"], 5) == []
    assert await store.first_after(["g/T1/r"], 0) is None
    assert await store.page(["g/T1/r"], 0, T0, offset=0, limit=10) == Page([], 0)
    await store.drop_before(T0)
    await store.check()


async def test_an_empty_batch_is_fine(store):
    await store.append([])
    assert await store.series("g/") == []


async def test_no_series_asked_for_is_nothing_found(store):
    await store.append([record(T0)])
    assert await store.latest([], 5) == []
    assert await store.first_after([], 0) is None
    assert await store.page([], 0, T0, offset=0, limit=5) == Page([], 0)


async def test_latest_is_by_time_not_by_arrival(store):
    await store.append([record(T0 + 5, 1), record(T0 + 9, 2)])
    await store.append([record(T0 + 7, 3)])
    assert await store.latest(["g/T1/r"], 2) == [record(T0 + 9, 2), record(T0 + 7, 3)]


async def test_records_of_one_microsecond_all_stay_in_order_of_arrival(store):
    batch = [record(T0, number) for number in range(5)]
    await store.append(batch[:3])
    await store.append(batch[3:])
    assert await store.latest(["g/T1/r"], 10) == batch[::-1]
    assert await store.first_after(["g/T1/r"], T0 - 1) == batch[0]


async def test_thousands_of_records_of_one_microsecond_all_stay(store):
    batch = [record(T0, number) for number in range(2500)]
    await store.append(batch)
    await store.append([record(T0, 2500)])
    page = await store.page(["g/T1/r"], T0, T0, offset=998, limit=5)
    assert page == Page([record(T0, 2500 - 998 - back) for back in range(5)], 2501)
    assert await store.latest(["g/T1/r"], 2) == [record(T0, 2500), record(T0, 2499)]
    assert await store.first_after(["g/T1/r"], 0) == record(T0, 0)


async def test_equal_bodies_at_equal_times_are_two_records(store):
    await store.append([record(T0), record(T0)])
    await store.append([record(T0)])
    assert (await store.page(["g/T1/r"], T0, T0, offset=0, limit=10)).total == 3


async def test_several_series_are_merged(store):
    await store.append([record(T0 + 2, 1, "g/T1/a"), record(T0 + 1, 2, "g/T1/r"), record(T0 + 2, 3, "g/T1/r")])
    found = await store.page(["g/T1/r", "g/T1/a", "g/T1/none"], T0, T0 + 9, offset=0, limit=9)
    assert found == Page([record(T0 + 2, 3, "g/T1/r"), record(T0 + 2, 1, "g/T1/a"), record(T0 + 1, 2, "g/T1/r")], 3)


async def test_series_of_different_kinds_are_merged(store):
    batch = [
        record(T0 + number, number, name) for number, name in enumerate(["g/T1/r", "c/T1", "m/17", "x/T1", "g/T1/r"])
    ]
    await store.append(batch)
    names = ["x/T1", "m/17", "c/T1", "g/T1/r"]
    assert await store.latest(names, 4) == batch[:0:-1]
    assert await store.first_after(names, T0) == batch[1]
    assert await store.page(names, T0, T0 + 9, offset=1, limit=2) == Page([batch[3], batch[2]], 5)


async def test_first_after_is_strictly_later(store):
    await store.append([record(T0, 1), record(T0 + 1, 2)])
    assert await store.first_after(["g/T1/r"], T0) == record(T0 + 1, 2)
    assert await store.first_after(["g/T1/r"], T0 + 1) is None


async def test_a_range_includes_both_ends(store):
    await store.append([record(T0 + number, number) for number in range(5)])
    page = await store.page(["g/T1/r"], T0 + 1, T0 + 3, offset=0, limit=10)
    assert page == Page([record(T0 + 3, 3), record(T0 + 2, 2), record(T0 + 1, 1)], 3)


async def test_a_page_past_the_end_is_empty_and_counts(store):
    await store.append([record(T0)])
    assert await store.page(["g/T1/r"], 0, T0, offset=1, limit=10) == Page([], 1)


async def test_a_reversed_range_is_empty(store):
    await store.append([record(T0)])
    assert await store.page(["g/T1/r"], T0 + 1, T0 - 1, offset=0, limit=10) == Page([], 0)


async def test_deep_pages_over_many_hours(store):
    records = [record(T0 + number * HOUR // 7, number) for number in range(400)]
    await store.append(records)
    page = await store.page(["g/T1/r"], T0 + 1, T0 + 100 * HOUR, offset=333, limit=3)
    assert page == Page([records[399 - 333 - back] for back in range(3)], 399)


async def test_series_names_by_prefix(store):
    names = ["g/T1/a", "g/T1/r", "g/T10/r", "g/T1é/r", "m/1", "m/17", "x/T1"]
    await store.append([record(T0, 0, name) for name in names])
    assert await store.series("") == names
    assert await store.series("g/T1/") == ["g/T1/a", "g/T1/r"]
    assert await store.series("g/T1") == ["g/T1/a", "g/T1/r", "g/T10/r", "g/T1é/r"]
    assert await store.series("m/1") == ["m/1", "m/17"]
    assert await store.series("g/T2") == []


@pytest.mark.parametrize(
    "name",
    [
        "g/T1/deep/er/channel",
        "g/with space/r",
        "g/co,mma/e=q",
        'g/quo\'te/"double"',
        "g/back\\slash/trailing\\",
        "g/percent%41/%",
        "g/终端/温度",
        "g/emoji😀/r",
        "g//empty uid",
        "g/T1/",
        "x/new\nline",
        "m/0",
    ],
)
async def test_a_series_with_an_odd_name_is_itself(store, name):
    await store.append([record(T0, 1, name), record(T0 + 1, 2, "g/T1/r")])
    assert await store.latest([name], 9) == [record(T0, 1, name)]
    assert name in await store.series(name)


async def test_retention_forgets_what_is_earlier(store):
    records = [record(T0 + number * HOUR // 3, number) for number in range(12)]
    await store.append(records)
    await store.append([record(T0, 99, "g/T2/r"), record(T0 + 5 * HOUR, 98, "m/1")])
    await store.drop_before(records[7].time_us)
    assert await store.page(["g/T1/r"], 0, T0 + 99 * HOUR, offset=0, limit=20) == Page(records[:6:-1], 5)
    assert await store.series("") == ["g/T1/r", "m/1"]


async def test_retention_of_some_series_leaves_the_others(store):
    first = [record(T0 + number * HOUR // 3, number) for number in range(12)]
    second = [record(each.time_us, number, "g/T2/r") for number, each in enumerate(first)]
    await store.append(
        [*first, *second, record(T0, 50, "g/T3/r"), record(T0, 51, "m/1"), record(T0 + 5 * HOUR, 52, "m/1")]
    )
    await store.drop_before(first[7].time_us, series=["g/T1/r", "g/T3/r", "m/1", "m/9"])
    assert await store.page(["g/T1/r"], 0, T0 + 99 * HOUR, offset=0, limit=20) == Page(first[:6:-1], 5)
    assert await store.page(["g/T2/r"], 0, T0 + 99 * HOUR, offset=0, limit=20) == Page(second[::-1], 12)
    assert (await store.page(["m/1"], 0, T0 + 99 * HOUR, offset=0, limit=20)).total == 1
    assert await store.series("") == ["g/T1/r", "g/T2/r", "m/1"]
    await store.drop_before(first[7].time_us, series=[])
    assert (await store.page(["g/T2/r"], 0, T0 + 99 * HOUR, offset=0, limit=20)).total == 12


async def test_a_record_older_than_the_last_retention_is_taken_again(store):
    await store.append([record(T0, 1)])
    await store.drop_before(T0 + 1)
    await store.append([record(T0, 2)])
    assert await store.page(["g/T1/r"], 0, T0, offset=0, limit=9) == Page([record(T0, 2)], 1)


async def test_everything_is_there_after_a_restart(location):
    store = await location.open()
    await store.append([record(T0, 1), record(T0, 2)])
    await store.close()
    store = await location.open()
    try:
        await store.append([record(T0, 3)])
        assert await store.latest(["g/T1/r"], 9) == [record(T0, 3), record(T0, 2), record(T0, 1)]
    finally:
        await store.close()


async def test_a_closed_store_says_so(location):
    store = await location.open()
    await store.close()
    await store.close()
    for call in (store.append([record(T0)]), store.latest(["g/T1/r"], 1), store.series(""), store.check()):
        with pytest.raises(StoreUnavailable, match="closed"):
            await call


async def test_a_time_that_cant_be_stored_is_refused_with_its_batch(store):
    with pytest.raises(ValueError, match=r"records\[1\]\.time_us: -1"):
        await store.append([record(T0), record(-1)])
    assert await store.series("") == []
    await store.append([record(T0)])
    assert await store.latest(["g/T1/r"], 2) == [record(T0)]


async def test_a_name_that_is_not_text_is_refused_with_its_batch(store):
    with pytest.raises(ValueError):
        await store.append([record(T0), record(T0, 0, "g/\ud800/r")])
    assert await store.series("") == []


async def test_batches_appended_at_once_are_all_there(store):
    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task(store.append([record(T0 + number, number), record(T0, number, "g/T2/r")]))
    assert (await store.page(["g/T1/r"], 0, T0 + 99, offset=0, limit=1)).total == 20
    assert await store.latest(["g/T2/r"], 99) == [record(T0, 19 - back, "g/T2/r") for back in range(20)]


async def test_notes_are_written_overwritten_and_deleted_with_records(store):
    assert await store.notes("") == {}
    await store.append([record(T0)], notes={"state/1": b"one", "state/10": b"ten", "effects/1": b""})
    await store.append([record(T0 + 1)], notes={"state/1": b"two", "effects/1": None, "effects/2": None})
    assert await store.notes("state/1") == {"state/1": b"two", "state/10": b"ten"}
    assert await store.notes("effects/") == {}
    assert await store.series("") == ["g/T1/r"], "notes are no series"


async def test_notes_may_come_without_records(store):
    await store.append([], notes={"a": b"1", "\u7ec8\u7aef": b"2"})
    assert await store.notes("") == {"a": b"1", "\u7ec8\u7aef": b"2"}
    await store.append([], notes={"a": None})
    assert list(await store.notes("")) == ["\u7ec8\u7aef"]


async def test_a_refused_batch_leaves_the_notes_as_they_were(store):
    await store.append([], notes={"a": b"1"})
    with pytest.raises(ValueError):
        await store.append([record(-1)], notes={"a": b"2", "b": b"3"})
    assert await store.notes("") == {"a": b"1"}


async def test_notes_are_there_after_a_restart_and_after_retention(location):
    store = await location.open()
    await store.append([record(T0)], notes={"a": b"1"})
    await store.drop_before(T0 + 1)
    await store.close()
    store = await location.open()
    try:
        assert await store.notes("a") == {"a": b"1"}
        assert await store.series("") == []
    finally:
        await store.close()
