"""The repository of rules: checks which columns go together and whether the messenger has the channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.entity import COMPANY
from terrazzo.database.field import shorten
from terrazzo.database.port import Row
from terrazzo.domain.actor import SYSTEM, Actor
from terrazzo.errors import BadParameter, NotFound, QuotaExceeded
from terrazzo.metadata.definitions.components import GROUP
from terrazzo.metadata.definitions.rules import BEGINNINGS, HAPPENINGS, NOBODY, OBJECT_KINDS, RULE, SCHEDULE, is_plain
from terrazzo.metadata.lookup import find_id
from terrazzo.metadata.repositories.company_terminals import company_terminals
from terrazzo.metadata.repositories.repository import Draft
from terrazzo.metadata.repositories.scripts import ScriptRepository, resolve_objects
from terrazzo.reasons import say

Vet = Callable[[int, int, str], object]
"""``vet(company_id, project_id, channel)``: raises ``BadParameter`` where the messenger can't send that."""


class RuleRepository(ScriptRepository):
    """Rules, which can be started and stopped.

    ``of_company``: how many rules about terminals and objects may be started in a company.
    """

    def __init__(self, **parts: Any) -> None:
        super().__init__(RULE, **parts)
        self.of_company = 100
        self._vet: Vet | None = None

    def vet_with(self, vet: Vet) -> None:
        """Sets the check that refuses rules whose project or channel the messenger doesn't have."""
        self._vet = vet

    async def webhook(self, rule_id: int) -> tuple[str, str] | None:
        """The URL and the signing secret of a rule's webhook; None where there is no such rule."""
        try:
            row = await self.item(SYSTEM, rule_id)
        except NotFound:
            return None
        return str(row["url"]), str(row["secret"])

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        await super()._guard(connection, actor, draft, before)
        rule = {**(before or {}), **draft}
        if before is not None and _is_counted(rule) and not _is_counted(before):
            await self._check_room(connection, before[COMPANY])
        if not draft.keys() & RULE.fields.keys() - {"is_active", "last_modified_by"}:
            return  # deleted, started or stopped
        _check_together(rule)
        if self._vet is not None and rule["channel"] not in ("webhook", NOBODY):
            company_id = actor.company_id if before is None else before[COMPANY]
            self._vet(company_id, rule["project_id"], rule["channel"])

    async def _resolve(self, connection: AsyncConnection, draft: Draft, company: int) -> None:
        await super()._resolve(connection, draft, company)
        if draft.get("terminal_list"):
            await _check_terminals(connection, draft["terminal_list"], company)
        if draft.get("command_objects"):
            commanded: Draft = {"object_list": draft["command_objects"]}
            try:
                await resolve_objects(connection, commanded, company)
            except BadParameter as error:
                raise BadParameter("command_objects", error.reason) from None
            draft["command_objects"] = commanded["object_list"]
        if draft.get("group_list"):
            keys = dict.fromkeys(draft["group_list"])
            draft["group_list"] = [
                str(await find_id(connection, GROUP, key, company=company, field="group_list")) for key in keys
            ]

    async def _check_room(self, connection: AsyncConnection, company_id: int) -> None:
        """Raises ``QuotaExceeded`` where as many rules about terminals and objects are started as may be."""
        query = sa.select(self.table.c.kinds).where(self.table.c[COMPANY] == company_id, self.table.c.is_active == 1)
        kinds = (await connection.execute(query)).scalars()
        started = [each for each in kinds if not is_plain(msgspec.json.decode(each))]
        limit = self._quotas.own.limit(company_id, "rules", self.of_company)
        if len(started) >= limit.most:
            has = len(started) + 1
            raise QuotaExceeded("kinds", has, limit.most, "started rules of these kinds", limit.key)


def _is_counted(rule: Row) -> bool:
    """Whether a rule is started and about terminals or objects."""
    return bool(rule["is_active"]) and not is_plain(rule["kinds"])


async def _check_terminals(connection: AsyncConnection, uids: list[str], company: int) -> None:
    known = set((await company_terminals(connection, "uid", uids, company)).values())
    for uid in uids:
        if uid not in known:
            raise BadParameter("terminal_list", say("no_terminal", terminal=shorten(uid)))


def _check_together(rule: Row) -> None:
    if rule["channel"] == "webhook":
        for name in ("url", "secret"):
            if not rule.get(name):
                raise BadParameter(name, say("required_for_webhook"))
    elif rule["channel"] == NOBODY:
        if not rule["command"]:
            raise BadParameter("channel", say("rule_tells_nobody", value=NOBODY))
    elif not rule.get("recipients"):
        raise BadParameter("recipients", say("required_for_channel", channel=rule["channel"]))
    if bool(rule.get("quiet_start")) != bool(rule.get("quiet_end")):
        raise BadParameter("quiet_end", say("quiet_times_together"))
    if bool(rule.get("repeat_s")) != bool(rule.get("repeat_times")):
        raise BadParameter("repeat_times", say("repeats_together"))
    if rule["digest"] != "none" and rule["channel"] != "email":
        raise BadParameter("digest", say("sent_by_email_only", channel=rule["channel"]))
    _check_selection(rule)
    _check_command(rule)


def _check_command(rule: Row) -> None:
    """Raises ``BadParameter`` where a rule's command has no occasion or no object, or a schedule no command."""
    is_scheduled = SCHEDULE in rule["kinds"]
    if is_scheduled != bool(rule.get("schedule")):
        raise BadParameter("schedule", say("goes_with_kinds", kinds=SCHEDULE))
    if not rule["command"]:
        if is_scheduled:
            raise BadParameter("command", say("required_with_kinds", kinds=SCHEDULE))
        return
    if is_scheduled and not rule.get("command_objects"):
        raise BadParameter("command_objects", say("required_with_kinds", kinds=SCHEDULE))
    if not is_scheduled and BEGINNINGS.isdisjoint(rule["kinds"]):
        raise BadParameter("command", say("not_with_kinds", kinds=", ".join(rule["kinds"])))


def _check_selection(rule: Row) -> None:
    """Raises ``BadParameter`` for what a rule selects and is not about."""
    kinds = set(rule["kinds"])
    refused: tuple[str, ...] = ("codes",)
    if SCHEDULE in kinds:
        refused = ("codes", "object_list", "terminal_list", "tags", "group_list")
    elif not kinds.isdisjoint(HAPPENINGS):
        refused = ("terminal_list", "tags", "group_list")
    elif not kinds.isdisjoint(OBJECT_KINDS):
        refused = ("terminal_list", "tags", "codes")
    for name in refused:
        if rule.get(name):
            raise BadParameter(name, say("selects_nothing", kinds=", ".join(sorted(kinds))))
