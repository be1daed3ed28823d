"""The port to where the broker keeps what outlives a connection."""

from __future__ import annotations

from typing import Protocol

from .deadlines import Deadlines
from .session import Session
from .settings import BrokerSettings
from .stats import Stats
from .topics.retained import RetainedMessages
from .wills import PendingWill


class Storage(Protocol):
    """Sessions, retained messages and pending wills.

    A persistent implementation loads them before the broker listens, hands out subclasses of ``Session`` and
    ``RetainedMessages`` that write down each change.
    """

    sessions: dict[str, Session]
    retained: RetainedMessages
    wills: dict[str, PendingWill]
    deadlines: Deadlines  # of sessions ("s" + client id) and wills ("w" + client id)

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats) -> Session:
        """A new session, kept under its client id."""

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended."""


class MemoryStorage:
    """Keeps everything as long as the process lives."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.retained = RetainedMessages()
        self.wills: dict[str, PendingWill] = {}
        self.deadlines = Deadlines()

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats) -> Session:
        """A new session, kept under its client id."""
        session = self.sessions[client_id] = Session(client_id, settings, stats)
        return session

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended."""
        self.sessions.pop(session.client_id, None)
