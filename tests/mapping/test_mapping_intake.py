"""The shaping inside the intake: what needs a commit without messages, and a database that is too far behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from mapping_child import TERMINAL, open_parts
from test_mapping_kill import prepare

from support import new_tasks
from terrazzo.domain.happened import Happened
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import NotFound
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import make_tag
from terrazzo.mapping.effect_queue import EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo_broker.hooks import Inbound
from waiting import until

OBJECT, RETAINER = 1, 1


class Bench:
    """Store, database, shaper and intake; ``valve`` notes what the intake asks of the broker."""

    async def start(self, folder: Path) -> None:
        await prepare(folder)
        self.store, self.database, entities = await open_parts(folder)
        tasks = new_tasks()
        self.effect_queue = EffectQueue(EffectWriter(self.database), tasks, limit=1)
        self.happened: list[Happened] = []
        self.effect_queue.happened.listen(self.happened.extend)
        self.mapper = await ReportMapper.open(self.store, entities, self.effect_queue)
        self.mapper.maker.start(tasks)
        self.calls: list[str] = []
        self.ingest = IngestPipeline(self.store, self, tasks=tasks, mapper=self.mapper)
        self.ingest.start()
        terminal = Terminal(id=1, uid=TERMINAL, name="", company_id=1, type="Other", mode="pwd", username="", pin="")
        self.tag = make_tag(ReportTopic(f"g/{TERMINAL}/r", terminal, "r"), trace=Trace(), seal=None)
        self.client = SimpleNamespace(client_id=TERMINAL, protocol=5, owner="1")

    def pause_intake(self) -> None:
        self.calls.append("pause")

    def resume_intake(self) -> None:
        self.calls.append("resume")

    def take(self, body: dict) -> asyncio.Event:
        """Hands a message over; set when it is acknowledged."""
        done = asyncio.Event()
        batch = SimpleNamespace(
            client=self.client,
            messages=[Inbound(self.tag, json.dumps(body).encode())],
            arrived_us=1,
            settle=lambda refusals=None: done.set(),
            hold=lambda: None,
            release=lambda: None,
        )
        self.ingest.take(batch)
        return done

    async def stop(self) -> None:
        await self.ingest.stop()
        await self.mapper.maker.stop()
        await self.effect_queue.stop()
        await self.store.close()
        await self.database.close()


@pytest.fixture
async def bench(tmp_path: Path):
    bench = Bench()
    await bench.start(tmp_path)
    yield bench
    await bench.stop()


async def test_a_label_is_closed_by_hand_without_a_message(bench: Bench) -> None:
    async with asyncio.timeout(10):
        await bench.take({"RUN": 1}).wait()
        await bench.mapper.close_label(OBJECT, RETAINER, "RUN")
        assert [(each.kind, each.row["by_hand"]) for each in bench.happened] == [("opened", 0), ("closed", 1)]
        with pytest.raises(NotFound):
            await bench.mapper.close_label(OBJECT, RETAINER, "RUN")


async def test_reading_pauses_while_the_database_is_too_far_behind_and_goes_on(bench: Bench) -> None:
    async with asyncio.timeout(10):
        async with bench.database.writing():  # nobody else can write to SQLite meanwhile
            await bench.take({"T": 90, "RUN": 0}).wait()
            assert not bench.mapper.has_room
            waiting = bench.take({"T": 10})
            await until(lambda: bench.calls == ["pause"], "reading pauses")
            assert not waiting.is_set()
        await waiting.wait()
        await until(lambda: bench.calls == ["pause", "resume"], "reading goes on")
    assert [each.kind for each in bench.happened] == ["event"]
