"""The repository of the pusher's projects (docs/components.md); the first serves all companies and can't be deleted."""

from __future__ import annotations

from typing import Any

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.port import Row
from terrazzo.domain.actor import SYSTEM, Actor
from terrazzo.errors import Conflict, NotFound
from terrazzo.metadata.definitions.registry import PROJECT
from terrazzo.metadata.repositories.repository import Draft
from terrazzo.metadata.repositories.scripts import ScriptRepository
from terrazzo.reasons import say

DEFAULT_PROJECT = 1
"""The id of the first project: made and started at the first start, it serves the objects of every company."""


class ProjectRepository(ScriptRepository):
    """Projects of the pusher; commands are sent only while their project is started."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(PROJECT, **parts)

    async def ensure_default(self) -> None:
        """Creates the first project unless there is one."""
        if (await self.page(SYSTEM, page_size=1)).total:
            return
        row = await self.create(SYSTEM, {"name": "default", "description": "Made at the first start"})
        await self.set_active(SYSTEM, row["id"], True)

    async def for_command(self, actor: Actor, key: int | str) -> Row:
        """The project that a command is sent in: one that the actor sees, or the first, which serves everybody.

        Raises:
            NotFound: there is none with this key.
        """
        try:
            return await self.item(actor, key)
        except NotFound:
            if str(key) != str(DEFAULT_PROJECT):
                raise
        return await self.item(SYSTEM, DEFAULT_PROJECT)

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        await super()._guard(connection, actor, draft, before)
        if before is not None and before["id"] == DEFAULT_PROJECT and not draft:
            raise Conflict(say("first_project_stays"))
