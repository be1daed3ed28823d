"""Links that show one dashboard on a wall: a key of their own, of which the hash is stored, one for each dashboard.

A key is no token: nothing that checks tokens takes it. It is looked up whenever it is shown, so that one that was
ended opens nothing from then on, on any platform of the same database.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.access.tokens import Tokens
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import AuditLog
from terrazzo.database.database import Database
from terrazzo.database.port import Row
from terrazzo.database.tables.access import WALL_LINK
from terrazzo.domain.actor import Actor
from terrazzo.errors import NotAuthenticated
from terrazzo.reasons import say
from terrazzo.times import now_us

MARK = "tzw_"  # what every key begins with, so that people and scanners of leaked secrets know one
_KEY_BYTES = 32
_LENGTH = len(MARK) + 43  # of 32 bytes in base64
_SHOWN = len(MARK) + 8


class WallLink(NamedTuple):
    """What is stored of a link; ``object_id``: for which object the dashboard is shown, None: for its pages' own."""

    dashboard_id: int
    object_id: int | None
    prefix: str
    made_by: int
    made_us: int


class WallLinkStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    refused: int = 0  # keys that were shown and reach nothing


class WallLinks:
    """Makes, finds and ends links.

    Args:
        clock: UTC microseconds.
    """

    def __init__(
        self, database: Database, tokens: Tokens, audit: AuditLog, *, clock: Callable[[], int] = now_us
    ) -> None:
        self._database = database
        self._tokens = tokens
        self._audit = audit
        self._clock = clock
        self.stats = WallLinkStats()

    async def make(self, actor: Actor, dashboard: Row, object_id: int | None) -> tuple[WallLink, str]:
        """A new link of a dashboard's, and its key, which nobody can read again; the one before it ends."""
        key = MARK + secrets.token_urlsafe(_KEY_BYTES)
        link = WallLink(dashboard["id"], object_id, key[:_SHOWN], actor.user_id, self._clock())
        await self._audit.note(_entry(actor, dashboard, "create", link))
        async with self._database.writing() as connection:
            await connection.execute(WALL_LINK.delete().where(WALL_LINK.c.dashboard_id == link.dashboard_id))
            await connection.execute(WALL_LINK.insert().values(**link._asdict(), key_hash=_hash_of(key)))
        return link, key

    async def of(self, dashboard_id: int) -> WallLink | None:
        """A dashboard's link, if it has one."""
        return await self._find(WALL_LINK.c.dashboard_id == dashboard_id)

    async def end(self, actor: Actor, dashboard: Row) -> bool:
        """Ends a dashboard's link; whether there was one."""
        link = await self.of(dashboard["id"])
        if link is None:
            return False
        await self._audit.note(_entry(actor, dashboard, "delete", link))
        async with self._database.writing() as connection:
            await connection.execute(WALL_LINK.delete().where(WALL_LINK.c.dashboard_id == link.dashboard_id))
        return True

    async def verify(self, key: str | None) -> WallLink:
        """Whose key it is.

        Raises:
            NotAuthenticated: nobody's, it was ended, or its maker or their company is deactivated.
        """
        found = None
        if key is not None and key.startswith(MARK) and len(key) == _LENGTH:
            found = await self._find(WALL_LINK.c.key_hash == _hash_of(key))
        if found is None:
            raise NotAuthenticated(say("link_unknown"))
        if self._tokens.active(found.made_by) is None:
            raise NotAuthenticated(say("link_owner_gone"))
        return found

    async def _find(self, condition: sa.ColumnElement[bool]) -> WallLink | None:
        query = sa.select(*(WALL_LINK.c[name] for name in WallLink._fields)).where(condition)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).first()
        return None if row is None else WallLink(*row)


def _entry(actor: Actor, dashboard: Row, action: str, link: WallLink) -> AuditEntry:
    said = {"prefix": link.prefix, "object_id": link.object_id}
    return AuditEntry(
        actor=actor,
        company_id=dashboard["permission_company_id"],
        action=action,
        entity="wall_link",
        record_id=dashboard["id"],
        uid=dashboard["uid"],
        before=said if action == "delete" else None,
        after=said if action == "create" else None,
    )


def _hash_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
