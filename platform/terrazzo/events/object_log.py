"""``ObjectLog``: everything that happened to an object, of several tables, merged and paged by time.

A page ends at a place (time, kind, id), where the next one goes on: what comes meanwhile moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.registry import AUDIT, COMMAND
from terrazzo.domain.events.definition import severity_name

_NOTHING = sa.literal("")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class LogPlace(NamedTuple):
    """Where a page ended: time (UTC microseconds), the kind's place in ``KINDS``, the record's id."""

    time_us: int
    kind: int
    record_id: int


class LogEntry(NamedTuple):
    """Something that happened; its place says when, what kind, and which record. Names in ``KINDS``."""

    place: LogPlace
    code: str
    label_en: str
    label_cn: str
    value: str
    state: str
    severity: str
    terminal_id: str
    username: str


class LogSource(NamedTuple):
    """A kind: its table, the column of its time, whose rows are an object's, and where the fields are from."""

    kind: str
    table: sa.Table
    time: sa.Column[int]
    columns: tuple[
        sa.ColumnElement[Any], ...
    ]  # code, label_en, label_cn, value, state, severity, terminal_id, username


def _label(kind: str, time: sa.Column[int]) -> LogSource:
    c = LABEL.c
    return LogSource(
        kind, LABEL, time, (c.code, c.label_en, c.label_cn, c.value, _NOTHING, _NOTHING, c.terminal_id, _NOTHING)
    )


_E, _C, _A = EVENT.c, COMMAND.c, AUDIT.c
SOURCES = (
    LogSource(
        "event",
        EVENT,
        _E.created,
        (_E.code, _E.label_en, _E.label_cn, _E.value, _E.state, _E.severity, _E.terminal_id, _NOTHING),
    ),
    _label("label_opened", LABEL.c.opened_at),
    _label("label_closed", LABEL.c.close_at),
    LogSource(
        "command",
        COMMAND,
        _C.queued_us,
        (_C.command, _NOTHING, _NOTHING, _C.value, _C.state, _NOTHING, _C.terminal_id, _NOTHING),
    ),
    LogSource(
        "change",
        AUDIT,
        _A.time,
        (_A.action, _NOTHING, _NOTHING, sa.func.coalesce(_A.after, ""), _NOTHING, _NOTHING, _NOTHING, _A.username),
    ),
)
KINDS = tuple(each.kind for each in SOURCES)
_CHANGE = KINDS.index("change")


class ObjectLog:
    """Reads the log of an object, the latest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, object_id: int, company_id: int, *, before: LogPlace | None, size: int, kinds: frozenset[str]
    ) -> list[LogEntry]:
        """``size`` entries at most, those before a place.

        Args:
            company_id: whose the object is.
            kinds: of entries.
        """
        found: list[LogEntry] = []
        async with self._database.reading() as connection:
            for number, source in enumerate(SOURCES):
                if source.kind not in kinds:
                    continue
                query = _query(source, number, before, size).where(*_whose(source, object_id, company_id))
                for row in await connection.execute(query):
                    found.append(_entry(number, row))
        return nlargest(size, found, key=lambda entry: entry.place)


def _whose(source: LogSource, object_id: int, company_id: int) -> list[sa.ColumnElement[bool]]:
    columns = source.table.c
    if source.table is AUDIT:
        return [columns.uid == str(object_id), columns.company_id == company_id, columns.entity == "object"]
    return [columns.object_id == object_id, columns.company_id == company_id]


def _query(source: LogSource, number: int, before: LogPlace | None, size: int) -> sa.Select[Any]:
    time, record_id = source.time, source.table.c.id
    query = sa.select(time, record_id, *source.columns).where(time.is_not(None))
    query = query.order_by(time.desc(), record_id.desc()).limit(size)
    if before is None:
        return query
    if number == before.kind:
        earlier = sa.or_(time < before.time_us, record_id < before.record_id)
        return query.where(time <= before.time_us, earlier)
    return query.where(time <= before.time_us if number < before.kind else time < before.time_us)


def _entry(number: int, row: Sequence[Any]) -> LogEntry:
    time_us, record_id, *fields = row
    texts = [str(each) for each in fields]
    if fields[5]:
        texts[5] = severity_name(int(fields[5]))
    if number == _CHANGE and fields[3]:
        texts[3] = ", ".join(_decode(fields[3]))  # names alone: values may be secrets
    return LogEntry(LogPlace(time_us, number, record_id), *texts)
