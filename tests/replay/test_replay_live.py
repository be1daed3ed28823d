"""A replay beside a running ingest: nothing that comes is lost; up to now, what is known is renewed."""

from __future__ import annotations

import asyncio
import json

import pytest
import sqlalchemy as sa
from replay_stand import RICH, SECOND, T0, Stand

from terrazzo.analysis.results import decode_variables
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.tables.analysis import STATISTICS_PERIOD
from terrazzo.errors import BadParameter, Conflict, NotFound
from terrazzo.ports.store import Record
from terrazzo.times import now_us

MANY = 6_000


def grid(count: int) -> list[Record]:
    """Reports of one terminal, a second apart, that no mapping has seen."""
    return [Record("g/t1/r", T0 + at_s * SECOND, json.dumps({"T": at_s % 100}).encode()) for at_s in range(count)]


async def running(stand: Stand, replay_id: int, records: int) -> None:
    """Returns when a replay has read so many reports."""
    async with asyncio.timeout(30):
        while (await stand.replays.item(stand.actor, replay_id))["records_done"] < records:  # noqa: ASYNC110 - a figure
            await asyncio.sleep(0)


async def test_up_to_now_renews_what_is_known_and_keeps_it_over_a_restart(stand: Stand) -> None:
    await stand.report((0, "t1", {"T": 70}), (1, "t2", {"RUN": 1}))
    assert stand.mapper.is_label_open(1, 1, "RUN")
    await stand.remap(RICH)
    await stand.replay(-10, None)
    assert not stand.mapper.is_label_open(1, 1, "RUN")
    assert (await stand.labels(), await stand.events(), stand.is_intake_paused) == ([], [], False)
    await stand.report((2, "t2", {"RUN": 0}))
    assert await stand.labels() == [("RUN", 2, None)]
    assert await stand.events() == [(2, "HOT", "70")]
    await stand.stop()
    await stand.start()
    assert stand.mapper.is_label_open(1, 1, "RUN")
    await stand.report((3, "t1", {"T": 80}), (4, "t2", {"RUN": 1}))
    assert await stand.labels() == [("RUN", 2, 4)]
    assert (await stand.mosaic())[-2:] == [(3, {"T": 353, "BOTH": 353, "N": 2}), (4, {"RUN": 0, "BOTH": 0})]


async def test_a_past_range_leaves_what_is_known_alone(stand: Stand) -> None:
    await stand.report((0, "t1", {"T": 70}), (1, "t2", {"RUN": 1}))
    await stand.remap(RICH)
    await stand.replay(-10, 0.5)
    assert stand.mapper.is_label_open(1, 1, "RUN")
    assert await stand.labels() == [("RUN", 1, None)]
    assert await stand.mosaic() == [(0, {"T": 343, "N": 1}), (1, {"RUN": 1})]
    await stand.report((2, "t2", {"RUN": 1}))
    assert await stand.labels() == [("RUN", 1, 2)]  # under the new mapping it is 0


async def test_reports_that_come_meanwhile_are_not_lost(stand: Stand) -> None:
    await stand.store.append(grid(MANY))
    replay_id = await stand.submit(-10, MANY)
    await running(stand, replay_id, MANY // 2)
    late = [(at_s + 0.5, "t2", {"RUN": at_s // 500 % 2}) for at_s in range(10, MANY, 500)]
    await stand.report(*late)
    row = await stand.ended(replay_id)
    assert row["state"] == "done"
    assert row["mosaic_after"] == MANY + len(late)
    once = await stand.everything()
    assert {at_s for at_s, _ in once[0]} >= {at_s for at_s, _, _ in late}
    await stand.replay(-10, MANY)
    assert await stand.everything() == once


async def test_up_to_now_while_reports_keep_coming_at_their_time(stand: Stand) -> None:
    await stand.store.append(grid(MANY))
    replay_id = await stand.submit(-10, None)
    await running(stand, replay_id, MANY // 2)
    sent = 0
    while (await stand.replays.item(stand.actor, replay_id))["state"] == "running":
        if stand.is_intake_paused:  # as the broker does
            await asyncio.sleep(0)
            continue
        sent += 1
        await stand.send(((now_us() - T0) / SECOND, "t1", {"T": sent % 100})).wait()
    assert (await stand.ended(replay_id))["state"] == "done"
    assert sent
    await stand.report()
    once = await stand.everything()
    assert len(once[0]) == MANY + sent
    await stand.replay(-10, None)
    assert await stand.everything() == once


async def test_a_replay_can_be_cancelled(stand: Stand) -> None:
    await stand.store.append(grid(4 * MANY))
    replay_id = await stand.submit(-10, 4 * MANY)
    waiting = await stand.submit_for_other()
    assert (await stand.replays.cancel(stand.actor, waiting))["state"] == "cancelled"
    await running(stand, replay_id, 2_500)
    await stand.replays.cancel(stand.actor, replay_id)
    row = await stand.ended(replay_id)
    assert row["state"] == "cancelled"
    assert 0 < row["records_done"] < 4 * MANY
    assert await stand.events() == []
    made = await stand.mosaic()
    assert made == [(at_s, {"T": at_s % 100}) for at_s in range(len(made))]  # whole pieces
    assert await stand.replays.cancel(stand.actor, replay_id) == row  # it has ended


async def test_one_replay_of_an_object_at_a_time(stand: Stand) -> None:
    await stand.store.append(grid(MANY))
    first = await stand.submit(-10, MANY)
    with pytest.raises(Conflict, match=rf"object_id: replay {first} of this object is not finished"):
        await stand.submit(-10, MANY, dry_run=True)
    await stand.ended(first)
    await stand.replay(-10, 0)


async def test_a_mapping_that_changes_meanwhile_is_said(stand: Stand) -> None:
    await stand.store.append(grid(MANY))
    replay_id = await stand.submit(-10, MANY)
    await running(stand, replay_id, MANY // 2)
    await stand.remap(RICH)
    row = await stand.ended(replay_id)
    assert row["state"] == "failed"
    assert row["info"] == "the object, its mapping or its retainers were changed meanwhile: replay it again"
    await stand.replay(-10, MANY)
    assert (await stand.mosaic())[5] == (5, {"T": 278, "N": 6})


async def test_changes_that_are_told_twice_or_dont_matter_disturb_nothing(stand: Stand) -> None:
    """As when the platform reads its own changes, a second after it made them."""
    await stand.store.append(grid(MANY))
    await stand.remap(RICH)
    replay_id = await stand.submit(-10, None)
    await running(stand, replay_id, MANY // 2)
    entities = stand.entities
    await entities.objects.update(stand.actor, 1, {"name": "renamed"})
    for repository in (entities.mappings, entities.objects, entities.retainers):
        await repository.refresh([MetadataChange(repository.entity.name, 1, "1")])
    row = await stand.ended(replay_id)
    assert (row["state"], row["info"]) == ("done", "")
    assert (await stand.mosaic())[5] == (5, {"T": 278, "N": 6})


async def test_what_can_not_be_replayed_is_refused(stand: Stand) -> None:
    with pytest.raises(BadParameter, match="start_time: is after end_time"):
        await stand.submit(10, 9)
    with pytest.raises(BadParameter, match="start_time: is after now"):
        await stand.submit(10**9, None)
    await stand.entities.objects.update(stand.actor, 1, {"is_available": 0})
    with pytest.raises(BadParameter, match="object_id: the object has no mapping that is in force"):
        await stand.submit(0, 1)
    with pytest.raises(NotFound):
        await stand.replays.item(stand.actor, 1)


async def test_statistics_of_the_range_are_computed_again(stand: Stand) -> None:
    script = {"name": "s", "object_list": ["1"], "script": [["MOST", "max", "T"]]}
    made = await stand.entities.statistics.create(stand.actor, script)
    await stand.entities.statistics.set_active(stand.actor, made["uid"], True)
    await stand.report(*((minute * 60, "t1", {"T": minute}) for minute in range(90)))
    await stand.analysis.work()
    before = await _hours(stand)
    assert before
    assert max(before) < 90
    await stand.remap(RICH)
    await stand.replay(-10, 100 * 60)
    await stand.analysis.work()
    found = await _hours(stand)
    assert found
    assert min(found) >= 273


async def _hours(stand: Stand) -> list[float]:

    async with stand.database.reading() as connection:
        query = sa.select(STATISTICS_PERIOD.c.data).where(STATISTICS_PERIOD.c.type == 1)
        data = (await connection.execute(query)).scalars().all()
    values = [decode_variables(each)["MOST"] for each in data]
    return [float(each) for each in values if each is not None]
