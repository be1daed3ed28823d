"""Writes a planned import, with many records in each statement: in one transaction, or in pieces where that is long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import entry_of
from terrazzo.audit.log import write_entries
from terrazzo.bulk.id_sequence import go_on_after
from terrazzo.bulk.plan import AT_ONCE, OnRow, Planned, chunks
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.database.changes import record_changes
from terrazzo.database.entity import Uid, new_uid
from terrazzo.database.one_of import one_of
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.port import Row
from terrazzo.database.usage import Holder, Use, use_of
from terrazzo.domain.actor import Actor
from terrazzo.errors import Conflict
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.quotas import COUNTED_RECORDS
from terrazzo.metadata.repositories.repository import EntityRepository, RowChange, Unit
from terrazzo.reasons import say

Stored = dict[str, Any]
"""A row in the form of the table (encoded, sealed)."""


class ImportWriter:
    """Writes one import. Calls non-public methods of the repository: changes are announced and audited as usual.

    New records alone, and more than one statement takes, go in pieces where the database has one writer for all.
    """

    def __init__(self, repository: EntityRepository, actor: Actor, unfinished: UnfinishedImports) -> None:
        self._repository = repository
        self._actor = actor
        self._unfinished = unfinished
        self._entity, self._table = repository.entity, repository.table
        unwritable = [each for each in self._entity.fields.values() if each.internal or each.read_only]
        self._defaults = {each.name: each.default for each in unwritable if each.default is not None}
        self._pauses = LoopPauses()

    async def write(self, planned: Sequence[Planned], on_row: OnRow) -> None:
        """Writes all records, or none. Slow steps such as sealing secrets are done before the transaction.

        Raises:
            Conflict: somebody changed a record since it was planned, or replaced the key that secrets are sealed with.
            QuotaExceeded: a company would have more than it may.
        """
        sealed_with = self._repository.secrets.look()
        new = [(each, await self._new(each)) for each in planned if each.before is None]
        changed = [(each, await self._merged(each)) for each in planned if each.before is not None]
        if self._repository._database.sqlite_file is not None and not changed and len(new) > AT_ONCE:
            await self._write_in_pieces(new, sealed_with, on_row)
            return
        done = 0
        async with self._repository._changing(self._actor) as unit:
            self._check_key(sealed_with)
            for some in chunks(new):
                await self._add(unit, some)
                on_row(done := done + len(some))
            for some in chunks(changed):
                ids = [stored["_id"] for _, stored in some]
                await unit.use.take(unit.connection, ids)
                await self._update(unit.connection, some)
                await unit.use.add(unit.connection, ids)
                unit.changed.extend(await self._tell(unit, [each for each, _ in some]))
                on_row(done := done + len(some))

    async def _write_in_pieces(self, new: Sequence[tuple[Planned, Stored]], sealed_with: object, on_row: OnRow) -> None:
        await self._check_quotas(Counter(each.company for each, _ in new))
        done = 0
        async with self._unfinished.whole(self._actor) as importing:
            for some in chunks(new):
                async with self._repository._changing(importing) as unit:
                    self._check_key(sealed_with)
                    await self._unfinished.note(unit, self._entity.name, await self._add(unit, some))
                on_row(done := done + len(some))

    async def _check_quotas(self, new: Mapping[int, int]) -> None:
        """Refuses what would be too many records before the first one is made."""
        counted = COUNTED_RECORDS.get(self._entity.name)
        if counted is None:
            return
        async with self._repository._database.reading() as connection:
            there = await use_of(connection, counted.kind, [Holder(company) for company in new])
        for company, records in new.items():
            grown = Use(records)
            use = there[Holder(company)].plus(grown)
            self._repository._quotas.check_records(counted.kind, use, grown, company)

    def _check_key(self, sealed_with: object) -> None:
        if self._repository.secrets.look() != sealed_with:
            raise Conflict(say("secrets_key_replaced"))

    async def _add(self, unit: Unit, some: Sequence[tuple[Planned, Stored]]) -> list[int]:
        """Makes records, and has them counted and told; returns their ids."""
        ids = await self._insert(unit.connection, some)
        await unit.use.add(unit.connection, ids)
        unit.changed.extend(await self._tell(unit, [each for each, _ in some]))
        return ids

    async def _new(self, each: Planned) -> Stored:
        await self._pauses.pause()
        entity, now = self._entity, self._repository._clock()
        stored = self._repository._codec.encode(self._defaults | each.draft)
        stored |= {entity.company: each.company, entity.created: now, entity.modified: now}
        if each.uid is None:
            each.uid = new_uid()  # until the id is known that is its key
        elif entity.uid is Uid.FROM_ID:
            stored["id"] = int(each.uid)
        stored[entity.uid_name] = each.uid
        return stored

    async def _merged(self, each: Planned) -> Stored:
        """All columns of a changed record, so that all rows of a statement have the same ones."""
        await self._pauses.pause()
        assert each.before is not None
        columns = [field.name for field in self._entity.writable() if field.name != self._entity.company]
        full = {name: each.before[name] for name in columns} | each.draft
        stored = self._repository._codec.encode(full)
        return {**stored, self._entity.modified: self._repository._clock(), "_id": each.before["id"]}

    async def _insert(self, connection: AsyncConnection, some: Sequence[tuple[Planned, Stored]]) -> list[int]:
        """Inserts records, those with an explicit id in a statement of their own; returns their ids."""
        uid = self._table.c[self._entity.uid_name]
        ids: dict[str, int] = {}
        for with_id in (True, False):
            rows = [stored for _, stored in some if ("id" in stored) is with_id]
            if rows:
                statement = self._table.insert().returning(self._table.c.id, uid)
                ids |= {row[1]: row[0] for row in await connection.execute(statement, rows)}
            if rows and with_id:
                await go_on_after(connection, self._table)
        if self._entity.uid is Uid.FROM_ID:
            await self._name_by_id(connection, [(each, ids[each.uid or ""]) for each, _ in some])
            ids = {str(id_): id_ for id_ in ids.values()}
        await self._repository._written_all(connection, [(ids[each.uid or ""], each.draft) for each, _ in some])
        await self._repository._added(connection, list(ids.values()))
        return list(ids.values())

    async def _name_by_id(self, connection: AsyncConnection, some: list[tuple[Planned, int]]) -> None:
        unnamed = [(each, id_) for each, id_ in some if each.uid != str(id_)]
        for each, id_ in unnamed:
            each.uid = str(id_)
        if unnamed:
            named = self._table.update().where(self._table.c.id == sa.bindparam("_id"))
            values: Stored = {self._entity.uid_name: sa.bindparam("_uid")}
            await connection.execute(named.values(values), [{"_id": id_, "_uid": str(id_)} for _, id_ in unnamed])

    async def _update(self, connection: AsyncConnection, some: Sequence[tuple[Planned, Stored]]) -> None:
        ids = [stored["_id"] for _, stored in some]
        modified = self._table.c[self._entity.modified]
        query = sa.select(self._table.c.id, modified).where(one_of(self._table.c.id, ids))
        now = {row[0]: row[1] for row in await connection.execute(query)}
        for each, stored in some:
            assert each.before is not None
            if now.get(stored["_id"]) != each.before[self._entity.modified]:
                raise Conflict(say("changed_meanwhile", entity=self._entity.name, uid=each.uid))
        columns: Stored = {name: sa.bindparam(f"v_{name}") for name in some[0][1] if name != "_id"}
        statement = self._table.update().where(self._table.c.id == sa.bindparam("_id")).values(columns)
        rows = [{name if name == "_id" else f"v_{name}": value for name, value in stored.items()} for _, stored in some]
        await connection.execute(statement, rows)
        await self._repository._written_all(connection, [(stored["_id"], each.draft) for each, stored in some])

    async def _tell(self, unit: Unit, some: Sequence[Planned]) -> list[RowChange]:
        """Reads the records as they are now; other processes, the audit log and listeners hear of them."""
        connection = unit.connection
        rows = await self._read(connection, [each.uid or "" for each in some])
        entries = []
        for each in some:
            entry = entry_of(unit.actor, self._entity, each.before, rows[each.uid or ""])
            entries += [] if entry is None else [entry]
            await self._pauses.pause()
        changed = [RowChange(row["id"], uid, row) for uid, row in rows.items()]
        await record_changes(
            connection, [MetadataChange(self._entity.name, each.record_id, each.uid) for each in changed]
        )
        await write_entries(connection, entries, self._repository._clock())
        return changed

    async def _read(self, connection: AsyncConnection, uids: list[str]) -> dict[str, Row]:
        column = self._table.c[self._entity.uid_name]
        found = (await connection.execute(self._repository._rows.where(one_of(column, uids)))).mappings().all()
        rows: dict[str, Row] = {}
        for row in found:
            rows[row[column.name]] = self._repository._codec.decode(row)
            await self._pauses.pause()
        return rows
