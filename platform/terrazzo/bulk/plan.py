"""Plans an import: looks up and checks every row without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from terrazzo.async_engine import AsyncConnection
from terrazzo.bulk.columns import Columns
from terrazzo.bulk.id_sequence import FURTHEST_AHEAD, last_id
from terrazzo.bulk.packed_rows import PackedRows
from terrazzo.bulk.references import References
from terrazzo.bulk.report import Issues
from terrazzo.bulk.rows import SourceRow
from terrazzo.database.entity import COMPANY, Uid
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, OperationError
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.definitions.registry import read_key_list
from terrazzo.metadata.repositories.company_terminals import NamedTerminals
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.reasons import say, told_by

_TERMINALS = "terminal_list"
AT_ONCE = 500  # records that one statement looks up or writes

T = TypeVar("T")
OnRow = Callable[[int], object]
"""Called with the number of rows that are done."""


class Planned(msgspec.Struct):
    """What a row will do: create a record, or change the record ``before``."""

    row: int
    uid: str | None
    company: int
    draft: Draft
    before: Row | None

    @property
    def is_unchanged(self) -> bool:
        """Whether the record has these values already, its author of the last change aside."""
        before = self.before
        return before is not None and all(
            before[name] == value for name, value in self.draft.items() if name != "last_modified_by"
        )


class Plan(msgspec.Struct):
    """What an import will do. ``writes``: of a dry run they are counted alone, not kept."""

    writes: list[Planned]
    created: int = 0
    updated: int = 0
    unchanged: int = 0

    def add(self, planned: Planned, *, keeps: bool) -> None:
        """Takes what a row will do."""
        if planned.is_unchanged:
            self.unchanged += 1
            return
        if planned.before is None:
            self.created += 1
        else:
            self.updated += 1
        if keeps:
            self.writes.append(planned)


class Planner:
    """Plans one import. Calls non-public methods of the repository: the steps of a change that precede writing.

    It has a connection for some rows at a time: others would wait for it while rows are computed. What changes between
    two of them is noticed when the rows are written.
    """

    _connection: AsyncConnection

    def __init__(
        self,
        repository: EntityRepository,
        columns: Columns,
        actor: Actor,
        issues: Issues,
        *,
        upserts: bool,
        dry_run: bool = False,
    ) -> None:
        self._repository = repository
        self._columns = columns
        self._actor = actor
        self._issues = issues
        self._upserts = upserts
        self._dry_run = dry_run
        self._references = References()

    async def plan(self, sources: PackedRows, on_row: OnRow, plan: Plan) -> None:
        """Puts the records of all rows without faults into ``plan``; the faults of the others become issues."""
        uids = await self._uids(sources)
        existing = await self._existing([uid for uid in uids.values() if uid is not None])
        self._new_ids = {uid for uid in uids.values() if uid is not None and uid not in existing}
        database = self._repository._database
        async with database.reading() as connection:
            self._last_id = await last_id(connection, self._repository.table)
        pauses, done = LoopPauses(), 0
        for some in sources.pieces():
            async with database.reading() as connection:
                await self._use(connection, some)
                for source in some:
                    uid = uids.get(source.number)
                    if source.number in uids:
                        each = await self._row(source, uid, existing.get(uid or ""))
                        if each is not None and not self._issues.has(source.number):
                            plan.add(each, keeps=not self._dry_run)
                    on_row(done := done + 1)
                    await pauses.pause()

    async def _use(self, connection: AsyncConnection, some: Sequence[SourceRow]) -> None:
        """The transaction in which the next rows are looked up."""
        self._connection = connection
        self._references.use(connection)
        self._terminals = NamedTerminals(connection)
        await self._terminals.look_up(_named_terminals(some))

    async def _uids(self, sources: Iterable[SourceRow]) -> dict[int, str | None]:
        """The text key by row number, for rows without a faulty or repeated one; None where the platform makes it."""
        name, uids = self._repository.entity.uid_name, {}
        first: dict[str, int] = {}
        pauses = LoopPauses()
        for source in sources:
            await pauses.pause()
            try:
                uid = self._columns.uid_of(source.values)
            except BadParameter as error:
                self._issues.add(source.number, error.field, error.reason)
                continue
            if uid is not None and first.setdefault(uid, source.number) != source.number:
                self._issues.add(source.number, name, f"{uid} is in row {first[uid]} already")
                continue
            uids[source.number] = uid
        return uids

    async def _existing(self, uids: list[str]) -> dict[str, Row]:
        """The records of all companies that have these keys, by key."""
        repository = self._repository
        found: dict[str, Row] = {}
        column = repository.table.c[repository.entity.uid_name]
        pauses = LoopPauses()
        for some in chunks(uids):
            async with repository._database.reading() as connection:
                rows = (await connection.execute(repository._rows.where(one_of(column, some)))).mappings().all()
            for row in rows:
                found[row[column.name]] = repository._codec.decode(row)
                await pauses.pause()
        return found

    async def _row(self, source: SourceRow, uid: str | None, before: Row | None) -> Planned | None:
        issues, entity, row = self._issues, self._repository.entity, source.number
        if source.surplus:
            issues.add(row, "", say("more_cells_than_columns", cells=source.surplus))
        try:
            self._check_key(uid, before)
            company = await self._company(source.values, before)
        except OperationError as error:
            field = error.field if isinstance(error, BadParameter) else entity.company
            issues.add(row, field, error.reason if isinstance(error, BadParameter) else told_by(error))
            return None
        parse = self._columns.parse_new if before is None else self._columns.parse_given
        draft = await parse(source.values, issues, row=row)
        self._check_draft(row, draft, before)
        self._repository._sign(self._actor, draft, *(["created_by"] if before is None else []), "last_modified_by")
        await self._resolve(row, draft, company, before)
        return Planned(row, uid, company, draft, before)

    def _check_draft(self, row: int, draft: Draft, before: Row | None) -> None:
        try:
            self._repository.check_draft(draft, before)
        except BadParameter as error:
            self._issues.add(row, error.field, error.reason)

    def _check_key(self, uid: str | None, before: Row | None) -> None:
        entity = self._repository.entity
        if before is not None:
            if not self._upserts or not self._sees(before):
                raise BadParameter(entity.uid_name, say("is_taken", value=uid))
        elif uid is not None and entity.uid is Uid.FROM_ID:
            if int(uid) <= self._last_id:
                raise BadParameter(entity.uid_name, say("id_used_before", id=uid))
            if int(uid) > self._last_id + FURTHEST_AHEAD:
                raise BadParameter(entity.uid_name, say("id_too_far_ahead", most=FURTHEST_AHEAD, last=self._last_id))

    def _sees(self, row: Row) -> bool:
        return self._actor.is_super or row[self._repository.entity.company] == self._actor.company_id

    async def _company(self, values: dict[str, Any], before: Row | None) -> int:
        """The id of the company that owns the record; only super users may name another than their own."""
        own = self._actor.company_id
        given = values.get(COMPANY)
        if given in (None, ""):
            return int(own if before is None else before[COMPANY])
        if not self._actor.is_super and str(given) != str(own):
            raise BadParameter(COMPANY, say("records_of_another_company"))
        entity = self._repository._entities["company"]
        company = await self._references.id_of(entity, given, company=None, field=COMPANY)
        if before is not None and company != before[COMPANY]:
            raise BadParameter(COMPANY, say("fixed_for_good", value=before[COMPANY]))
        return company

    async def _resolve(self, row: int, draft: Draft, company: int, before: Row | None) -> None:
        """Replaces references in the draft by ids, then applies the entity's own rules; faults become issues."""
        resolved: Draft = {}
        for name, other in self._repository._referenced.items():
            if name not in draft:
                continue
            key = draft.pop(name)
            if key is None:
                resolved[name] = None
                continue
            try:
                resolved[name] = await self._references.id_of(other, key, company=company, field=name)
            except BadParameter as error:
                self._issues.add(row, name, error.reason)
        try:
            await self._apply_rules(draft, company, before)
        except BadParameter as error:
            self._issues.add(row, error.field, error.reason)
        except OperationError as error:
            self._issues.add(row, "", told_by(error))
        draft |= resolved

    async def _apply_rules(self, draft: Draft, company: int, before: Row | None) -> None:
        """Applies the repository's rules; they don't see objects in ``object_list`` that the same file creates."""
        own = self._repository.entity.uid is Uid.FROM_ID
        listed = draft.get("object_list") if own else None
        named = [str(key) for key in listed or [] if str(key) in self._new_ids]
        if named:
            draft["object_list"] = [key for key in listed or [] if str(key) not in self._new_ids]
        terminals = draft.pop(_TERMINALS, None)
        await self._repository._guard(self._connection, self._actor, draft, before)
        await self._repository._resolve(self._connection, draft, company)
        if terminals is not None:
            draft[_TERMINALS] = await self._terminals.uids(terminals, company)
        if named:
            others = iter(draft["object_list"])
            draft["object_list"] = [str(key) if str(key) in self._new_ids else next(others) for key in listed or []]


def _named_terminals(sources: Sequence[SourceRow]) -> Iterator[int | str]:
    """What the rows' lists of terminals name, as far as they read as lists."""
    for source in sources:
        keys = read_key_list(source.values.get(_TERMINALS))
        if isinstance(keys, str):
            with suppress(msgspec.DecodeError, RecursionError):  # a row that is too deep is told later
                keys = msgspec.json.decode(keys)
        if isinstance(keys, list):
            yield from (key for key in keys if isinstance(key, str | int) and not isinstance(key, bool))


def chunks(values: Sequence[T], size: int = AT_ONCE) -> Iterator[Sequence[T]]:
    """The values in slices of ``size``."""
    return (values[start : start + size] for start in range(0, len(values), size))
