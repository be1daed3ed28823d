"""The port to where the broker keeps what outlives a connection."""

from __future__ import annotations

from typing import Protocol

import mqtt5

from .deadlines import Deadlines
from .delivery.connection_port import Origin
from .delivery.routing import MessageReceiver
from .delivery.session import Session
from .hooks import Client
from .message import ApplicationMessage
from .settings import BrokerSettings
from .stats import Stats
from .topics.retained import RetainedMessages
from .topics.tree import SubscriptionTree
from .wills import PendingWill


class StorageError(Exception):
    """What is stored can't be read or written: who has it, what is wrong with it."""


class Storage(Protocol):
    """Sessions, retained messages and wills.

    A persistent one gives its sessions and its retained messages a journal, which writes down each change. What a
    connection's packets change must be durable before that connection is answered: the change is told with its
    ``Origin``.
    """

    sessions: dict[str, Session]  # by client id [MQTT-3.1.3-2] of both; until they end [MQTT-4.1.0-1] of 3.1.1
    retained: RetainedMessages[ApplicationMessage]
    deadlines: Deadlines  # of sessions ("s" + client id) and wills ("w" + client id)

    @property
    def is_failing(self) -> bool:
        """Whether nothing can be written now; what would have to be is refused meanwhile."""

    def restore(self, settings: BrokerSettings, stats: Stats, tree: SubscriptionTree[MessageReceiver]) -> None:
        """Loads what was stored; called once, before anything else.

        Raises:
            StorageError: it can't be read.
        """

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats, *, outlives: bool) -> Session:
        """A new session, kept under its client id; ``outlives``: it is to outlive its connection."""

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended."""

    def note_will(self, will: mqtt5.Will, client: Client, origin: Origin | None) -> None:
        """The will of a client that is connected now: it is published if the broker is killed.

        ``origin``: the connection whose CONNACK waits until it is written down.
        """

    def leave_will(self, pending: PendingWill, due_us: int) -> None:
        """Keeps the will of a client that has gone, until ``due_us``."""

    def take_will(self, client_id: str) -> PendingWill | None:
        """Forgets a client's will; the one that waited."""

    def on_sweep(self, now_us: int) -> None:
        """Called a few times a second."""

    async def close(self) -> None:
        """Writes what isn't written yet; nothing may be changed after it."""


class MemoryStorage:
    """Keeps everything as long as the process lives."""

    is_failing = False

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.retained: RetainedMessages[ApplicationMessage] = RetainedMessages()
        self.deadlines = Deadlines()
        self._wills: dict[str, PendingWill] = {}

    def restore(self, settings: BrokerSettings, stats: Stats, tree: SubscriptionTree[MessageReceiver]) -> None:
        """There is nothing yet."""

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats, *, outlives: bool) -> Session:
        """A new session, kept under its client id."""
        session = self.sessions[client_id] = Session(client_id, settings, stats)
        return session

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended."""
        self.sessions.pop(session.client_id, None)

    def note_will(self, will: mqtt5.Will, client: Client, origin: Origin | None) -> None:
        """The connection has it."""

    def leave_will(self, pending: PendingWill, due_us: int) -> None:
        """Keeps the will of a client that has gone, until ``due_us``."""
        client_id = pending.client.client_id
        self._wills[client_id] = pending
        self.deadlines.set("w" + client_id, due_us)

    def take_will(self, client_id: str) -> PendingWill | None:
        """Forgets a client's will; the one that waited."""
        pending = self._wills.pop(client_id, None)
        if pending is not None:
            self.deadlines.cancel("w" + client_id)
        return pending

    def on_sweep(self, now_us: int) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""
