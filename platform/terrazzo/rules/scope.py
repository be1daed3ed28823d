"""Which terminals or objects a rule is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.registry import TERMINAL_TAG
from terrazzo.domain.registry import Registry
from terrazzo.metadata.definitions.components import GROUP_MAP
from terrazzo.rules.open_conditions import Subject
from terrazzo.rules.rule import Rule


class WatchedRule(NamedTuple):
    """A rule with what it is about; None: all of its company."""

    rule: Rule
    members: frozenset[Subject] | None

    def is_about(self, subject: Subject) -> bool:
        """Whether the rule is about this terminal or object, which is its company's."""
        return (subject < 0) is self.rule.is_of_objects and (self.members is None or subject in self.members)


class Scopes:
    """Works out what rules are about, of the registry, tags and groups."""

    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    async def resolve(self, rule: Rule) -> WatchedRule:
        """The rule with its terminals or objects as they are now."""
        if not (rule.terminals or rule.tags or rule.objects or rule.groups):
            return WatchedRule(rule, None)
        objects = rule.objects | await self._in_groups(rule.groups)
        if rule.is_of_objects:
            return WatchedRule(rule, frozenset(-each for each in objects))
        uids = {*rule.terminals, *(uid for each in objects for uid in self._registry.object_terminals(each))}
        return WatchedRule(rule, frozenset([*self._ids(rule, uids), *await self._tagged(rule)]))

    def all_of(self, watched: WatchedRule) -> Iterable[Subject]:
        """The subjects of a rule."""
        if watched.members is not None:
            return watched.members
        company_id, registry = watched.rule.company_id, self._registry
        if watched.rule.is_of_objects:
            return [-each for each in registry.object_ids() if registry.object_company(each) == company_id]
        return [each.id for each in registry.terminals() if each.company_id == company_id]

    def _ids(self, rule: Rule, uids: Iterable[str]) -> Iterable[int]:
        for uid in uids:
            terminal = self._registry.terminal(uid)
            if terminal is not None and terminal.company_id == rule.company_id:
                yield terminal.id

    async def _in_groups(self, groups: frozenset[int]) -> frozenset[int]:
        if not groups:
            return frozenset()
        table = GROUP_MAP.table.c
        async with self._database.reading() as connection:
            query = sa.select(table.object_id).where(one_of(table.group_id, groups))
            return frozenset((await connection.execute(query)).scalars())

    async def _tagged(self, rule: Rule) -> Iterable[int]:
        if not rule.tags:
            return ()
        columns = TERMINAL_TAG.c
        query = sa.select(columns.terminal_id).where(one_of(columns.tag, rule.tags)).distinct()
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).scalars().all()
        known = [self._registry.terminal_by_id(each) for each in found]
        return [each.id for each in known if each is not None and each.company_id == rule.company_id]
