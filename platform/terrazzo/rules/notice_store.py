"""Notices in the database: they come with the events and labels, and go with the messages that tell of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.messages import RULE_NOTICE
from terrazzo.domain.happened import Happened
from terrazzo.rules.notice import DONE, TOLD, WAITING, Notice, notice_row
from terrazzo.rules.rule import ActiveRules, Rule

MOST_AT_ONCE = 1_000  # notices that one message tells of in detail

_columns = RULE_NOTICE.c


class NoticeStore:
    """The table ``rule_notice``."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def note(self, connection: AsyncConnection, active_rules: ActiveRules, happened: Sequence[Happened]) -> int:
        """Adds what rules have to tell, inside the transaction of what happened; how many notices."""
        rows = [notice_row(rule, each) for each in happened for rule in active_rules.matching(each)]
        if rows:
            await connection.execute(RULE_NOTICE.insert(), rows)
        return len(rows)

    async def waiting(self) -> dict[int, int]:
        """Of each rule with something to tell, when it told something last (0: never)."""
        waiting = sa.select(_columns.rule_id).where(_columns.state == WAITING).distinct()
        last = (
            sa.select(_columns.rule_id, sa.func.max(_columns.told_us))
            .where(_columns.rule_id.in_(waiting))
            .group_by(_columns.rule_id)
        )
        async with self.database.reading() as connection:
            return {rule_id: told_us or 0 for rule_id, told_us in (await connection.execute(last)).all()}

    async def due_again(self, now: int) -> tuple[list[int], int | None]:
        """The rules that have to repeat something, and when the next ones have."""
        due = sa.select(_columns.rule_id).where(_columns.state == TOLD, _columns.again_us <= now).distinct()
        later = sa.select(sa.func.min(_columns.again_us)).where(_columns.state == TOLD, _columns.again_us > now)
        async with self.database.reading() as connection:
            rules = list((await connection.execute(due)).scalars())
            return rules, (await connection.execute(later)).scalar()

    async def take_fresh(self, connection: AsyncConnection, rule: Rule, now: int) -> tuple[list[Notice], int]:
        """What a rule has not told yet, at most ``MOST_AT_ONCE``, and how many there are in all.

        A message tells of all of them from here on.
        """
        return await self._take(connection, rule, [_columns.rule_id == rule.id, _columns.state == WAITING], now)

    async def take_due(self, connection: AsyncConnection, rule: Rule, now: int) -> tuple[list[Notice], int]:
        """As ``take_fresh``, of what is to be repeated: the event is not acknowledged, or the label is still open."""
        due = [_columns.rule_id == rule.id, _columns.state == TOLD, _columns.again_us <= now]
        over = RULE_NOTICE.update().where(*due, sa.not_(_is_open()))
        await connection.execute(over.values(state=DONE, again_us=None))
        return await self._take(connection, rule, due, now)

    async def end(self, rule_id: int) -> None:
        """A rule that is stopped has nothing more to tell."""
        is_open = [_columns.rule_id == rule_id, _columns.state.in_((WAITING, TOLD))]
        async with self.database.writing() as connection:
            await connection.execute(RULE_NOTICE.update().where(*is_open).values(state=DONE, again_us=None))

    async def forget_before(self, time_us: int) -> None:
        """Deletes what has long been told."""
        old = [_columns.state == DONE, sa.func.coalesce(_columns.told_us, 0) < time_us]
        async with self.database.writing() as connection:
            await connection.execute(RULE_NOTICE.delete().where(*old))

    async def _take(
        self, connection: AsyncConnection, rule: Rule, which: Sequence[Any], now: int
    ) -> tuple[list[Notice], int]:
        """Writes that these are told, and which they were in the same statement: others come at any time.

        What is to be repeated is due again after the rule's interval.
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
        query = sa.select(RULE_NOTICE).where(_columns.id.in_(ids[:MOST_AT_ONCE])).order_by(_columns.id)
        found = (await connection.execute(query)).mappings().all() if ids else []
        return [Notice(**{name: row[name] for name in Notice.__struct_fields__}) for row in found], len(ids)


def _is_open() -> sa.ColumnElement[bool]:
    raised = sa.exists().where(EVENT.c.id == _columns.record_id, EVENT.c.state == "raised")
    label_open = sa.exists().where(LABEL.c.id == _columns.record_id, LABEL.c.close_at.is_(None))
    return sa.or_(sa.and_(_columns.kind == "event", raised), sa.and_(_columns.kind == "opened", label_open))
