"""What the broker keeps and passes on, whoever is connected: sessions, subscriptions, retained messages, wills."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

import mqtt5
from mqtt5 import DisconnectReasonCode

from .acknowledgements import DurableBatch
from .hooks import Client, Hooks, Inbound, MayReceive, PublishGrant
from .message import Message, PublishProperties
from .routing import Router
from .session import Session
from .settings import BrokerSettings
from .stats import Stats
from .storage import Storage
from .topics.names import split_shared
from .topics.tree import Subscription, SubscriptionTree
from .wills import PendingWill, will_properties

log = logging.getLogger(__name__)


class Exchange:
    """The part of a broker that has no sockets."""

    def __init__(
        self, settings: BrokerSettings, hooks: Hooks, storage: Storage, may_receive: MayReceive | None
    ) -> None:
        self.settings = settings
        self.hooks = hooks
        self.stats = Stats()
        self.storage = storage
        self.sessions = storage.sessions
        self.retained = storage.retained
        self.tree = SubscriptionTree()
        self.router = Router(self.tree, may_receive)

    def now_us(self) -> int:
        """UTC microseconds."""
        return time.time_ns() // 1000

    # Sessions

    def open_session(self, client_id: str, *, clean_start: bool, outlives: bool) -> tuple[Session, bool]:
        """The session for a new connection, and whether it was there before.

        ``outlives``: it is to outlive the connection.
        """
        session = self.sessions.get(client_id)
        if session is not None and session.connection is not None:  # [MQTT-3.1.4-3]; [MQTT-3.1.4-2] of 3.1.1
            self.stats.takeovers += 1
            session.connection.close("taken over", reason=DisconnectReasonCode.SESSION_TAKEN_OVER)
            session = self.sessions.get(client_id)
        if session is not None and clean_start:  # [MQTT-3.1.2-4] [MQTT-3.1.4-4]; [MQTT-3.1.2-6] [MQTT-3.1.4-3] of 3.1.1
            self.end_session(session)
            session = None
        self.storage.deadlines.cancel("s" + client_id)
        self.cancel_will(client_id)  # it is back in time [MQTT-3.1.3-9]
        if session is not None:
            return session, True  # [MQTT-3.1.2-5]
        # [MQTT-3.1.2-6]; [MQTT-3.1.2-4] of 3.1.1
        return self.storage.create(client_id, self.settings, self.stats, outlives=outlives), False

    def end_session(self, session: Session) -> None:
        """Forgets a session and all that was to be delivered to it. A will that waits is published. [MQTT-3.1.2-8]"""
        for pattern in list(session.subscriptions):
            self.unsubscribe(session, pattern)
        self.storage.discard(session)
        self.storage.deadlines.cancel("s" + session.client_id)
        session.end()
        self.publish_will(session.client_id)

    def subscribe(self, session: Session, subscription: Subscription) -> None:
        """Adds or replaces a subscription whose filter has been checked."""
        shared = split_shared(subscription.filter)
        assert shared is not None
        session.subscribe(subscription)
        self.tree.add(shared.filter, shared.group, session, subscription)
        self.stats.subscriptions = self.tree.count

    def unsubscribe(self, session: Session, pattern: str) -> bool:
        """Removes a subscription; False where there was none. [MQTT-3.10.4-2] of both"""
        if not session.unsubscribe(pattern):
            return False
        shared = split_shared(pattern)
        assert shared is not None
        self.tree.remove(shared.filter, shared.group, session)
        self.stats.subscriptions = self.tree.count
        return True

    def retain(self, topic: str, message: Message) -> None:
        """Keeps a message for later subscribers; one topic too many is counted and not kept. [MQTT-3.3.1-5] of both"""
        if not self.retained.put(topic, message, limit=self.settings.retained_messages):
            self.stats.drop("too many retained messages")

    def retained_for(self, session: Session, subscription: Subscription, now_us: int) -> Iterable[Message]:
        """The retained messages that a new subscription of this session gets, in no particular order."""
        found = self.retained.match(subscription.filter, now_us)
        may_receive, client_id = self.router.may_receive, session.client_id
        if subscription.no_local:  # [MQTT-3.8.3-3]
            found = [message for message in found if message.publisher != client_id]
        if may_receive is None:
            return found
        return [message for message in found if may_receive(client_id, message.topic.decode())]

    # Wills

    def leave_will(self, will: mqtt5.Will, client: Client, session: Session, now_us: int) -> None:
        """Publishes the will of a connection that has ended, or keeps it until its delay has passed."""
        delay_s = min(will.will_delay_interval, session.expiry_s)
        self.storage.leave_will(PendingWill(will, client), now_us + delay_s * 1_000_000)
        if not delay_s:
            self.publish_will(client.client_id)

    def cancel_will(self, client_id: str) -> None:
        """Forgets the will that waits, if there is one."""
        self.storage.take_will(client_id)

    def publish_will(self, client_id: str) -> None:
        """Publishes the will that waits, if there is one; the hooks are asked as for any publish."""
        pending = self.storage.take_will(client_id)  # once [MQTT-3.1.2-10] of both
        if pending is None:
            return
        will, client = pending
        grant = self.authorize_publish(client, will.topic)
        if grant is None:
            self.stats.publishes_refused += 1
            return
        self.stats.wills_sent += 1
        self.distribute(grant, client, will.payload or b"", int(will.qos), will.retain, will_properties(will))

    def distribute(
        self,
        grant: PublishGrant,
        client: Client | None,
        payload: bytes,
        qos: int,
        retain: bool,
        properties: PublishProperties,
        *,
        publisher: str | None = None,
    ) -> int:
        """Publishes on the server's own behalf; how many sessions it goes to."""
        now_us = self.now_us()
        expiry_s = properties.message_expiry_s
        if client is not None:
            publisher = client.client_id
        message = Message(
            topic=grant.topic.encode(),
            payload=payload,
            qos=qos,
            retain=retain,
            properties=properties.encode(),
            expires_us=0 if expiry_s is None else now_us + expiry_s * 1_000_000,
            publisher=publisher,
        )
        if retain:  # [MQTT-3.1.2-14] [MQTT-3.1.2-15]; [MQTT-3.1.2-16] [MQTT-3.1.2-17] of 3.1.1
            self.retain(grant.topic, message)
        route = self.router.route(grant, message.topic, publisher)
        self.router.deliver(route, [message], now_us)
        if grant.durable and client is not None:
            batch = DurableBatch(client, now_us, None, None)
            batch.add(Inbound(grant.tag, payload, properties.correlation_data), b"")
            self.take(batch)
        return len(route.targets) + len(route.groups)

    # The hooks, asked so that an error of theirs stays theirs

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        """The hook's grant; ``$SYS`` is the broker's own."""
        if topic.startswith("$SYS/") or topic == "$SYS":
            return None
        try:
            return self.hooks.authorize_publish(client, topic)
        except Exception:  # the hook may raise anything, and allows nothing by it
            log.exception("%s: the authorize_publish hook failed", client.client_id)
            return None

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        """The hook's answer; an error refuses."""
        try:
            return self.hooks.authorize_subscribe(client, topic_filter)
        except Exception:  # the hook may raise anything, and allows nothing by it
            log.exception("%s: the authorize_subscribe hook failed", client.client_id)
            return False

    def take(self, batch: DurableBatch) -> None:
        """Hands a batch to the embedding program."""
        self.stats.messages_taken += len(batch.messages)
        try:
            self.hooks.take(batch)
        except Exception:  # the hook may raise anything, and then has not taken the batch
            log.exception("%s: the take hook failed", batch.client.client_id)
            if batch.connection is not None:  # nothing of the batch may be acknowledged
                batch.connection.fail(DisconnectReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, "internal error")
