"""A front's record: each start has a later epoch, a name is one process's, and who was declared dead can't go on."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from terrazzo.ports.stream import LogUnavailable
from terrazzo.replication.front_lease import FRONT_PREFIX, FrontLease, decode_front, fronts_of
from terrazzo.replication.members import NodeTaken
from terrazzo_adapters.jetstream import Connection, JetStreamRecords


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
async def records(connection: Connection) -> JetStreamRecords:
    opened = JetStreamRecords(connection)
    await opened.open()
    return opened


def lease(records: JetStreamRecords, run: str, clock: Clock) -> FrontLease:
    return FrontLease(records, node="f", run=run, lease_s=0.5, clock=clock)


async def renew(each: FrontLease) -> None:
    await each.renew(version="1", seen_us=5, clients=2, frames=3)


async def test_each_start_has_a_later_epoch_also_when_its_record_was_deleted(records: JetStreamRecords) -> None:
    first, clock = lease(records, "one", clock := Clock()), clock
    assert not first.is_held
    await first.claim(1_000)
    await renew(first)
    await first.give_back()
    second = lease(records, "two", clock)
    await second.claim(7)
    assert (first.epoch, second.epoch) == (1_000, 1_001)
    await records.delete(FRONT_PREFIX + "f")
    third = lease(records, "three", clock)
    await third.claim(2_000)
    assert third.epoch == 2_000
    with pytest.raises(NodeTaken, match="another process runs as the front 'f'"):
        await renew(second)
    (shown,) = fronts_of(await records.all())
    assert (shown.node, shown.run, shown.is_free) == ("f", "three", False)


async def test_a_name_is_taken_while_its_record_is_written(records: JetStreamRecords) -> None:
    first, second = lease(records, "one", Clock()), lease(records, "two", Clock())
    await first.claim(1)
    claiming = asyncio.create_task(second.claim(2))
    while not claiming.done():
        await renew(first)
        await asyncio.sleep(0.05)
    with pytest.raises(NodeTaken):
        claiming.result()
    await second.claim(2)  # nobody writes it any more
    assert second.epoch > first.epoch


async def test_who_was_declared_dead_cannot_write_its_record(records: JetStreamRecords) -> None:
    clock = Clock()
    front = lease(records, "one", clock)
    await front.claim(1)
    assert front.is_held
    clock.now_s += 0.6
    assert not front.is_held
    await renew(front)
    assert front.is_held
    found = await records.get(FRONT_PREFIX + "f")
    assert found is not None
    dead = msgspec.structs.replace(decode_front(found.value), is_free=True)
    await records.put(FRONT_PREFIX + "f", msgspec.json.encode(dead), revision=found.revision)
    with pytest.raises(NodeTaken, match="declared dead"):
        await renew(front)


class LosingAnswers:
    """Records of which the next writing is done, and its answer lost."""

    def __init__(self, records: JetStreamRecords) -> None:
        self._records = records
        self.loses = True
        self.get = records.get

    async def put(self, key: str, value: bytes, *, revision: int) -> int:
        found = await self._records.put(key, value, revision=revision)
        if self.loses:
            self.loses = False
            raise LogUnavailable("lost on its way back")
        return found


async def test_a_writing_without_an_answer_shows_no_life_later_on(records: JetStreamRecords) -> None:
    """Whoever has seen that record since then may declare the front dead: it has to be written anew."""
    clock = Clock()
    front = FrontLease(records, node="f", run="one", lease_s=0.5, clock=clock)
    await front.claim(1)
    front._records = LosingAnswers(records)
    with pytest.raises(LogUnavailable):
        await renew(front)
    seen = await records.get(FRONT_PREFIX + "f")
    clock.now_s += 0.4
    await renew(front)
    assert front.is_held
    now = await records.get(FRONT_PREFIX + "f")
    assert seen is not None
    assert now is not None
    assert now.revision > seen.revision, "it is held from a writing of this moment on"
