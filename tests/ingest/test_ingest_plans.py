"""Reports whose plans take long to make wait for them, in their order; others' don't."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from test_ingest_intake import Batch, Shelf, Valve, settled

from support import new_tasks
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import make_tag
from terrazzo.listeners import Listeners
from terrazzo.mapping.catalogue import ObjectSpec
from terrazzo.mapping.engine import MappingEngine
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo_broker.hooks import Inbound
from waiting import until


def rows(count: int, factor: int = 2) -> list[list[Any]]:
    term = " + ".join([f"x * {factor}"] * 10)
    return [[f"V{number}", "", "", "STA", f"t1.p{number}", term] for number in range(count)]


CLIENTS = {uid: SimpleNamespace(client_id=uid, protocol=5, owner=uid) for uid in ("t1", "t2")}


class NoEffects:
    """These rows raise no events."""

    has_room = True

    def __init__(self) -> None:
        self.room: Listeners[[]] = Listeners("room")

    def has_room_of(self, company: str) -> bool:
        return True

    def seal(self, effects: Any) -> dict[str, bytes]:
        return {}

    def on_committed(self) -> None: ...


class Noted(Shelf):
    async def append(self, records: Any, *, notes: Any = None) -> None:
        await super().append(records)


def change(mapping_id: int, script: list[list[Any]] | None) -> RowChange:
    row = None if script is None else {"script": script, "is_available": 1, "permission_company_id": 1}
    return RowChange(mapping_id, str(mapping_id), row)


def batch_of(uid: str, *numbers: int) -> Batch:
    owner = Terminal(id=1, uid=uid, name="t", company_id=1, type="Other", mode="pwd", username="u", pin="p")
    tag = make_tag(ReportTopic(f"g/{uid}/r", owner, "r"), trace=Trace(), seal=None)
    batch = Batch(*(Inbound(tag, b'{"p0":%d}' % number) for number in numbers))
    batch.client = CLIENTS[uid]
    return batch


@pytest.mark.long_turns("it puts rows of a mapping into the catalogue itself, 1,000 at once")
async def test_reports_wait_for_their_own_plans_in_order_and_others_do_not():
    engine = MappingEngine()
    mapper = ReportMapper(engine, NoEffects())
    mapper.on_mapping(change(1, rows(1_000)))
    mapper.on_mapping(change(2, rows(1)))
    engine.catalogue.put_object(ObjectSpec(id=1, company_id=1, mapping_id=1, terminals=("t1",)))
    engine.catalogue.put_object(ObjectSpec(id=2, company_id=2, mapping_id=2, terminals=("t2",)))
    shelf, tasks = Noted(), new_tasks()
    ingest = IngestPipeline(shelf, Valve(), tasks=tasks, mapper=mapper)
    mapper.maker.start(tasks)
    ingest.start()
    try:
        mine = [batch_of("t1", *range(first, first + 5)) for first in range(1, 50, 5)]
        for batch in mine:
            ingest.take(batch)
        for number in range(10):
            other = batch_of("t2", number)
            ingest.take(other)
            await settled(other)
            assert not mine[0].settled.is_set()
        mapper.on_mapping(change(1, rows(900, 3)))  # nothing of them was mapped yet
        await until(mine[-1].settled.is_set, timeout_s=60)
        mapper.on_mapping(change(1, rows(900, 5)))
        last = batch_of("t1", 51, 52)
        ingest.take(last)
        await until(last.settled.is_set, timeout_s=60)
        assert all(batch.held == 0 for batch in mine)
    finally:
        await ingest.stop()
        await mapper.maker.stop()
    made = [msgspec.msgpack.decode(record.body)["V0"] for record in shelf.records if record.series == "m/1"]
    assert made == [n * 30 for n in range(1, 51)] + [n * 50 for n in (51, 52)]
    assert [record.body for record in shelf.records if record.series == "g/t1/r"] == [
        b'{"p0":%d}' % n for n in range(1, 53)
    ]
