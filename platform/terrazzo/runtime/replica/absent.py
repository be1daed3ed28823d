"""``Absent``: stands in a replica's services for what the leader alone has. No operation that it answers gets there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from terrazzo.commands.journal import CommandJournal, check_page
from terrazzo.database.port import Row, Rows
from terrazzo.domain.actor import Actor
from terrazzo.errors import Unavailable
from terrazzo.messenger.journal import MessageJournal
from terrazzo.reasons import say


class Absent:
    """Refuses whatever is asked of it; what can be set up says that it is not."""

    is_configured = False

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unavailable(say("replica_only_reads"))


class ReadCommands:
    """``CommandService`` of which the journal is read."""

    def __init__(self, journal: CommandJournal) -> None:
        self._journal = journal

    async def submit(
        self, actor: Actor, terminal_id: str, command: str, value: Any, *, idempotency_key: str | None = None
    ) -> Row:
        """Refuses."""
        raise Unavailable(say("replica_only_reads"))

    async def page(
        self,
        actor: Actor,
        *,
        terminal_id: str | None = None,
        states: Sequence[str] = (),
        page_index: int = 1,
        page_size: int = 20,
    ) -> Rows:
        """As ``CommandDispatcher.page``."""
        check_page(states=states, page_index=page_index, page_size=page_size)
        return await self._journal.page(
            actor, terminal_id=terminal_id, states=states, page_index=page_index, page_size=page_size
        )

    async def recall_all(self, actor: Actor, uids: Sequence[str]) -> set[str]:
        """Refuses."""
        raise Unavailable(say("replica_only_reads"))


class ReadMessages(Absent):
    """The messenger, of which the journal is read.

    Attributes:
        attachment_bytes: of a form that would be sent.
    """

    def __init__(self, journal: MessageJournal, attachment_bytes: int) -> None:
        self.journal = journal
        self.attachment_bytes = attachment_bytes
