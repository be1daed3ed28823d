"""``CommandService``: what the operations need of commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from terrazzo.database.port import Row, Rows
from terrazzo.domain.actor import Actor


class CommandService(Protocol):
    """The journal of commands and their way to the terminals."""

    async def submit(
        self, actor: Actor, terminal_id: str, command: str, value: Any, *, idempotency_key: str | None = None
    ) -> Row:
        """Journals a command, and sends it as soon as the terminal is there."""

    async def page(
        self,
        actor: Actor,
        *,
        terminal_id: str | None = None,
        states: Sequence[str] = (),
        page_index: int = 1,
        page_size: int = 20,
    ) -> Rows:
        """A page of the journal, newest first: of the actor's company, one terminal or some states."""

    async def recall_all(self, actor: Actor, uids: Sequence[str]) -> set[str]:
        """Ends those of the commands that were not sent yet; which they are."""
