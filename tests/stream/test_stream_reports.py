"""What a front takes ends in the leader's store as if its terminal were connected there, whatever answer is lost and
whichever of the two begins anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from test_stream_replication import FaultyLog, Skipping, content, rocks

from support import new_tasks
from terrazzo.domain.answers import CommandAnswer
from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import ReportTopic
from terrazzo.domain.terminal import Terminal
from terrazzo.embedded.front_log import FrontLog, FrontLogStats, NoStore
from terrazzo.embedded.front_reader import FrontReader, FrontReaderStats
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import ReportTag, Seals, make_tag
from terrazzo.ports.store import StoreUnavailable, TimeSeriesStore
from terrazzo.ports.stream import LogWentBack
from terrazzo.replication.in_position import IN_NOTE, read_in_position
from terrazzo.terminals.presence import PresenceRegister
from terrazzo_adapters.jetstream import Connection, JetStreamLog
from terrazzo_broker.hooks import Client, Inbound
from waiting import until

ARRIVED_US = 1_790_000_000_000_000
BODIES = (
    b'{"a":%d}',
    b' {"a":%d,"Time":1780000000}',
    b'{"a":%d,"Time":100}',
    b'{"a":%d,"Time":"2100-01-01T00:00:00Z"}',
    b'{"a":{"b":%d}}',
    b"{oops %d",
    b"[%d]",
    b'{"a":"\xff%d"}',
)


class Gate:
    """The valve of an intake that nobody reads into."""

    def __init__(self) -> None:
        self.kicked: list[str] = []

    def pause_intake(self) -> None: ...

    def resume_intake(self) -> None: ...

    def kick(self, client_id: str) -> bool:
        self.kicked.append(client_id)
        return True


class Batch:
    """Reports of one connection, and how they were answered."""

    def __init__(self, client: Client, messages: Sequence[Inbound], arrived_us: int) -> None:
        self.client, self.messages, self.arrived_us = client, messages, arrived_us
        self.answer: dict[int, int] | None = None

    def settle(self, refusals: Mapping[int, int] | None = None) -> None:
        assert self.answer is None
        self.answer = dict(refusals or {})

    def hold(self) -> None: ...

    def release(self) -> None: ...


def terminal(number: int, **values: Any) -> Terminal:
    uid = f"t{number}"
    given = {
        "name": uid,
        "company_id": 1 + number % 2,
        "type": "x",
        "mode": "pwd",
        "username": uid,
        "pin": f"pin {uid}",
    }
    return Terminal(id=number, uid=uid, **given, **values)


class Site:
    """Terminals, one of which seals what it says and one of which has a series of a later record."""

    def __init__(self) -> None:
        self.registry, self.presence, self.seals = Registry(), PresenceRegister(), Seals()
        self.terminals = [terminal(1), terminal(2, encryption=True), terminal(3, series="t3#3"), terminal(4)]
        for each in self.terminals:
            self.registry.put_terminal(each)
        self.clients = {
            each.uid: Client(each.uid, None, 5, "", 0, "tcp", ARRIVED_US, 0, owner=each.owner)
            for each in self.terminals
        }

    def tag(self, owner: Terminal, channel: str) -> ReportTag:
        report = ReportTopic(f"g/{owner.uid}/{channel}", owner, channel)
        return make_tag(report, trace=self.presence.trace(owner.uid), seal=self.seals.of(owner))

    def batches(self, random: Random, count: int) -> list[Batch]:
        """Reports of all kinds, the same for the same seed and terminals."""
        found, number = [], 0
        for index in range(count):
            owner = random.choice(self.terminals)
            messages = []
            for _ in range(random.choice((1, 1, 1, 5, 40))):
                number += 1
                body = random.choice(BODIES) % number
                if owner.encryption and random.random() < 0.8:
                    seal = self.seals.of(owner)
                    assert seal is not None
                    body = seal.seal(body)
                correlation = b"c%d" % number if random.random() < 0.2 else None
                messages.append(Inbound(self.tag(owner, random.choice("rn")), body, correlation))
            found.append(Batch(self.clients[owner.uid], messages, ARRIVED_US + index))
        return found


@asynccontextmanager
async def pipeline(store: Any, **more: Any) -> AsyncIterator[IngestPipeline]:
    tasks = new_tasks()
    found = IngestPipeline(store, Gate(), tasks=tasks, limits=IngestLimits(group_messages=60), **more)
    found.start()
    yield found
    await found.stop(timeout_s=0.01)
    await tasks.close()


async def front(log: Any, batches: Sequence[Batch], *, epoch: int) -> None:
    """A front takes all batches, until each is answered."""
    is_held = Random(epoch)  # at times it has to wait until it has shown again that it lives
    kept = FrontLog(log, node="f", epoch=epoch, stats=FrontLogStats(), is_held=lambda: is_held.random() < 0.8)
    async with pipeline(NoStore(), keeper=kept) as ingest:
        for batch in batches:
            ingest.take(batch)
            await asyncio.sleep(0)
        await until(lambda: all(batch.answer is not None for batch in batches), timeout_s=60)


@asynccontextmanager
async def leader(log: JetStreamLog, store: TimeSeriesStore, site: Site) -> AsyncIterator[FrontReader]:
    """A leader that stores what fronts have taken; it ends wherever it is."""

    def lose(why: str) -> None:
        raise AssertionError(why)

    async with pipeline(store) as ingest:
        reader = FrontReader(
            log,
            await read_in_position(store, await log.state()),
            ingest=ingest,
            registry=site.registry,
            presence=site.presence,
            stats=FrontReaderStats(),
            lose=lose,
        )
        ingest.noter = reader
        task = asyncio.create_task(reader.follow())
        yield reader
        reader.end()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled() or task.exception() is None
    await store.append((), notes={"behind what was under way": None})  # as another process would find it


@pytest.fixture
async def log(connection: Connection) -> JetStreamLog:
    opened = JetStreamLog(connection, kind="in")
    assert not await opened.is_there()
    await opened.open()
    assert await opened.is_there()
    return opened


async def without_place(store: TimeSeriesStore) -> dict[str, object]:
    """All of a store but how far it is; of rejects that were sealed, which are sealed anew for each test, the rest."""
    found = {name: value for name, value in (await content(store)).items() if name != IN_NOTE}
    for name in [name for name in found if name.startswith("x/")]:
        rejects = [(each.time_us, msgspec.msgpack.decode(each.body)) for each in found[name]]  # type: ignore[attr-defined]
        found[name] = [
            (time_us, reject["topic"], reject["reason"], b"" if reject["payload"][:3] == b"eyJ" else reject["payload"])
            for time_us, reject in rejects
        ]
    return found


async def directly(folder: Path, batches: Sequence[Batch]) -> tuple[dict[str, object], list[CommandAnswer]]:
    """What a store has when these terminals are connected to it, and what they have answered."""
    answers: list[CommandAnswer] = []
    async with rocks(folder) as store, pipeline(store) as ingest:
        ingest.answers.listen(answers.append)
        for batch in batches:
            ingest.take(batch)
        await until(lambda: all(batch.answer is not None for batch in batches), timeout_s=60)
        return await without_place(store), answers


@pytest.mark.parametrize("seed", range(3))
async def test_a_front_s_reports_are_stored_as_the_leader_s_own(log: JetStreamLog, tmp_path: Path, seed: int) -> None:
    """Requests and answers of the log are lost, the front and the leader begin anew in between."""
    random, site = Random(seed), Site()
    faulty = FaultyLog(log, lambda: random.choice((*[""] * 9, "request", "answer", "full")))  # type: ignore[arg-type]
    batches = site.batches(Random(seed + 100), 60)
    async with rocks(tmp_path / "fronts") as store:
        for epoch, start in enumerate(range(0, 60, 20), 1):
            await front(faulty, batches[start : start + 20], epoch=epoch)
            async with leader(log, store, site) as reader:  # it may end before it has stored anything, or amid a frame
                await until(lambda: reader.stats.frames > 0, timeout_s=30)
                for _ in range(random.randrange(40)):
                    await asyncio.sleep(0)
        last = (await log.state()).last
        async with leader(log, store, site) as reader:
            await until(lambda: reader.stats.sequence == last, timeout_s=60)
            await until(lambda: not reader.stats.open, timeout_s=60)
        found = await without_place(store)
        position = await read_in_position(store, await log.state())
        assert (position.sequence, position.begun) == (last, {})
    expected, _ = await directly(tmp_path / "own", site.batches(Random(seed + 100), 60))
    assert {name: sorted(map(repr, value)) for name, value in found.items()} == {  # type: ignore[call-overload]
        name: sorted(map(repr, value))  # type: ignore[call-overload]
        for name, value in expected.items()
    }
    reports = {name: value for name, value in found.items() if name.startswith("g/")}
    assert reports == {name: value for name, value in expected.items() if name.startswith("g/")}, "in the same order"
    assert any(name.startswith("x/") for name in found)


async def test_terminals_are_told_at_fronts_what_the_leader_would_tell(log: JetStreamLog, tmp_path: Path) -> None:
    site = Site()
    batches, again = site.batches(Random(5), 30), site.batches(Random(5), 30)
    await front(log, batches, epoch=1)
    _, answers = await directly(tmp_path / "own", again)
    assert [each.answer for each in batches] == [each.answer for each in again]
    assert any(0x99 in (each.answer or {}).values() for each in batches)
    told: list[CommandAnswer] = []
    async with rocks(tmp_path / "fronts") as store, leader(log, store, site) as reader:
        reader._ingest.answers.listen(told.append)
        await until(lambda: len(told) == len(answers), timeout_s=30)
    assert answers
    assert sorted(map(repr, told)) == sorted(map(repr, answers))


async def test_a_frame_that_is_there_twice_is_stored_once(log: JetStreamLog, tmp_path: Path) -> None:
    """However long it took: the log's own window of deduplication doesn't count."""
    site = Site()
    batches = site.batches(Random(1), 5)
    await front(log, batches, epoch=4)
    for sequence in range(1, (await log.state()).last + 1):
        logged = await log.find(sequence)
        assert logged is not None
        await log.publish(logged.body, message_id=f"late {sequence}", last=None)
    last = (await log.state()).last
    async with rocks(tmp_path / "fronts") as store:
        async with leader(log, store, site) as reader:
            await until(lambda: reader.stats.sequence == last, timeout_s=30)
            assert reader.stats.repeated == last // 2
        found = await without_place(store)
    assert found == (await directly(tmp_path / "own", site.batches(Random(1), 5)))[0]


async def test_what_the_ingest_withholds_ends_the_leader_and_moves_no_place(log: JetStreamLog, tmp_path: Path) -> None:
    site, lost = Site(), list[str]()
    await front(log, site.batches(Random(2), 3), epoch=1)
    async with rocks(tmp_path / "fronts") as store, pipeline(store) as ingest:
        position = await read_in_position(store, await log.state())
        reader = FrontReader(
            log,
            position,
            ingest=ingest,
            registry=site.registry,
            presence=site.presence,
            stats=FrontReaderStats(),
            lose=lost.append,
        )
        ingest.noter = reader
        reader.cut()
        assert "is read again from the log" in lost[0]
        task = asyncio.create_task(reader.follow())
        await until(lambda: reader.stats.frames > 0, timeout_s=30)
        with pytest.raises(StoreUnavailable):
            reader.on_group(ingest._group)
        reader.end()
        task.cancel()
        await asyncio.wait({task})
        assert IN_NOTE not in await store.notes("")
        assert msgspec.msgpack.decode(position.encode(), type=type(position)) == position


async def test_a_leader_stops_at_a_gap_in_what_fronts_took(log: JetStreamLog, tmp_path: Path) -> None:
    site = Site()
    await front(log, site.batches(Random(4), 20), epoch=1)
    assert (await log.state()).last > 2
    async with rocks(tmp_path / "fronts") as store, pipeline(store) as ingest:
        reader = FrontReader(
            Skipping(log, 2),  # type: ignore[arg-type]
            await read_in_position(store, await log.state()),
            ingest=ingest,
            registry=site.registry,
            presence=site.presence,
            stats=FrontReaderStats(),
            lose=lambda why: None,
        )
        ingest.noter = reader
        with pytest.raises(LogWentBack, match="frame 3 of the log came behind 1"):
            await reader.follow()


async def test_a_front_that_may_be_declared_dead_acknowledges_nothing(log: JetStreamLog) -> None:
    """A later start of its name may have begun, and of an earlier epoch nothing is stored any more."""
    site, is_held = Site(), False
    (batch,) = site.batches(Random(3), 1)
    kept = FrontLog(log, node="f", epoch=1, stats=FrontLogStats(), is_held=lambda: is_held)
    async with pipeline(NoStore(), keeper=kept) as ingest:
        ingest.take(batch)
        await until(lambda: ingest.stats.store_failures > 1, timeout_s=30)
        assert batch.answer is None
        assert not ingest.is_healthy
        assert (await log.state()).last == 1, "sent once"
        is_held = True
        await until(lambda: batch.answer is not None, timeout_s=30)
        assert (await log.state()).last == 1
