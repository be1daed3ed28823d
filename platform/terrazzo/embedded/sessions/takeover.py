"""``SessionTakeover``: has a client's session, and its will, before it is let in, wherever they were."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from mqtt5 import DisconnectReasonCode

from terrazzo.embedded.sessions.record_writer import RecordWriters
from terrazzo.embedded.sessions.storage import LogStorage
from terrazzo.embedded.sessions.view import SessionView
from terrazzo.ports.stream import Logged, LogUnavailable, LogUnusable, RecordChanged, StateLog
from terrazzo.replication.node_message import NodeMessageDamaged
from terrazzo.replication.session_record import (
    SESSION,
    WILL,
    SessionRecord,
    WillRecord,
    decode_session,
    decode_will,
    encode_session,
    encode_will,
)
from terrazzo_broker.core import BrokerCore
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.refusals import Cause

Opened = TypeVar("Opened", SessionRecord, WillRecord)

_HANDOVER_S = 2.0  # for a node that lives to write what it knows last
_LOOK_S = 0.05
_UNUSED_S = 15.0  # after which a session is let go whose client was not let in
_MOST_TRIES = 20
_REMOVED_S = 3_600.0

IsAlive = Callable[[str, int], Awaitable[bool]]
"""Whether this start of a node may still have connections. Raises LogUnavailable."""

PublishWill = Callable[[WillRecord, int], None]
"""Publishes a will that this node has claimed, by the message of this number."""


class SessionTakeover:
    """Takes over sessions for a broker."""

    def __init__(
        self,
        log: StateLog,
        writers: RecordWriters,
        storage: LogStorage,
        view: SessionView,
        *,
        own: tuple[str, int],
        is_alive: IsAlive,
        publish_will: PublishWill,
        now_us: Callable[[], int],
    ) -> None:
        self._log = log
        self._writers = writers
        self._storage = storage
        self._view = view
        self._own = own
        self._is_alive = is_alive
        self._publish_will = publish_will
        self._now_us = now_us
        self._core: BrokerCore | None = None

    def attach(self, core: BrokerCore) -> None:
        """Names the broker, once."""
        self._core = core

    async def take(self, client_id: str, *, clean: bool, owner: str) -> None:
        """Has a client's session here, if it has one that goes on. ``clean``: it begins a new one.

        Raises:
            LogUnavailable, LogUnusable, LogFull: it isn't known whether there is one.
        """
        core = self._core
        assert core is not None  # attached
        live = core.sessions.get(client_id)
        if live is not None and live.is_shared and live.connection is not None:
            core.stats.takeovers += 1
            live.connection.tell_refused(Cause.TAKEN_OVER, DisconnectReasonCode.SESSION_TAKEN_OVER)
            live.connection.close("taken over", reason=DisconnectReasonCode.SESSION_TAKEN_OVER)
        writer = self._storage.writer(client_id)
        writer.is_held = True
        try:
            await writer.idle()
            await self._storage.wills.written(client_id)
            for _ in range(_MOST_TRIES):
                try:
                    session, will = await asyncio.gather(self._session(client_id), self._will(client_id))
                    ends = clean or session[1] is None or self._is_over(session[1], owner)
                    last = await self._take_will(client_id, *will, ends=ends)
                    await self._take_session(core, client_id, *session, ends=ends)
                    await self._storage.wills.written(client_id)  # what was under way is behind that one, or refused
                    self._storage.wills.begin(client_id, last)  # at the end, as what isn't gone on with is forgotten
                    return
                except RecordChanged:
                    continue
        finally:
            writer.is_held = False
        raise LogUnavailable("the session is changed by others all the while")

    def _is_over(self, record: SessionRecord, owner: str) -> bool:
        return record.owner != owner or 0 < record.expires_us <= self._now_us()

    # What is in the log

    async def _session(self, client_id: str) -> tuple[int, SessionRecord | None]:
        """The number of the session's message, and what it says, as its last node has left it."""

        def is_open(record: SessionRecord) -> bool:
            return bool(record.node)

        return await self._left((SESSION, client_id), decode_session, is_open)

    async def _will(self, client_id: str) -> tuple[int, WillRecord | None]:
        """The same of the will."""

        def is_open(record: WillRecord) -> bool:
            return not record.due_us and (record.node, record.epoch) != self._own

        return await self._left((WILL, client_id), decode_will, is_open)

    async def _left(
        self, key: tuple[str, str], decode: Callable[[bytes], Opened], is_open: Callable[[Opened], bool]
    ) -> tuple[int, Opened | None]:
        ends_s = asyncio.get_running_loop().time() + _HANDOVER_S
        while True:
            found = await self._log.get(key)
            if found is None or not found.body:
                return (0 if found is None else found.sequence), None
            record = _decoded(found, decode)
            if not is_open(record) or asyncio.get_running_loop().time() > ends_s:
                return found.sequence, record
            if (record.node, record.epoch) != self._own and not await self._is_alive(record.node, record.epoch):
                return found.sequence, record
            await asyncio.sleep(_LOOK_S)

    async def _replace(self, key: tuple[str, str], body: bytes, last: int) -> int:
        return await self._log.replace(
            key, body, last=last, message_id=self._writers.new_id(), lasts_s=0.0 if body else _REMOVED_S
        )

    # The will

    async def _take_will(self, client_id: str, last: int, record: WillRecord | None, *, ends: bool) -> int:
        """The will of an earlier connection is published, or cancelled as its client is back in time; the number of
        the message that is there then."""
        is_own = record is not None and (record.node, record.epoch) == self._own
        if record is not None and (not is_own or record.due_us):
            key = WILL, client_id
            self._storage.wills.drop(client_id)
            is_due = not record.delay_s or ends or 0 < record.due_us <= self._now_us()
            if record.is_claimed and await self._is_alive(record.node, record.epoch):
                is_due = False  # it is being published
            if is_due:
                node, epoch = self._own
                claimed = msgspec.structs.replace(record, node=node, epoch=epoch, is_claimed=True)
                last = await self._replace(key, encode_will(claimed), last)
                self._publish_will(claimed, last)
            else:
                last = await self._replace(key, b"", last)
        return last

    # The session

    async def _take_session(
        self, core: BrokerCore, client_id: str, last: int, record: SessionRecord | None, *, ends: bool
    ) -> None:
        writer = self._storage.writer(client_id)
        if record is None:
            writer.begin(last)
            return
        if ends:
            last = await self._replace((SESSION, client_id), b"", last)
            self._view.on_record(client_id, last, None)
            self._storage.purge(client_id, self._view.last + 1)
            writer.begin(last)
            return
        places = {identifier: place for identifier, place in record.sent if place}
        found = await self._storage.feeder.read_places(places)
        node, epoch = self._own
        claimed = msgspec.structs.replace(record, node=node, epoch=epoch, expires_us=0)
        last = await self._replace((SESSION, client_id), encode_session(claimed), last)
        writer.begin(last)
        session = self._storage.new_session(client_id, core.settings, core.stats, record.owner, record.generation)
        sent: dict[int, ApplicationMessage | None] = {
            identifier: found.get(identifier) for identifier, place in record.sent if not place or identifier in found
        }
        session.restore(claimed, sent)
        self._view.on_record(client_id, last, claimed)
        core.adopt(session)

        def let_go() -> None:
            if core.sessions.get(client_id) is session and session.connection is None:
                session.close(self._now_us())
                core.let_go(session)

        asyncio.get_running_loop().call_later(_UNUSED_S, let_go)


def _decoded(found: Logged, decode: Callable[[bytes], Opened]) -> Opened:
    try:
        return decode(found.body)
    except NodeMessageDamaged as error:
        raise LogUnusable(str(error)) from None
