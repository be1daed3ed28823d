"""Terminals that are out of service until a time, because somebody works on them: nothing about them alarms meanwhile.

Their events that are raised, and those that come, are on the shelf until then; rules and overviews ask the registry,
or the table. It ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT
from terrazzo.database.tables.registry import OUT_OF_SERVICE, RECORD_LOG
from terrazzo.domain.actor import SYSTEM, Actor
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import OutOfService, Terminal
from terrazzo.errors import NotFound
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.times import format_iso, now_us

LOOK_S = 1.0  # between looks for those whose time is over
_AT_ONCE = 500  # terminals of one transaction
_columns = OUT_OF_SERVICE.c

Changes = Mapping[str, OutOfService | None]
"""By uid: out of service, or (None) back."""


class OutOfServiceRecords:
    """Puts terminals out of service and back, in the database and in the registry.

    Args:
        clock: UTC microseconds.
    """

    def __init__(self, database: Database, registry: Registry, *, clock: Callable[[], int] = now_us) -> None:
        self._database = database
        self._registry = registry
        self._clock = clock

    async def load(self) -> None:
        """Fills the registry with those that are out of service."""
        table = TERMINAL.table
        query = sa.select(table.c.uid, OUT_OF_SERVICE).join(OUT_OF_SERVICE, _columns.terminal_id == table.c.id)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings().all()
        names = OutOfService.__struct_fields__
        self._registry.set_out_of_service({row["uid"]: OutOfService(**{n: row[n] for n in names}) for row in rows})

    async def put(self, actor: Actor, uids: Sequence[str], *, until_us: int, reason: str) -> int:
        """Puts terminals out of service until a time; those that are so already get the new time and reason.

        Returns how many terminals they are.

        Raises:
            NotFound: one of them is not the actor's; nothing is changed.
        """
        terminals, now = self._find(actor, uids), self._clock()
        changes: dict[str, OutOfService | None] = {
            each.uid: OutOfService(
                terminal_id=each.id,
                company_id=each.company_id,
                since_us=now if (before := self._registry.out_of_service.get(each.uid)) is None else before.since_us,
                until_us=until_us,
                reason=reason,
                user_id=actor.user_id,
                username=actor.username,
            )
            for each in terminals
        }
        await self._write(actor, changes, now)
        return len(changes)

    async def end(self, actor: Actor, uids: Sequence[str]) -> int:
        """Puts terminals back into service; returns how many of them were not.

        Raises:
            NotFound: one of them is not the actor's; nothing is changed.
        """
        found = [each.uid for each in self._find(actor, uids) if each.uid in self._registry.out_of_service]
        await self._write(actor, dict.fromkeys(found), self._clock())
        return len(found)

    async def end_over(self) -> None:
        """Puts those back whose time is over."""
        now = self._clock()
        over = [uid for uid, each in self._registry.out_of_service.items() if each.until_us <= now]
        for start in range(0, len(over), _AT_ONCE):
            await self._write(SYSTEM, dict.fromkeys(over[start : start + _AT_ONCE]), now)

    def _find(self, actor: Actor, uids: Sequence[str]) -> list[Terminal]:
        found = []
        for uid in dict.fromkeys(uids):
            terminal = self._registry.terminal(uid)
            if terminal is None or not (actor.is_super or terminal.company_id == actor.company_id):
                raise NotFound("uids", uid)
            found.append(terminal)
        return found

    async def _write(self, actor: Actor, changes: Changes, now: int) -> None:
        """In one transaction: the rows, the events' shelf, the audit log; then in the registry."""
        if not changes:
            return
        before = {uid: each for uid in changes if (each := self._registry.out_of_service.get(uid)) is not None}
        new = {uid: each for uid, each in changes.items() if each is not None}
        try:
            await self._write_rows(actor, changes, before, new, now)
        except BaseException:  # what was told is not so
            self._registry.set_out_of_service({uid: before.get(uid) for uid in changes})
            raise

    async def _write_rows(
        self,
        actor: Actor,
        changes: Changes,
        before: Mapping[str, OutOfService],
        new: Mapping[str, OutOfService],
        now: int,
    ) -> None:
        async with self._database.writing() as connection:
            gone = [each.terminal_id for each in (*before.values(), *new.values())]
            await connection.execute(OUT_OF_SERVICE.delete().where(one_of(_columns.terminal_id, gone)))
            if new:
                await connection.execute(
                    OUT_OF_SERVICE.insert(), [msgspec.structs.asdict(each) for each in new.values()]
                )
            for until_us, company_id, uids in _alike(before):
                await _unshelve(connection, company_id, uids, until_us)
            for _, company_id, uids in _alike(new):
                await _shelve(connection, company_id, uids, new[uids[0]])
            entries = [_entry(actor, uid, before.get(uid), after) for uid, after in changes.items()]
            await write_entries(connection, [each for each in entries if each is not None], now)
            if told := _noted(actor, changes, before, now):
                await connection.execute(RECORD_LOG.insert(), told)
            self._registry.set_out_of_service(changes)  # before another transaction raises an event


def is_out_of_service(uid: sa.ColumnElement[str], now_us: int) -> sa.ColumnElement[bool]:
    """Whether the terminal of this uid, a column, is out of service."""
    table = TERMINAL.table
    return sa.exists().where(table.c.uid == uid, _columns.terminal_id == table.c.id, _columns.until_us > now_us)


def _alike(records: Mapping[str, OutOfService]) -> list[tuple[int, int, list[str]]]:
    """Those of one end and company together: the end, the company, the uids."""
    found: dict[tuple[int, int], list[str]] = {}
    for uid, each in records.items():
        found.setdefault((each.until_us, each.company_id), []).append(uid)
    return [(*key, uids) for key, uids in found.items()]


def _raised(company_id: int, uids: Collection[str]) -> list[sa.ColumnElement[bool]]:
    is_raised = EVENT.c.state == sa.literal_column("'raised'")  # as the partial index has it
    return [is_raised, EVENT.c.company_id == company_id, one_of(EVENT.c.terminal_id, uids)]


async def _shelve(connection: AsyncConnection, company_id: int, uids: Collection[str], record: OutOfService) -> None:
    shelved = EVENT.c.shelved_until
    earlier = sa.or_(shelved.is_(None), shelved < record.until_us)
    values = {"shelved_until": record.until_us, "shelved_by": record.user_id}
    await connection.execute(EVENT.update().where(*_raised(company_id, uids), earlier).values(**values))


async def _unshelve(connection: AsyncConnection, company_id: int, uids: Collection[str], until_us: int) -> None:
    """Takes those off the shelf that were put there by this."""
    mine = [*_raised(company_id, uids), EVENT.c.shelved_until == until_us]
    await connection.execute(EVENT.update().where(*mine).values(shelved_until=None, shelved_by=None))


def _entry(actor: Actor, uid: str, before: OutOfService | None, after: OutOfService | None) -> AuditEntry | None:
    known = after or before
    if known is None:
        return None
    return AuditEntry(
        actor=actor,
        company_id=known.company_id,
        action="update",
        entity="terminal",
        record_id=known.terminal_id,
        uid=uid,
        before=None if before is None else _told(before),
        after={"out_of_service_until": None} if after is None else _told(after),
    )


def _noted(actor: Actor, changes: Changes, before: Mapping[str, OutOfService], now: int) -> list[dict[str, int | str]]:
    """What is kept for whoever looks later, though the audit log is not theirs to read."""
    known = [(uid, after, after or before.get(uid)) for uid, after in changes.items()]
    return [
        {
            "company_id": record.company_id,
            "entity": "terminal",
            "record_id": record.terminal_id,
            "time": now,
            "what": "ended" if after is None else "set",
            "value": record.reason,
            "uid": uid,
            "username": actor.username[:64],
        }
        for uid, after, record in known
        if record is not None
    ]


def _told(record: OutOfService) -> dict[str, str]:
    return {"out_of_service_until": format_iso(record.until_us), "out_of_service_reason": record.reason}
