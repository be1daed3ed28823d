"""``PresenceLog``: keeps what terminals' connections did, for a year. What waits is written every few seconds.

A crash loses what waits, and the platform's own log says that it was away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.presence import PRESENCE_DAY
from terrazzo.database.upsert import insert_into
from terrazzo.domain.terminal import Terminal
from terrazzo.ports.bus import Presence
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.terminals.presence_bands import (
    STOPPED,
    Band,
    Change,
    DayLog,
    Turn,
    bands_of,
    decode_day,
    encode_day,
    stops_of,
    turns_of,
    with_stops,
)
from terrazzo.times import DAY_US, now_us
from terrazzo_broker.hooks import Client

KEPT_DAYS = 366
WRITE_S = 5.0
_BEAT_US = 60 * 1_000_000
_MOST_WAITING = 200_000  # changes; further ones are counted and not kept
_AT_ONCE = 500  # terminals that one transaction writes
_MOST_PRUNED = 5_000  # rows that one look removes
_PRUNE_S = 3_600.0
_PLATFORM = 0


class PresenceLogStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    written: int = 0
    lost: int = 0  # more waited than may


class PresenceLog:
    """Hears of connections, writes them, and reads the bands of a terminal.

    Args:
        clock: UTC microseconds.
    """

    def __init__(self, database: Database, *, clock: Callable[[], int] = now_us) -> None:
        self.stats = PresenceLogStats()
        self._database = database
        self._clock = clock
        self._heard: list[tuple[Any, int, Presence]] = []  # identity, time: not looked at yet
        self._waiting: dict[tuple[int, int], list[Change]] = {}  # by terminal and day
        self._count = 0  # in ``_waiting``
        self._beat_us = 0
        self._is_open = False
        self._room = 0  # how many more may be heard of until they are written
        self._tasks: list[Task] = []
        self._writing = asyncio.Lock()  # the task writes each few seconds, and who reads bands does before

    def on_presence(self, client: Client, presence: Presence) -> None:
        """``PresenceRegister.changes`` tells this."""
        heard = self._heard
        if len(heard) < self._room:
            heard.append((client.identity, self._clock(), presence))
        elif self._is_open:
            self.stats.lost += 1

    def _note(self, terminal_id: int, change: Change) -> None:
        self._waiting.setdefault((terminal_id, change.time_us // DAY_US), []).append(change)
        self._count += 1

    def start(self, tasks: Tasks) -> None:
        """From now on changes are kept."""
        self._is_open, self._room = True, _MOST_WAITING
        now = self._beat_us = self._clock()
        self._note(_PLATFORM, Change(now, is_online=True, reason=""))
        self._note(_PLATFORM, Change(now + 1_000, is_online=False, reason=STOPPED))  # moved on by each beat
        self._tasks = [
            tasks.repeat("presence written", WRITE_S, self.write, OnFailure.RESTART),
            tasks.repeat("presence pruned", _PRUNE_S, self.prune, OnFailure.RESTART),
        ]

    async def stop(self) -> None:
        """Writes what waits; the connections that end after it end because the platform does."""
        self._is_open, self._room = False, 0
        for task in self._tasks:
            await task.stop()
        self._beat_us = 0
        await self.write()

    async def write(self) -> None:
        """Writes what waits, in several transactions; raises ``Unavailable``, and it waits on."""
        async with self._writing:
            await self._write_waiting()

    async def _write_waiting(self) -> None:
        now = self._clock()
        if now - self._beat_us >= _BEAT_US:
            self._note(_PLATFORM, Change(now, is_online=False, reason=STOPPED))
            self._beat_us = now
        heard, self._heard = self._heard, []
        for identity, time_us, presence in heard:
            terminal: Terminal | None = getattr(identity, "terminal", None)
            if terminal is not None:
                self._note(terminal.id, Change(time_us, presence.online, presence.disconnect_reason))
        self._room = _MOST_WAITING - self._count if self._is_open else 0
        while self._waiting:
            some = dict(list(self._waiting.items())[:_AT_ONCE])
            async with self._database.writing() as connection:
                await _write(connection, some)
            for key, written in some.items():
                self._count -= len(written)
                self.stats.written += len(written)
                rest = self._waiting.pop(key)[len(written) :]
                if rest:
                    self._waiting[key] = rest

    async def prune(self) -> None:
        """Removes rows that are older than ``KEPT_DAYS``, some at a time."""
        table, before = PRESENCE_DAY, self._clock() // DAY_US - KEPT_DAYS
        oldest = sa.select(sa.func.min(table.c.day)).where(table.c.day < before)
        for _ in range(_MOST_PRUNED // _AT_ONCE):
            async with self._database.writing() as connection:
                day = (await connection.execute(oldest)).scalar_one()
                if day is None:
                    return
                some = sa.select(table.c.terminal_id).where(table.c.day == day).limit(_AT_ONCE)
                gone = one_of(table.c.terminal_id, (await connection.execute(some)).scalars().all())
                await connection.execute(table.delete().where(table.c.day == day, gone))

    async def bands(self, terminal_id: int, start_us: int, end_us: int) -> list[Band]:
        """The bands of a terminal (record id) in a range of UTC microseconds; what waits is written before."""
        await self.write()
        columns, first = PRESENCE_DAY.c, start_us // DAY_US
        async with self._database.reading() as connection:
            before = sa.select(sa.func.max(columns.day)).where(columns.terminal_id == terminal_id, columns.day < first)
            since = (await connection.execute(before)).scalar_one() or first
            whose = sa.or_(columns.terminal_id == terminal_id, columns.terminal_id == _PLATFORM)
            query = sa.select(PRESENCE_DAY).where(whose, columns.day >= since, columns.day <= end_us // DAY_US)
            rows = (await connection.execute(query.order_by(columns.day))).all()
        logs = [(row.terminal_id, row.day, decode_day(row.log)) for row in rows]
        turns = [turn for key, day, log in logs if key == terminal_id for turn in turns_of(day, log)]
        stops = stops_of([(day, log) for key, day, log in logs if key == _PLATFORM])
        return bands_of(turns, stops, start_us, end_us, self._clock())

    async def latest(
        self, terminal_ids: Collection[int], before: tuple[int, int] | None, size: int
    ) -> list[tuple[int, int, Turn]]:
        """The latest ``size`` turns of terminals (record ids): the time, the terminal, the turn; the latest first.

        Days are read backwards until there are as many; each day of a terminal has a turn at least.

        Args:
            before: a time and a terminal, which those that are meant come before; None: the latest of all.
        """
        if not terminal_ids:
            return []
        await self.write()
        columns = PRESENCE_DAY.c
        last = (self._clock() if before is None else before[0]) // DAY_US + (before is None)
        whose = one_of(columns.terminal_id, terminal_ids)
        days = sa.select(columns.day).where(whose, columns.day <= last).order_by(columns.day.desc())
        async with self._database.reading() as connection:
            found = (await connection.execute(days.limit(size + len(terminal_ids)))).scalars().all()
            if not found:
                return []
            own = sa.select(PRESENCE_DAY).where(whose, columns.day >= found[-1], columns.day <= last)
            rows = list((await connection.execute(own)).all())
            ours = sa.select(PRESENCE_DAY).where(columns.terminal_id == _PLATFORM, columns.day >= found[-1])
            platform = (await connection.execute(ours.order_by(columns.day))).all()
            stops = stops_of([(row.day, decode_day(row.log)) for row in platform])
            if stops:  # who was connected then may have said so before
                earlier = sa.select(columns.terminal_id, sa.func.max(columns.day).label("day"))
                lasts = earlier.where(whose, columns.day < found[-1]).group_by(columns.terminal_id).subquery()
                at_last = sa.and_(columns.terminal_id == lasts.c.terminal_id, columns.day == lasts.c.day)
                rows += (await connection.execute(sa.select(PRESENCE_DAY).join(lasts, at_last))).all()
        return nlargest(size, _turns_before(rows, stops, before), key=_place)


class ForeignPresenceLog(PresenceLog):
    """The log of a platform that another process serves: it is read here, and nothing is added."""

    async def write(self) -> None:
        """Nothing waits."""


def _place(turn: tuple[int, int, Turn]) -> tuple[int, int]:
    return turn[:2]


def _turns_before(
    rows: Iterable[Any], stops: Sequence[int], before: tuple[int, int] | None
) -> list[tuple[int, int, Turn]]:
    """The turns of stored days of terminals, those before a place; two at one time are one."""
    turns: dict[int, list[Turn]] = {}
    for row in rows:
        turns.setdefault(row.terminal_id, []).extend(turns_of(row.day, decode_day(row.log)))
    found = {(turn.time_us, terminal_id): turn for terminal_id, own in turns.items() for turn in with_stops(own, stops)}
    return [(*place, turn) for place, turn in found.items() if before is None or place < before]


async def _write(connection: AsyncConnection, changes: Mapping[tuple[int, int], Collection[Change]]) -> None:
    table = PRESENCE_DAY
    terminals, days = ({key[place] for key in changes} for place in (0, 1))
    written = sa.select(table).where(one_of(table.c.terminal_id, terminals), one_of(table.c.day, days))
    rows = [row for row in await connection.execute(written) if (row.terminal_id, row.day) in changes]
    logs = {(row.terminal_id, row.day): decode_day(row.log) for row in rows}
    for key, new in changes.items():
        log = logs.setdefault(key, DayLog([]))
        for change in new:
            _add(log, key, change)
    insert = insert_into(connection.dialect.name, table)
    upsert = insert.on_conflict_do_update(index_elements=["terminal_id", "day"], set_={"log": insert.excluded.log})
    values = [{"terminal_id": key[0], "day": key[1], "log": encode_day(log)} for key, log in logs.items()]
    await connection.execute(upsert, values)


def _add(log: DayLog, key: tuple[int, int], change: Change) -> None:
    """A beat of the platform takes the place of the one before; all else is added."""
    terminal_id, day = key
    if terminal_id == _PLATFORM and log.changes and not log.changes[-1][1] and not change.is_online:
        log.changes.pop()
    log.add(change, day)
