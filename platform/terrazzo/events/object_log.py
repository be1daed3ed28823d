"""``ObjectLog``: everything that happened to an object, of several tables, merged and paged by time.

A page ends at a place (time, kind, id), where the next one goes on: what comes meanwhile moves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import nlargest
from typing import Any, NamedTuple, Protocol

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.registry import AUDIT, COMMAND, RECORD_LOG
from terrazzo.domain.events.definition import severity_name
from terrazzo.domain.terminal import Terminal
from terrazzo.metadata.definitions.components import COLLECTOS, SERVICE
from terrazzo.metadata.definitions.registry import OBJECT

MOST_CHARACTERS = 255  # of a value: people write up to 16,384 into offline data
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


class LoggedObject(NamedTuple):
    """Whose log it is: the object's id, whose it is, and its terminals."""

    id: int
    company_id: int
    terminals: Sequence[Terminal]

    @property
    def terminal_ids(self) -> list[int]:
        """The ids of the terminals' records."""
        return [each.id for each in self.terminals]


class Turn(Protocol):
    """A connection that began, ended, or did both many times."""

    @property
    def state(self) -> str:
        """Online, offline or flapping."""
        ...

    @property
    def reason(self) -> str:
        """Why it ended."""
        ...

    @property
    def changes(self) -> int:
        """How many a flapping one has."""
        ...


class Connections(Protocol):
    """What is known of terminals' connections."""

    async def latest(
        self, terminal_ids: Collection[int], before: tuple[int, int] | None, size: int
    ) -> Sequence[tuple[int, int, Turn]]:
        """The latest turns of terminals before a time and terminal: the time, the terminal's id, the turn."""
        ...


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


def _written(kind: str, table: sa.Table, time: str, *names: str) -> LogSource:
    """What people wrote: the columns of its code, name, text and author; no name: none."""
    code, name, value, author = (table.c[each] if each else _NOTHING for each in names)
    short = sa.func.substr(value, 1, MOST_CHARACTERS)
    return LogSource(kind, table, table.c[time], (code, name, name, short, _NOTHING, _NOTHING, _NOTHING, author))


def _noted(kind: str) -> LogSource:
    c = RECORD_LOG.c
    return LogSource(
        kind, RECORD_LOG, c.time, (c.what, _NOTHING, _NOTHING, c.value, _NOTHING, _NOTHING, c.uid, c.username)
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
    _written("service", SERVICE.table, "service_at", "category", "name", "description", "staff_name"),
    _written("offline", COLLECTOS.table, "collect_at", "", "name", "value", "collector"),
    _noted("file"),
    _noted("out_of_service"),
)
PRESENCE = "presence"
KINDS = (*(each.kind for each in SOURCES), PRESENCE)
_CHANGE, _PRESENCE = KINDS.index("change"), KINDS.index(PRESENCE)


class ObjectLog:
    """Reads the log of an object, the latest first."""

    def __init__(self, database: Database, connections: Connections) -> None:
        self._database = database
        self._connections = connections

    async def page(
        self, item: LoggedObject, *, before: LogPlace | None, size: int, kinds: frozenset[str]
    ) -> list[LogEntry]:
        """``size`` entries at most, those before a place.

        Args:
            kinds: of entries.
        """
        found: list[LogEntry] = []
        async with self._database.reading() as connection:
            for number, source in enumerate(SOURCES):
                if source.kind not in kinds:
                    continue
                where = await _whose(connection, source, item)
                if where is None:
                    continue
                for row in await connection.execute(_query(source, number, before, size).where(*where)):
                    found.append(_entry(number, row))
        if PRESENCE in kinds:
            found += await self._turns(item, before, size)
        return nlargest(size, found, key=lambda entry: entry.place)

    async def _turns(self, item: LoggedObject, before: LogPlace | None, size: int) -> list[LogEntry]:
        """Connections of its terminals that began or ended."""
        uids = {each.id: each.uid for each in item.terminals}
        place = None if before is None else (before.time_us, before.record_id if before.kind == _PRESENCE else 0)
        turns = await self._connections.latest(uids.keys(), place, size)
        return [
            LogEntry(
                LogPlace(time_us, _PRESENCE, terminal_id),
                code="",
                label_en="",
                label_cn="",
                value=str(turn.changes) if turn.changes else turn.reason,
                state=turn.state,
                severity="",
                terminal_id=uids[terminal_id],
                username="",
            )
            for time_us, terminal_id, turn in turns
        ]


async def _whose(
    connection: AsyncConnection, source: LogSource, item: LoggedObject
) -> list[sa.ColumnElement[bool]] | None:
    """Which rows of a table are the object's; None: none can be."""
    columns = source.table.c
    if source.table is AUDIT:
        return [columns.uid == str(item.id), columns.company_id == item.company_id, columns.entity == "object"]
    if source.kind == "file":
        files = sa.select(OBJECT.table.c.file_id).where(OBJECT.table.c.id == item.id)
        record = (await connection.execute(files)).scalar()
        return None if record is None else _of_records("file", [record], item.company_id)
    if source.kind == "out_of_service":
        return _of_records("terminal", item.terminal_ids, item.company_id) if item.terminals else None
    company = columns.permission_company_id if "permission_company_id" in columns else columns.company_id
    return [columns.object_id == item.id, company == item.company_id]


def _of_records(entity: str, ids: Sequence[int], company_id: int) -> list[sa.ColumnElement[bool]]:
    c = RECORD_LOG.c
    whose = c.record_id == ids[0] if len(ids) == 1 else one_of(c.record_id, ids)
    return [c.entity == entity, whose, c.company_id == company_id]


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
