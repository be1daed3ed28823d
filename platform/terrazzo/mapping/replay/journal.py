"""The journal of replays in the database: what was asked for, how far it is, how it ended."""

from __future__ import annotations

from collections.abc import Collection
from datetime import tzinfo
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.company_records import CompanyRecords
from terrazzo.database.database import Database
from terrazzo.database.field import flag, moment, number, text
from terrazzo.database.named_lock import take_turn
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.tables.replays import REPLAY
from terrazzo.domain.actor import Actor
from terrazzo.errors import Conflict
from terrazzo.mapping.replay.progress import ReplayProgress
from terrazzo.mapping.replay.run import ReplayTask
from terrazzo.reasons import say

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
UNFINISHED = (WAITING, RUNNING)
MOST_WAITING = 25  # of a company

_FIELDS = (
    number("object_id"),
    moment("start_us"),
    moment("end_us"),
    flag("dry_run"),
    text("state", 16),
    text("username", 64),
    number("created_by"),
    moment("created"),
    moment("ended_us"),
)


class ReplayJournal(CompanyRecords):
    """The replays of all companies."""

    def __init__(self, database: Database, *, zone: tzinfo) -> None:
        super().__init__(database, REPLAY, _FIELDS, moment="created", zone=zone)

    async def add(self, actor: Actor, task: ReplayTask, whose: Row, time_us: int) -> int:
        """A new one that waits, and its line in the audit log; its id.

        Args:
            whose: the object's record.

        Raises:
            Conflict: the object is being replayed, or too many wait.
        """
        company_id = whose["permission_company_id"]
        values = task._asdict() | {"dry_run": int(task.dry_run), "company_id": company_id, "state": WAITING}
        values |= {"created_by": actor.user_id, "username": actor.username[:64], "created": time_us}
        told = {"start_us": task.start_us, "end_us": task.end_us, "dry_run": task.dry_run}
        entry = _entry(actor, company_id, "replay", task.object_id, told)
        async with self._database.writing() as connection:
            await take_turn(connection, "replay")
            mine = (REPLAY.c.state.in_(UNFINISHED), REPLAY.c.company_id == company_id)
            rows = (await connection.execute(sa.select(REPLAY.c.id, REPLAY.c.object_id).where(*mine))).all()
            for row in rows:
                if row.object_id == task.object_id:
                    raise Conflict(say("replay_not_finished", replay=row.id))
            if len(rows) >= MOST_WAITING:
                raise Conflict(say("too_many_replays_waiting", most=MOST_WAITING))
            await write_entries(connection, [entry], time_us)
            statement = REPLAY.insert().values(**values).returning(REPLAY.c.id)
            return int((await connection.execute(statement)).scalar_one())

    async def next(self, busy: Collection[int], *, after: int) -> Row | None:
        """The replay to run next: an interrupted one before waiting ones, companies in turn; None: there is none.

        Args:
            busy: companies whose replays aren't asked for.
            after: the company whose turn it was last.
        """
        columns = REPLAY.c
        turn = sa.case((columns.company_id > after, 0), else_=1)
        unfinished = (columns.state.in_(UNFINISHED), sa.not_(one_of(columns.company_id, busy)))
        order = (columns.state, turn, columns.company_id, columns.id)
        query = sa.select(REPLAY).where(*unfinished).order_by(*order).limit(1)
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).mappings().first()
        return None if found is None else dict(found)

    async def begin(self, row: Row) -> None:
        """Notes that a replay runs, and counts the attempt."""
        await self._set(row["id"], {"state": RUNNING, "starts": row["starts"] + 1})

    async def save(self, replay_id: int, progress: ReplayProgress, state: str, info: str, time_us: int) -> None:
        """Writes how a replay ended."""
        values: dict[str, Any] = {"state": state, "info": info[:1_000], "ended_us": time_us}
        await self._set(replay_id, msgspec.structs.asdict(progress) | values)

    async def cancel(self, actor: Actor, replay_id: int, time_us: int) -> None:
        """Ends one that waits, and notes for one that runs who ends it; one that has ended stays as it is.

        Raises:
            NotFound: there is none, or it is another company's.
        """
        async with self._database.writing() as connection:
            row = await self._item(connection, actor, replay_id, lock=True)
            if row["state"] not in UNFINISHED:
                return
            entry = _entry(actor, row["company_id"], "cancel_replay", row["object_id"], {"replay": replay_id})
            await write_entries(connection, [entry], time_us)
            if row["state"] == WAITING:
                ended = {"state": CANCELLED, "ended_us": time_us}
                await connection.execute(REPLAY.update().where(REPLAY.c.id == replay_id).values(**ended))

    async def _set(self, replay_id: int, values: dict[str, Any]) -> None:
        async with self._database.writing() as connection:
            await connection.execute(REPLAY.update().where(REPLAY.c.id == replay_id).values(**values))


def _entry(actor: Actor, company_id: int, action: str, object_id: int, told: dict[str, Any]) -> AuditEntry:
    return AuditEntry(
        actor=actor,
        company_id=company_id,
        action=action,
        entity="object",
        record_id=object_id,
        uid=str(object_id),
        after=told,
    )
