"""Notices in the database: written in the transaction of the event or label, taken in that of the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.messages import RULE_NOTICE
from terrazzo.domain.happened import Happened
from terrazzo.rules.notice import DONE, TOLD, WAITING, Notice, notice_row
from terrazzo.rules.rule import ActiveRules, Rule

MOST_AT_ONCE = 1_000  # notices that one message tells of in detail

_columns = RULE_NOTICE.c


class NoticeStore:
    """Reads and writes the table ``rule_notice``. Times in UTC microseconds."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def note(self, connection: AsyncConnection, active_rules: ActiveRules, happened: Sequence[Happened]) -> int:
        """Adds the notices of matching rules, inside the transaction of what happened; returns how many."""
        rows = [notice_row(rule, each) for each in happened for rule in active_rules.matching(each)]
        if rows:
            await connection.execute(RULE_NOTICE.insert(), rows)
        return len(rows)

    async def waiting(self) -> dict[int, int]:
        """The rules with waiting notices: rule id to the time it told something last (0: never)."""
        waiting = sa.select(_columns.rule_id).where(_columns.state == WAITING).distinct()
        last = (
            sa.select(_columns.rule_id, sa.func.max(_columns.told_us))
            .where(_columns.rule_id.in_(waiting))
            .group_by(_columns.rule_id)
        )
        async with self.database.reading() as connection:
            return {rule_id: told_us or 0 for rule_id, told_us in (await connection.execute(last)).all()}

    async def due_again(self, now: int) -> tuple[list[int], int | None]:
        """Ids of the rules with notices to repeat now, and when the next repetition after them is due."""
        due = sa.select(_columns.rule_id).where(_columns.state == TOLD, _columns.again_us <= now).distinct()
        later = sa.select(sa.func.min(_columns.again_us)).where(_columns.state == TOLD, _columns.again_us > now)
        async with self.database.reading() as connection:
            rules = list((await connection.execute(due)).scalars())
            return rules, (await connection.execute(later)).scalar()

    async def take_fresh(self, connection: AsyncConnection, rule: Rule, now: int) -> tuple[list[Notice], int]:
        """Takes a rule's waiting notices: the first ``MOST_AT_ONCE``, and how many there are in all.

        All of them count as told once the transaction is committed.
        """
        return await self._take(connection, rule, [_columns.rule_id == rule.id, _columns.state == WAITING], now)

    async def take_due(self, connection: AsyncConnection, rule: Rule, now: int) -> tuple[list[Notice], int]:
        """As ``take_fresh``, for notices due to be repeated: the event is not acknowledged, or the label still open."""
        due = [_columns.rule_id == rule.id, _columns.state == TOLD, _columns.again_us <= now]
        over = RULE_NOTICE.update().where(*due, sa.not_(_is_open()))
        await connection.execute(over.values(state=DONE, again_us=None))
        return await self._take(connection, rule, due, now)

    async def end(self, rule_id: int) -> None:
        """Ends all notices of a rule that is stopped or deleted."""
        is_open = [_columns.rule_id == rule_id, _columns.state.in_((WAITING, TOLD))]
        async with self.database.writing() as connection:
            await connection.execute(RULE_NOTICE.update().where(*is_open).values(state=DONE, again_us=None))

    async def forget_before(self, time_us: int) -> None:
        """Deletes notices that are done and were told before ``time_us``."""
        old = [_columns.state == DONE, sa.func.coalesce(_columns.told_us, 0) < time_us]
        async with self.database.writing() as connection:
            await connection.execute(RULE_NOTICE.delete().where(*old))

    async def _take(
        self, connection: AsyncConnection, rule: Rule, which: Sequence[Any], now: int
    ) -> tuple[list[Notice], int]:
        """Marks notices as told and returns them, by one statement, because new ones may come at any time.

        Those to be repeated are due again after the rule's interval.
        """
        is_over = sa.or_(_columns.kind == "closed", _columns.told >= rule.repeat_times)
        told = (
            RULE_NOTICE.update()
            .where(*which)
            .values(
                state=sa.case((is_over, DONE), else_=TOLD),
                again_us=sa.case((is_over, None), else_=now + rule.repeat_s * 1_000_000),
                told_us=now,
                told=_columns.told + 1,
            )
            .returning(_columns.id)
        )
        ids = sorted((await connection.execute(told)).scalars())
        query = sa.select(RULE_NOTICE).where(one_of(_columns.id, ids[:MOST_AT_ONCE])).order_by(_columns.id)
        found = (await connection.execute(query)).mappings().all() if ids else []
        return [Notice(**{name: row[name] for name in Notice.__struct_fields__}) for row in found], len(ids)


def _is_open() -> sa.ColumnElement[bool]:
    raised = sa.exists().where(EVENT.c.id == _columns.record_id, EVENT.c.state == "raised")
    label_open = sa.exists().where(LABEL.c.id == _columns.record_id, LABEL.c.close_at.is_(None))
    return sa.or_(sa.and_(_columns.kind == "event", raised), sa.and_(_columns.kind == "opened", label_open))
