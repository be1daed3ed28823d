"""Effects into the database, each exactly once: what is applied and how far is one transaction."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database, is_passing
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EFFECT_MARK, EVENT, LABEL, OPEN_STATES
from terrazzo.domain.happened import Happened
from terrazzo.domain.terminal import OutOfService
from terrazzo.mapping.effects import Effect, EventRaised, EventsCleared, LabelClosed, LabelOpened
from terrazzo.mapping.labels import Key
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas, KeptKind

_log = logging.getLogger(__name__)

_ROWS_AT_ONCE = 200  # of one statement: a loop that others need makes them and reads them back
_MOST_CLEARED = 1_000  # events of an object that one transaction clears; others go with the next clearing
_CLOSED = ("id", "close_at", "by_hand")
_CLOSE = (
    LABEL.update()
    .where(LABEL.c.id == sa.bindparam("its_id"))
    .values(close_at=sa.bindparam("its_close_at"), by_hand=sa.bindparam("its_by_hand"))
)
_AS_RAISED = {"state": "raised", "cleared_at": None, "cleared_cause": ""}

Numbered = tuple[int, Sequence[Effect]]
"""The effects of one commit, and their number."""

_Name = tuple[int, Key]
"""An object and the key of its label."""


Joiner = Callable[[AsyncConnection, Sequence[Happened]], Awaitable[None]]
"""Writes what follows from what happened, in the same transaction."""


class EffectWriter:
    """The tables ``event`` and ``label``, as effects change them."""

    def __init__(
        self,
        database: Database,
        *,
        name: str = "embedded",
        quotas: EventQuotas | None = None,
        out_of_service: Mapping[str, OutOfService] | None = None,
    ) -> None:
        """``name``: of the store that keeps the effects until they are here; ``quotas``: how many are kept.

        ``out_of_service``: by uid, the terminals whose events go onto the shelf.
        """
        self._out_of_service = {} if out_of_service is None else out_of_service
        self._database = database
        self._quotas = quotas or EventQuotas()
        self._name = name
        self._joiners: list[Joiner] = []

    def join(self, joiner: Joiner) -> None:
        """Has ``joiner`` write in the transaction of each effect, so that neither is without the other."""
        self._joiners.append(joiner)

    async def applied(self) -> int:
        """The number of the last effects that are in the tables."""
        async with self._database.reading() as connection:
            return await self._mark(connection) or 0

    async def apply(self, batches: Sequence[Numbered]) -> list[Happened]:
        """Applies effects that are not applied yet, in order; returns what changed.

        Raises:
            Unavailable: the database doesn't answer; nothing was applied.
        """
        async with self._database.writing() as connection:
            before = await self._mark(connection)
            effects = [effect for seq, some in batches for effect in some if seq > (before or 0)]
            happened = await self._write(connection, effects)
            await self._set_mark(connection, before, max(seq for seq, _ in batches))
        return happened

    async def apply_sound(self, numbered: Numbered) -> tuple[list[Happened], list[Effect]]:
        """Applies the effects of one commit one by one; returns what changed, and those that can't be written.

        Raises:
            Unavailable: the database doesn't answer; nothing was applied.
        """
        seq, effects = numbered
        happened: list[Happened] = []
        refused: list[Effect] = []
        async with self._database.writing() as connection:
            before = await self._mark(connection)
            for effect in effects if seq > (before or 0) else ():
                try:
                    async with connection.begin_nested():
                        happened += await self._write(connection, [effect])
                except Exception as error:
                    if is_passing(error):
                        raise
                    refused.append(effect)
                    _log.error("object %d: what happened can't be written: %r", effect.object_id, error)
            await self._set_mark(connection, before, seq)
        return happened, refused

    async def _write(self, connection: AsyncConnection, effects: Sequence[Effect]) -> list[Happened]:
        closed = await self._close(connection, effects)
        cleared = await self._clear(connection, effects)
        events = await self._insert(connection, EVENTS, [self._shelved(row) for row in _events(effects)])
        labels = await self._insert(connection, LABELS, _labels(effects))
        happened = [
            *cleared,
            *[Happened("event", row | _AS_RAISED) for row in events],
            *[Happened("cleared", row) for row in events if row["cleared_at"] is not None],
            *closed,
            *[Happened("opened", row) for row in labels],
            *[Happened("closed", row) for row in labels if row["close_at"] is not None],
        ]
        for joiner in self._joiners:
            await joiner(connection, happened)
        return happened

    def _shelved(self, row: dict[str, Any]) -> dict[str, Any]:
        """An event's row, on the shelf while the terminal that raised it is out of service."""
        out = self._out_of_service.get(row["terminal_id"])
        if out is None:
            return row | {"shelved_until": None, "shelved_by": None}
        return row | {"shelved_until": out.until_us, "shelved_by": out.user_id}

    async def _insert(
        self, connection: AsyncConnection, kind: KeptKind, rows: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Inserts rows; returns them as they are in the table, without those that are over a quota."""
        statement = kind.table.insert().returning(*kind.table.c, sort_by_parameter_order=True)
        kept: list[dict[str, Any]] = []
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            stored = [dict(row) for row in (await connection.execute(statement, some)).mappings()]
            gone = await self._quotas.add(connection, kind, stored)
            kept += [row for row in stored if row["id"] not in gone] if gone else stored
        return kept

    async def _mark(self, connection: AsyncConnection) -> int | None:
        query = sa.select(EFFECT_MARK.c.seq).where(EFFECT_MARK.c.name == self._name)
        found: int | None = (await connection.execute(query)).scalar()
        return found

    async def _set_mark(self, connection: AsyncConnection, before: int | None, seq: int) -> None:
        if before is None:
            await connection.execute(EFFECT_MARK.insert().values(name=self._name, seq=seq))
        elif seq > before:
            await connection.execute(EFFECT_MARK.update().where(EFFECT_MARK.c.name == self._name).values(seq=seq))

    async def _clear(self, connection: AsyncConnection, effects: Sequence[Effect]) -> list[Happened]:
        """Clears events that earlier transactions raised."""
        columns, cleared = EVENT.c, list[Happened]()
        for (object_id, cleared_us, cause), codes in _clearing(effects).items():
            where = (columns.object_id == object_id, one_of(columns.code, codes), columns.state.in_(OPEN_STATES))
            some = sa.select(columns.id).where(*where).limit(_MOST_CLEARED)
            changed = (
                EVENT.update()
                .where(columns.id.in_(some))
                .values(
                    state="cleared",
                    cleared_at=sa.case((columns.created > cleared_us, columns.created), else_=cleared_us),
                    cleared_cause=cause,
                    clear_at=None,
                )
            )
            rows = (await connection.execute(changed.returning(*columns))).mappings()
            cleared += [Happened("cleared", dict(row)) for row in rows]
        return cleared

    async def _close(self, connection: AsyncConnection, effects: Sequence[Effect]) -> list[Happened]:
        """Closes labels that earlier transactions opened."""
        closing = _closing(effects)
        if not closing:
            return []
        objects = {object_id for object_id, _ in closing}
        query = sa.select(LABEL).where(LABEL.c.close_at.is_(None), one_of(LABEL.c.object_id, objects))
        open_rows = [dict(row) for row in (await connection.execute(query)).mappings()]
        closed = [
            row | {"close_at": effect.closed_us, "by_hand": int(effect.by_hand)}
            for row in open_rows
            if (effect := closing.get((row["object_id"], (row["project_id"], row["code"])))) is not None
        ]
        if closed:
            await connection.execute(_CLOSE, [{f"its_{name}": row[name] for name in _CLOSED} for row in closed])
        return [Happened("closed", row) for row in closed]


def _name(effect: LabelOpened | LabelClosed) -> _Name:
    return effect.object_id, (effect.project_id, effect.code)


def _clearing(effects: Iterable[Effect]) -> dict[tuple[int, int, str], list[str]]:
    """Of each object the codes that the first clearing of each is about, by its time and cause."""
    found: dict[tuple[int, int, str], list[str]] = {}
    seen: set[tuple[int, str]] = set()
    for effect in effects:
        if isinstance(effect, EventsCleared) and (effect.object_id, effect.code) not in seen:
            seen.add((effect.object_id, effect.code))
            found.setdefault((effect.object_id, effect.cleared_us, effect.cause), []).append(effect.code)
    return found


def _closing(effects: Iterable[Effect]) -> dict[_Name, LabelClosed]:
    """The closings of labels that were not opened by the same effects: the first of each label, if it comes first."""
    found: dict[_Name, LabelClosed] = {}
    opened: set[_Name] = set()
    for effect in effects:
        if isinstance(effect, LabelOpened):
            opened.add(_name(effect))
        elif isinstance(effect, LabelClosed) and _name(effect) not in opened:
            found.setdefault(_name(effect), effect)
    return found


def _events(effects: Iterable[Effect]) -> list[dict[str, Any]]:
    """The events that are raised, cleared already where a later effect clears them."""
    rows: list[dict[str, Any]] = []
    still_open: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for effect in effects:
        if isinstance(effect, EventRaised):
            row = event_values(effect) | _AS_RAISED
            rows.append(row)
            still_open.setdefault((effect.object_id, effect.code), []).append(row)
        elif isinstance(effect, EventsCleared):
            for row in still_open.pop((effect.object_id, effect.code), ()):
                cleared_at = max(row["created"], effect.cleared_us)  # terminals' clocks differ
                row |= {"state": "cleared", "cleared_at": cleared_at, "cleared_cause": effect.cause, "clear_at": None}
    return rows


def event_values(effect: EventRaised) -> dict[str, Any]:
    """The columns of an event that has been raised."""
    row = msgspec.structs.asdict(effect)
    row["created"] = row.pop("time_us")
    return row


def _labels(effects: Iterable[Effect]) -> list[dict[str, Any]]:
    """The labels that open, closed already where a later effect closes them."""
    rows: list[dict[str, Any]] = []
    still_open: dict[_Name, dict[str, Any]] = {}
    for effect in effects:
        if isinstance(effect, LabelOpened):
            row = msgspec.structs.asdict(effect)
            opened_us = row.pop("opened_us")
            row |= {"opened_at": opened_us, "created": opened_us, "close_at": None, "by_hand": 0}
            rows.append(row)
            still_open[_name(effect)] = row
        elif isinstance(effect, LabelClosed) and (opened := still_open.pop(_name(effect), None)):
            opened |= {"close_at": effect.closed_us, "by_hand": int(effect.by_hand)}
    return rows
