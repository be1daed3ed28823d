"""The broker: what an embedding program starts, stops and speaks through."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from mqtt5 import ConnAckReasonCode, DisconnectReasonCode

from .admission import Admission, Refusal
from .codec.publish import PublishEncoder
from .codec.reasons import disconnect_reason
from .connection import Connection
from .exchange import Exchange
from .handlers.connect import conclude
from .hooks import Client, Delivery, Hooks, MayReceive, PublishGrant, Refuse, Verdict
from .listeners.listening import Listening
from .local_session import LocalSession
from .message import Message, PublishProperties, TrackedMessage
from .outbound import Outbound
from .session import Session
from .settings import NEVER_EXPIRES_S, BrokerSettings
from .state import Hold, State
from .storage import MemoryStorage, Storage
from .sweep import sweep
from .sys_topics import sys_topics
from .topics.names import matches
from .topics.tree import Subscription

log = logging.getLogger(__name__)

_PLAIN = {4: PublishEncoder(4), 5: PublishEncoder(5)}


class Broker(Listening, Exchange):
    """An MQTT 3.1.1 and 5.0 broker on the running event loop.

    ``hooks`` decide everything; ``stats`` counts. All methods are called on the loop. ``may_receive`` narrows who is
    sent what within their subscriptions.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        hooks: Hooks,
        storage: Storage | None = None,
        *,
        may_receive: MayReceive | None = None,
    ) -> None:
        Listening.__init__(self)
        Exchange.__init__(self, settings, hooks, storage if storage is not None else MemoryStorage(), may_receive)
        self.admission = Admission(settings, self.stats)
        self.connections: set[Connection] = set()
        self.intake_paused = False
        self.loop_mark = b""  # the encoded user property of messages that have left over a bridge
        self._loop_name = ""
        self.clock = time.monotonic
        self._started_s = self.clock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._dirty: list[Outbound] = []
        self._closing = False
        self._drained = asyncio.Event()  # closing, and no connection left
        self.storage.restore(settings, self.stats, self.tree)
        self.stats.subscriptions = self.tree.count

    # Life

    def on_listening(self) -> None:
        """The first listener has been opened."""
        self._spawn(self._tick(), "broker sweep")

    async def close(self, timeout_s: float) -> None:
        """Stops accepting, says goodbye (v5: 0x8B), flushes, closes; what hasn't gone by ``timeout_s`` is cut off."""
        self._closing = True
        self.stop_listening()
        for connection in list(self.connections):
            connection.close("server shutting down", reason=DisconnectReasonCode.SERVER_SHUTTING_DOWN)
        if self.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), timeout_s)
        for connection in list(self.connections):
            connection.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.finish_listening()
        await self.storage.close()

    def pause_intake(self) -> None:
        """Stops reading from all sockets, those still to come included."""
        self.intake_paused = True
        for connection in self.connections:
            connection.hold(Hold.INTAKE)

    def resume_intake(self) -> None:
        """Reads again."""
        self.intake_paused = False
        for connection in list(self.connections):
            connection.release(Hold.INTAKE)

    # What the embedding program sends and asks

    def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int = 0,
        retain: bool = False,
        properties: PublishProperties | None = None,
        publisher: str | None = None,
    ) -> int:
        """Publishes on the server's own behalf, without asking the hooks; how many sessions it goes to.

        ``publisher``: whose no-local subscriptions don't count.
        """
        given = properties or PublishProperties()
        return self.distribute(PublishGrant(topic), None, payload, qos, retain, given, publisher=publisher)

    def subscribe_local(self, name: str, filters: Mapping[str, int], take: Callable[[Message], bool]) -> None:
        """Hands ``take`` each message that a filter matches, at most at the filter's QoS, its retain flag kept.

        Messages published as ``publisher=name`` are left out. ``take`` is called on the loop before the publisher is
        answered; False says that there is no room.
        """
        session = LocalSession(name, self.settings, self.stats, take=take)
        for pattern, qos in filters.items():
            self.subscribe(session, Subscription(pattern, qos, no_local=True, retain_as_published=True))

    def mark_bridged(self, name: str, broker_id: str) -> None:
        """Gives each message to a client that is a bridge this user property, and drops publishes that come back with
        it. A client is a bridge if its CONNECT has a user property of this name."""
        self.loop_mark = PublishProperties(user_properties=((name, broker_id),)).encode()
        self._loop_name = name

    def mark_for(self, user_properties: Iterable[tuple[str, str]]) -> bytes:
        """What each message to a client with these user properties in its CONNECT gets."""
        return self.loop_mark if any(name == self._loop_name for name, _ in user_properties) else b""

    def send(
        self,
        client_id: str,
        topic: str,
        payload: bytes,
        *,
        correlation_data: bytes | None = None,
        response_topic: str | None = None,
        on_outcome: Delivery,
    ) -> bool:
        """Sends at QoS 1 to exactly this client; False, and nothing happens, unless it is connected and has a
        subscription that matches at QoS 1 or 2. ``on_outcome`` follows once, perhaps only after the client has come
        back to its session and has been sent the message again."""
        session = self.sessions.get(client_id)
        connection = session.connection if session is not None else None
        if session is None or connection is None or not _may_receive(session, topic):
            return False
        properties = PublishProperties(correlation_data=correlation_data, response_topic=response_topic)
        message = TrackedMessage(
            topic=topic.encode(), payload=payload, qos=1, properties=properties.encode(), on_outcome=on_outcome
        )
        return connection.send_each([message], self.now_us()) is None

    def disconnect(self, client_id: str, reason: int, *, end_session: bool = False) -> bool:
        """Ends a client's connection, with a reason code (0x98, ...) in MQTT 5; False where it has none."""
        session = self.sessions.get(client_id)
        if session is None:
            return False
        connection = session.connection
        if connection is not None:
            code = disconnect_reason(reason)
            connection.close(f"disconnected by the server: {code.name.lower()}", reason=code)
        if end_session and self.sessions.get(client_id) is session:
            self.end_session(session)
        return connection is not None

    def client(self, client_id: str) -> Client | None:
        """The connected client of this id."""
        session = self.sessions.get(client_id)
        return session.connection.client if session is not None and session.connection is not None else None

    def clients(self) -> Iterable[Client]:
        """All connected clients."""
        return [each.client for each in self.connections if each.client is not None and each.state is State.OPEN]

    def forget_grants(self, client_id: str | None = None) -> None:
        """Has publishes authorized anew, of one client or of all."""
        if client_id is None:
            for connection in self.connections:
                connection.forget_grants()
        elif (session := self.sessions.get(client_id)) is not None and session.connection is not None:
            session.connection.forget_grants()

    # What connections ask of the broker

    def plain_encoder(self, version: int) -> PublishEncoder:
        """The encoder that all clients of a version without special wishes share."""
        return _PLAIN[version]

    def flush_soon(self, connection: Outbound) -> None:
        """Writes what the connection has collected at the end of this turn of the loop."""
        if not self._dirty:
            asyncio.get_running_loop().call_soon(self._flush_all)
        self._dirty.append(connection)

    def _flush_all(self) -> None:
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            connection.dirty = False
            connection.flush()

    def on_socket(self, connection: Connection) -> None:
        """A connection has been accepted."""
        self.connections.add(connection)
        self.stats.accepted += 1
        self.stats.connections += 1
        has_room = connection.is_half_open or self.admission.enter(connection.address)
        connection.is_half_open = True
        if self._closing or not has_room or len(self.connections) > self.settings.connections + 1024:
            connection.transport.abort()
        elif self.intake_paused:
            connection.hold(Hold.INTAKE)

    def on_socket_closed(self, connection: Connection) -> None:
        """A socket is gone."""
        self.connections.discard(connection)
        self.stats.connections -= 1
        self._on_login_over(connection)
        if self._closing and not self.connections:
            self._drained.set()

    def _on_login_over(self, connection: Connection) -> None:
        if connection.is_half_open:
            connection.is_half_open = False
            self.admission.leave(connection.address)

    def admit(self, connection: Connection, client_id: str) -> Refusal | None:
        """Whether there is room for one more client now; None is yes."""
        return self.admission.admit(connection.gate, self.clock(), takes_over=self.client(client_id) is not None)

    def decide(self, connection: Connection, question: Awaitable[Verdict]) -> None:
        """Waits for the hooks' verdict beside everything else."""
        connection.is_deciding = True
        self._spawn(self._decide(connection, question), f"authenticate {connection}")

    async def _decide(self, connection: Connection, question: Awaitable[Verdict]) -> None:
        try:
            verdict = await question
        except Exception:  # the hook may raise anything, and lets nobody in by it
            log.exception("%s: the authenticate hook failed", connection)
            verdict = Refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, "authentication is not available")
        connection.is_deciding = False
        self.storage.active = connection
        try:
            conclude(connection, verdict)
        except Exception:  # a fault of ours ends this connection alone
            log.exception("%s: internal error", connection)
            connection.close("internal error", reason=DisconnectReasonCode.UNSPECIFIED_ERROR)
        finally:
            self.storage.active = None

    def _spawn(self, work: Awaitable[None], name: str) -> None:
        task = asyncio.ensure_future(work)
        if isinstance(task, asyncio.Task):
            task.set_name(name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # What the hooks are told

    def on_connected(self, connection: Connection) -> None:
        """A CONNACK has gone out."""
        assert connection.client is not None
        self.stats.connects += 1
        self.stats.clients += 1
        self._on_login_over(connection)
        self._tell(self.hooks.on_connected, connection.client)
        if connection.client.filters:
            self.on_subscribed(connection.client, sorted(connection.client.filters))

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """Filters were granted or restored."""
        self._tell(self.hooks.on_subscribed, client, filters)

    def on_connection_ended(self, connection: Connection, why: str) -> None:
        """A connection is over: its session waits or ends, its will goes out or waits."""
        session, client = connection.session, connection.client
        if session is None or client is None or session.connection is not connection:
            return
        now_us = self.now_us()
        session.close(now_us)
        connection.session = None
        self.stats.clients -= 1
        if connection.will is not None:  # [MQTT-3.1.2-8]; [MQTT-3.1.2-8] [MQTT-3.1.2-12] of 3.1.1
            self.leave_will(connection.will, client, session, now_us)
        else:
            self.cancel_will(client.client_id)
        if not session.expiry_s:  # and not before [MQTT-4.1.0-1]; [MQTT-3.1.2-6] [MQTT-4.1.0-2] of 3.1.1
            self.end_session(session)
        elif session.expiry_s != NEVER_EXPIRES_S:  # [MQTT-3.1.2-23]
            self.storage.deadlines.set("s" + session.client_id, session.expires_us)
        self._tell(self.hooks.on_disconnected, client, why)

    def _tell(self, hook: object, *arguments: object) -> None:
        assert callable(hook)
        try:
            hook(*arguments)
        except Exception:  # the hook may raise anything; it is told, not asked
            log.exception("a hook failed")

    # Time

    async def _tick(self) -> None:
        next_sys_s = self.clock()
        while True:
            try:
                sweep(self)
            except Exception:  # without sweeps nothing would expire or time out any more
                log.exception("the sweep failed; it goes on")
            if self.settings.sys_interval_s and self.clock() >= next_sys_s:
                next_sys_s = self.clock() + self.settings.sys_interval_s
                self._publish_sys()
            await asyncio.sleep(self.settings.sweep_interval_s)

    def _publish_sys(self) -> None:
        figures = sys_topics(
            self.stats,
            uptime_s=self.clock() - self._started_s,
            sessions=len(self.sessions),
            retained=self.retained.count,
        )
        for topic, value in figures:
            self.publish(topic, value.encode(), retain=True)


def _may_receive(session: Session, topic: str) -> bool:
    return any(
        each.qos and not each.filter.startswith("$share/") and matches(each.filter, topic)
        for each in session.subscriptions.values()
    )
