"""The names of what notices are about, and what many of them have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Repository
from terrazzo.database.tables.registry import OBJECT_TERMINAL, TERMINAL_TAG
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.errors import NotFound
from terrazzo.metadata.definitions.components import GROUP, GROUP_MAP
from terrazzo.metadata.definitions.rules import OUTAGE
from terrazzo.rules.notice import Notice
from terrazzo.rules.notice_store import Taken
from terrazzo.rules.rule import Rule

_PLATFORM = "Terrazzo"
_MOST_SHARED = 5  # tags and groups that a message names


class SubjectNames:
    """Finds names.

    Args:
        objects: the objects' records.
        registry: the terminals.
    """

    def __init__(self, objects: Repository, registry: Registry) -> None:
        self._objects = objects
        self._registry = registry

    async def of(self, rule: Rule, notices: Sequence[Notice]) -> Mapping[int, str]:
        """The names of what these notices are about, by the notice's id."""
        return {each.id: await self._name(rule, each) for each in notices}

    async def shared(self, connection: AsyncConnection, rule: Rule, taken: Taken) -> Sequence[str]:
        """The tags of terminals, and the groups of objects, that all of a message's notices have in common."""
        if taken.total > len(taken.notices):
            return ()  # nobody has looked at the others
        subjects = {each.record_id for each in taken.notices if each.record_id and not each.is_happening}
        if len(subjects) < 2:
            return ()
        tags = () if rule.is_of_objects else await _common_tags(connection, subjects)
        groups = await _common_groups(connection, subjects, rule)
        return [*(f"tag {tag}" for tag in tags), *(f"group {name}" for name in groups)][:_MOST_SHARED]

    async def _name(self, rule: Rule, notice: Notice) -> str:
        if notice.kind == OUTAGE:
            return _PLATFORM
        if notice.is_happening or rule.is_of_objects:
            return await self._object_name(notice.object_id)
        terminal = self._registry.terminal_by_id(notice.record_id)
        return notice.code if terminal is None else terminal.name

    async def _object_name(self, object_id: int) -> str:
        try:
            return str((await self._objects.item(SYSTEM, object_id))["name"])
        except NotFound:
            return str(object_id)


async def _common_tags(connection: AsyncConnection, terminals: set[int]) -> Sequence[str]:
    columns = TERMINAL_TAG.c
    query = (
        sa.select(columns.tag)
        .where(one_of(columns.terminal_id, terminals))
        .group_by(columns.tag)
        .having(sa.func.count() == len(terminals))
        .order_by(columns.tag)
        .limit(_MOST_SHARED)
    )
    return (await connection.execute(query)).scalars().all()


async def _common_groups(connection: AsyncConnection, subjects: set[int], rule: Rule) -> Sequence[str]:
    maps, groups = GROUP_MAP.table, GROUP.table
    joined, subject = groups.join(maps, maps.c.group_id == groups.c.id), maps.c.object_id
    if not rule.is_of_objects:
        joined = joined.join(OBJECT_TERMINAL, OBJECT_TERMINAL.c.object_id == maps.c.object_id)
        subject = OBJECT_TERMINAL.c.terminal_id
    query = (
        sa.select(groups.c.name)
        .select_from(joined)
        .where(one_of(subject, subjects))
        .group_by(groups.c.id, groups.c.name)
        .having(sa.func.count(sa.distinct(subject)) == len(subjects))
        .order_by(groups.c.name)
        .limit(_MOST_SHARED)
    )
    return (await connection.execute(query)).scalars().all()
