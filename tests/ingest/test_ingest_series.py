"""A terminal's reports have so many series: its topics beyond them are rejects, and what is there goes on."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from test_ingest_intake import TERMINAL, Batch, Shelf, Valve, running, settled

from support import new_tasks
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.ingest import terminal_series
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import ReportTag, make_tag
from terrazzo.ports.store import StoreUnavailable
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_broker.hooks import Inbound
from waiting import until


class Named(Shelf):
    """A shelf that knows the names of its series, and may be away when it is asked for them."""

    is_whole = True

    def __init__(self) -> None:
        super().__init__()
        self.before: list[str] = []
        self.asked_for: list[str] = []
        self.away = 0

    async def series(self, prefix: str) -> list[str]:
        self.asked_for.append(prefix)
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")
        await asyncio.sleep(0)
        return sorted({*self.before, *(record.series for record in self.records if record.series.startswith(prefix))})


def tag_of(topic: str, trace: Trace) -> ReportTag:
    return make_tag(ReportTopic(topic, TERMINAL, topic.split("/")[2]), trace=trace, seal=None)


async def publish(ingest: IngestPipeline, trace: Trace, *topics: str) -> dict[int, int]:
    batch = Batch(*(Inbound(tag_of(topic, trace), b'{"a":1}') for topic in topics))
    ingest.take(batch)
    await settled(batch)
    return batch.refusals


def sub(numbers: range) -> list[str]:
    return [f"g/t1/r/{number}" for number in numbers]


async def test_one_topic_more_than_may_be_recorded_is_a_reject_and_the_others_go_on():
    shelf, trace = Named(), Trace()
    async with running(shelf, terminal_series=10) as ingest:
        assert await publish(ingest, trace, *sub(range(10))) == {}
        assert await publish(ingest, trace, "g/t1/r/3", "g/t1/new", "g/t1/new", "g/t1/r/9") == {1: 0x97, 2: 0x97}
        assert await publish(ingest, Trace(), "g/t1/new") == {}, "another terminal's count is its own"
        assert ingest.stats.rejects["series"] == 2
    kept = [msgspec.msgpack.decode(record.body) for record in shelf.records if record.series == "x/t1"]
    assert [each["topic"] for each in kept] == ["g/t1/new"] * 2
    assert "limits.terminal_series" in kept[0]["reason"]
    assert [record.series for record in shelf.records][-2:] == ["g/t1/r/9", "g/t1/new"]


async def test_what_was_there_before_counts_and_goes_on():
    shelf, trace = Named(), Trace()
    shelf.before, shelf.away = [f"g/t1/old/{number}" for number in range(60)], 1
    async with running(shelf, terminal_series=50) as ingest:
        assert await publish(ingest, trace, *sub(range(31))) == {}
        assert shelf.asked_for == [], "of terminals with few topics nothing is asked"
        assert await publish(ingest, trace, "g/t1/last") == {}
        await until(lambda: trace.series is not None and trace.series.read_us)
        assert set(shelf.asked_for) == {"g/t1/"}
        assert await publish(ingest, trace, "g/t1/one-more", "g/t1/old/59", "g/t1/r/30") == {0: 0x97}


async def test_series_that_have_ended_make_room(monkeypatch: pytest.MonkeyPatch):
    shelf, trace = Named(), Trace()
    async with running(shelf, terminal_series=40) as ingest:
        assert await publish(ingest, trace, *sub(range(40))) == {}
        await until(lambda: trace.series is not None and trace.series.read_us)
        shelf.commits = [[record for record in shelf.records if not record.series.endswith("7")]]
        assert await publish(ingest, trace, "g/t1/new") == {0: 0x97}
        await asyncio.sleep(0)
        assert len(shelf.asked_for) == 1, "not while some may not be stored yet"
        monkeypatch.setattr(terminal_series, "_SETTLED_US", -1)
        assert await publish(ingest, trace, "g/t1/new") == {0: 0x97}
        await until(lambda: len(trace.series.names) == 36)
        assert await publish(ingest, trace, *sub(range(40, 45))) == {4: 0x97}


async def test_ever_new_topics_leave_no_more_than_the_limit(tmp_path: Path):
    """120,000 of them: no more series in the store, nor in memory."""
    tasks = new_tasks()
    store = await RocksStore.open(tmp_path, tasks=tasks, cache_bytes=512 << 10)  # which rejects are kept in, too
    ingest, trace = IngestPipeline(store, Valve(), tasks=tasks, terminal_series=2_000), Trace()
    ingest.start()
    try:
        await publish(ingest, trace, *sub(range(4_000)))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for first in range(4_000, 24_000, 2_000):
            refused = await publish(ingest, trace, *sub(range(first, first + 2_000)))
            assert len(refused) == 2_000
        grown = tracemalloc.get_traced_memory()[0] - before
        assert len(await store.series("g/t1/")) == 2_000
    finally:
        tracemalloc.stop()
        await ingest.stop()
        await store.close()
    assert grown < 1_000_000, "20,000 names were 6 MB"
