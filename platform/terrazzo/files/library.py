"""``FileLibrary``: uploaded files, each a record in the database and a content on disk."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing
from functools import partial

import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.usage import Use
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.file_kinds import check_head, clean_name, kind_of
from terrazzo.domain.stored_file import StoredFile
from terrazzo.errors import Conflict, NotFound, Unavailable
from terrazzo.files.folder import FileFolder
from terrazzo.metadata.definitions.components import COLLECTOS, FILE, SERVICE
from terrazzo.metadata.definitions.registry import CONFIGURATION, OBJECT
from terrazzo.metadata.quotas import RecordQuotas, file_use
from terrazzo.metadata.repositories.repository import EntityRepository
from terrazzo.reasons import say

_AT_ONCE = 500  # uids in one query

USERS: Sequence[tuple[sa.Table, tuple[str, ...]]] = (
    (FILE.table, ("file",)),
    (SERVICE.table, ("file",)),
    (COLLECTOS.table, ("file",)),
    (OBJECT.table, ("image",)),
    (CONFIGURATION.table, ("mcu_file", "remosu_file", "lua_file")),
)
"""The columns in which records refer to files, by uid or by a URL that ends in it."""


class FileLibrary:
    """Stores, opens and removes the uploaded files of all companies.

    Args:
        allowed: the allowed endings of names, in lower case.
        quotas: what a company may have; None: as much as it wants.
    """

    def __init__(
        self,
        database: Database,
        uploads: EntityRepository,
        folder: FileFolder,
        *,
        allowed: Collection[str],
        quotas: RecordQuotas | None = None,
    ) -> None:
        self._database = database
        self._uploads = uploads
        self._folder = folder
        self._allowed = frozenset(allowed)
        self._quotas = quotas or RecordQuotas()
        self._arriving: Counter[int] = Counter()  # bytes of uploads that are under way, by company

    @property
    def most_bytes(self) -> int:
        """The longest file that is accepted, in bytes."""
        return self._folder.most_bytes

    async def add(self, actor: Actor, name: str, pieces: AsyncIterator[bytes]) -> Row:
        """Stores a file; returns its record, whose ``uid`` names it from now on.

        Raises:
            BadParameter: the name, the type or the content is refused; nothing was stored.
            QuotaExceeded: the company has as many files as it may, or this one doesn't fit; nothing was stored.
            Unavailable: the disk is full or fails, or the database doesn't answer; nothing was stored.
        """
        name = clean_name(name)
        kind = kind_of(name, self._allowed)
        async with self._database.reading() as connection:
            use = await file_use(connection, actor.company_id)
        async with aclosing(self._within_quota(actor.company_id, use, pieces)) as allowed:
            content = await self._folder.write(allowed, partial(check_head, kind, name))
        try:
            return await self._uploads.create(actor, {**content._asdict(), "name": name, "type": kind.media_type})
        except BaseException:  # cancelled too: no content stays without its record
            await self._folder.remove(content.uid)
            raise

    async def _within_quota(
        self, company_id: int, use: Use, pieces: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """The pieces, as long as they fit beside the company's files and its other uploads."""
        size = 0
        try:
            self._quotas.check_files(use.plus(Use(1, 1)), company_id)
            async for piece in pieces:
                size += len(piece)
                self._arriving[company_id] += len(piece)
                self._quotas.check_files(use.plus(Use(1, self._arriving[company_id])), company_id)
                yield piece
        finally:
            self._arriving[company_id] -= size
            if not self._arriving[company_id]:
                del self._arriving[company_id]

    async def open(self, company_id: int, uid: str) -> StoredFile:
        """The file of a company with this uid.

        Raises:
            NotFound: the company has none.
            Unavailable: its content is missing, after an incomplete restore for instance.
        """
        reader = Actor(user_id=0, username="system", company_id=company_id, role=Role.VIEWER)
        return await self.open_for(reader, uid)

    async def open_for(self, actor: Actor, uid: str) -> StoredFile:
        """As ``open``, for the company of a user."""
        row = await self._by_uid(actor, uid)
        stored = StoredFile(self._folder.path(row["uid"]), row["size"], row["sha256"], row["name"], row["type"])
        if not await asyncio.to_thread(stored.path.is_file):
            raise Unavailable(say("file_content_missing", uid=row["uid"]))
        return stored

    async def remove(self, actor: Actor, uid: str) -> None:
        """Deletes a file, record and content.

        Raises:
            NotFound: there is none.
            Conflict: a record refers to it.
        """
        row = await self._by_uid(actor, uid)
        await self._check_unused(row["uid"])
        await self._uploads.delete(actor, row["uid"])
        await self._folder.remove(row["uid"])

    async def remove_orphans(self) -> int:
        """Removes contents that uploads left behind when the process died; returns how many."""
        old = self._folder.old_names()
        uids, known = list(old), set[str]()
        table = self._uploads.table
        async with self._database.reading() as connection:
            for start in range(0, len(uids), _AT_ONCE):
                query = sa.select(table.c.uid).where(one_of(table.c.uid, uids[start : start + _AT_ONCE]))
                known.update((await connection.execute(query)).scalars())
        return self._folder.remove_orphans(old, known)

    async def _by_uid(self, actor: Actor, uid: str) -> Row:
        try:
            self._folder.path(uid)
        except ValueError:
            raise NotFound("uid", uid[:64]) from None
        return await self._uploads.item(actor, uid)

    async def _check_unused(self, uid: str) -> None:
        async with self._database.reading() as connection:
            for table, columns in USERS:
                names_it = sa.or_(*(table.c[column].contains(uid) for column in columns))
                user = (await connection.execute(sa.select(table.c.id).where(names_it).limit(1))).scalar()
                if user is not None:
                    raise Conflict(say("file_in_use", uid=uid, entity=table.name, user=user))


def parse_types(text: str) -> frozenset[str]:
    """The endings of names in a list separated by commas, in lower case."""
    return frozenset(each.strip().lower() for each in text.split(","))
