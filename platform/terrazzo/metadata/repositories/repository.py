"""``EntityRepository``: stores the records of any ``Entity``. Subclasses override its hooks for rules of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, tzinfo
from typing import Any, ClassVar, NamedTuple, cast

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import AuditEntry, entry_of
from terrazzo.audit.log import write_entries
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import record_change
from terrazzo.database.conditions import Column, Selection
from terrazzo.database.database import Database, reason_of
from terrazzo.database.entity import COMPANY, Entity, Uid, new_uid
from terrazzo.database.field import MAX_INTEGER, Field, FieldKind, shorten, type_name
from terrazzo.database.one_of import one_of
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.pages import Among, OrderBy, PageStatements, check_page, read_page
from terrazzo.database.port import EVERYTHING, Conditions, Row, Rows
from terrazzo.database.unindexed import beside as find_beside
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, Conflict, NotFound, NotPermitted
from terrazzo.listeners import Listeners
from terrazzo.loop_pauses import in_turns, next_turn
from terrazzo.metadata.lookup import any_id_query, as_id, find_id, key_parameters, refuse_if_used, users_of
from terrazzo.metadata.quotas import RecordQuotas, UseMeter
from terrazzo.metadata.repositories import row_statements as queries
from terrazzo.metadata.repositories.name_column import NameColumn
from terrazzo.metadata.repositories.whole_table import columns_of
from terrazzo.metadata.row_cache import RowCache
from terrazzo.metadata.rows import RowCodec
from terrazzo.metadata.versions import refuse_another
from terrazzo.reasons import say
from terrazzo.times import now_us
from terrazzo.userinfo import MASK

_CHUNK = 5_000  # records that a walk over all of them reads at once
_ANNOUNCED_AT_ONCE = 100
_BY_ID = Conditions(within=[("id", ())])


class RowChange(NamedTuple):
    """A record as it is after a change, internal columns and clear secrets included; ``row`` None: deleted."""

    record_id: int
    uid: str
    row: Row | None


ChangeListener = Callable[[RowChange], None]
Draft = dict[str, Any]
"""Parsed values that are about to be stored, by column."""


class Unit(msgspec.Struct, frozen=True):
    """One transaction on an actor's behalf, with its audit entries and the changes to announce after its commit."""

    connection: AsyncConnection
    actor: Actor
    use: UseMeter
    changed: list[RowChange] = msgspec.field(default_factory=list)
    entries: list[AuditEntry] = msgspec.field(default_factory=list)


class EntityRepository:
    """The records of one entity; implements ``terrazzo.database.port.Repository``.

    Changes of one entity are made and announced one after the other, so that ``changes`` tells of them in the order of
    their commits, and after ``refresh``.
    Rows show each reference twice: ``config_id`` is the id, ``config_uid`` the uid.

    Attributes:
        in_other_tables: lists that ``_written`` keeps in tables of their own, too.
        cache: rows that were read lately.
        names: in memory, where lists are long and parts of names are looked for.
    """

    in_other_tables: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        entity: Entity,
        *,
        database: Database,
        secrets: Secrets,
        entities: Iterable[Entity],
        zone: tzinfo = UTC,
        clock: Callable[[], int] = now_us,
        quotas: RecordQuotas | None = None,
    ) -> None:
        self.entity = entity
        self._quotas = quotas or RecordQuotas()
        self.table = entity.table
        self._database = database
        self._clock = clock
        self.secrets = secrets
        self._codec = RowCodec(entity, secrets)
        self._entities = {other.name: other for other in entities}
        self._referenced = {each.name: self._entities[each.references or ""] for each in entity.references}
        self._selection = Selection(entity, {name: other.table for name, other in self._referenced.items()}, zone)
        referenced = tuple((name, other.table, other.uid_name) for name, other in self._referenced.items())
        self._narrow = {"id", entity.uid_name, *self._referenced} - {entity.company}
        self._rows, self._row = queries.rows_query(entity.table, referenced), queries.row_query(entity, referenced)
        self._lists: dict[tuple[bool, OrderBy], PageStatements] = {}  # of all companies or one, by order
        self._is_narrow = type(self)._visible is not EntityRepository._visible  # a company's users see parts of it
        self._keyed = queries.KeyedQueries(entity, referenced, is_narrow=self._is_narrow)
        self._turn = asyncio.Lock()
        self.changes: Listeners[RowChange] = Listeners(f"records of {entity.name}")
        self.cache = RowCache(entity.uid_name, entity.company)
        self.names: NameColumn | None = None

    # The port

    async def create(self, actor: Actor, values: Mapping[str, Any]) -> Row:
        """Stores a new record, in the actor's company unless a super user names another; returns its row."""
        return await self._create(actor, values, {})

    async def update(self, actor: Actor, key: int | str, values: Mapping[str, Any], version: str | None = None) -> Row:
        """Changes the given columns, leaves the others. A record's uid, company and author can't be changed."""
        return await self._update(actor, key, values, {}, version)

    async def delete(self, actor: Actor, key: int | str) -> Row:
        """Deletes and returns the record as it was."""
        async with self._changing(actor) as unit:
            row = await self._find_to_change(unit, key)
            await self._guard(unit.connection, actor, {}, row)
            await self._check_unused(unit.connection, row)
            await unit.connection.execute(self.table.delete().where(self.table.c.id == row["id"]))
            await self._removed(unit.connection, row)
            await self._record(unit, row, None)
        return self._codec.public(row)

    async def item(self, actor: Actor, key: int | str) -> Row:
        """One record by id or uid, from the cache where it was read before."""
        row = self._cached(key)
        if row is None or not self._sees(actor, row):
            read_at = self.cache.changes
            async with self._database.reading() as connection:
                row = await self._find(connection, actor, key)
            self.cache.keep(row, read_at=read_at)
        return self._codec.public(row)

    async def page(
        self,
        actor: Actor,
        *,
        page_index: int = 1,
        page_size: int = 20,
        conditions: Conditions = EVERYTHING,
        order_by: tuple[str, bool] | None = None,
    ) -> Rows:
        """One page of records, by default in order of creation, and the exact total."""
        where = self._selection.where(conditions) if any(conditions) else ()
        return await self._read_page(actor, where, page_index, page_size, order_by, conditions)

    async def _read_page(
        self,
        actor: Actor,
        where: Sequence[Column],
        page_index: int,
        page_size: int,
        order_by: OrderBy,
        conditions: Conditions = EVERYTHING,
        among: Among | None = None,
    ) -> Rows:
        """A page of what fits; ``among``: where another table says sooner what does."""
        check_page(page_index, page_size)
        offset = min((page_index - 1) * page_size, MAX_INTEGER)
        if where or self._is_narrow:
            own, seen, may_be_few = None, [*self._visible(actor, conditions), *where], bool(where)
            statements = PageStatements(self._rows, self._selection, seen, order_by, may_be_few=may_be_few, among=among)
        else:
            own = None if actor.is_super else {queries.OWNER: actor.company_id}
            statements = self._all_of(actor, order_by)
        names = self.names if conditions.all_of or conditions.any_of else None
        if names is not None:
            await names.read_for(conditions)
        async with self._database.reading() as connection:
            if names is not None and (few := await names.may_fit(connection, conditions)) is not None:
                narrow = [one_of(self.table.c.id, few), *self._visible(actor, _BY_ID), *where]
                statements = PageStatements(self._rows, self._selection, narrow, order_by, may_be_few=True)
            found, total = await read_page(connection, statements, offset=offset, limit=page_size, parameters=own)
        return Rows([*self._codec.decode_page(found)], total)

    def _all_of(self, actor: Actor, order_by: OrderBy) -> PageStatements:
        """The statements of all that a company has, or all have, which are made once for each order."""
        kept = self._lists.get((actor.is_super, order_by))
        if kept is None:
            own = () if actor.is_super else (self.table.c[self.entity.company] == sa.bindparam(queries.OWNER),)
            kept = self._lists[actor.is_super, order_by] = PageStatements(self._rows, self._selection, own, order_by)
        return kept

    def keep_names(self, *columns: str) -> None:
        """Has lists by a part of what is in these columns found in memory, where the database has no index for them."""
        if self._database.sqlite_file is not None:
            self.names = names = NameColumn(self._database, self.table, columns, self._turn.locked)
            self.changes.listen(lambda changed: names.note(changed.record_id, changed.row))

    # Changes by other processes, and all records

    async def refresh(self, changes: Sequence[MetadataChange]) -> None:
        """Reads records again that another process changed, and announces them to the watchers."""
        query = self._rows.where(one_of(self.table.c.id, [change.record_id for change in changes]))
        async with self._turn:
            async with self._database.reading() as connection:
                found = (await connection.execute(query)).mappings().all()
            rows = {row["id"]: self._codec.decode(row) for row in found}
            told = [RowChange(change.record_id, change.uid, rows.get(change.record_id)) for change in changes]
            self._remember(told)
            for changed in told:
                self.changes.tell(changed)

    async def every(self, only: Collection[str] = (), *, at_once: int = _CHUNK) -> AsyncIterator[Row]:
        """All records of all companies, internal columns included, in order of creation.

        Args:
            only: the columns to read, as a table of 100,000 records takes half a second for each ten of them; empty:
                all, and the uids of what they refer to.
            at_once: records of a statement; they are decoded without a pause, 2 us each and more.
        """
        rows = self._columns(only) if only else self._rows
        async for found in self._chunks(rows, at_once):
            for row in self._codec.decode_all(found):
                yield row

    async def every_column(self, only: Sequence[str]) -> AsyncIterator[list[list[Any]]]:
        """The same by column, the ids first, of some thousand records at a time: for whoever reads all at a start."""
        names = list(dict.fromkeys(("id", *only)))
        async for columns in columns_of(self._database, self.table, names, at_once=_CHUNK):
            self._codec.decode_columns(names, columns)
            yield columns

    def _columns(self, names: Collection[str]) -> sa.Select[Any]:
        return sa.select(*(self.table.c[name] for name in {"id": 0} | dict.fromkeys(names)))

    async def _chunks(self, rows: sa.Select[Any], at_once: int) -> AsyncIterator[Sequence[sa.Row[Any]]]:
        last = 0
        while True:
            query = rows.where(self.table.c.id > last).order_by(self.table.c.id).limit(at_once)
            async with self._database.reading() as connection:
                found = (await connection.execute(query)).all()
            if not found:
                return
            yield found
            last = found[-1].id

    def public(self, row: Row) -> Row:
        """The row without internal columns, such as password hashes."""
        return self._codec.public(row)

    # Hooks for subclasses

    def check_draft(self, draft: Draft, before: Row | None) -> None:
        """Hook: raises ``BadParameter`` for a value that the configuration doesn't allow; imports ask it too."""

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        """Hook: refuses or completes a change. ``before`` is None at creation, ``draft`` is empty at deletion."""
        if self.entity.company == "id" and not actor.is_super:
            raise NotPermitted(say("entity_for_super_users", entity=self.entity.name))

    async def _resolve(self, connection: AsyncConnection, draft: Draft, company: int) -> None:
        """Hook: replaces the references in a draft (uid or id) by the ids of records of the company."""
        for name, other in self._referenced.items():
            if draft.get(name) is not None:
                draft[name] = await find_id(connection, other, draft[name], company=company, field=name)

    async def _written(self, connection: AsyncConnection, record_id: int, draft: Draft) -> None:
        """Hook: writes what belongs to a record in other tables, after its row."""

    async def _written_all(self, connection: AsyncConnection, written: Sequence[tuple[int, Draft]]) -> None:
        """Hook: the same for many records, in as few statements as it can; imports ask it too."""
        for record_id, draft in written:
            await self._written(connection, record_id, draft)

    async def _added(self, connection: AsyncConnection, ids: Sequence[int]) -> None:
        """Hook: completes new records after their insertion."""

    async def _removed(self, connection: AsyncConnection, row: Row) -> None:
        """Hook: writes what is to be known of a record after its deletion."""

    async def _check_unused(self, connection: AsyncConnection, row: Row) -> None:
        """Hook: raises ``Conflict`` when other records refer to the one that is to be deleted."""
        record = f"{self.entity.name} {row[self.entity.uid_name]}"
        for other, column in users_of(self.entity, self._entities.values()):
            uses = sa.select(other.table.c[other.uid_name]).where(other.table.c[column.name] == row["id"])
            await refuse_if_used(connection, uses, record, other.name)

    # Steps of a change

    @asynccontextmanager
    async def _changing(self, actor: Actor) -> AsyncIterator[Unit]:
        async with self._turn:
            with self._database.own.told_at_once() as own:
                try:
                    async with self._database.writing() as connection:
                        unit = Unit(connection, actor, UseMeter(self.entity, self._quotas))
                        yield unit
                        await unit.use.settle(connection)
                        await write_entries(connection, unit.entries, self._clock())
                        own += [MetadataChange(self.entity.name, each.record_id, each.uid) for each in unit.changed]
                except IntegrityError as error:
                    raise Conflict(say("contradicts_stored", entity=self.entity.name, why=reason_of(error))) from error
                await self._tell(unit.changed)

    async def _tell(self, changes: Sequence[RowChange]) -> None:
        """Updates the cache and calls the watchers, in order of the commits; yields to the event loop now and then."""
        self._remember(changes)
        for number, changed in enumerate(changes, 1):
            self.changes.tell(changed)
            if number % _ANNOUNCED_AT_ONCE == 0:
                await next_turn()

    async def _create(self, actor: Actor, values: Mapping[str, Any], internal: Draft) -> Row:
        entity = self.entity
        unwritable = [each for each in entity.fields.values() if each.internal or each.read_only]
        defaults = {each.name: each.default for each in unwritable if each.default is not None}
        given = await self._parse(values, [each for each in entity.writable() if each.name != entity.company])
        self._refuse_masks(given)
        draft = defaults | given | internal
        self._sign(actor, draft, "created_by", "last_modified_by")
        self.check_draft(draft, None)
        async with self._changing(actor) as unit:
            await self._guard(unit.connection, actor, draft, None)
            if entity.company != "id":
                draft[entity.company] = await self._owner(unit.connection, actor, values.get(entity.company))
            await self._resolve(unit.connection, draft, draft.get(entity.company, 0))
            await self._check_uid(unit.connection, draft)
            row = await self._insert(unit, draft)
            await self._record(unit, None, row)
        return self._codec.public(row)

    async def _update(
        self, actor: Actor, key: int | str, values: Mapping[str, Any], internal: Draft, version: str | None = None
    ) -> Row:
        fixed = (self.entity.uid_name, self.entity.company, "created_by")
        values = {name: value for name, value in values.items() if not self._is_mask(name, value)}
        changing = [each for each in self.entity.writable() if each.name in values and each.name not in fixed]
        draft = await self._parse(values, changing) | internal
        self._sign(actor, draft, "last_modified_by")
        async with self._changing(actor) as unit:
            before = await self._find_to_change(unit, key)
            await refuse_another(unit.connection, self.entity, before, version)
            self._check_fixed(values, before)
            self.check_draft(draft, before)
            await self._guard(unit.connection, actor, draft, before)
            kept = self._take_unchanged(draft, before)
            await self._resolve(unit.connection, draft, before.get(self.entity.company, 0))
            stored = {**self._codec.encode(kept | draft), self.entity.modified: self._clock()}
            await unit.connection.execute(queries.update_query(self.table), {**stored, queries.RECORD: before["id"]})
            await self._written_all(unit.connection, [(before["id"], draft)])
            row = await self._require(unit, before["id"])
            await self._record(unit, before, row)
        return self._codec.public(row)

    def _take_unchanged(self, draft: Draft, before: Row) -> Draft:
        """Takes out of a draft what need not be looked up, as clients send back all that they were shown: references
        and lists in other tables that are as they were; returns these as they are stored."""
        same = [name for name in self.in_other_tables if name in draft and draft[name] == before[name]]
        for name in self._referenced.keys() & draft.keys():
            given = draft[name]
            if given == (before[f"{name.removesuffix('_id')}_uid"] if isinstance(given, str) else before[name]):
                same.append(name)
        for name in same:
            del draft[name]
        return {name: before[name] for name in same}

    async def _parse(self, values: Mapping[str, Any], fields: Iterable[Field]) -> Draft:
        writable = {each.name for each in self.entity.writable()}
        ignored = {"id"} | {each.name for each in self.entity.fields.values() if each.read_only}
        for name in values:
            if name not in writable and name not in ignored:
                raise BadParameter(name, say("no_such_field", fields=", ".join(sorted(writable))))
        return {each.name: await in_turns(each.parsing(values.get(each.name))) for each in fields}

    def _is_mask(self, name: str, value: Any) -> bool:
        """Whether a client sends back the mask that it was shown in place of a secret."""
        field = self.entity.fields.get(name)
        return field is not None and field.kind is FieldKind.SECRET and value == MASK

    def _refuse_masks(self, draft: Draft) -> None:
        for name, value in draft.items():
            if self._is_mask(name, value):
                raise BadParameter(name, say("stands_for_secret", mask=MASK))

    def _sign(self, actor: Actor, draft: Draft, *columns: str) -> None:
        """Puts the actor into author columns that the caller left empty."""
        for name in columns:
            if name in self.entity.fields and not draft.get(name):
                draft[name] = actor.user_id

    async def _owner(self, connection: AsyncConnection, actor: Actor, given: Any) -> int:
        given = actor.company_id if given in (None, "") else given
        if not actor.is_super and str(given) != str(actor.company_id):
            raise NotPermitted(say("company_of_others", field=COMPANY))
        if isinstance(given, bool) or not isinstance(given, int | str):
            raise BadParameter(COMPANY, say("expected_uid_or_id_got", got=type_name(given)))
        asked = key_parameters(given)
        found = (await connection.execute(any_id_query(self._entities["company"], frozenset(asked)), asked)).scalar()
        if found is None:
            raise BadParameter(COMPANY, say("no_company", company=shorten(given)))
        return int(found)

    async def _check_uid(self, connection: AsyncConnection, draft: Draft) -> None:
        uid_name = self.entity.uid_name
        if self.entity.uid is not Uid.GIVEN:
            return
        asked = {"key_uid": draft[uid_name]}
        if (await connection.execute(any_id_query(self.entity, frozenset(asked)), asked)).first() is not None:
            raise Conflict(say("field_is_taken", field=uid_name, value=draft[uid_name]))

    def _check_fixed(self, values: Mapping[str, Any], before: Row) -> None:
        if values.get("id") is not None and str(values["id"]) != str(before["id"]):
            raise BadParameter("id", say("fixed_for_good", value=before["id"]))
        for name in (self.entity.uid_name, self.entity.company):
            given = values.get(name)
            read_only = name not in self.entity.fields or self.entity.fields[name].read_only
            if not read_only and given not in (None, "") and str(given) != str(before[name]):
                raise BadParameter(name, say("fixed_for_good", value=before[name]))

    async def _insert(self, unit: Unit, draft: Draft) -> Row:
        connection, now = unit.connection, self._clock()
        values = {**self._codec.encode(draft), self.entity.created: now, self.entity.modified: now}
        if self.entity.uid is not Uid.GIVEN:
            values[self.entity.uid_name] = new_uid()
        record_id = int((await connection.execute(queries.insert_query(self.table), values)).scalar_one())
        if self.entity.uid is Uid.FROM_ID:
            named = {self.entity.uid_name: str(record_id), queries.RECORD: record_id}
            await connection.execute(queries.update_query(self.table), named)
        await self._added(connection, [record_id])
        await self._written_all(connection, [(record_id, draft)])
        return await self._require(unit, record_id)

    async def _record(self, unit: Unit, before: Row | None, after: Row | None) -> None:
        """Has a change told to other processes, to listeners and in the audit log; one of the rows may be None."""
        row: Row = after or before or {}
        record_id, uid = row["id"], row[self.entity.uid_name]
        await record_change(unit.connection, MetadataChange(self.entity.name, record_id, uid))
        unit.changed.append(RowChange(record_id, uid, after))
        entry = entry_of(unit.actor, self.entity, before, after)
        if entry is not None:
            unit.entries.append(entry)

    def _remember(self, changes: Iterable[RowChange]) -> None:
        for changed in changes:
            self.cache.change(changed.record_id, changed.row)

    # Reading

    def _visible(self, actor: Actor, beside: Conditions = EVERYTHING) -> list[sa.ColumnElement[bool]]:
        if actor.is_super:
            return []
        return [find_beside(self.table.c[self.entity.company], beside, self._narrow) == actor.company_id]

    def _sees(self, actor: Actor, row: Row) -> bool:
        return actor.is_super or row[self.entity.company] == actor.company_id

    def _cached(self, key: int | str) -> Row | None:
        """The cached row that a key means, if any.

        Text that could also be another record's uid is looked up in the database: None.
        """
        if isinstance(key, int):
            return self.cache.by_id(key)
        row = self.cache.by_uid(key)
        number = None if row is not None or self.entity.uid is Uid.GIVEN else as_id(key)
        return row if number is None else self.cache.by_id(number)

    async def _find(self, connection: AsyncConnection, actor: Actor, key: int | str, *, measured: bool = False) -> Any:
        asked = key_parameters(key)
        query = self._keyed.one(frozenset(asked), actor, self._visible, measured=measured)
        found = (await connection.execute(query, {**asked, queries.OWNER: actor.company_id})).mappings().first()
        if found is None:
            raise NotFound("id" if isinstance(key, int) else self.entity.uid_name, key)
        return self._codec.decode(found)

    async def _find_to_change(self, unit: Unit, key: int | str) -> Row:
        """The record as it is before a change, counted off."""
        row = await self._find(unit.connection, unit.actor, key, measured=True)
        unit.use.take_record(row[self.entity.company], row.pop(queries.SIZE))
        return cast("Row", row)

    async def _require(self, unit: Unit, record_id: int) -> Row:
        """The record as it is after a change, counted."""
        found = await unit.connection.execute(self._row, {queries.RECORD: record_id})
        row = self._codec.decode(found.mappings().one())
        unit.use.add_record(row[self.entity.company], row.pop(queries.SIZE))
        return row
