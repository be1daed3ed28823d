"""Effects reach the database once each, in order, whenever it comes back; and a full outbox says so."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from migrated import seed
from support import new_tasks
from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.errors import Unavailable
from terrazzo.mapping.effect_queue import EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.effects import EventRaised, LabelClosed, LabelOpened, encode_effects
from waiting import until


def event(time_us: int) -> EventRaised:
    return EventRaised(1, 17, "t1", "HOT", "hot", "热", "90", "x > 80", "90", time_us)


def opened(time_us: int) -> LabelOpened:
    return LabelOpened(1, 17, "t1", 5, "r5", "RUN", "Running", "运行", "1", time_us)


def closed(time_us: int, *, by_hand: bool = False) -> LabelClosed:
    return LabelClosed(1, 17, 5, "RUN", time_us, by_hand)


@pytest.fixture
async def database(tmp_path: Path):
    database = await Database.open("", data_dir=seed(tmp_path))
    yield database
    await database.close()


async def labels(database: Database) -> list[tuple]:
    async with database.reading() as connection:
        query = sa.select(LABEL.c.opened_at, LABEL.c.close_at, LABEL.c.by_hand).order_by(LABEL.c.id)
        return [tuple(row) for row in await connection.execute(query)]


async def events(database: Database) -> list[int]:
    async with database.reading() as connection:
        return list((await connection.execute(sa.select(EVENT.c.created).order_by(EVENT.c.id))).scalars())


async def test_what_was_applied_is_not_applied_again(database: Database) -> None:
    effect_writer = EffectWriter(database)
    happened = await effect_writer.apply(
        [(1, [event(10), opened(11)]), (2, [closed(12), opened(13), closed(14), opened(15)])]
    )
    assert [each.kind for each in happened] == ["event", "opened", "opened", "opened", "closed", "closed"]
    assert all(each.row["id"] for each in happened)
    assert await effect_writer.applied() == 2
    again = await effect_writer.apply([(2, [closed(12)]), (3, [closed(20, by_hand=True), event(21)])])
    assert [(each.kind, each.row["close_at" if each.kind == "closed" else "created"]) for each in again] == [
        ("event", 21),
        ("closed", 20),
    ]
    assert await events(database) == [10, 21]
    assert await labels(database) == [(11, 12, 0), (13, 14, 0), (15, 20, 1)]
    assert await EffectWriter(database, name="other").applied() == 0


async def test_an_outbox_takes_up_where_the_last_one_ended(database: Database) -> None:
    await EffectWriter(database).apply([(3, [event(3)])])
    notes = {f"effects/{seq:020}": encode_effects([event(seq)]) for seq in (3, 4, 5)}
    effect_queue = EffectQueue(EffectWriter(database), new_tasks())
    await effect_queue.start(notes)
    assert await events(database) == [3, 4, 5]
    sealed = effect_queue.seal([event(6)])
    assert {name: body is None for name, body in sealed.items()} == {
        **dict.fromkeys(notes, True),
        f"effects/{6:020}": False,
    }
    assert await events(database) == [3, 4, 5], "not committed yet"
    effect_queue.on_committed()
    await effect_queue.settled(6)
    assert await events(database) == [3, 4, 5, 6]
    await effect_queue.stop()
    assert list(effect_queue.seal([])) == [f"effects/{6:020}"]


class Away:
    """A database that comes back when told to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.is_away = False

    def reading(self):
        return self._database.reading()

    @asynccontextmanager
    async def writing(self):
        if self.is_away:
            raise Unavailable("database: away")
        async with self._database.writing() as connection:
            yield connection


async def test_effects_wait_for_a_database_that_is_away_and_a_full_outbox_says_so(database: Database) -> None:
    away = Away(database)
    effect_queue = EffectQueue(EffectWriter(away), new_tasks(), limit=4)
    room: list[int] = []
    effect_queue.room.listen(lambda: room.append(effect_queue.stats.waiting))
    await effect_queue.start({})
    away.is_away = True
    for seq in (1, 2):
        effect_queue.seal([event(seq), event(seq)])
        effect_queue.on_committed()
    assert not effect_queue.has_room
    await until(lambda: effect_queue.stats.failures > 0, "it was tried")
    assert await events(database) == []
    away.is_away = False
    await effect_queue.settled(2)
    assert effect_queue.has_room
    await until(lambda: room[-1:] == [0], "whoever waits is told")
    assert await events(database) == [1, 1, 2, 2]
    await effect_queue.stop()


async def test_a_company_has_its_share_of_what_waits_unless_the_database_is_away(database: Database) -> None:
    away = Away(database)
    effect_queue = EffectQueue(EffectWriter(away), new_tasks(), limit=100)
    room: list[bool] = []
    effect_queue.room.listen(lambda: room.append(effect_queue.has_room_of("1")))
    await effect_queue.start({})
    effect_queue.seal([event(number) for number in range(6)])
    assert event(0).company_id == 1
    assert not effect_queue.has_room_of("1"), "more than a twentieth waits"
    assert effect_queue.has_room_of("2")
    assert effect_queue.has_room
    assert effect_queue.stats.company_pauses == 1
    away.is_away = True
    effect_queue.on_committed()
    await until(lambda: room == [True], "while nothing can be written, all of it may fill")
    away.is_away = False
    await effect_queue.settled(1)
    await until(lambda: effect_queue.has_room_of("1"), "it has room again")
    effect_queue.seal([event(number) for number in range(6)])
    assert not effect_queue.has_room_of("1")
    effect_queue.on_committed()
    await effect_queue.settled(2)
    await until(lambda: len(room) == 3, "whoever waits is told")
    assert room[-1]
    await effect_queue.stop()


def poisoned(time_us: int) -> EventRaised:
    """No database has a column for it."""
    return EventRaised(2**70, 17, "t1", "HOT", "hot", "热", "90", "x > 80", "90", time_us)


async def test_what_no_database_takes_keeps_nothing_else_from_it(database: Database) -> None:
    heard: list[int] = []
    effect_queue = EffectQueue(EffectWriter(database), new_tasks())
    effect_queue.happened.listen(lambda happened: heard.extend(each.row["created"] for each in happened))
    await effect_queue.start({})
    for first in (10, 20, 30):
        effect_queue.seal(
            [event(first), poisoned(first + 1), opened(first + 2), closed(first + 3)][: 4 if first == 20 else 1]
        )
    effect_queue.on_committed()
    await effect_queue.settled(3)
    assert await events(database) == [10, 20, 30]
    assert await labels(database) == [(22, 23, 0)]
    assert (effect_queue.stats.refused, effect_queue.stats.waiting) == (1, 0), "it could not even be kept"


async def test_one_that_can_be_kept_and_not_written_is_left_out_and_counted(database: Database) -> None:
    effect_writer = EffectWriter(database)

    async def join(connection, happened) -> None:
        if any(each.row.get("created") == 21 for each in happened):
            raise ZeroDivisionError("a rule that fails on it")

    effect_writer.join(join)
    effect_queue = EffectQueue(effect_writer, new_tasks())
    await effect_queue.start({})
    for seq in (1, 2, 3):
        effect_queue.seal([event(10 * seq), event(10 * seq + 1), opened(10 * seq + 2), closed(10 * seq + 3)])
    effect_queue.on_committed()
    await effect_queue.settled(3)
    assert await events(database) == [10, 11, 20, 30, 31]
    assert await labels(database) == [(12, 13, 0), (22, 23, 0), (32, 33, 0)]
    assert (effect_queue.stats.refused, effect_queue.stats.waiting) == (1, 0)
    assert await EffectWriter(database).applied() == 3
    await effect_queue.stop()
