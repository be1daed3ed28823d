"""Records in the place of others on InfluxDB, where that takes several requests: whatever dies, the end is whole."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest
from replace_child import DAY, INSIDE, REPORTS, SERIES, T0, generation, outside
from store_locations import InfluxLocation

from influx_gate import Gate
from loaded_process import LoadedChild, loaded_child
from terrazzo.ports.store import NotReplaceable, Record, Seen, StoreUnavailable
from waiting import until

CHILD = Path(__file__).with_name("replace_child.py")
NOTHING = Seen([REPORTS], 0)
END = 2**62


async def everything(store, series: str = SERIES) -> list[Record]:
    return [each for piece in [p async for p in store.scan([series], 0, END)] for each in piece]


def whole(number: int) -> list[Record]:
    before, after = outside()
    return [before, *generation(number), after]


async def prepared(location: InfluxLocation) -> None:
    """A series in its generation 0."""
    store = await location.open()
    await store.append(whole(0))
    await store.close()


async def killed_at(gate: Gate, location: InfluxLocation, number: int, *, after: bool) -> bool:
    """Whether a process that replaces by generation 1 came to its n-th request, where it was killed."""
    gate.stop_at(number, after=after)
    child = await LoadedChild.start(CHILD, gate.url, location.database, str(location.spool), "1")
    reading = asyncio.create_task(_until_done(child), name="child")
    stopped = asyncio.create_task(gate.stopped.wait(), name="gate")
    async with asyncio.timeout(30):
        await asyncio.wait({reading, stopped}, return_when=asyncio.FIRST_COMPLETED)
        is_done = reading.done()
        child.kill()
        await child.wait()
        await reading
    gate.open()
    stopped.cancel()
    return not is_done


async def _until_done(child: LoadedChild) -> None:
    while (line := await child.stdout.readline()) and line != b"done 1\n":
        continue


@pytest.mark.parametrize("after", [False, True], ids=["not reached", "reached, not answered"])
async def test_a_kill_at_any_request_leaves_the_old_or_ends_as_the_new(new_influx_location, after):
    location = new_influx_location()
    async with Gate(location.url) as gate:
        number, is_over, outcomes = 0, False, []
        while not is_over:
            number += 1
            location.spool = location.spool.with_name(f"{number}")
            location.database = f"{location.database}-{number}"
            await prepared(location)
            is_over = not await killed_at(gate, location, number, after=after)
            store = await location.open()
            had_begun = store._writer.has_begun_replacement
            found = await everything(store)
            if not is_over:
                assert found == whole(1 if had_begun else 0), gate.seen
                outcomes.append((gate.seen[number - 1], had_begun))
            await store.append([Record(SERIES, T0 + 2 * DAY, b'{"A":9}')])
            assert len(await everything(store)) == len(found) + 1
            await store.close()
    assert ("DELETE", True) in outcomes
    assert ("/write", True) in outcomes
    assert [begun for _, begun in outcomes] == sorted(begun for _, begun in outcomes)


def last_done(location: InfluxLocation, first: int, alive_s: float) -> int:
    """The last generation that a process had done when it was killed."""
    given = (location.url, location.database, str(location.spool), f"{first}")
    with loaded_child(CHILD, *given) as (child, said):
        assert said.readline() == "open\n"
        time.sleep(alive_s)  # how long it lives is the point of the round, not a wait for something
        child.kill()
        lines = [line.split() for line in said.read().splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1][1]) if lines else first - 1


async def test_kills_at_random_moments(new_influx_location):
    location = new_influx_location()
    await prepared(location)
    pick, done = random.Random(), 0
    for _ in range(8):
        done = last_done(location, done + 1, pick.uniform(0.02, 0.2))
        store = await location.open()
        found = await everything(store)
        assert found in (whole(done), whole(done + 1))
        done += found == whole(done + 1)
        await store.close()
    assert done > 8, "it was never alive"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("request_", ["DELETE", "/write"])
async def test_a_server_that_goes_away_meanwhile_has_it_all_when_it_is_back(new_influx_location, request_, after):
    location = new_influx_location()
    await prepared(location)
    async with Gate(location.url) as gate:
        location.url = gate.url
        store = await location.open()
        await store.check()
        place = 4 if request_ == "DELETE" else 5
        gate.stop_at(place, after=after, answers=True)
        with pytest.raises(StoreUnavailable, match="503"):
            await store.replace(SERIES, *INSIDE, generation(1), given=NOTHING)
        assert gate.seen[place - 1] == request_
        late = Record(SERIES, T0 + 3 * DAY, b'{"A":5}')
        await store.append([late])
        assert (store.stats().spool_batches, store._writer.has_begun_replacement) == (1, True)
        with pytest.raises(StoreUnavailable):
            await store.replace(SERIES, *INSIDE, generation(2), given=NOTHING)
        gate.open()
        await until(lambda: not store.stats().spool_batches and not store._writer.has_begun_replacement)
        wanted = sorted([*whole(1), late], key=lambda each: each.time_us)
        assert await everything(store) == wanted
        assert await store.replace(SERIES, *INSIDE, generation(2), given=NOTHING)
        assert await everything(store) == whole(2)
        await store.close()


async def test_what_waits_in_the_spool_is_not_overtaken(new_influx_location):
    location = new_influx_location()
    async with Gate(location.url) as gate:
        location.url = gate.url
        store = await location.open()
        await store.append(whole(0))
        gate.stop_at(1, after=False, answers=True)
        await store.append([Record(REPORTS, T0 + 2 * DAY, b"{}")])
        assert store.stats().spool_batches == 1
        gate.open()
        try:
            replaced = await store.replace(SERIES, *INSIDE, generation(1), given=NOTHING)
        except StoreUnavailable as error:
            assert "wait in the spool" in str(error)  # noqa: PT017 - or it was drained just before
        else:
            assert not replaced
        await until(lambda: not store.stats().spool_batches)
        assert not await store.replace(SERIES, *INSIDE, generation(1), given=NOTHING)
        assert await everything(store) == whole(0)
        await store.close()


async def test_a_call_that_is_cancelled_is_whole_and_questions_wait_for_it(new_influx_location):
    location = new_influx_location()
    await prepared(location)
    store = await location.open()
    await store.check()
    for number in range(1, 6):
        task = asyncio.create_task(store.replace(SERIES, *INSIDE, generation(number), given=NOTHING))
        await until(lambda: store._writer.has_begun_replacement)
        if number % 2:
            task.cancel()
        assert await everything(store) == whole(number)
        await asyncio.wait({task})
    await store.close()


async def test_no_other_series_is_hidden(new_influx_location):
    """1.6.7 hides series that were emptied once and filled again, when a DELETE empties another; over restarts too."""
    location, pick = new_influx_location(), random.Random()
    names = ["m/1", "m/2", "m/17"]
    kept: dict[str, list[Record]] = {name: [] for name in names}
    store = await location.open()
    for number in range(150):
        name = pick.choice(names)
        low, high = (0, 39) if number % 3 == 0 else sorted((pick.randrange(40), pick.randrange(40)))
        new = [
            Record(name, T0 + pick.randint(low, high) * DAY, b'{"n":%d}' % (10 * number + n))
            for n in range(pick.choice((0, 0, 1, 3)))
        ]
        if pick.random() < 0.3:
            await store.append(new)
            kept[name] += new
        else:
            assert await store.replace(name, T0 + low * DAY, T0 + high * DAY, new, given=NOTHING)
            inside = range(T0 + low * DAY, T0 + high * DAY + 1)
            kept[name] = [each for each in kept[name] if each.time_us not in inside] + new
        if number % 25 == 24:
            await store.close()
            store = await location.open()
        for each in names:
            found = await everything(store, each)
            assert found == sorted(kept[each], key=lambda record: record.time_us), (number, each)
    await store.close()


async def test_what_is_older_than_the_server_keeps_is_refused_before_anything_changes(new_influx_location, influxd):
    location = new_influx_location()
    store = await location.open()
    await store.check()
    influxd.query(f'CREATE RETENTION POLICY "month" ON "{location.database}" DURATION 30d REPLICATION 1 DEFAULT')
    now_us = time.time_ns() // 1000
    was = Record(SERIES, now_us - DAY, b'{"A":1}')
    await store.append([was])
    new = [Record(SERIES, now_us - 31 * DAY, b'{"A":2}'), Record(SERIES, now_us, b'{"A":3}')]
    with pytest.raises(NotReplaceable, match="beyond retention policy"):
        await store.replace(SERIES, 0, END, new, given=NOTHING)
    assert (await everything(store), store._writer.has_begun_replacement) == ([was], False)
    assert await store.replace(SERIES, 0, END, new[1:], given=NOTHING)
    assert await everything(store) == new[1:]
    await store.close()
