"""Events and labels that are kept: past a quota the oldest go, as many as have come."""

from __future__ import annotations

import logging
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from api.api_rig import open_rig
from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT, EVENT_COMMENT, LABEL
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.database.usage import Holder, Use, count_missing, measure
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import QuotaExceeded
from terrazzo.events.events import EventRecords
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.effects import EventRaised, LabelClosed, LabelOpened
from terrazzo.metadata import event_quotas
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas
from terrazzo.sparse_log import SparseLog

BOSS = Actor(user_id=1, username="boss", company_id=1, role=Role.ADMIN)
Rows = list[tuple[Any, ...]]


def event(time_us: int, object_id: int = 17, company_id: int = 1, value: str = "90") -> EventRaised:
    return EventRaised(company_id, object_id, "t1", "HOT", "hot", "热", value, "x > 80", "90", time_us)


def opened(time_us: int, code: str = "RUN", object_id: int = 17) -> LabelOpened:
    return LabelOpened(1, object_id, "t1", 5, "r5", code, "Running", "运行", "1", time_us)


def closed(time_us: int, code: str = "RUN", object_id: int = 17) -> LabelClosed:
    return LabelClosed(1, object_id, 5, code, time_us, False)


async def kept(database: Database, *columns: sa.Column[Any]) -> Rows:
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(sa.select(*columns).order_by(columns[0].table.c.id))]


async def assert_counted(database: Database) -> None:
    """The counters are what a count comes to."""
    expected: dict[tuple[str, Holder], Use] = {}
    async with database.reading() as connection:
        for kind in (EVENTS, LABELS):
            ids = (await connection.execute(sa.select(kind.table.c.id))).scalars().all()
            found = await measure(connection, kind.counted, ids)
            expected |= {(kind.counted.kind, holder): use for holder, use in found.items()}
        rows = (await connection.execute(sa.select(COMPANY_USAGE))).all()
    counted = {(row.kind, Holder(row.company_id, row.part)): Use(row.records, row.bytes) for row in rows}
    assert {key: use for key, use in counted.items() if use != Use()} == expected


async def test_the_oldest_events_of_an_object_make_room(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_quotas, "_sparse", SparseLog(logging.getLogger("terrazzo.metadata.event_quotas")))
    quotas = EventQuotas(of_object=3)
    writer = EffectWriter(database, quotas=quotas)
    await writer.apply([(1, [event(1), event(2), event(3), event(9, 18), event(9, 18, 2)])])
    await EventRecords(database, zone=UTC, quotas=quotas).comment(BOSS, 1, "what was that?")
    happened = await writer.apply([(2, [event(4), event(5), event(10, 18)])])
    assert [each.row["created"] for each in happened] == [4, 5, 10]
    times = await kept(database, EVENT.c.object_id, EVENT.c.created)
    assert sorted(times) == [(17, 3), (17, 4), (17, 5), (18, 9), (18, 9), (18, 10)]
    assert await kept(database, EVENT_COMMENT.c.id) == []
    assert quotas.stats.events_removed == 2
    assert "object 17 of company 1: 2 of event removed" in caplog.text
    await assert_counted(database)


async def test_the_oldest_events_of_a_company_make_room_for_any_object(database: Database) -> None:
    quotas = EventQuotas(of_company=4)
    writer = EffectWriter(database, quotas=quotas)
    await writer.apply([(1, [event(1), event(2, 18), event(3), event(0, 40, 2)])])
    await writer.apply([(2, [event(time_us, 19) for time_us in range(10, 14)])])
    assert await kept(database, EVENT.c.created) == [(0,), (10,), (11,), (12,), (13,)]
    await assert_counted(database)
    late = await writer.apply([(3, [event(5, 20), event(14, 20)])])  # older than all that is kept
    assert [each.row["created"] for each in late] == [14]
    assert await kept(database, EVENT.c.created) == [(0,), (11,), (12,), (13,), (14,)]
    await assert_counted(database)


async def test_bytes_of_events_are_limited_and_comments_with_them(database: Database) -> None:
    quotas = EventQuotas(company_bytes=10_000)
    writer = EffectWriter(database, quotas=quotas)
    await writer.apply([(1, [event(time_us, value="v" * 1_000) for time_us in range(9)])])
    await writer.apply([(2, [event(20, value="é" * 2_000)])])
    times = [row[0] for row in await kept(database, EVENT.c.created)]
    assert times == [4, 5, 6, 7, 8, 20]
    await assert_counted(database)
    book = EventRecords(database, zone=UTC, quotas=quotas)
    with pytest.raises(QuotaExceeded, match=r"^comment: .* 10,000 \(limits\.company_event_bytes\)$"):
        await book.comment(BOSS, 5, "x" * 2_000)
    assert await kept(database, EVENT_COMMENT.c.id) == []
    await book.comment(BOSS, 5, "short")
    await assert_counted(database)


async def test_closed_labels_make_room_and_open_ones_stay(database: Database) -> None:
    quotas = EventQuotas(of_object=3)
    writer = EffectWriter(database, quotas=quotas)
    await writer.apply([(1, [opened(1, "A"), opened(2, "B"), closed(5, "B"), opened(3, "C"), closed(4, "C")])])
    await writer.apply([(2, [opened(6, "D")])])
    assert await kept(database, LABEL.c.code) == [("A",), ("B",), ("D",)]  # C was closed first
    told = await writer.apply([(3, [opened(7, "E"), opened(8, "F")])])
    assert [(each.kind, each.row["code"]) for each in told] == [("opened", "E")]
    assert await kept(database, LABEL.c.code) == [("A",), ("D",), ("E",)]
    assert (quotas.stats.labels_removed, quotas.stats.labels_refused) == (2, 1)
    await writer.apply([(4, [closed(9, "F"), closed(9, "A"), opened(10, "F")])])
    assert await kept(database, LABEL.c.code) == [("D",), ("E",), ("F",)]
    await assert_counted(database)


async def test_what_was_there_before_is_not_cut_to_a_quota(database: Database) -> None:
    await EffectWriter(database).apply([(1, [event(time_us) for time_us in range(1_200)])])
    writer = EffectWriter(database, quotas=EventQuotas(of_object=10, of_company=5))
    await writer.apply([(2, [event(5_000), event(5_001)])])
    times = [row[0] for row in await kept(database, EVENT.c.created)]
    assert times == [*range(2, 1_200), 5_000, 5_001]
    await assert_counted(database)
    async with database.writing() as connection:
        await connection.execute(COMPANY_USAGE.delete())
    assert await count_missing(database, [EVENTS.counted, LABELS.counted]) == ["event", "label"]
    await assert_counted(database)


async def test_a_platform_keeps_its_quota_over_a_restart_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for start in (0, 100):
        async with open_rig(tmp_path, limits={"object_events": 4}, tokens={} if start == 0 else {"admin": ""}) as rig:
            database = rig.platform.metadata.database
            queue = rig.platform.parts.objects.mapper.effect_queue
            effects = [event(start + number) for number in range(6)]
            for each in effects:
                queue.seal([each])
            queue.on_committed()
            await queue.settled(queue.last)
            assert [row[0] for row in await kept(database, EVENT.c.created)] == [start + n for n in range(2, 6)]
            async with rig.http.get("/metrics") as response:
                removed = 2.0 if start == 0 else 6.0
                assert f"terrazzo_quota_events_removed_total {removed}" in await response.text()
    caplog.set_level(logging.WARNING)
    async with open_rig(tmp_path, limits={"company_events": 3}, tokens={"admin": ""}):
        assert "company 1 has 4 rows of event, more than limits.company_events = 3" in caplog.text
