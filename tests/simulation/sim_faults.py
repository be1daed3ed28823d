"""Faults planted in the platform to see that the simulation finds them: each could be somebody's mistake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import sqlalchemy as sa

from terrazzo.commands.journal import CommandJournal
from terrazzo.database.tables.registry import COMMAND
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.ports.bus import DeliveryFate
from terrazzo.ports.store import NO_NOTES, StoreFull
from terrazzo_broker.delivery.session import Received, Session
from terrazzo_broker.persistence.disk_storage import DiskStorage
from terrazzo_broker.persistence.group_commit import GroupCommit
from terrazzo_broker.persistence.retained_records import RetainedRecords
from terrazzo_broker.persistence.session_records import SessionRecords

Patch = tuple[Any, str, Any]


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


def acknowledged_before_the_commit() -> Sequence[Patch]:
    """Reports are acknowledged when they are decoded, not when they are stored."""
    store, settle = IngestPipeline._store_group, CommitGroup.settle

    async def early(self: Any, group: CommitGroup) -> None:
        settle(group)
        await store(self, group)

    return [(IngestPipeline, "_store_group", early), (CommitGroup, "settle", _nothing)]


def acknowledged_on_a_full_disk() -> Sequence[Patch]:
    """A store that is full counts as one that has taken the records."""
    append = IngestPipeline._append

    async def careless(self: Any, group: Any, records: Any, notes: Any) -> Any:
        try:
            await self._store.append(records, notes=notes)
        except StoreFull:
            return []
        return await append(self, group, [], NO_NOTES)

    return [(IngestPipeline, "_append", careless)]


def an_event_doubled() -> Sequence[Patch]:
    """What a start finds noted is written, whether it was written before or not."""

    async def again(self: Any, batches: Any) -> Any:
        async with self._database.writing() as connection:
            before = await self._mark(connection)
            happened = await self._write(connection, [effect for _, some in batches for effect in some])
            await self._set_mark(connection, before, max(seq for seq, _ in batches))
        return happened

    async def none(_self: Any) -> int:
        return 0

    return [(EffectWriter, "apply", again), (EffectWriter, "applied", none)]


def an_event_lost() -> Sequence[Patch]:
    """Notes of effects are stored after the records, not with them."""
    append = IngestPipeline._append

    async def torn(self: Any, group: Any, records: Any, notes: Any) -> Any:
        left = await append(self, group, records, NO_NOTES)
        if not left and notes:
            await asyncio.sleep(0.2)
            await self._store.append([], notes=notes)
        return left

    return [(IngestPipeline, "_append", torn)]


def an_order_swapped() -> Sequence[Patch]:
    """A commit stores its records from the last to the first."""
    records = CommitGroup.all_records
    return [(CommitGroup, "all_records", lambda self: list(records(self))[::-1])]


def a_will_lost() -> Sequence[Patch]:
    """The will of a connected client is in memory alone."""
    return [(DiskStorage, "note_will", _nothing)]


def a_retained_message_lost() -> Sequence[Patch]:
    """Retained messages are in memory alone."""
    return [(RetainedRecords, "kept", _nothing)]


def a_queued_message_lost() -> Sequence[Patch]:
    """A session's queue is in memory alone."""
    return [(SessionRecords, "queued", _nothing)]


def a_message_doubled_at_qos_2() -> Sequence[Patch]:
    """Identifiers of QoS 2 that came are forgotten with the connection."""
    return [
        (Session, "takes_as_new", lambda self, identifiers, *, version: True),
        (Session, "received", lambda self, identifier: Received.NEW),
    ]


def a_queue_lost_at_takeover() -> Sequence[Patch]:
    """A connection that continues a session is not sent again what the one before did not acknowledge."""
    open_session = Session.open

    def forgetful(self: Any, window: int) -> None:
        self.inflight.clear()
        open_session(self, window)

    return [(Session, "open", forgetful)]


def synced_after_the_answer() -> Sequence[Patch]:
    """The broker answers when its storage has written, and syncs some time later."""

    def early(self: Any, batch: Any) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        self._database.write(batch.values, batch.ranges)
        loop.call_later(1.0, self._database.sync)
        done: asyncio.Future[None] = loop.create_future()
        done.set_result(None)
        return done

    return [(GroupCommit, "_write", early)]


def a_command_told_delivered() -> Sequence[Patch]:
    """A command counts as delivered when it is sent."""
    send = EmbeddedBus.send

    def hopeful(self: Any, uid: str, payload: bytes, **more: Any) -> bool:
        on_fate = more.pop("on_fate")
        sent = send(self, uid, payload, on_fate=_nothing, **more)
        if sent:
            on_fate(DeliveryFate.DELIVERED)
        return sent

    return [(EmbeddedBus, "send", hopeful)]


def a_journal_entry_lost() -> Sequence[Patch]:
    """A request is answered with records that the journal does not keep."""
    add = CommandJournal.add_requests

    async def rolled_back(self: Any, given: Any, **more: Any) -> Any:
        added = await add(self, given, **more)
        async with self._database.writing() as connection:
            uids = [row["uid"] for of_request in added for row, _ in of_request]
            await connection.execute(sa.delete(COMMAND).where(COMMAND.c.uid.in_(uids)))
        return added

    return [(CommandJournal, "add_requests", rolled_back)]


FAULTS: dict[str, Callable[[], Sequence[Patch]]] = {
    made.__name__: made
    for made in (
        acknowledged_before_the_commit,
        acknowledged_on_a_full_disk,
        an_event_doubled,
        an_event_lost,
        an_order_swapped,
        a_will_lost,
        a_retained_message_lost,
        a_queued_message_lost,
        a_message_doubled_at_qos_2,
        a_queue_lost_at_takeover,
        synced_after_the_answer,
        a_command_told_delivered,
        a_journal_entry_lost,
    )
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Meanwhile the platform has the fault of this name; empty: none."""
    with ExitStack() as stack:
        for where, attribute, instead in FAULTS[name]() if name else ():
            stack.enter_context(mock.patch.object(where, attribute, instead))
        yield
