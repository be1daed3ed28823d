"""What has happened is kept for so many days: small batches by an index, companies within what the instance keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from api.api_rig import Rig, open_rig
from migrated import seed
from postgresql_server import PostgreSQL
from terrazzo.config.sections import RetentionSection
from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT, EVENT_COMMENT, LABEL
from terrazzo.database.tables.messages import MESSAGE, MESSAGE_FILE
from terrazzo.database.tables.registry import AUDIT, COMMAND
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.metadata import retention
from terrazzo.metadata.definitions.registry import COMPANY
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas
from terrazzo.metadata.retention import AGING_KINDS, Cutoff, Retention, next_batch
from terrazzo.times import DAY_US, now_us
from waiting import until

NOW = 1_000 * DAY_US
TEXTS = dict.fromkeys(("code", "label_en", "label_cn", "value"), "x") | {"terminal_id": "t1"}


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Database]:
    monkeypatch.setattr(retention, "_AT_ONCE", 3)
    monkeypatch.setattr(retention, "_LEAST_PAUSE_S", 0.0)
    url = ""
    if request.param == "sqlite":
        seed(tmp_path)
    else:
        server: PostgreSQL = request.getfixturevalue("postgresql")
        url = server.migrated_database()
    opened = await Database.open(url, data_dir=tmp_path)
    yield opened
    await opened.close()


async def add(database: Database, table: sa.Table, *rows: dict[str, Any]) -> None:
    async with database.writing() as connection:
        for row in rows:
            await connection.execute(table.insert().values(**row))


async def companies(database: Database, **days_of_second: int) -> None:
    same = {"created": 0, "last_modified": 0}
    await add(
        database,
        COMPANY.table,
        *({"id": number, "uid": f"c{number}", "name": f"c{number}", **same, **_unset()} for number in (1, 2)),
    )
    if days_of_second:
        async with database.writing() as connection:
            await connection.execute(COMPANY.table.update().where(COMPANY.table.c.id == 2).values(**days_of_second))


def _unset() -> dict[str, Any]:
    fields = COMPANY.fields.values()
    return {each.name: each.default for each in fields if each.default is not None and each.name != "uid"}


def event(days: float, company_id: int = 1) -> dict[str, Any]:
    texts = TEXTS | {"extension_key": "", "extension_value": ""}
    return {**texts, "company_id": company_id, "object_id": 7, "created": NOW - int(days * DAY_US)}


def label(days: float, closed_days: float | None, company_id: int = 1) -> dict[str, Any]:
    opened_us = NOW - int(days * DAY_US)
    closed = None if closed_days is None else NOW - int(closed_days * DAY_US)
    whose = {"company_id": company_id, "object_id": 7, "project_id": 1, "class_id": "r"}
    return {**TEXTS, **whose, "opened_at": opened_us, "created": opened_us, "close_at": closed}


def command(uid: str, days: float, state: str = "answered", company_id: int = 1) -> dict[str, Any]:
    queued = NOW - int(days * DAY_US)
    ended = None if state in ("queued", "sent") else queued + 1
    texts = {"uid": uid, "terminal_id": "t1", "command": "c", "payload": b"", "state": state}
    return {**texts, "company_id": company_id, "queued_us": queued, "ended_us": ended, "expires_us": 0, "created_by": 1}


def message(uid: str, days: float, state: str = "sent", company_id: int = 1) -> dict[str, Any]:
    created = NOW - int(days * DAY_US)
    texts = {"uid": uid, "channel": "sms", "recipients": "[]", "pending": "[]", "content": "{}", "state": state}
    times = {"created": created, "next_us": 0, "expires_us": 0, "ended_us": None if state == "queued" else created}
    return {**texts, **times, "company_id": company_id, "project_id": 1, "created_by": 0}


def entry(days: float, company_id: int | None = 1) -> dict[str, Any]:
    texts = dict.fromkeys(("username", "address", "action", "entity", "uid"), "x")
    return {**texts, "time": NOW - int(days * DAY_US), "company_id": company_id, "user_id": 1}


async def ages(database: Database, table: sa.Table, time: sa.Column[int]) -> list[tuple[int | None, float]]:
    query = sa.select(table.c.company_id, time).order_by(table.c.id)
    async with database.reading() as connection:
        return [(company, (NOW - at) / DAY_US) for company, at in await connection.execute(query)]


def keeping(database: Database, quotas: EventQuotas | None = None, **days: int) -> Retention:
    return Retention(database, RetentionSection(**days), quotas=quotas or EventQuotas(), clock=lambda: NOW)


async def test_nothing_goes_unless_somebody_says_so(database: Database) -> None:
    await companies(database)
    await add(database, EVENT, event(900))
    await add(database, AUDIT, entry(900))
    kept = keeping(database)
    await kept.run()
    assert len(await ages(database, EVENT, EVENT.c.created)) == 1
    assert set(kept.stats.deleted.values()) == {0}


async def test_events_go_by_age_with_comments_and_are_not_counted_any_more(database: Database) -> None:
    await companies(database)
    quotas = EventQuotas()
    days = [40, 31, 30.5, 29, 1, 35, 36, 37]
    await add(database, EVENT, *(event(each) for each in days), event(33, 2))
    said = {"user_id": 1, "username": "u", "created": 0, "text": "abc"}
    await add(database, EVENT_COMMENT, {"event_id": 1, **said}, {"event_id": 4, **said})
    async with database.writing() as connection:
        rows = [dict(row) for row in (await connection.execute(sa.select(EVENT))).mappings()]
        await quotas.add(connection, EVENTS, rows)
        await quotas.add_comment(connection, 1, 7, "abc")
        await quotas.add_comment(connection, 1, 7, "abc")
    kept = keeping(database, quotas, events=30)
    await kept.run()
    assert await ages(database, EVENT, EVENT.c.created) == [(1, 29), (1, 1)]
    assert kept.stats.deleted["events"] == 7
    async with database.reading() as connection:
        assert (await connection.execute(sa.select(EVENT_COMMENT.c.event_id))).scalars().all() == [4]
        usage = sa.select(COMPANY_USAGE.c.company_id, COMPANY_USAGE.c.part, COMPANY_USAGE.c.records).where(
            COMPANY_USAGE.c.kind == "event", COMPANY_USAGE.c.company_id > 0
        )
        used = {tuple(row)[:2]: row.records for row in await connection.execute(usage)}
    assert used == {(1, 0): 2, (1, 7): 2, (2, 0): 0, (2, 7): 0}


async def test_a_company_keeps_less_and_never_more(database: Database) -> None:
    await companies(database, retention_events=10, retention_audit=900)
    await add(database, EVENT, *(event(days, company) for days in (40, 20, 5) for company in (1, 2)))
    await add(database, AUDIT, *(entry(days, company) for days in (40, 20) for company in (1, 2, None)))
    await keeping(database, events=30, audit=30).run()
    assert await ages(database, EVENT, EVENT.c.created) == [(1, 20), (1, 5), (2, 5)]
    assert await ages(database, AUDIT, AUDIT.c.time) == [(1, 20), (2, 20), (None, 20)]


async def test_a_company_may_keep_less_where_the_instance_keeps_all(database: Database) -> None:
    await companies(database, retention_labels=10, retention_commands=10, retention_messages=10)
    await add(database, LABEL, *(label(90, closed, company) for closed in (None, 20, 5) for company in (1, 2)))
    async with database.writing() as connection:
        rows = [dict(row) for row in (await connection.execute(sa.select(LABEL))).mappings()]
        await EventQuotas().add(connection, LABELS, rows)
    await add(
        database, COMMAND, *(command(f"{days}-{one}", days, "answered", one) for days in (20, 5) for one in (1, 2))
    )
    await add(database, MESSAGE, *(message(f"{days}-{one}", days, "sent", one) for days in (20, 5) for one in (1, 2)))
    await keeping(database).run()
    assert [company for company, _ in await ages(database, LABEL, LABEL.c.opened_at)] == [1, 2, 1, 1, 2]
    expected = [(1, 20), (1, 5), (2, 5)]
    assert await ages(database, COMMAND, COMMAND.c.queued_us) == expected
    assert await ages(database, MESSAGE, MESSAGE.c.created) == expected


async def test_what_is_not_over_stays_and_holds_nothing_up(database: Database) -> None:
    await companies(database)
    states = ["queued", "answered", "sent", "queued", "sent", "queued", "expired", "answered", "sent"]
    await add(database, COMMAND, *(command(f"u{number}", 90, state) for number, state in enumerate(states)))
    await add(database, COMMAND, command("new", 1))
    await add(database, MESSAGE, message("a", 90, "queued"), message("b", 90), message("c", 1))
    file = {"name": "n", "media_type": "m", "content": b""}
    await add(database, MESSAGE_FILE, {"message_id": 1, **file}, {"message_id": 2, **file})
    await add(database, LABEL, label(90, None), label(90, 80))
    kept = keeping(database, commands=30, messages=30, labels=30)
    await kept.run()
    await kept.run()
    async with database.reading() as connection:
        uids = (await connection.execute(sa.select(COMMAND.c.uid).order_by(COMMAND.c.id))).scalars().all()
        messages = (await connection.execute(sa.select(MESSAGE.c.uid).order_by(MESSAGE.c.id))).scalars().all()
        files = (await connection.execute(sa.select(MESSAGE_FILE.c.message_id))).scalars().all()
        labels = (await connection.execute(sa.select(LABEL.c.close_at))).scalars().all()
    assert uids == ["u0", "u2", "u3", "u4", "u5", "u8", "new"]
    assert (messages, files, labels) == (["a", "c"], [1], [None])
    assert kept.stats.deleted == {"events": 0, "labels": 1, "commands": 3, "messages": 1, "audit": 0}


async def test_others_write_between_two_batches(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_LEAST_PAUSE_S", 30.0)
    await companies(database)
    await add(database, EVENT, *(event(90) for _ in range(5)))
    kept = keeping(database, events=30)
    run = asyncio.create_task(kept.run(), name="retention")
    await until(lambda: kept.stats.deleted["events"] == 3)
    async with asyncio.timeout(10):
        await add(database, EVENT, event(1))
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert len(await ages(database, EVENT, EVENT.c.created)) == 3, "what is cut off goes on with the next run"


@pytest.mark.parametrize("company_id", [None, 2])
@pytest.mark.parametrize("kind", AGING_KINDS, ids=lambda kind: kind.name)
async def test_each_look_has_its_index(database: Database, kind: Any, company_id: int | None) -> None:
    async with database.writing() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        for name in ("enable_seqscan", "enable_sort") if not is_sqlite else ():
            await connection.execute(sa.text(f"SET LOCAL {name} = off"))  # of a table of nothing it needs no index
        query = next_batch(Cutoff(kind, NOW, company_id), 5)
        text = query.compile(connection.sync_connection, compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN"
        plan = str((await connection.run_sync(sa.Connection.exec_driver_sql, f"{explain} {text}")).all())
    assert "TEMP B-TREE" not in plan, plan
    assert "Sort" not in plan, plan
    assert "Seq Scan" not in plan, plan
    assert "SCAN" not in plan, plan


@pytest.mark.usefixtures("each_database")
async def test_it_runs_beside_the_platform(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await add(rig.platform.metadata.database, EVENT, event(0), {**event(0), "created": now_us()})
        changed = await rig.call("update_company", "root", uid=await _uid(rig), retention_events=30, retention_audit=7)
        assert changed["uid"]
        record = (await rig.call("get_company_list", "root"))["data"][0]
        assert (record["retention_events"], record["retention_audit"], record["retention_labels"]) == (30, 7, 0)
        refused = await rig.ask("update_company", "root", uid=await _uid(rig), retention_events=36_501)
        assert (refused["code"], refused["info"]) == (10401, "retention_events: expected int <= 36500")
        assert (await rig.ask("update_company", "admin", uid=await _uid(rig), retention_events=1))["code"] == 10403
        await add(rig.platform.metadata.database, AUDIT, entry(400, None))
        tokens = rig.tokens
    # the older name of retention.audit: one part deletes, whichever is given
    async with open_rig(tmp_path, tokens=tokens, audit={"retention_days": 365}) as rig:
        await until(lambda: rig.platform.metadata.retention.deleted["events"] == 1)
        await until(lambda: rig.platform.metadata.retention.deleted["audit"] == 1)
        assert "audit retention" not in rig.platform.tasks.tasks
        assert [each["id"] for each in (await rig.call("get_event_list"))["data"]] == [2]
        async with rig.http.get("/metrics") as response:
            assert 'terrazzo_retention_deleted_total{kind="events"} 1.0' in await response.text()


async def _uid(rig: Rig) -> str:
    return str((await rig.call("get_company_list", "root"))["data"][0]["uid"])
