"""The audit log in the database: written in the transaction of the change itself, read by administrators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, tzinfo
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import AuditEntry, encode_values, masked_values
from terrazzo.database.conditions import Selection
from terrazzo.database.database import Database
from terrazzo.database.entity import past
from terrazzo.database.field import Field, moment, number, text
from terrazzo.database.port import EVERYTHING, Conditions, Row, Rows
from terrazzo.database.tables.registry import AUDIT
from terrazzo.domain.actor import Actor
from terrazzo.times import now_us

_FIELDS: tuple[Field, ...] = (
    moment("time"),
    number("company_id", default=None),
    number("user_id"),
    text("username", 64),
    text("address", 64),
    text("action", 32),
    text("entity", 32),
    number("record_id", default=None),
    text("uid", 96),
    text("before", 0),
    text("after", 0),
    text("batch", 16, default=None),
)
_INSERT = AUDIT.insert()
_SHAPE = past(AUDIT, _FIELDS, moment="time", key="uid")


async def write_entries(connection: AsyncConnection, entries: Iterable[AuditEntry], time_us: int) -> None:
    """Adds entries inside the transaction of the changes that they record, so that neither exists without the other."""
    rows = [_stored(entry, time_us) for entry in entries]
    if rows:
        await connection.execute(_INSERT, rows)


class AuditLog:
    """Reads the log, adds entries that are no change of a record (logins, say), and deletes old ones.

    Args:
        database: has the table ``audit``.
        zone: of times without an offset in conditions.
        clock: UTC microseconds.
        secret_columns: by the name of an entity, columns that read ``******``, whatever an older version has written.
    """

    def __init__(
        self,
        database: Database,
        *,
        zone: tzinfo = UTC,
        clock: Callable[[], int] = now_us,
        secret_columns: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._database = database
        self._secret_columns = secret_columns or {}
        self._clock = clock
        self._selection = Selection(_SHAPE, {}, zone)

    async def note(self, entry: AuditEntry) -> None:
        """Adds an entry in a transaction of its own.

        Raises:
            Unavailable: it could not be written; then what it records must not be done.
        """
        async with self._database.writing() as connection:
            await write_entries(connection, [entry], self._clock())

    async def page(
        self,
        actor: Actor,
        *,
        page_index: int = 1,
        page_size: int = 20,
        conditions: Conditions = EVERYTHING,
        order_by: tuple[str, bool] | None = None,
    ) -> Rows:
        """Entries of the actor's company, newest first unless ``order_by`` (column, descending) says otherwise.

        Raises:
            BadParameter: an unknown column, or a value that doesn't suit it.
        """
        where = self._selection.where(conditions)
        if not actor.is_super:
            where.append(AUDIT.c.company_id == actor.company_id)
        order = self._selection.order(order_by or ("id", True))
        query = sa.select(AUDIT).where(*where).order_by(*order)
        async with self._database.reading() as connection:
            count = sa.select(sa.func.count()).select_from(AUDIT).where(*where)
            total = (await connection.execute(count)).scalar_one()
            page = query.limit(page_size).offset((page_index - 1) * page_size)
            found = (await connection.execute(page)).mappings().all()
        return Rows([_row(row, self._secret_columns.get(row["entity"], ())) for row in found], total)


def _stored(entry: AuditEntry, time_us: int) -> dict[str, Any]:
    return {
        "time": time_us,
        "company_id": entry.company_id,
        "user_id": entry.actor.user_id,
        "username": _plain(entry.actor.username, 64),
        "address": _plain(_told_address(entry.actor), 64),
        "action": entry.action,
        "entity": entry.entity,
        "record_id": entry.record_id,
        "uid": _plain(entry.uid, 96),
        "before": encode_values(entry.before),
        "after": encode_values(entry.after),
        "batch": entry.actor.batch or None,
    }


def _told_address(actor: Actor) -> str:
    return f"{actor.address}, key {actor.api_key}" if actor.api_key else actor.address


def _plain(text: str, most: int) -> str:
    """A text that any database takes, of at most ``most`` characters: strangers try to log in under any name."""
    return text[:most].replace("\0", "?").encode("utf-8", "replace").decode()


def _row(found: sa.RowMapping, secret_columns: Collection[str]) -> Row:
    row = dict(found)
    for name in ("before", "after"):
        values = None if row[name] is None else msgspec.json.decode(row[name])
        row[name] = masked_values(values, secret_columns)
    return row
