"""Replays and their neighbours: only the object's own terminals wait, and companies take turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from replay_stand import RICH, SECOND, T0, Stand

from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.errors import Conflict
from terrazzo.mapping.replay import reasons, running_objects
from terrazzo.mapping.replay.journal import CANCELLED, MOST_WAITING
from terrazzo.mapping.replay.run import ReplayRun, ReplayTask
from terrazzo.mapping.replay.running_objects import RunningObjects
from waiting import until


@pytest.fixture
async def neighbour(stand: Stand) -> Stand:
    """With a terminal of another company, which feeds an object there."""
    entities = stand.entities
    company = await entities.companies.create(SYSTEM, {"name": "other"})
    other = Actor(user_id=1, username="v", company_id=company["id"], role=Role.ADMIN)
    config = await entities.configurations.create(other, {"name": "c"})
    terminal = {"uid": "t9", "name": "t9", "type": "Other", "mode": "pwd", "username": "t9", "pin": "p"}
    await entities.terminals.create(other, {**terminal, "config_id": config["uid"]})
    mapping = await entities.mappings.create(other, {"name": "m", "script": RICH})
    await entities.objects.create(other, {"name": "o", "mapping_id": mapping["uid"], "terminal_list": ["t9"]})
    return stand


async def test_others_reports_are_taken_while_an_object_stands_still(
    neighbour: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database takes its time with the last events; the object's own report comes in its place afterwards."""
    stand, at_end, database = neighbour, asyncio.Event(), asyncio.Event()

    async def slowly(self: RunningObjects) -> None:
        at_end.set()
        await database.wait()

    monkeypatch.setattr(RunningObjects, "settled", slowly)
    await stand.report((0, "t1", {"T": 70}), (1, "t2", {"RUN": 1}))
    await stand.remap(RICH)
    replay_id = await stand.submit(-10, None)
    await asyncio.wait_for(at_end.wait(), 30)
    own = stand.send((2, "t1", {"T": 71}))
    for number in range(20):
        await asyncio.wait_for(stand.send((number, "t9", {"T": number})).wait(), 10)
    assert not stand.is_intake_paused
    assert not own.is_set()
    database.set()
    assert (await stand.ended(replay_id))["state"] == "done"
    await asyncio.wait_for(own.wait(), 10)
    await stand.report()
    assert (await stand.mosaic())[-1] == (2, {"T": 344, "N": 2})


async def test_an_object_stands_still_for_bounded_time(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = asyncio.Event()

    async def never(self: RunningObjects) -> None:
        waits.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(running_objects, "_STILL_FOR_S", 0.2)
    monkeypatch.setattr(RunningObjects, "settled", never)
    await stand.report((0, "t1", {"T": 70}))
    replay_id = await stand.submit(-10, None)
    await asyncio.wait_for(waits.wait(), 30)
    await asyncio.wait_for(stand.send((2, "t1", {"T": 71})).wait(), 10)
    await stand.replays.cancel(stand.actor, replay_id)
    assert (await stand.ended(replay_id))["state"] in (CANCELLED, "failed")


async def test_replays_of_a_company_leave_others_their_turn(neighbour: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    stand, begun, gate = neighbour, list[int](), asyncio.Event()

    async def held(self: ReplayRun) -> None:
        begun.append(self.task.object_id)
        await gate.wait()

    monkeypatch.setattr(ReplayRun, "run", held)
    other = Actor(user_id=1, username="v", company_id=2, role=Role.ADMIN)
    journal = stand.replays._journal
    for object_id in range(1, MOST_WAITING + 1):
        await journal.add(stand.actor, _task(object_id), {"permission_company_id": 1}, T0)
    with pytest.raises(Conflict, match=f"{MOST_WAITING} replays of your company wait already"):
        await journal.add(stand.actor, _task(900), {"permission_company_id": 1}, T0)
    whose = await stand.entities.objects.item(other, 2)
    last = await stand.replays.submit(other, whose, T0, T0 + SECOND, dry_run=True)
    await until(lambda: sorted(begun) == [1, 2])
    gate.set()
    async with asyncio.timeout(30):
        while (await stand.replays.item(other, last))["state"] != "done":  # noqa: ASYNC110 - a row of the database
            await asyncio.sleep(0.005)
    await until(lambda: len(begun) == MOST_WAITING + 1)
    assert begun[2:] == list(range(2, MOST_WAITING + 1)), "in their order"


async def test_a_replay_that_goes_wrong_hurts_itself_alone(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is wrong: what it would have replaced stays, its object goes on, and the next one has its turn."""
    run, gone_wrong = ReplayRun.run, list[int]()

    async def broken(self: ReplayRun) -> None:
        if gone_wrong:
            await run(self)
        else:
            gone_wrong.append(self.task.object_id)
            raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(ReplayRun, "run", broken)
    await stand.report((0, "t1", {"T": 70}))
    before = await stand.mosaic()
    failed = await stand.ended(await stand.submit(-10, None))
    assert (failed["state"], failed["info"]) == ("failed", reasons.INTERNAL)
    assert "a replay failed" in caplog.text
    assert await stand.mosaic() == before
    await stand.report((1, "t1", {"T": 71}))
    assert len(await stand.mosaic()) == len(before) + 1
    assert (await stand.ended(await stand.submit(-10, None)))["state"] == "done"


def _task(object_id: int) -> Any:
    return ReplayTask(object_id, T0, T0 + SECOND, True)
