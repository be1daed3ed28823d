"""The checker of the fault rounds finds what is planted: in a real log and real stores, and in what terminals know."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cluster.cluster_checker import KINDS, check
from cluster.cluster_evidence import CommandRecord, Evidence, Published, Report, Stored, Taken, expected_effects, points
from cluster.cluster_reading import read_log, read_replica
from nats_servers import running_nats
from support import new_tasks
from terrazzo.ports.store import Record
from terrazzo.replication.applying import apply
from terrazzo.replication.frame import Appended, appended, encode_frames, records_of
from terrazzo.replication.position import Position
from terrazzo_adapters.jetstream import Connection, JetStreamLog, JetStreamSettings
from terrazzo_adapters.rocksdb import RocksStore

REPORTS = 260  # enough for events and labels
IN_FRAME = 20
START_US = 1_790_000_000_000_000
Fault = Callable[[int, Appended], list[Appended]]
"""What is put in place of an operation, by its number."""


def operations() -> list[Appended]:
    """What a leader writes of one terminal's reports."""
    bodies = [json.dumps({"n": number, "c": 1, **points(number)}).encode() for number in range(REPORTS)]
    records = [Record("g/t/r", START_US + number, body) for number, body in enumerate(bodies)]
    return [appended(records[start : start + IN_FRAME], {}) for start in range(0, REPORTS, IN_FRAME)]


def published() -> list[Published]:
    """What its terminal knows: all were acknowledged, ten at a time in flight."""
    return [Published(Report(1, number), 2 * number, 2 * number + 21) for number in range(REPORTS)]


@asynccontextmanager
async def a_log(folder: Path, fault: Fault, *, stale: int = 0) -> AsyncIterator[JetStreamLog]:
    """A real log in which a leader of epoch 2 writes, with a fault; ``stale``: behind so many frames one of epoch 1."""
    with running_nats(folder) as (server,):
        connection = Connection(JetStreamSettings(url=server.url, name="checked", replicas=1, most_bytes=64 << 20))
        await connection.open()
        log = JetStreamLog(connection)
        await log.open()
        written = [each for number, one in enumerate(operations()) for each in fault(number, one)]
        for number, operation in enumerate(written, 1):
            epoch = 1 if number == stale else 2
            (frame,) = encode_frames(operation, epoch=epoch, number=number, most_bytes=log.most_bytes)
            await log.publish(frame, message_id=f"{number}", last=None)
        yield log
        await connection.close()


async def fill(folder: Path, log: JetStreamLog, fault: Fault) -> None:
    """A store of one that follows this log, but for a fault."""
    state, tasks = await log.state(), new_tasks()
    store = await RocksStore.open(folder, tasks=tasks)
    for number, operation in enumerate(operations()):
        for each in fault(number, operation):
            await apply(store, each, Position("L", state.created, number + 1, 2))
    await store.append((), notes={"cluster/position": Position("L", state.created, state.last, 2).encode()})
    await store.close()
    await tasks.close()


def no_fault(_number: int, operation: Appended) -> list[Appended]:
    return [operation]


def dropped(number: int, operation: Appended) -> list[Appended]:
    return [] if number == 5 else [operation]


def doubled(number: int, operation: Appended) -> list[Appended]:
    return [operation, operation] if number == 5 else [operation]


def swapped(number: int, operation: Appended) -> list[Appended]:
    """Two reports have each other's place and time."""
    if number != 5:
        return [operation]
    records = records_of(operation)
    first, last = records[0], records[-1]
    records[0] = Record(first.series, first.time_us, last.body)
    records[-1] = Record(last.series, last.time_us, first.body)
    return [appended(records, {})]


async def evidence(folder: Path, *, in_log: Fault = no_fault, in_store: Fault = no_fault, stale: int = 0) -> Evidence:
    """Of a run whose log, or whose second node's store, has a fault; events and labels follow from what was sent."""
    async with a_log(folder / "nats", in_log, stale=stale) as log:
        await fill(folder / "a", log, no_fault)
        await fill(folder / "b", log, in_store)
        frames, logged = await read_log(log)
        replicas = {name: await read_replica(folder / name, log) for name in "ab"}
    events, labels = expected_effects(replicas["a"].reports["t"])
    return Evidence({"t": published()}, replicas, frames, logged, {"t": events}, {"t": labels})


async def kinds(folder: Path, *, in_log: Fault = no_fault, in_store: Fault = no_fault, stale: int = 0) -> set[str]:
    return {each.kind for each in check(await evidence(folder, in_log=in_log, in_store=in_store, stale=stale)).findings}


async def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    verdict = check(await evidence(tmp_path))
    assert verdict.findings == []
    assert (verdict.published, verdict.acknowledged, verdict.stored) == (REPORTS, REPORTS, REPORTS)


async def test_a_frame_that_a_node_drops_doubles_or_changes_is_found(tmp_path: Path) -> None:
    assert await kinds(tmp_path / "dropped", in_store=dropped) == {"lost", "replicas"}
    assert await kinds(tmp_path / "doubled", in_store=doubled) == {"twice", "replicas"}
    assert await kinds(tmp_path / "swapped", in_store=swapped) == {"order", "replicas"}


async def test_a_frame_that_the_log_lacks_has_twice_or_in_another_order_is_found(tmp_path: Path) -> None:
    assert "lost" in await kinds(tmp_path / "dropped", in_log=dropped)
    assert "twice" in await kinds(tmp_path / "doubled", in_log=doubled)
    assert "order" in await kinds(tmp_path / "swapped", in_log=swapped)


async def test_a_stale_leader_that_writes_is_found(tmp_path: Path) -> None:
    assert await kinds(tmp_path, stale=7) == {"stale"}


@pytest.fixture(scope="module")
def sound() -> Evidence:
    """Of a run in which all is as it has to be, made of values alone."""
    from cluster.cluster_evidence import LogFrame, Replica, Stored

    stored = [Stored(each.report, START_US + each.report.number) for each in published()]
    events, labels = expected_effects(stored)
    replicas = {name: Replica({"t": list(stored)}, {"g/t/r": "1"}) for name in "ab"}
    frames = [LogFrame(number, 1) for number in range(3, 9)]
    found = Evidence({"t": published()}, replicas, frames, {"t": list(stored)}, {"t": events}, {"t": labels})
    found.given = {"k-1": "t"}
    found.commands = {"k-1": CommandRecord("t", [(10, "queued"), (20, "sent"), (40, "delivered")], 1)}
    found.taken = {"k-1": Taken([25, 28], [26, 29])}
    return found


def _lose_event(found: Evidence) -> None:
    found.events["t"].pop()


def _double_event(found: Evidence) -> None:
    found.events["t"].append(found.events["t"][0])


def _open_label(found: Evidence) -> None:
    found.labels["t"][0] = found.labels["t"][0]._replace(closed_us=None)


def _lose_frame(found: Evidence) -> None:
    del found.frames[2]


def _invent(found: Evidence) -> None:
    stored = found.replicas["b"].reports["t"]
    stored.append(stored[0]._replace(report=Report(7, 1)))


def _connect_again(found: Evidence) -> None:
    """A later connection's report stands before one that was acknowledged before it was sent."""
    found.published["t"].append(Published(Report(2, REPORTS), 9_000, 9_001))
    for each in (found.logged, *(replica.reports for replica in found.replicas.values())):
        each["t"].insert(3, each["t"][0]._replace(report=Report(2, REPORTS)))


def _never_acknowledged(found: Evidence) -> None:
    found.taken["k-1"].acknowledged.clear()


def _acknowledged_later(found: Evidence) -> None:
    found.taken["k-1"].acknowledged = [41]


def _sent_again(found: Evidence) -> None:
    found.taken["k-1"].came.append(44)


def _unsaid(found: Evidence) -> None:
    found.commands["k-1"].states.append((50, "queued"))


def _journaled_twice(found: Evidence) -> None:
    found.commands["k-1"].rows = 2


def _lose_command(found: Evidence) -> None:
    found.given["k-2"] = "t"


def _never_delivered(found: Evidence) -> None:
    found.commands["k-1"].states.pop()


PLANTED = {
    _lose_event: "events",
    _double_event: "events",
    _open_label: "labels",
    _lose_frame: "gap",
    _invent: "unknown",
    _connect_again: "order",
    _never_acknowledged: "delivered",
    _acknowledged_later: "delivered",
    _sent_again: "again",
    _unsaid: "unsaid",
    _journaled_twice: "command",
    _lose_command: "command",
    _never_delivered: "command",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__.strip("_"))
def test_what_is_planted_is_found(sound: Evidence, plant: Callable[[Evidence], None]) -> None:
    assert check(sound).findings == []
    found = copy.deepcopy(sound)
    plant(found)
    assert PLANTED[plant] in {each.kind for each in check(found).findings}


def test_what_was_sent_again_is_no_finding_and_is_counted(sound: Evidence) -> None:
    """A PUBACK was lost: the terminal sends the number again on its next connection, and both are stored."""
    found = copy.deepcopy(sound)
    last = found.published["t"][-1]
    last.acknowledged = None
    found.published["t"].append(Published(Report(2, last.report.number), 9_000, 9_001))
    for each in (found.logged, *(replica.reports for replica in found.replicas.values())):
        each["t"].append(each["t"][-1]._replace(report=Report(2, last.report.number)))
    verdict = check(found)
    assert verdict.findings == []
    assert (verdict.repeated, verdict.late) == (1, 0)


def test_what_is_older_than_what_stands_before_it_raises_nothing() -> None:
    numbers = [(1, 0), (3, 60), (2, 30), (4, 75), (9, 110), (5, 80), (12, 220)]
    events, labels = expected_effects([Stored(Report(0, number), time_us) for time_us, number in numbers])
    assert events == [4], "what had made it hot at 2 is late"
    assert [(each.opened_us, each.closed_us) for each in labels] == [(9, 12)], "and what came late closes none"


def test_each_kind_is_planted_somewhere() -> None:
    in_stores = {"lost", "twice", "order", "replicas", "stale"}
    assert in_stores | set(PLANTED.values()) == set(KINDS)
