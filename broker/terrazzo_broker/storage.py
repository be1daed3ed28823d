"""The port of the broker's storage (sessions, retained messages, wills), and the one in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import mqtt5

from .delivery.connection_port import Origin
from .delivery.queue_share import QueueShares
from .delivery.routing import MessageReceiver
from .delivery.session import Session
from .hooks import Client, FormerOwners
from .message import ApplicationMessage
from .scheduling.deadlines import Deadlines
from .scheduling.turns import Turns
from .settings import BrokerSettings
from .stats import Stats
from .topics.retained import RetainedMessages
from .topics.tree import SubscriptionTree
from .wills import PendingWill


class StorageError(Exception):
    """The storage can't be read or written; the text says why (in use by another process, damaged, full)."""


class Storage(Protocol):
    """Keeps sessions, retained messages and wills.

    A persistent storage gives sessions and retained messages a journal, which stores each change. A change caused by a
    connection's packet must be durable before that connection is answered, and so comes with its ``Origin``.
    """

    sessions: dict[str, Session]  # by client id [MQTT-3.1.3-2] of both; until they end [MQTT-4.1.0-1] of 3.1.1
    retained: RetainedMessages[ApplicationMessage]
    queues: QueueShares
    deadlines: Deadlines  # of sessions ("s" + client id) and wills ("w" + client id)

    @property
    def is_failing(self) -> bool:
        """Whether writes fail now; meanwhile whatever would have to be stored is refused."""

    def restore(
        self,
        settings: BrokerSettings,
        stats: Stats,
        tree: SubscriptionTree[MessageReceiver],
        owners: FormerOwners,
        turns: Turns,
    ) -> None:
        """Loads what was stored; called once, before anything else. ``owners`` says whose it is where that isn't kept.
        ``turns``: the loop's, for work that takes long.

        Raises:
            StorageError: it can't be read.
        """

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats, *, outlives: bool, owner: str) -> Session:
        """A new session, kept under its client id; ``outlives``: it is to outlive its connection."""

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended."""

    def note_will(self, will: mqtt5.Will, client: Client, origin: Origin | None) -> None:
        """Stores the will of a connected client, to be published by the next start if the broker is killed.

        ``origin``: the connection whose CONNACK waits until the will is stored.
        """

    def leave_will(self, pending: PendingWill, due_us: int) -> None:
        """Keeps the will of a client that is no longer connected, until ``due_us`` (UTC microseconds)."""

    def take_will(self, client_id: str) -> PendingWill | None:
        """Removes a client's will; returns it where its client is no longer connected."""

    def keep_published(self, pending: PendingWill) -> Callable[[], None]:
        """Keeps a will that is published, until what is returned is called: what it says is stored.

        A start that finds one publishes it again: it may come twice, and is not lost.
        """

    def on_sweep(self, now_us: int) -> None:
        """Does regular work; called every ``sweep_interval_s``."""

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy of what it has on disk in ``path``, which must not exist; nothing where it has nothing there.

        Raises:
            StorageError: it could not be made.
        """

    async def close(self) -> None:
        """Writes what isn't written yet, and closes; nothing may be changed afterwards."""


class MemoryStorage:
    """Keeps everything as long as the process lives."""

    is_failing = False

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.queues = QueueShares()
        self.retained: RetainedMessages[ApplicationMessage] = RetainedMessages()
        self.deadlines = Deadlines()
        self._wills: dict[str, PendingWill] = {}

    def restore(
        self,
        settings: BrokerSettings,
        stats: Stats,
        tree: SubscriptionTree[MessageReceiver],
        owners: FormerOwners,
        turns: Turns,
    ) -> None:
        """Does nothing: memory starts empty."""

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats, *, outlives: bool, owner: str) -> Session:
        """A new session, kept under its client id."""
        session = self.sessions[client_id] = Session(
            client_id, settings, stats, owner=owner, share=self.queues.of(owner, settings)
        )
        return session

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended."""
        self.sessions.pop(session.client_id, None)

    def note_will(self, will: mqtt5.Will, client: Client, origin: Origin | None) -> None:
        """Does nothing: the connection has the will as long as the process lives."""

    def leave_will(self, pending: PendingWill, due_us: int) -> None:
        """Keeps the will of a client that is no longer connected, until ``due_us`` (UTC microseconds)."""
        client_id = pending.client.client_id
        self._wills[client_id] = pending
        self.deadlines.set("w" + client_id, due_us)

    def take_will(self, client_id: str) -> PendingWill | None:
        """Removes a client's will; returns it where its client is no longer connected."""
        pending = self._wills.pop(client_id, None)
        if pending is not None:
            self.deadlines.cancel("w" + client_id)
        return pending

    def keep_published(self, pending: PendingWill) -> Callable[[], None]:
        """Does nothing: what is in memory ends with what waits for it."""
        return _nothing

    def on_sweep(self, now_us: int) -> None:
        """Nothing to do."""

    async def checkpoint(self, path: Path) -> None:
        """Nothing to do: nothing is on disk."""

    async def close(self) -> None:
        """Nothing to do."""


def _nothing() -> None:
    pass
