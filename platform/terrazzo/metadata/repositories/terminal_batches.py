"""Changes many terminals at once, with an audit entry for each under the id of the batch.

Terminals that are named are changed all or none. Those that a filter has found go in pieces, so that others have their
turn in between; whoever was deleted meanwhile is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import entry_of
from terrazzo.database.changes import record_changes
from terrazzo.database.entity import COMPANY, new_uid
from terrazzo.database.one_of import one_of
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import OBJECT_TERMINAL, TERMINAL_TAG
from terrazzo.domain.actor import Actor
from terrazzo.errors import Conflict, NotFound, OperationError
from terrazzo.metadata.definitions.registry import OBJECT
from terrazzo.metadata.lookup import storable
from terrazzo.metadata.repositories.repository import Draft, RowChange, Unit
from terrazzo.metadata.repositories.terminals import TerminalRepository
from terrazzo.reasons import say

CHANGEABLE = ("is_available", "config_id", "tags")
"""The columns that many terminals can be given at once."""

_PIECE = 500  # terminals of a transaction
_SHOWN = 3  # uids that an error names


class Batch(NamedTuple):
    """What was done: its id in the audit log, and how many terminals were changed and were so already."""

    id: str
    changed: int
    unchanged: int

    def plus(self, changed: int, unchanged: int) -> Batch:
        """With so many more."""
        return self._replace(changed=self.changed + changed, unchanged=self.unchanged + unchanged)


class TerminalBatches:
    """Calls non-public methods of the repository: changes are announced, counted and audited as single ones are."""

    def __init__(self, terminals: TerminalRepository) -> None:
        self._terminals = terminals
        self._table = terminals.table

    async def update(
        self, actor: Actor, uids: Sequence[str], values: Mapping[str, Any], *, are_found: bool = False
    ) -> Batch:
        """Gives all of these terminals the same values, of ``CHANGEABLE`` columns.

        Args:
            are_found: by a filter: in pieces.

        Raises:
            NotFound: one of them is not the actor's.
            BadParameter: a value that a column can't have.
        """
        repository = self._terminals
        columns = [repository.entity.fields[name] for name in CHANGEABLE if name in values]
        draft = await repository._parse(values, columns)
        batch = Batch(new_uid(), 0, 0)
        for piece in _pieces(uids) if are_found else (uids,):
            with _after(batch):
                done = await self._update_some(actor, piece, draft, batch.id, are_found=are_found)
            batch = batch.plus(*done)
        return batch

    async def _update_some(
        self, actor: Actor, uids: Collection[str], draft: Draft, batch: str, *, are_found: bool
    ) -> tuple[int, int]:
        repository = self._terminals
        async with repository._changing(_in_batch(actor, batch)) as unit:
            rows = await self._find(unit, uids, are_found=are_found)
            changed = 0
            for company in {row[COMPANY] for row in rows}:
                resolved = dict(draft)
                await repository._resolve(unit.connection, resolved, company)
                differing = [row for row in rows if row[COMPANY] == company and _differs(row, resolved)]
                await self._change(unit, differing, resolved)
                changed += len(differing)
        return changed, len(rows) - changed

    async def delete(self, actor: Actor, uids: Sequence[str], *, are_found: bool = False) -> Batch:
        """Deletes all of these terminals; ``are_found`` as for ``update``.

        Raises:
            NotFound: one of them is not the actor's.
            Conflict: an object lists one of them.
        """
        batch = Batch(new_uid(), 0, 0)
        for piece in _pieces(uids) if are_found else (uids,):
            with _after(batch):
                done = await self._delete_some(actor, piece, batch.id, are_found=are_found)
            batch = batch.plus(done, 0)
        return batch

    async def _delete_some(self, actor: Actor, uids: Collection[str], batch: str, *, are_found: bool) -> int:
        repository = self._terminals
        async with repository._changing(_in_batch(actor, batch)) as unit:
            rows = await self._find(unit, uids, are_found=are_found)
            ids = [row["id"] for row in rows]
            await _refuse_listed(unit.connection, {row["id"]: row["uid"] for row in rows})
            await unit.use.take(unit.connection, ids)
            await unit.connection.execute(self._table.delete().where(one_of(self._table.c.id, ids)))
            if rows:
                await repository.keep_former(unit.connection, rows)
                await self._record(unit, [(row, None) for row in rows])
        return len(rows)

    async def _find(self, unit: Unit, uids: Collection[str], *, are_found: bool) -> list[Row]:
        repository, wanted = self._terminals, dict.fromkeys(uids)
        query = repository._rows.where(one_of(self._table.c.uid, [storable(uid) for uid in wanted]))
        found = (await unit.connection.execute(query.where(*repository._visible(unit.actor)))).mappings().all()
        rows = {row["uid"]: repository._codec.decode(row) for row in found}
        missing = [uid for uid in wanted if uid not in rows]
        if missing and not are_found:
            raise NotFound("uids", ", ".join(missing[:_SHOWN]))
        return [rows[uid] for uid in wanted if uid in rows]

    async def _change(self, unit: Unit, rows: Sequence[Row], draft: Draft) -> None:
        if not rows:
            return
        repository, ids = self._terminals, [row["id"] for row in rows]
        signed = dict(draft)
        repository._sign(unit.actor, signed, "last_modified_by")
        stored = {**repository._codec.encode(signed), repository.entity.modified: repository._clock()}
        await unit.use.take(unit.connection, ids)
        await unit.connection.execute(self._table.update().where(one_of(self._table.c.id, ids)).values(**stored))
        if "tags" in draft:
            await unit.connection.execute(TERMINAL_TAG.delete().where(one_of(TERMINAL_TAG.c.terminal_id, ids)))
            await repository.write_tags(unit.connection, {each: list(draft["tags"]) for each in ids})
        await unit.use.add(unit.connection, ids)
        query = repository._rows.where(one_of(self._table.c.id, ids))
        found = (await unit.connection.execute(query)).mappings().all()
        after = {row["id"]: repository._codec.decode(row) for row in found}
        await self._record(unit, [(row, after[row["id"]]) for row in rows])

    async def _record(self, unit: Unit, changes: Sequence[tuple[Row, Row | None]]) -> None:
        """Has the changes told to other processes, to listeners and in the audit log."""
        entity = self._terminals.entity
        told = [RowChange(before["id"], before["uid"], after) for before, after in changes]
        announced = [MetadataChange(entity.name, each.record_id, each.uid) for each in told]
        await record_changes(unit.connection, announced)
        unit.changed.extend(told)
        entries = [entry_of(unit.actor, entity, before, after) for before, after in changes]
        unit.entries.extend(entry for entry in entries if entry is not None)


def _pieces(uids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (uids[start : start + _PIECE] for start in range(0, len(uids), _PIECE))


@contextmanager
def _after(batch: Batch) -> Iterator[None]:
    """An error after some pieces says how many were changed."""
    try:
        yield
    except OperationError as error:
        if not batch.changed:
            raise
        raise Conflict(say("changed_before_in_batch", reason=error, changed=batch.changed, batch=batch.id)) from error


def _in_batch(actor: Actor, batch: str) -> Actor:
    return msgspec.structs.replace(actor, batch=batch)


def _differs(row: Row, draft: Draft) -> bool:
    return any(row[name] != value for name, value in draft.items())


async def _refuse_listed(connection: AsyncConnection, uids: Mapping[int, str]) -> None:
    """Raises ``Conflict`` where an object lists one of these terminals; names the first of them."""
    link, table = OBJECT_TERMINAL, OBJECT.table
    uses = sa.select(link.c.terminal_id, table.c.uid).join(table, link.c.object_id == table.c.id)
    listed = (
        await connection.execute(uses.where(one_of(link.c.terminal_id, list(uids))).order_by(link.c.terminal_id))
    ).all()
    if listed:
        first = ", ".join(f"{uids[row.terminal_id]} by {row.uid}" for row in listed[:_SHOWN])
        raise Conflict(say("terminals_in_objects", terminals=len({row.terminal_id for row in listed}), first=first))
