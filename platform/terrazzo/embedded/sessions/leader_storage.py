"""``LeaderStorage``: the storage of a leader's broker. Sessions and wills are in the log, its folder has the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mqtt5

from terrazzo.embedded.sessions.storage import LogStorage
from terrazzo_broker.delivery.connection_port import Origin
from terrazzo_broker.delivery.routing import MessageReceiver
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.hooks import Client, FormerOwners
from terrazzo_broker.persistence import DiskStorage
from terrazzo_broker.scheduling.turns import Turns
from terrazzo_broker.settings import BrokerSettings
from terrazzo_broker.stats import Stats
from terrazzo_broker.topics.tree import SubscriptionTree
from terrazzo_broker.wills import PendingWill


class LeaderStorage:
    """Sessions and wills as those of a front (``log``); what is retained, and what of sessions was kept here before
    nodes shared them, in ``folder``."""

    def __init__(self, log: LogStorage, folder: DiskStorage) -> None:
        self._log = log
        self._folder = folder
        self.sessions, self.queues, self.deadlines = log.sessions, log.queues, log.deadlines
        self.retained = folder.retained

    @property
    def is_failing(self) -> bool:
        """Whether the log, or the disk, takes nothing now."""
        return self._log.is_failing or self._folder.is_failing

    def restore(
        self,
        settings: BrokerSettings,
        stats: Stats,
        tree: SubscriptionTree[MessageReceiver],
        owners: FormerOwners,
        turns: Turns,
    ) -> None:
        """Opens the folder, and loads what is retained there; raises as ``DiskStorage.restore``. Its sessions stand in
        the tree until they are moved (``FormerSessions``)."""
        self._folder.restore(settings, stats, tree, owners, turns)

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats, *, outlives: bool, owner: str) -> Session:
        """A new session, in the log if it is to outlive its connection."""
        return self._log.create(client_id, settings, stats, outlives=outlives, owner=owner)

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended, or goes on elsewhere."""
        self._log.discard(session)

    def note_will(self, will: mqtt5.Will, client: Client, origin: Origin | None) -> None:
        """Has the log keep a connected client's will."""
        self._log.note_will(will, client, origin)

    def leave_will(self, pending: PendingWill, due_us: int) -> None:
        """Keeps the will of a client that is no longer connected, until ``due_us`` (UTC microseconds)."""
        self._log.leave_will(pending, due_us)

    def take_will(self, client_id: str) -> PendingWill | None:
        """Removes a client's will; returns it where its client is no longer connected."""
        return self._log.take_will(client_id)

    def keep_published(self, pending: PendingWill) -> Callable[[], None]:
        """Keeps a will that is published, until what is returned is called."""
        return self._log.keep_published(pending)

    def on_sweep(self, now_us: int) -> None:
        """Does the regular work of both."""
        self._log.on_sweep(now_us)
        self._folder.on_sweep(now_us)

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy of the folder in ``path``."""
        await self._folder.checkpoint(path)

    async def close(self) -> None:
        """Waits a moment until the log has all, and closes the folder."""
        await self._log.close()
        await self._folder.close()
