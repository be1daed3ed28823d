"""The journal of commands in the database: every command, where it stands, and when it got there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.commands.queue import OpenCommand
from terrazzo.database.database import Database
from terrazzo.database.named_lock import take_turn
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row, Rows
from terrazzo.database.tables.registry import COMMAND
from terrazzo.domain.actor import Actor
from terrazzo.domain.command import CommandState, CommandStep
from terrazzo.errors import BadParameter, Conflict, NotFound
from terrazzo.reasons import say
from terrazzo.times import DAY_US

MAX_PAGE = 1000

_LATELY = 1_000  # commands
_BEHIND_US = 600 * 1_000_000  # how far the journal may be behind the store while both work
_WEEK_US = 7 * DAY_US

_columns = COMMAND.c
_INSERT = sa.insert(COMMAND).returning(COMMAND, sort_by_parameter_order=True)

# Which states a step may follow. A late PUBACK or answer is the truth also after expiry.
_AFTER = {
    CommandState.QUEUED: (CommandState.QUEUED, CommandState.SENT),
    CommandState.SENT: (CommandState.QUEUED, CommandState.SENT),
    CommandState.DELIVERED: (CommandState.QUEUED, CommandState.SENT, CommandState.EXPIRED),
    CommandState.ANSWERED: (CommandState.QUEUED, CommandState.SENT, CommandState.DELIVERED, CommandState.EXPIRED),
    CommandState.EXPIRED: (CommandState.QUEUED, CommandState.SENT),
    CommandState.FAILED: (CommandState.QUEUED, CommandState.SENT),
}


_OPEN = ("uid", "terminal_id", "company_id", "payload", "queued_us", "expires_us")


class CommandJournal:
    """Reads and writes the table ``command``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_requests(
        self, given: Sequence[tuple[Actor, Sequence[dict[str, Any]]]], *, steps: Sequence[CommandStep] = ()
    ) -> list[list[tuple[Row, bool]]]:
        """Journals the commands of requests in one transaction, and in the audit log who gave them.

        ``steps`` of other commands are written with them, as by ``apply``.

        Returns:
            Of each request its commands' records, each with whether it is new: where an ``idempotency_key`` was used
            before, it is the command of then.

        Raises:
            Conflict: a key was used for something else; none is journaled.
        """
        values = [each for _, some in given for each in some]
        async with self._database.writing() as connection:
            await _apply(connection, steps)
            added = await _add_all(connection, values)
            actors = [actor for actor, some in given for _ in some]
            new = zip(actors, added, strict=True)
            entries = [_entry(actor, row) for actor, (row, is_new) in new if is_new]
            if entries:
                await write_entries(connection, entries, values[0]["queued_us"])
        taken = iter(added)
        return [list(islice(taken, len(some))) for _, some in given]

    async def apply(self, changes: Sequence[CommandStep]) -> None:
        """Writes steps in one transaction, each command's in their order; what contradicts the state is left out."""
        async with self._database.writing() as connection:
            await _apply(connection, changes)

    async def recorded(self, changes: Sequence[CommandStep]) -> list[tuple[Row, CommandStep]]:
        """Which of the steps just written the journal took, each with the command's record."""
        query = sa.select(COMMAND).where(one_of(_columns.uid, {change.uid for change in changes}))
        async with self._database.reading() as connection:
            rows = {found["uid"]: _row(found) for found in (await connection.execute(query)).mappings()}
        return [(rows[change.uid], change) for change in changes if _took(rows.get(change.uid), change)]

    async def open_commands(self) -> list[OpenCommand]:
        """All commands that have not ended, in the order in which they were given."""
        query = (
            sa.select(*(_columns[name] for name in _OPEN))
            .where(_columns.state.in_((CommandState.QUEUED.value, CommandState.SENT.value)))
            .order_by(_columns.id)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [OpenCommand(**row) for row in rows]

    async def silent(self) -> tuple[int, set[str]]:
        """Since when (UTC microseconds) answers may be missing in the journal, and of which terminals (uids).

        Answers are journaled in the order in which they come, so that what came well before the last entry is there.
        The terminals are those of commands that ended without an answer and whose expiry is less than a week before.
        """
        times = [_columns[f"{step}_us"] for step in ("queued", "sent", "delivered", "answered")]
        lately = sa.select(*times).order_by(_columns.id.desc()).limit(_LATELY)
        async with self._database.reading() as connection:
            rows = (await connection.execute(lately)).all()
            last_us = max((time_us for row in rows for time_us in row if time_us is not None), default=0)
            ended = (
                sa.select(_columns.terminal_id)
                .distinct()
                .where(
                    _columns.state.in_((CommandState.DELIVERED.value, CommandState.EXPIRED.value)),
                    _columns.expires_us > last_us - _WEEK_US,
                )
            )
            return max(0, last_us - _BEHIND_US), set((await connection.execute(ended)).scalars())

    async def unanswered(self, uids: Sequence[str]) -> set[str]:
        """Those of these commands (by uid) that have no answer journaled and are in a state that one may follow."""
        states = [before.value for before in _AFTER[CommandState.ANSWERED]]
        query = sa.select(_columns.uid).where(one_of(_columns.uid, uids), _columns.state.in_(states))
        async with self._database.reading() as connection:
            return set((await connection.execute(query)).scalars())

    async def note_recall(self, actor: Actor, uids: Sequence[str], now_us: int) -> list[tuple[str, str]]:
        """Notes in the audit log that somebody recalls those of these commands that are not sent.

        Returns:
            Terminal and uid of each.

        Raises:
            NotFound: one of them is not of the actor's company; nothing is noted.
        """
        query = sa.select(COMMAND).where(one_of(_columns.uid, uids))
        async with self._database.writing() as connection:
            found = (await connection.execute(query)).mappings().all()
            rows = {row["uid"]: row for row in found if actor.is_super or row["company_id"] == actor.company_id}
            for uid in uids:
                if uid not in rows:
                    raise NotFound("uids", uid)
            queued = [row for row in rows.values() if row["state"] == CommandState.QUEUED.value]
            await write_entries(connection, [_recall_entry(actor, row) for row in queued], now_us)
        return [(row["terminal_id"], row["uid"]) for row in queued]

    async def page(
        self,
        actor: Actor,
        *,
        terminal_id: str | None,
        states: Sequence[str],
        page_index: int,
        page_size: int,
    ) -> Rows:
        """A page of the commands of the actor's company, newest first, and how many there are in all."""
        query = _scoped(actor, terminal_id, states)
        page = query.order_by(_columns.id.desc()).limit(page_size).offset((page_index - 1) * page_size)
        async with self._database.reading() as connection:
            total = (await connection.execute(sa.select(sa.func.count()).select_from(query.subquery()))).scalar_one()
            rows = (await connection.execute(page)).mappings().all()
        return Rows([_row(row) for row in rows], total)


def check_page(*, states: Sequence[str], page_index: int, page_size: int) -> None:
    """Checks the arguments of ``page``.

    Raises:
        BadParameter: an unknown state, or a page out of range.
    """
    if not {known.value for known in CommandState}.issuperset(states):
        raise BadParameter("state", say("expected_one_of", expected=", ".join(known.value for known in CommandState)))
    if page_index < 1:
        raise BadParameter("page_index", say("starts_at_1"))
    if not 1 <= page_size <= MAX_PAGE:
        raise BadParameter("page_size", say("expected_1_to", most=MAX_PAGE))


def _scoped(actor: Actor, terminal_id: str | None, states: Sequence[str]) -> sa.Select[Any]:
    query = sa.select(COMMAND)
    if not actor.is_super:
        query = query.where(_columns.company_id == actor.company_id)
    if terminal_id is not None:
        query = query.where(_columns.terminal_id == terminal_id)
    if states:
        query = query.where(_columns.state.in_(sorted(set(states))))
    return query


_Key = tuple[int, str]


def _key(values: Mapping[str, Any]) -> _Key | None:
    """The company and the ``idempotency_key`` of a command, if it has one."""
    key = values["idempotency_key"]
    return None if key is None else (values["company_id"], key)


async def _add_all(connection: AsyncConnection, given: Sequence[dict[str, Any]]) -> list[tuple[Row, bool]]:
    """Inserts those whose key is new, all with one statement; the others are the first command with their key."""
    rows = await _known(connection, {key for values in given if (key := _key(values)) is not None})
    keys, seen, new = [_key(values) for values in given], set[_Key | None](rows), []
    for key, values in zip(keys, given, strict=True):
        if key is None or key not in seen:
            new.append(values)
        seen.add(key)
    inserted = iter((await connection.execute(_INSERT, new)).mappings().all() if new else ())
    added = []
    for key, values in zip(keys, given, strict=True):
        if key is not None and key in rows:
            added.append((_first_use(rows[key], values), False))
            continue
        row = _row(next(inserted))
        if key is not None:
            rows[key] = row
        added.append((row, True))
    return added


async def _known(connection: AsyncConnection, keys: Collection[_Key]) -> dict[_Key, Row]:
    """The first command with each of these keys; no other transaction journals one until this one ends."""
    if not keys:
        return {}
    for company_id, key in sorted(keys):  # in this order everywhere, as each waits for the one before
        await take_turn(connection, f"command {company_id} {key}")
    query = sa.select(COMMAND).where(
        one_of(_columns.company_id, {company_id for company_id, _ in keys}),
        one_of(_columns.idempotency_key, {key for _, key in keys}),
    )
    found = (await connection.execute(query.order_by(_columns.id.desc()))).mappings()
    return {(row["company_id"], row["idempotency_key"]): _row(row) for row in found}


def _first_use(first: Row, values: dict[str, Any]) -> Row:
    for column in ("terminal_id", "object_id", "command", "value"):
        if first[column] != values[column]:
            raise Conflict(say("key_of_another_command", column=column, value=first[column]))
    return first


def _entry(actor: Actor, row: Row) -> AuditEntry:
    names = ("terminal_id", "object_id", "command", "value", "rule_id")
    told = {name: row[name] for name in names if row[name] is not None}
    return AuditEntry(
        actor=actor,
        company_id=row["company_id"],
        action="command",
        entity="command",
        record_id=row["id"],
        uid=row["uid"],
        after=told,
    )


def _recall_entry(actor: Actor, row: sa.RowMapping) -> AuditEntry:
    return AuditEntry(
        actor=actor,
        company_id=row["company_id"],
        action="recall",
        entity="command",
        record_id=row["id"],
        uid=row["uid"],
        after={name: row[name] for name in ("terminal_id", "object_id", "command", "value") if row[name] is not None},
    )


def _row(found: sa.RowMapping) -> Row:
    row = dict(found)
    row["payload"] = msgspec.json.decode(found["payload"])
    row["answer"] = None if found["answer"] is None else msgspec.json.decode(found["answer"])
    return row


def _took(row: Row | None, change: CommandStep) -> bool:
    if row is None:
        return False
    if change.state is CommandState.QUEUED:  # once more; there is no time of that
        return row["ended_us"] is None or row["ended_us"] >= change.time_us
    ending = CommandState.EXPIRED, CommandState.FAILED
    return bool(row["ended_us" if change.state in ending else f"{change.state.value}_us"] == change.time_us)


async def _apply(connection: AsyncConnection, changes: Sequence[CommandStep]) -> None:
    for state, group in _batches(changes):
        await connection.execute(_UPDATES[state], [_bind(change) for change in group])


def _batches(changes: Sequence[CommandStep]) -> Iterator[tuple[CommandState, list[CommandStep]]]:
    """Steps of one kind together, those of each command in their order."""
    before: Counter[str] = Counter()
    placed = []
    for change in changes:
        placed.append((before[change.uid], change.state.value, change))
        before[change.uid] += 1
    placed.sort(key=itemgetter(0, 1))
    for (_, state), group in groupby(placed, key=itemgetter(0, 1)):
        yield CommandState(state), [change for _, _, change in group]


def _bind(change: CommandStep) -> dict[str, Any]:
    return {
        "of": change.uid,
        "now": change.time_us,
        "why": change.reason,
        "said": change.answer,
        "by": change.terminal_id,
    }


def _update(state: CommandState) -> sa.Update:
    """The UPDATE of one step, prepared once; written without IN, which SQLAlchemy can't run for many rows at once."""
    now, why = sa.bindparam("now", type_=sa.BigInteger), sa.bindparam("why", type_=sa.Text)
    update = (
        sa.update(COMMAND)
        .where(
            _columns.uid == sa.bindparam("of"), sa.or_(*(_columns.state == before.value for before in _AFTER[state]))
        )
        .values(state=state.value, reason=why)
    )
    if state is CommandState.SENT:
        return update.values(sent_us=now)
    if state is CommandState.QUEUED:
        return update
    update = update.values(ended_us=now)
    if state is CommandState.DELIVERED:
        return update.values(delivered_us=now)
    if state is CommandState.ANSWERED:
        update = update.where(_columns.terminal_id == sa.bindparam("by"))
        first_sign = sa.func.coalesce(_columns.delivered_us, now)
        return update.values(answered_us=now, delivered_us=first_sign, answer=sa.bindparam("said", type_=sa.Text))
    return update


_UPDATES = {state: _update(state) for state in CommandState}
