"""The ``Storage`` of a broker in a folder on disk."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import mqtt5

from ..delivery.connection_port import Origin
from ..delivery.queue_share import QueueShares
from ..delivery.routing import MessageReceiver
from ..delivery.session import Session
from ..hooks import Client, FormerOwners
from ..message import ApplicationMessage
from ..scheduling.deadlines import Deadlines
from ..scheduling.turns import Turns
from ..settings import BrokerSettings
from ..stats import Stats
from ..storage import StorageError
from ..topics.names import split_shared
from ..topics.retained import RetainedMessages
from ..topics.tree import SubscriptionTree
from ..wills import PendingWill
from . import keys
from .database import StateDatabase
from .group_commit import GroupCommit
from .image import FORMAT, Image, SessionImage, read_image
from .owner_conversion import drop_others, name_owners
from .records import StoredWill, encode_will
from .retained_records import RetainedRecords
from .session_records import SessionRecords

_ALIVE_US = 5_000_000  # how often the time is stored, which tells after a crash when the broker was killed


def _wall_clock_us() -> int:
    return time.time_ns() // 1000


class DiskStorage:
    """Sessions that outlive their connections, retained messages and wills, kept in ``folder`` by RocksDB.

    Other sessions are in memory only. ``now_us`` is the clock, UTC microseconds.
    """

    def __init__(self, folder: Path, *, now_us: Callable[[], int] = _wall_clock_us) -> None:
        self.sessions: dict[str, Session] = {}
        self.deadlines = Deadlines()
        self._database = StateDatabase(folder)
        self._now_us = now_us
        self._commits = GroupCommit(self._database, now_us=now_us)
        self.retained: RetainedMessages[ApplicationMessage] = RetainedMessages(RetainedRecords(self._commits))
        self.queues = QueueShares()
        self._wills: dict[str, PendingWill] = {}
        self._noted_wills: set[str] = set()  # names (see ``keys``) of the wills that are on disk
        self._numbers = itertools.count(1)
        self._places = itertools.count(1)
        self._alive_us = 0

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed, and none has succeeded since."""
        return self._commits.is_failing

    # The start

    def restore(
        self,
        settings: BrokerSettings,
        stats: Stats,
        tree: SubscriptionTree[MessageReceiver],
        owners: FormerOwners,
        turns: Turns,
    ) -> None:
        """Opens the folder, and loads its sessions, retained messages and wills.

        Raises:
            StorageError: another process has it, or it can't be read.
        """
        image = self._read(owners)
        self._commits.stats, self._commits.turns = stats, turns
        self._commits.on_health = tree.forget_matches
        now_us = self._alive_us = self._now_us()
        last_seen_us = min(image.alive_us or now_us, now_us)
        self._numbers = itertools.count(max((each.number for each in image.sessions), default=0) + 1)
        self._places = itertools.count(image.last_place + 1)
        for key, body in image.body_of.items():
            self._commits.changes.share(key, body)
        for each in image.sessions:
            session = self._restore_session(each, settings, stats, last_seen_us=last_seen_us)
            if session is not None and each.was_unowned:
                drop_others(session, owners)
        self._subscribe_all(tree)
        for message in image.retained:
            self.retained.restore(message.topic.decode(), message)
        for name, will in image.wills.items():
            self._restore_will(name, will, owners.of_client(keys.will_client(name)), last_seen_us)
        for number in image.unused_bodies:
            self._commits.changes.delete(keys.body_key(number))

    def _read(self, owners: FormerOwners) -> Image:
        self._database.open()
        try:
            image = read_image(self._database.items())
            if image.format != FORMAT:  # from now on an older program would misread it
                self._database.commit({keys.VERSION: FORMAT})
            for piece in name_owners(image, owners, self._database.get):
                self._database.commit(piece)
        except StorageError:
            self._database.close()
            raise
        return image

    def _restore_session(
        self, image: SessionImage, settings: BrokerSettings, stats: Stats, *, last_seen_us: int
    ) -> Session | None:
        head = image.head
        if head is None:  # what an ended session has left over
            self._commits.changes.end(image.number)
            return None
        records, owner = self._records(image.number), head.owner or ""
        session = self.sessions[head.client_id] = Session(
            head.client_id, settings, stats, records, owner=owner, share=self.queues.of(owner, settings)
        )
        records.restore(session, image)
        if head.is_connected:
            session.close(last_seen_us)
        if session.expires_us:
            self.deadlines.set("s" + session.client_id, session.expires_us)
        return session

    def _records(self, number: int) -> SessionRecords:
        return SessionRecords(self._commits, number=number, places=self._places)

    def _subscribe_all(self, tree: SubscriptionTree[MessageReceiver]) -> None:
        for session in self.sessions.values():
            for subscription in session.subscriptions.values():
                shared = split_shared(subscription.filter)
                assert shared is not None
                tree.add(shared.filter, shared.group, session, subscription)

    def _restore_will(self, name: str, stored: StoredWill, owner: str, last_seen_us: int) -> None:
        """Restores a will; one of a client that was connected when the broker was killed is due now. [MQTT-3.1.2-8]"""
        due_us, client_id = stored.due_us, keys.will_client(name)
        if due_us is None:
            session = self.sessions.get(client_id)
            due_us = last_seen_us + min(stored.delay_s, session.expiry_s if session is not None else 0) * 1_000_000
        self._wills[name] = pending = stored.pending(client_id, owner)
        self.deadlines.set("w" + name, due_us)
        self._write_will(name, pending, due_us)
        self._commits.later()

    # Sessions

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats, *, outlives: bool, owner: str) -> Session:
        """Makes a new session, on disk if it is to outlive its connection."""
        records = self._records(next(self._numbers)) if outlives else None
        session = self.sessions[client_id] = Session(
            client_id, settings, stats, records, owner=owner, share=self.queues.of(owner, settings)
        )
        return session

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended; ``Session.end`` removes its records."""
        self.sessions.pop(session.client_id, None)

    # Wills

    def note_will(self, will: mqtt5.Will, client: Client, origin: Origin | None) -> None:
        """Stores a connected client's will, so that the next start publishes it if the broker is killed."""
        self._write_will(client.client_id, PendingWill(will, client), None)
        if self.sessions[client.client_id].is_persistent:
            self._commits.wait(origin)
        else:
            self._commits.later()

    def leave_will(self, pending: PendingWill, due_us: int) -> None:
        """Keeps the will of a client that is no longer connected, until ``due_us`` (UTC microseconds)."""
        client_id = pending.client.client_id
        self._wills[client_id] = pending
        self.deadlines.set("w" + client_id, due_us)
        self._write_will(client_id, pending, due_us)
        self._commits.later()

    def _write_will(self, name: str, pending: PendingWill, due_us: int | None) -> None:
        self._noted_wills.add(name)
        self._commits.changes.put(keys.WILL + name.encode(), encode_will(pending.will, pending.client, due_us))

    def take_will(self, client_id: str) -> PendingWill | None:
        """Removes a client's will; returns it where its client is no longer connected."""
        self._forget_will(client_id)
        self.deadlines.cancel("w" + client_id)
        return self._wills.pop(client_id, None)

    def keep_published(self, pending: PendingWill) -> Callable[[], None]:
        """Keeps a will that is published, until what is returned is called: what it says is stored."""
        name = keys.unstored_will(pending.client.client_id, secrets.token_hex(8))
        self._write_will(name, pending, self._now_us())
        self._commits.later()
        return lambda: self._forget_will(name)

    def waiting_wills(self) -> list[tuple[str, PendingWill, int]]:
        """Wills of clients that are not connected, each with the name that ``take_will`` takes, and when it is due."""
        return [(name, pending, self.deadlines.due("w" + name) or 0) for name, pending in self._wills.items()]

    def _forget_will(self, name: str) -> None:
        if name in self._noted_wills:
            self._noted_wills.discard(name)
            self._commits.changes.delete(keys.WILL + name.encode())
            self._commits.later()

    # Time

    def on_sweep(self, now_us: int) -> None:
        """Stores the time every few seconds: if the broker is killed, session expiries count from then on."""
        if self._commits.changes:
            self._commits.later()
        elif now_us - self._alive_us > _ALIVE_US and (self.sessions or self._noted_wills):
            self._alive_us = now_us
            self._commits.changes.put(keys.ALIVE, now_us.to_bytes(8, "big"))
            self._commits.later()

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy in ``path`` as of the last commit, and perhaps of changes that are being committed."""
        await self._commits.checkpoint(path)

    async def close(self) -> None:
        """Commits all changes and closes the database."""
        await self._commits.close()
