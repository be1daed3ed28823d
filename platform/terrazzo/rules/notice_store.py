"""Notices in the database: written in the transaction of what they tell of, taken in that of the message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.messages import RULE_CONDITION, RULE_NOTICE
from terrazzo.domain.happened import Happened
from terrazzo.domain.terminal import OutOfService
from terrazzo.metadata.definitions.rules import BACK, BEGINNINGS, OUTAGE
from terrazzo.metadata.out_of_service import is_out_of_service
from terrazzo.rules.command_store import add_commands, command_rows
from terrazzo.rules.notice import DONE, MISSED, TOLD, WAITING, Notice, notice_row
from terrazzo.rules.rule import ActiveRules, Rule
from terrazzo.times import now_us

MOST_AT_ONCE = 1_000  # notices that one message tells of in detail

_PASSING = ("closed", BACK, OUTAGE, MISSED)  # kinds that are told once
_columns = RULE_NOTICE.c


class Waiting(NamedTuple):
    """The waiting notices of a rule: when it told something last (0: never), the first and the last was noted."""

    told_us: int
    first_us: int
    last_us: int


class Taken(NamedTuple):
    """Notices that are told now: the first ``MOST_AT_ONCE``, and how many there are of each kind."""

    notices: list[Notice]
    kinds: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many there are in all."""
        return sum(self.kinds.values())


class NoticeStore:
    """Reads and writes the table ``rule_notice``. Times in UTC microseconds."""

    def __init__(
        self,
        database: Database,
        *,
        out_of_service: Mapping[str, OutOfService] | None = None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.database = database
        self._out_of_service = {} if out_of_service is None else out_of_service
        self._clock = clock

    async def note(self, connection: AsyncConnection, active_rules: ActiveRules, happened: Sequence[Happened]) -> int:
        """Adds the notices and commands of matching rules, inside the transaction of what happened.

        Of terminals out of service nothing is commanded, and what begins is told afterwards, if it is still open then.
        Returns how many notices.
        """
        now = self._clock()
        out = self._out_of_service
        free = [each for each in happened if each.row["terminal_id"] not in out] if out else happened
        held = [each for each in happened if each.row["terminal_id"] in out] if out else []
        rows = await self._note_free(connection, active_rules, free, now)
        return rows + await self._note_held(connection, active_rules, held, now)

    def is_any_back(self, uids: Iterable[str]) -> bool:
        """Whether one of these terminals is not out of service."""
        return any(uid not in self._out_of_service for uid in uids)

    async def release(self) -> None:
        """Has notices that are held looked at now: their terminals may be back."""
        now = self._clock()
        held = [_columns.state == TOLD, _columns.told == 0, _columns.again_us > now]
        async with self.database.writing() as connection:
            await connection.execute(RULE_NOTICE.update().where(*held).values(again_us=now))

    async def _note_held(
        self, connection: AsyncConnection, active_rules: ActiveRules, held: Sequence[Happened], now: int
    ) -> int:
        """Notices of what began, as if they had been told, and were due again when the terminal is back."""
        rows = []
        for each in held:
            until_us = self._out_of_service[each.row["terminal_id"]].until_us
            told = [rule for rule in active_rules.matching(each) if rule.tells and each.kind in BEGINNINGS]
            rows += [notice_row(rule, each, now) | {"state": TOLD, "again_us": until_us} for rule in told]
        if rows:
            await connection.execute(RULE_NOTICE.insert(), rows)
        return len(rows)

    async def _note_free(
        self, connection: AsyncConnection, active_rules: ActiveRules, happened: Sequence[Happened], now: int
    ) -> int:
        matching = [(rule, each) for each in happened for rule in active_rules.matching(each)]
        rows = [notice_row(rule, each, now) for rule, each in matching if rule.tells]
        if rows:
            await connection.execute(RULE_NOTICE.insert(), rows)
        given = [(rule, each) for rule, each in matching if rule.commands and each.kind in BEGINNINGS]
        commands = [row for rule, each in given for row in command_rows(rule, each.row["object_id"], now)]
        await add_commands(connection, commands)
        return len(rows)

    async def waiting(self) -> dict[int, Waiting]:
        """The rules with waiting notices, by their ids."""
        is_waiting, noted_us = _columns.state == WAITING, sa.func.coalesce(_columns.noted_us, 0)
        noted = sa.case((is_waiting, noted_us))
        last = (
            sa.select(_columns.rule_id, sa.func.max(_columns.told_us), sa.func.min(noted), sa.func.max(noted))
            .where(_columns.rule_id.in_(sa.select(_columns.rule_id).where(is_waiting).distinct()))
            .group_by(_columns.rule_id)
        )
        async with self.database.reading() as connection:
            found = (await connection.execute(last)).all()
        return {rule_id: Waiting(told_us or 0, first_us, last_us) for rule_id, told_us, first_us, last_us in found}

    async def due_again(self, now: int) -> tuple[list[int], int | None]:
        """Ids of the rules with notices to repeat now, and when the next repetition after them is due."""
        due = sa.select(_columns.rule_id).where(_columns.state == TOLD, _columns.again_us <= now).distinct()
        later = sa.select(sa.func.min(_columns.again_us)).where(_columns.state == TOLD, _columns.again_us > now)
        async with self.database.reading() as connection:
            rules = list((await connection.execute(due)).scalars())
            return rules, (await connection.execute(later)).scalar()

    async def take_fresh(self, connection: AsyncConnection, rule: Rule, now: int) -> Taken:
        """Takes a rule's waiting notices.

        All of them count as told once the transaction is committed.
        """
        return await self._take(connection, rule, [_columns.rule_id == rule.id, _columns.state == WAITING], now)

    async def take_due(self, connection: AsyncConnection, rule: Rule, now: int) -> Taken:
        """As ``take_fresh``, for notices due to be repeated.

        The event is not acknowledged, the label open, the terminal or object not back.
        """
        due = [_columns.rule_id == rule.id, _columns.state == TOLD, _columns.again_us <= now, sa.not_(_is_held(now))]
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

    async def _take(self, connection: AsyncConnection, rule: Rule, which: Sequence[Any], now: int) -> Taken:
        """Marks notices as told and returns them, by one statement, because new ones may come at any time.

        Those to be repeated are due again after the rule's interval.
        """
        is_over = sa.or_(one_of(_columns.kind, _PASSING), _columns.told >= rule.repeat_times)
        told = (
            RULE_NOTICE.update()
            .where(*which)
            .values(
                state=sa.case((is_over, DONE), else_=TOLD),
                again_us=sa.case((is_over, None), else_=now + rule.repeat_s * 1_000_000),
                told_us=now,
                told=_columns.told + 1,
            )
            .returning(_columns.id, _columns.kind)
        )
        marked = (await connection.execute(told)).all()
        ids = sorted(each.id for each in marked)
        query = sa.select(RULE_NOTICE).where(one_of(_columns.id, ids[:MOST_AT_ONCE])).order_by(_columns.id)
        found = (await connection.execute(query)).mappings().all() if ids else []
        notices = [Notice(**{name: row[name] for name in Notice.__struct_fields__}) for row in found]
        return Taken(notices, Counter(each.kind for each in marked))


def _is_held(now: int) -> sa.ColumnElement[bool]:
    """An event is on the shelf, or the terminal that opened a label is out of service."""
    shelved = sa.exists().where(EVENT.c.id == _columns.record_id, EVENT.c.shelved_until > now)
    out = sa.exists().where(LABEL.c.id == _columns.record_id, is_out_of_service(LABEL.c.terminal_id, now))
    return sa.or_(sa.and_(_columns.kind == "event", shelved), sa.and_(_columns.kind == "opened", out))


def _is_open() -> sa.ColumnElement[bool]:
    raised = sa.exists().where(EVENT.c.id == _columns.record_id, EVENT.c.state == "raised")
    label_open = sa.exists().where(LABEL.c.id == _columns.record_id, LABEL.c.close_at.is_(None))
    condition = RULE_CONDITION.c
    lasts = sa.exists().where(
        condition.rule_id == _columns.rule_id,
        condition.kind == _columns.kind,
        condition.subject_id == _columns.record_id,
    )
    return sa.or_(sa.and_(_columns.kind == "event", raised), sa.and_(_columns.kind == "opened", label_open), lasts)
