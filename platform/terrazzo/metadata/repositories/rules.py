"""The repository of rules: checks which columns go together and whether the messenger has the channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.domain.actor import SYSTEM, Actor
from terrazzo.errors import BadParameter, NotFound
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.metadata.repositories.repository import Draft
from terrazzo.metadata.repositories.scripts import ScriptRepository

Vet = Callable[[int, int, str], object]
"""``vet(company_id, project_id, channel)``: raises ``BadParameter`` where the messenger can't send that."""


class RuleRepository(ScriptRepository):
    """Rules, which can be started and stopped."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(RULE, **parts)
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
        if not draft.keys() & RULE.fields.keys() - {"is_active", "last_modified_by"}:
            return  # deleted, started or stopped
        rule = {**(before or {}), **draft}
        _check_together(rule)
        if self._vet is not None and rule["channel"] != "webhook":
            company_id = actor.company_id if before is None else before[COMPANY]
            self._vet(company_id, rule["project_id"], rule["channel"])


def _check_together(rule: Row) -> None:
    if rule["channel"] == "webhook":
        for name in ("url", "secret"):
            if not rule.get(name):
                raise BadParameter(name, "is required for a webhook")
    elif not rule.get("recipients"):
        raise BadParameter("recipients", f"is required for {rule['channel']}")
    if bool(rule.get("quiet_start")) != bool(rule.get("quiet_end")):
        raise BadParameter("quiet_end", "quiet_start and quiet_end go together")
    if bool(rule.get("repeat_s")) != bool(rule.get("repeat_times")):
        raise BadParameter("repeat_times", "repeat_s and repeat_times go together")
