"""A leader's store and those that follow it, over a real log and real RocksDB: alike, once, whatever answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from support import new_tasks
from terrazzo.ports.store import Record, Seen, StoreFull, StoreUnavailable, TimeSeriesStore
from terrazzo.ports.stream import LogFull, Logged, LogReader, LogState, LogUnavailable, LogWentBack, StaleWriter
from terrazzo.replication.checked_bytes import FrameTooNew
from terrazzo.replication.follower import Follower
from terrazzo.replication.leading import ReplicatedStore
from terrazzo.replication.position import NOTE, Position, read_position
from terrazzo_adapters.jetstream import Connection, JetStreamLog
from terrazzo_adapters.rocksdb import RocksStore
from waiting import until


class FaultyLog:
    """A log of which requests or answers are lost, as ``fault`` says of each: '', 'request', 'answer' or 'full'."""

    def __init__(self, log: JetStreamLog, fault: Callable[[], str] = lambda: "") -> None:
        self.log, self.fault = log, fault
        self.most_bytes = 4_096

    async def state(self) -> LogState:
        return await self.log.state()

    async def publish(self, body: bytes, *, message_id: str, last: int) -> int:
        fault = self.fault()
        if fault == "request":
            raise LogUnavailable("lost on its way")
        if fault == "full":
            raise LogFull("full")
        sequence = await self.log.publish(body, message_id=message_id, last=last)
        if fault == "answer":
            raise LogUnavailable("lost on its way back")
        return sequence

    async def find(self, sequence: int) -> Logged | None:
        return await self.log.find(sequence)

    def read(self, after: int, created: str) -> LogReader:
        return self.log.read(after, created)

    async def trim(self, before: int) -> None:
        await self.log.trim(before)


@pytest.fixture
async def log(connection: Connection) -> JetStreamLog:
    opened = JetStreamLog(connection)
    await opened.open()
    return opened


@asynccontextmanager
async def rocks(folder: Path) -> AsyncIterator[RocksStore]:
    tasks = new_tasks()
    store = await RocksStore.open(folder, tasks=tasks)
    yield store
    await store.close()
    await tasks.close()


def nobody(why: str) -> None:
    raise AssertionError(why)


async def leader(
    store: TimeSeriesStore, log: FaultyLog, *, epoch: int, on_lost: Callable[[str], None] = nobody
) -> ReplicatedStore:
    state = await log.state()
    position = await read_position(store) or Position("L", state.created, 0, 0)
    follower = Follower(log, store, position)
    await follower.follow_to(state.last)
    leading = ReplicatedStore(store, log, follower.position, last=state.last, epoch=epoch, on_lost=on_lost)
    await leading.begin(f"node{epoch}", "1")
    return leading


async def follow(log: JetStreamLog, store: TimeSeriesStore) -> Follower:
    state = await log.state()
    follower = Follower(log, store, await read_position(store) or Position("L", state.created, 0, 0))
    await follower.follow_to(state.last)
    return follower


async def content(store: TimeSeriesStore) -> dict[str, object]:
    """All records, in the order in which they are kept, and all notes but the place in the log."""
    found: dict[str, object] = {
        name: [record async for piece in store.scan([name], 0, 2**62) for record in piece]
        for name in await store.series("")
    }
    return found | {name: value for name, value in (await store.notes("")).items() if name != NOTE}


def body(number: int) -> bytes:
    return b'{"a": %d}' % number


async def test_stores_that_follow_are_equal_after_every_kind_of_change(log: JetStreamLog, tmp_path: Path) -> None:
    async with rocks(tmp_path / "a") as first, rocks(tmp_path / "b") as second:
        store = await leader(first, FaultyLog(log), epoch=1)
        await store.append([Record("m/1", 5, body(1)), Record("g/T/t", 5, body(2)), Record("m/1", 5, body(3))])
        await store.append([Record("m/1", 9, body(4))], notes={"state/1": b"x", "labels/1": b"y"})
        await store.append((), notes={"labels/1": None})
        assert await store.replace("m/1", 5, 5, [Record("m/1", 5, body(7))], given=Seen(["m/1"], 2))
        assert not await store.replace("m/1", 5, 5, [Record("m/1", 5, body(8))], given=Seen(["m/1"], 2))
        await store.append([Record("g/T/t", n, b"x" * 900) for n in range(10, 40)])  # in several frames
        await store.drop_before(6)
        await store.drop_before(12, series=["g/T/t", "m/2"])
        await store.append([Record("g/T/t", 50, body(9))])
        with pytest.raises(ValueError, match="expected records of"):
            await store.replace("m/1", 5, 5, [Record("m/2", 5, body(8))], given=Seen(["m/1"], 2))
        follower = await follow(log, second)
        assert await content(first) == await content(second)
        assert [record.body for record in await second.latest(["m/1"], 5)] == [body(4)]
        assert len(await second.latest(["g/T/t"], 100)) == 29
        assert follower.position == store.position == await read_position(second)
        assert store.stats_of_log.frames > store.stats_of_log.operations


async def test_nothing_is_lost_or_doubled_where_requests_and_answers_are(log: JetStreamLog, tmp_path: Path) -> None:
    random = Random(7)
    faulty = FaultyLog(log)
    async with rocks(tmp_path / "a") as first, rocks(tmp_path / "b") as second:
        store = await leader(first, faulty, epoch=1)
        faulty.fault = lambda: random.choice(["", "", "request", "answer", "answer"])
        for number in range(15):
            await store.append([Record("g/T/t", number, b"x" * random.choice([10, 6_000]))])
        assert store.stats_of_log.settled > 2
        assert store.stats_of_log.again > 4
        await follow(log, second)
        assert [record.time_us for record in await second.latest(["g/T/t"], 100)] == list(range(14, -1, -1))
        assert await content(first) == await content(second)


async def test_a_leader_that_was_stopped_and_wakes_is_refused_and_ends(log: JetStreamLog, tmp_path: Path) -> None:
    lost: list[str] = []
    async with rocks(tmp_path / "a") as first, rocks(tmp_path / "b") as second:
        old = await leader(first, FaultyLog(log), epoch=1, on_lost=lost.append)
        await old.append([Record("g/T/t", 1, body(1))])
        new = await leader(second, FaultyLog(log), epoch=2)
        await new.append([Record("g/T/t", 2, body(2))])
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="doesn't lead any more"):
                await old.append([Record("g/T/t", 3, body(3))])
        assert len(lost) == 1
        with pytest.raises(StoreUnavailable, match="doesn't lead any more"):
            await old.check()
        assert [record.time_us for record in await second.latest(["g/T/t"], 9)] == [2, 1]
        await follow(log, first)
        assert await content(first) == await content(second)


async def test_a_new_leader_begins_again_where_the_former_one_writes_still(log: JetStreamLog, tmp_path: Path) -> None:
    async with rocks(tmp_path / "a") as first, rocks(tmp_path / "b") as second:
        old = await leader(first, FaultyLog(log), epoch=1)
        follower = await follow(log, second)
        last = (await log.state()).last
        await old.append([Record("g/T/t", 1, body(1))])
        new = ReplicatedStore(second, FaultyLog(log), follower.position, last=last, epoch=2, on_lost=nobody)
        with pytest.raises(StaleWriter):
            await new.begin("b", "1")


async def test_what_a_dead_leader_left_unfinished_is_nothing(log: JetStreamLog, tmp_path: Path) -> None:
    faulty = FaultyLog(log)
    async with rocks(tmp_path / "a") as first, rocks(tmp_path / "b") as second:
        old = await leader(first, faulty, epoch=1)
        await old.append([Record("g/T/t", 1, body(1))])
        sent = iter(["", ""])
        faulty.fault = lambda: next(sent, "request")
        dying = asyncio.create_task(old.append([Record("g/T/t", n, b"x" * 900) for n in range(2, 30)]))
        await until(lambda: old.stats_of_log.frames >= 3, "parts of a change in the log")
        dying.cancel()
        new = await leader(second, FaultyLog(log), epoch=2)
        await new.append([Record("g/T/t", 99, body(2))])
        assert [record.time_us for record in await second.latest(["g/T/t"], 99)] == [99, 1]
        async with rocks(tmp_path / "c") as third:
            await follow(log, third)
            assert await content(third) == await content(second)
        await old.close()


async def test_a_full_log_is_said_and_the_change_may_be_tried_again(log: JetStreamLog, tmp_path: Path) -> None:
    faulty = FaultyLog(log)
    async with rocks(tmp_path / "a") as first:
        store = await leader(first, faulty, epoch=1)
        faulty.fault = lambda: "full"
        with pytest.raises(StoreFull):
            await store.append([Record("g/T/t", 1, body(1))])
        faulty.fault = lambda: ""
        await store.append([Record("g/T/t", 1, body(1))])
        assert len(await first.latest(["g/T/t"], 9)) == 1


async def test_while_the_log_is_silent_the_caller_waits_and_readiness_says_so(
    log: JetStreamLog, tmp_path: Path
) -> None:
    faulty = FaultyLog(log)
    async with rocks(tmp_path / "a") as first:
        store = await leader(first, faulty, epoch=1)
        faulty.fault = lambda: "request"
        waiting = asyncio.create_task(store.append([Record("g/T/t", 1, body(1))]))
        await until(lambda: store.stats_of_log.again, "a request without an answer")
        with pytest.raises(StoreUnavailable, match="the log has not answered for"):
            await store.check()
        assert not waiting.done()
        waiting.cancel()  # its caller is gone: the change goes on, as it may be in the log
        await asyncio.wait({waiting})
        behind = asyncio.create_task(store.append([Record("g/T/t", 2, body(2))]))
        faulty.fault = lambda: ""
        await behind
        await store.check()
        assert [record.time_us for record in await first.latest(["g/T/t"], 9)] == [2, 1]


async def test_a_frame_of_a_later_version_stops_a_follower(log: JetStreamLog, tmp_path: Path) -> None:
    await log.publish(b"TZo\x02" + b"\0" * 40, message_id="x", last=0)
    async with rocks(tmp_path / "a") as store:
        with pytest.raises(FrameTooNew, match="upgrade this node"):
            await follow(log, store)


class Skipping:
    """A log of which a reader leaves out a frame."""

    def __init__(self, log: JetStreamLog, left_out: int) -> None:
        self._log, self._left_out = log, left_out
        self.state = log.state

    def read(self, after: int, created: str) -> LogReader:
        reader, left_out = self._log.read(after, created), self._left_out

        class Reader:
            close = staticmethod(reader.close)

            async def next(self, wait_s: float) -> list[Logged]:
                return [each for each in await reader.next(wait_s) if each.sequence != left_out]

        return Reader()


async def test_a_follower_stops_at_a_gap(log: JetStreamLog, tmp_path: Path) -> None:
    async with rocks(tmp_path / "a") as first, rocks(tmp_path / "b") as second:
        store = await leader(first, FaultyLog(log), epoch=1)
        for number in range(4):
            await store.append([Record("g/T/t", number, body(number))])
        with pytest.raises(LogWentBack, match="frame 4 of the log came behind 2"):
            await follow(Skipping(log, 3), second)  # type: ignore[arg-type]
        await follow(log, second)
        assert await content(first) == await content(second), "it has gone on where it was"
