"""What is said of events beside the mapping: severity, and what clears them, down to the tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from mapping_rig import COMPANY, MAPPING, OBJECT, SECOND, T0, Stand

from migrated import seed
from postgresql_server import PostgreSQL
from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT
from terrazzo.domain.events.definition import parse_event_definitions
from terrazzo.events.expiry import EventExpiry
from terrazzo.mapping import effect_writer
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.effects import EventRaised, EventsCleared, decode_effects, encode_effects
from terrazzo.mapping.replay.event_merge import merge_events

ROWS = [
    ["HOT", "Hot", "", "EVNT", "$AdapterID-1.t", "", "x > 80"],
    ["COOL", "Cool", "", "EVNT", "$AdapterID-1.t", "", "x < 50"],
]


def stand(**events: dict[str, Any]) -> Stand:
    made = Stand(ROWS)
    made.catalogue.put_events(MAPPING, events)
    return made


def told(made: Stand) -> list[tuple[str, ...]]:
    """What happened since the last call."""
    return [
        ("raised", each.code, str(each.severity))
        if isinstance(each, EventRaised)
        else ("cleared", each.code, each.cause)
        for each in made.effects()
    ]


def test_nothing_is_said_of_an_event() -> None:
    made = stand()
    made.report({"t": 90}, 1)
    made.report({"t": 60}, 2)
    assert told(made) == [("raised", "HOT", "2")]


def test_an_event_clears_itself_when_its_condition_is_false_again() -> None:
    made = stand(HOT={"severity": "critical", "clears_itself": True})
    made.report({"t": 60}, 0)
    made.report({"t": 90}, 1)
    made.report({"t": 95}, 2)
    made.report({"t": None}, 3)
    assert told(made) == [("raised", "HOT", "5")], "of null nothing is known"
    made.report({"t": 60}, 4)
    made.report({"t": 61}, 5)
    assert told(made) == [("cleared", "HOT", "condition")]


def test_an_event_clears_others_first() -> None:
    made = stand(COOL={"clears": ["HOT", "COOL"], "severity": "info"})
    made.report({"t": 90}, 1)
    made.report({"t": 40}, 2)
    assert told(made) == [
        ("raised", "HOT", "2"),
        ("cleared", "HOT", "event"),
        ("cleared", "COOL", "event"),
        ("raised", "COOL", "1"),
    ]


def test_what_is_said_counts_from_then_on_and_after_a_restart() -> None:
    made = stand()
    made.report({"t": 90}, 1)
    made.catalogue.put_events(MAPPING, {"HOT": {"clears_itself": True, "clear_after_s": 60}})
    again = made.restart(ROWS)
    again.catalogue.put_events(MAPPING, {"HOT": {"clears_itself": True, "clear_after_s": 60}})
    again.report({"t": 60}, 2)
    assert told(again) == [("cleared", "HOT", "condition")]
    again.report({"t": 90}, 3)
    (raised,) = again.effects()
    assert raised.clear_at == T0 + 63 * SECOND
    again.catalogue.put_events(MAPPING, {"HOT": {"severity": "none such"}})
    again.report({"t": 60}, 4)
    assert told(again) == [], "what can't be read is as if nothing was said"


def test_a_late_message_clears_nothing() -> None:
    made = stand(HOT={"clears_itself": True})
    made.report({"t": 90}, 10)
    made.effects()
    made.report({"t": 20}, 5)
    assert told(made) == []


def test_effects_that_an_older_version_left_are_read() -> None:
    before = msgspec.msgpack.encode([["event", 1, 17, "t1", "HOT", "hot", "", "90", "x > 80", "90", 5]])
    (found,) = decode_effects(before)
    assert isinstance(found, EventRaised)
    assert (found.severity, found.clear_at) == (2, None)
    assert decode_effects(encode_effects([found, cleared(7)])) == [found, cleared(7)]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], "an object of codes"),
        ({"": {}}, "1 to 64 characters"),
        ({"A": {"severity": "high"}}, "expected one of info, warning, minor, major, critical"),
        ({"A": {"severe": 1}}, "unknown field"),
        ({"A": {"clear_after_s": -1}}, ">= 0"),
        ({"A": {"clears": ["x"] * 17}}, "length <= 16"),
        ({"A": 5}, "expected `object`|Expected `object`"),
        ({f"c{number}": {} for number in range(1_001)}, "at most 1000 codes"),
    ],
)
def test_what_can_not_be_said(said: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_event_definitions(said)


# In the database


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    url = ""
    if request.param == "sqlite":
        seed(tmp_path)
    else:
        server: PostgreSQL = request.getfixturevalue("postgresql")
        url = server.migrated_database()
    opened = await Database.open(url, data_dir=tmp_path)
    yield opened
    await opened.close()


def event(time_us: int, code: str = "HOT", object_id: int = OBJECT, clear_at: int | None = None) -> EventRaised:
    return EventRaised(COMPANY, object_id, "t1", code, "hot", "", "90", "x > 80", "90", time_us, 4, clear_at)


def cleared(time_us: int, code: str = "HOT", cause: str = "condition") -> EventsCleared:
    return EventsCleared(COMPANY, OBJECT, code, time_us, cause)


async def rows(database: Database) -> list[tuple[Any, ...]]:
    columns = EVENT.c.created, EVENT.c.state, EVENT.c.cleared_at, EVENT.c.cleared_cause
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(sa.select(*columns).order_by(EVENT.c.id))]


async def test_events_are_cleared_in_the_order_of_what_happened(database: Database) -> None:
    writer = EffectWriter(database)
    await writer.apply([(1, [event(10), event(11, "OTHER"), event(12, object_id=18)])])
    batch = [cleared(20), event(30), cleared(25), event(40), cleared(41, "OTHER", "event")]
    happened = await writer.apply([(2, batch)])
    assert await rows(database) == [
        (10, "cleared", 20, "condition"),
        (11, "cleared", 41, "event"),
        (12, "raised", None, ""),
        (30, "cleared", 30, "condition"),
        (40, "raised", None, ""),
    ], "a clearing is not before the event, whatever the clocks say"
    assert [(each.kind, each.row["created"], each.row["state"]) for each in happened] == [
        ("cleared", 10, "cleared"),
        ("cleared", 11, "cleared"),
        ("event", 30, "raised"),
        ("event", 40, "raised"),
        ("cleared", 30, "cleared"),
    ]
    assert {each.row["severity"] for each in happened} == {4}
    await writer.apply([(2, batch)])
    assert len(await rows(database)) == 5, "once"
    (last,), refused = await writer.apply_sound((3, [cleared(50)]))
    assert (last.kind, last.row["created"], refused) == ("cleared", 40, [])


async def test_one_transaction_clears_so_many(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_writer, "_MOST_CLEARED", 2)
    writer = EffectWriter(database)
    await writer.apply([(1, [event(time_us) for time_us in (1, 2, 3)])])
    await writer.apply([(2, [cleared(9)])])
    assert sorted(state for _, state, *_ in await rows(database)) == ["cleared", "cleared", "raised"]
    await writer.apply([(3, [cleared(10)])])
    assert [state for _, state, *_ in await rows(database)] == ["cleared"] * 3


async def test_time_clears_what_is_still_open(database: Database) -> None:
    writer, now = EffectWriter(database), 0
    expiry = EventExpiry(database, clock=lambda: now)
    heard: list[Any] = []
    expiry.changes.listen(heard.extend)
    await writer.apply([(1, [event(1, clear_at=100), event(2, clear_at=200), event(3), event(4, "B", clear_at=100)])])
    await writer.apply([(2, [EventsCleared(COMPANY, OBJECT, "B", 50, "event")])])
    await expiry.run()
    assert heard == []
    now = 150
    await expiry.run()
    assert [(each.kind, each.row["created"], each.row["cleared_cause"]) for each in heard] == [("cleared", 1, "time")]
    now = 10**15
    await expiry.run()
    await expiry.run()
    assert await rows(database) == [
        (1, "cleared", 100, "time"),
        (2, "cleared", 200, "time"),
        (3, "raised", None, ""),
        (4, "cleared", 50, "event"),
    ]
    assert expiry.stats.expired == 2


@pytest.mark.parametrize(
    "statement",
    [
        sa.select(EVENT.c.id)
        .where(EVENT.c.object_id == 17, EVENT.c.code == "HOT", EVENT.c.state.in_(("raised", "acknowledged")))
        .limit(1_000),
        sa.select(EVENT.c.id).where(EVENT.c.clear_at <= 5).order_by(EVENT.c.clear_at).limit(200),
        sa.select(EVENT.c.id).where(EVENT.c.company_id == 1).order_by(EVENT.c.severity.desc(), EVENT.c.id.desc()),
    ],
)
async def test_each_question_has_its_index(database: Database, statement: Any) -> None:
    async with database.writing() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        for name in ("enable_seqscan", "enable_sort") if not is_sqlite else ():
            await connection.execute(sa.text(f"SET LOCAL {name} = off"))  # of a table of nothing it needs no index
        text = statement.compile(connection.sync_connection, compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN"
        plan = str((await connection.run_sync(sa.Connection.exec_driver_sql, f"{explain} {text}")).all())
    assert "ix_event_" in plan, plan
    assert "SCAN event" not in plan or "COVERING" in plan, plan
    assert "Seq Scan" not in plan, plan


# Replays


def row(created: int, **values: Any) -> dict[str, Any]:
    given = {name: getattr(event(created), name) for name in EventRaised.__struct_fields__ if name != "time_us"}
    standing = {"id": created, "created": created, "state": "raised", "cleared_at": None, "cleared_cause": ""}
    return {**given, **standing, "acknowledged_at": None, "severity": 1, **values}


def test_a_replay_clears_what_it_finds_cleared_and_keeps_what_people_did() -> None:
    by_user = {"state": "cleared", "cleared_at": 9, "cleared_cause": "user"}
    known = [
        row(1),
        row(2, **by_user),
        row(3, state="cleared", cleared_at=5, cleared_cause="condition", acknowledged_at=4),
        row(4, state="acknowledged", acknowledged_at=5),
    ]
    found = merge_events(
        known, [event(each) for each in (1, 2, 3, 4, 5)], {0: cleared(7), 3: cleared(8), 4: cleared(9)}
    )
    over = {"state": "cleared", "cleared_cause": "condition"}
    assert found.updates == {
        1: {**over, "cleared_at": 7},
        3: {"state": "acknowledged", "cleared_at": None, "cleared_cause": ""},
        4: {**over, "cleared_at": 8},
    }, "severity stays what it was then"
    (new,) = found.inserts
    assert (new["state"], new["cleared_at"], new["severity"], found.deletes) == ("cleared", 9, 4, [])
