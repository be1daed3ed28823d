"""The version of a record: a word that is another one after each change, for whoever saves only over what was read."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.entity import Entity
from terrazzo.database.port import Row
from terrazzo.errors import Conflict
from terrazzo.reasons import say

_BYTES = 12


def version_of(entity: Entity, row: Row) -> str:
    """The version of a record, made of all that it says and when it was changed: times may be the same twice."""
    said = [row[field.name] for field in entity.fields.values() if not field.internal]
    content = msgspec.json.encode([row["id"], row[entity.modified], said])
    return blake2b(content, digest_size=_BYTES).hexdigest()


async def refuse_another(connection: AsyncConnection, entity: Entity, row: Row, version: str | None) -> None:
    """Refuses a change of a record that has changed since ``version`` was read; None: nobody said what was read.

    The record is locked from here on, where the database lets several write: another process may have been quicker.

    Raises:
        Conflict: it has changed.
    """
    if version is None:
        return
    time = sa.select(entity.table.c[entity.modified]).where(entity.table.c.id == row["id"]).with_for_update()
    is_as_read = (await connection.execute(time)).scalar() == row[entity.modified]
    if not is_as_read or version != version_of(entity, row):
        raise Conflict(say("changed_since_read", entity=entity.name, uid=row[entity.uid_name]))
