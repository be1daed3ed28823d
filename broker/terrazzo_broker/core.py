"""The broker core: sessions, subscriptions, retained messages, wills, and the routing of messages; no sockets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import mqtt5
from mqtt5 import DisconnectReasonCode

from .admission.limits import Admission
from .admission.publish_pace import PublishPace
from .asked_hooks import AskedHooks
from .connections import Connections
from .delivery.acknowledgements import DurableBatch
from .delivery.back_pressure import BackPressure
from .delivery.connection_port import Origin, SessionConnection
from .delivery.routing import MessageReceiver, Route, Router
from .delivery.session import Session
from .delivery.unstored_will import UnstoredWill
from .hooks import Client, FormerOwners, Hooks, Inbound, MayReceive, PublishGrant
from .limited_log import limited_logger
from .message import ApplicationMessage, PublishProperties
from .refusals import Cause, OnRefused, Refusal
from .scheduling.turns import Steps, Turns
from .settings import NEVER_EXPIRES_S, NO_LIMIT, BrokerSettings, OwnerLimits
from .stats import Stats
from .storage import Storage
from .tasks import PeerTasks
from .topics.names import split_shared
from .topics.retained_quota import RetainedLimits, RetainedSize
from .topics.tree import SubscriptionTree, TopicSubscription
from .wills import PendingWill, will_properties

log = limited_logger("terrazzo_broker.retained")
_log = logging.getLogger("terrazzo_broker.storage")  # at the start only
_MOST_NAMED = 20

Retainer = Callable[[str, ApplicationMessage], str]
"""Takes what is to be retained on a topic in the broker's place, which is told later what is; why it can't."""

OnFilter = Callable[[str, str, int], None]
"""Is told that a client of an owner has a filter from now on (1), or no more (-1)."""


class BrokerCore:
    """The broker's state and what changes it, used by packet handlers and by ``Broker``.

    ``origin``, where a method takes it, is the connection whose packet causes the change: its answer waits until the
    change is durable.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        hooks: Hooks,
        storage: Storage,
        *,
        may_receive: MayReceive | None,
        owners: FormerOwners,
        on_refused: OnRefused | None = None,
    ) -> None:
        self.settings = settings
        self.stats = Stats()
        self.hooks = AskedHooks(hooks, self.stats, may_receive, on_refused)
        self.storage = storage
        self.sessions = storage.sessions
        self.retained = storage.retained
        self.tree: SubscriptionTree[MessageReceiver] = SubscriptionTree()
        self.router = Router(self.tree, self.hooks.may_receive)
        self.clock = time.monotonic
        self.admission = Admission(settings, self.stats, lambda: self.clock(), self.hooks.tell_refused)
        self.publish_pace = PublishPace(settings.publish_per_second, settings.owner_publish_per_second)
        self.turns = Turns(self.stats)
        self.connections = Connections(self.stats, self.admission, connect_timeout_s=settings.connect_timeout_s)
        self.peer_tasks = PeerTasks(self.stats)
        self.back_pressure = BackPressure(settings.queued_bytes, self.stats, self.clock, _call_later)
        self.reading: SessionConnection | None = None  # whose bytes are handled at this moment
        self.loop_mark = b""  # the encoded user property of messages that have left over a bridge
        self._loop_name = ""
        self.retained.ledger.limits = _retained_limits(settings)
        self._own_limits: dict[str, OwnerLimits] = {}
        storage.restore(settings, self.stats, self.tree, owners, self.turns)
        self._subscribed: Counter[str] = Counter()  # subscriptions by owner
        self.on_filter: OnFilter | None = None
        self.retainer: Retainer | None = None
        for session in self.sessions.values():
            self._subscribed[session.owner] += len(session.subscriptions)
        self._name_excesses()
        self.stats.subscriptions = self.tree.count

    def now_us(self) -> int:
        """UTC microseconds."""
        return time.time_ns() // 1000

    def client(self, client_id: str) -> Client | None:
        """The connected client of this id; None where it is not connected."""
        session = self.sessions.get(client_id)
        return session.connection.client if session is not None and session.connection is not None else None

    # Owners

    def limits_of(self, owner: str) -> OwnerLimits:
        """What an owner's clients may have together."""
        return self._own_limits.get(owner) or self.settings.owner_limits

    def limit_owner(self, owner: str, limits: OwnerLimits | None) -> None:
        """Gives an owner limits of its own from now on; None: those of all. What is there already stays."""
        own, ledger = limits or self.settings.owner_limits, self.retained.ledger
        if limits is None:
            self._own_limits.pop(owner, None)
            ledger.own_limits.pop(owner, None)
        else:
            self._own_limits[owner] = limits
            memory_bytes = self.settings.owner_retained_memory_bytes
            ledger.own_limits[owner] = RetainedSize(own.retained_messages, own.retained_bytes, memory_bytes)
        self.publish_pace.limit_owner(owner, 0 if limits is None else limits.publish_per_second)
        self.storage.queues.limit(owner, own)

    # Bridges

    def mark_bridged(self, name: str, broker_id: str) -> None:
        """Has each message to a bridge marked with a user property; a bridge is who has one of this name in CONNECT."""
        self.loop_mark = PublishProperties(user_properties=((name, broker_id),)).encode()
        self._loop_name = name

    def mark_for(self, user_properties: Iterable[tuple[str, str]]) -> bytes:
        """The encoded mark for messages to a client with these user properties in its CONNECT; empty for no bridge."""
        return self.loop_mark if any(name == self._loop_name for name, _ in user_properties) else b""

    # Sessions

    def open_session(
        self, client_id: str, *, clean_start: bool, outlives: bool, owner: str, origin: Origin | None
    ) -> tuple[Session, bool]:
        """The session for a new connection, and whether it was there before; that of another owner ends.

        ``outlives``: it is to outlive the connection.
        """
        session = self.sessions.get(client_id)
        if session is not None and session.connection is not None:  # [MQTT-3.1.4-3]; [MQTT-3.1.4-2] of 3.1.1
            self.stats.takeovers += 1
            session.connection.close("taken over", reason=DisconnectReasonCode.SESSION_TAKEN_OVER)
            session = self.sessions.get(client_id)
        if session is not None and (
            clean_start or session.owner != owner
        ):  # [MQTT-3.1.2-4] [MQTT-3.1.4-4]; [MQTT-3.1.2-6] [MQTT-3.1.4-3] of 3.1.1
            self.end_session(session, origin)
            session = None
        self.storage.deadlines.cancel("s" + client_id)
        self.storage.take_will(client_id)  # it is back in time [MQTT-3.1.3-9]
        if session is not None:
            return session, True  # [MQTT-3.1.2-5]
        # [MQTT-3.1.2-6]; [MQTT-3.1.2-4] of 3.1.1
        return self.storage.create(client_id, self.settings, self.stats, outlives=outlives, owner=owner), False

    def leave_session(self, session: Session, client: Client, will: mqtt5.Will | None, why: str) -> None:
        """Detaches the session of a connection that has ended: keeps or ends it, publishes or delays the will."""
        now_us = self.now_us()
        session.close(now_us)
        self.stats.clients -= 1
        if will is not None:  # [MQTT-3.1.2-8]; [MQTT-3.1.2-8] [MQTT-3.1.2-12] of 3.1.1
            self._leave_will(will, client, session, now_us)
        else:
            self.storage.take_will(client.client_id)
        if not session.expiry_s:  # and not before [MQTT-4.1.0-1]; [MQTT-3.1.2-6] [MQTT-4.1.0-2] of 3.1.1
            self.end_session(session)
        elif session.is_shared:
            self.let_go(session)
        elif session.expiry_s != NEVER_EXPIRES_S:  # [MQTT-3.1.2-23]
            self.storage.deadlines.set("s" + session.client_id, session.expires_us)
        self.hooks.tell_disconnected(client, why)

    def adopt(self, session: Session) -> None:
        """Has a session of which the state was elsewhere, for a client that is about to be accepted."""
        self.sessions[session.client_id] = session
        self._subscribed[session.owner] += len(session.subscriptions)

    def let_go(self, session: Session) -> None:
        """Has a shared session no more; it goes on for whoever has it next."""
        session.has_ended = True
        self.storage.discard(session)
        self._subscribed[session.owner] -= len(session.subscriptions)
        session.let_go()

    def end_session(self, session: Session, origin: Origin | None = None) -> None:
        """Forgets a session and all that was to be delivered to it. A will that waits is published. [MQTT-3.1.2-8]"""
        session.has_ended = True
        self.storage.discard(session)
        self.storage.deadlines.cancel("s" + session.client_id)
        self.tree.forget_matches(session.owner)
        self.turns.start(session.owner, self._end(session, origin))
        self.publish_will(session.client_id, origin)

    def _end(self, session: Session, origin: Origin | None) -> Steps[None]:
        yield from session.end(origin)
        for pattern in list(session.subscriptions):
            self._forget(session, pattern)
            yield

    # Subscriptions

    def subscribe(self, session: Session, subscription: TopicSubscription) -> None:
        """Adds or replaces a subscription whose filter has been checked."""
        is_new = subscription.filter not in session.subscriptions
        self._subscribed[session.owner] += is_new
        session.subscribe(subscription)
        if session.is_shared:
            return
        self.add_receiver(session, subscription)
        if is_new and self.on_filter is not None:
            self.on_filter(session.owner, subscription.filter, 1)

    def add_receiver(self, receiver: MessageReceiver, subscription: TopicSubscription) -> None:
        """Adds a receiver with a subscription to the tree that messages are routed by."""
        shared = split_shared(subscription.filter)
        assert shared is not None
        self.tree.add(shared.filter, shared.group, receiver, subscription)
        self.stats.subscriptions = self.tree.count

    def may_subscribe(self, owner: str) -> bool:
        """Whether an owner's clients may have one more subscription."""
        if self._subscribed[owner] < self.limits_of(owner).subscriptions:
            return True
        self.stats.limited_subscriptions += 1
        log.warning(
            "the clients of owner %r have %d subscriptions, and may have no more", owner, self._subscribed[owner]
        )
        return False

    def unsubscribe(self, session: Session, pattern: str) -> bool:
        """Removes a subscription; False where there was none. [MQTT-3.10.4-2] of both"""
        if not session.unsubscribe(pattern):
            return False
        self._forget(session, pattern)
        return True

    def _forget(self, session: Session, pattern: str) -> None:
        self._subscribed[session.owner] -= 1
        if session.is_shared:
            return
        shared = split_shared(pattern)
        assert shared is not None
        self.tree.remove(shared.filter, shared.group, session)
        self.stats.subscriptions = self.tree.count
        if self.on_filter is not None:
            self.on_filter(session.owner, pattern, -1)

    # Retained messages

    def retain(self, topic: str, message: ApplicationMessage, origin: Origin | None) -> None:
        """Retains a message; where there may not be more it is counted, told and dropped. [MQTT-3.3.1-5] of both"""
        if not self.settings.retain_available:  # a client of 3.1.1 can't be told
            self.stats.drop("nothing is retained here")
            return
        if self.retainer is None or topic.startswith("$"):
            refusal = self.retained.put(topic, message, origin=origin)
        else:
            refusal = self.retained.refusal(topic, message) or self.retainer(topic, message)
        self.note_unretained(message, refusal)
        if refusal and origin is not None:  # the publish itself goes on: its answer can't say it
            origin.tell_refused(Cause.RETAINED_QUOTA, detail=topic)

    def note_unretained(self, message: ApplicationMessage, refusal: str) -> None:
        """Counts a message that isn't retained because of a limit, and says whose it is."""
        if refusal:
            self.stats.drop(refusal)
            client = message.publisher or "the broker"
            log.warning("%s: what %s publishes is not retained (owner %r)", refusal, client, message.owner)

    def retained_for(self, session: Session, subscription: TopicSubscription) -> Iterator[ApplicationMessage | None]:
        """The retained messages that a new subscription of this session gets, in no particular order, each read when it
        is asked for; and None for each place that was looked at in vain."""
        for found in self.retained.walk(subscription.filter, session.owner):
            is_wanted = found is not None and self._may_have(session, subscription, found)
            yield self.retained.whole(found, self.now_us()) if found is not None and is_wanted else None

    def _may_have(self, session: Session, subscription: TopicSubscription, message: ApplicationMessage) -> bool:
        if subscription.no_local and message.publisher == session.client_id:  # [MQTT-3.8.3-3]
            return False
        may_receive = self.router.may_receive
        return may_receive is None or may_receive(session.client_id, message.topic.decode())

    def _name_excesses(self) -> None:
        """Says who has more than they may: what was stored before a limit stays."""
        for owner in self.storage.queues.over()[:_MOST_NAMED]:
            _log.warning("sessions of owner %r: more messages wait than may; they stay", owner)
        most = self.settings.owner_subscriptions
        for owner in [owner for owner, count in self._subscribed.items() if count > most][:_MOST_NAMED]:
            _log.warning("clients of owner %r: more subscriptions than there may be; they stay", owner)
        for scope, what in self.retained.ledger.excesses()[:_MOST_NAMED]:
            who = dict(zip(("owner", "client"), scope, strict=False)) or "all"
            _log.warning("retained messages of %s: more %s than there may be; they stay", who, what)

    def drop_forbidden(self, session: Session) -> None:
        """Drops what waits for a client that is back on topics that it may not receive by now."""
        may_receive, client_id = self.router.may_receive, session.client_id
        if may_receive is not None and (session.queue or session.inflight):
            session.drop_forbidden(lambda topic: may_receive(client_id, topic.decode()))

    # Wills

    def _leave_will(self, will: mqtt5.Will, client: Client, session: Session, now_us: int) -> None:
        """Publishes the will of a connection that has ended, or keeps it until its delay has passed."""
        delay_s = min(will.will_delay_interval, session.expiry_s)
        self.storage.leave_will(PendingWill(will, client), now_us + delay_s * 1_000_000)
        if not delay_s:
            self.publish_will(client.client_id)

    def publish_will(self, client_id: str, origin: Origin | None = None) -> None:
        """Publishes the will that waits, if there is one; the hooks are asked as for any publish."""
        pending = self.storage.take_will(client_id)  # once [MQTT-3.1.2-10] of both
        if pending is not None:
            self.publish_pending(pending, origin, self.storage.keep_published)

    def publish_pending(
        self,
        pending: PendingWill,
        origin: Origin | None,
        keep_published: Callable[[PendingWill], Callable[[], None]],
    ) -> None:
        """Publishes a will that was taken; ``keep_published``: as that of the storage."""
        will, client = pending  # its client id: of one that a former process published, ``client_id`` is more
        grant = self.hooks.authorize_publish(client, will.topic)
        if grant is None:
            self.stats.publishes_refused += 1
            cause, detail = Cause.PUBLISH_NOT_ALLOWED, f"the will on {will.topic}"
            self.hooks.tell_refused(
                Refusal(cause, client.address, client.client_id, client.owner, 0x87, detail, client.protocol)
            )
            return
        self.stats.wills_sent += 1
        on_stored = keep_published(pending) if grant.durable and int(will.qos) else None
        self.turns.start(client.owner, self._publish_will(pending, grant, origin, on_stored))

    def _publish_will(
        self, pending: PendingWill, grant: PublishGrant, origin: Origin | None, on_stored: Callable[[], None] | None
    ) -> Steps[None]:
        will, client = pending
        properties = will_properties(will)
        route = yield from self.router.route(grant, grant.topic.encode(), client.client_id, client.owner)
        message = self.message(route, will.payload or b"", int(will.qos), will.retain, properties, client.client_id)
        # [MQTT-3.1.2-14] [MQTT-3.1.2-15]; [MQTT-3.1.2-16] [MQTT-3.1.2-17] of 3.1.1
        yield from self.distributing(route, message, self.now_us(), origin)
        if grant.durable:
            batch = DurableBatch(client, self.now_us(), None if on_stored is None else UnstoredWill(on_stored), None)
            batch.add(Inbound(grant.tag, message.payload, properties.correlation_data), b"")
            self.take(batch)

    # Messages

    def message(
        self,
        route: Route,
        payload: bytes,
        qos: int,
        retain: bool,
        properties: PublishProperties,
        publisher: str | None,
    ) -> ApplicationMessage:
        """Makes a message of the broker's own or of a will; its expiry counts from now."""
        expiry_s = properties.message_expiry_s
        return ApplicationMessage(
            topic=route.topic_bytes,
            payload=payload,
            qos=qos,
            retain=retain,
            properties=properties.encode(),
            expires_us=0 if expiry_s is None else self.now_us() + expiry_s * 1_000_000,
            publisher=publisher,
            owner=route.owner,
        )

    def distribute(self, route: Route, message: ApplicationMessage, now_us: int, origin: Origin | None) -> bool:
        """Retains a message if it is to be retained, then hands it to its receivers; False where none had room."""
        if message.retain:
            self.retain(route.topic, message, origin)
        return route.is_unheard or not self.router.deliver(route, [message], now_us, origin)

    def distributing(
        self, route: Route, message: ApplicationMessage, now_us: int, origin: Origin | None
    ) -> Steps[bool]:
        """``distribute`` in steps."""
        if message.retain:
            self.retain(route.topic, message, origin)
        return not (yield from self.router.delivering(route, [message], now_us, origin))

    def take(self, batch: DurableBatch) -> None:
        """Hands a batch to the embedding program; where that fails, nothing of it may be acknowledged."""
        if not self.hooks.take(batch) and batch.connection is not None:
            batch.connection.tell_refused(Cause.INTERNAL_ERROR, 0x83)
            batch.connection.fail(DisconnectReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, "internal error")


def _retained_limits(settings: BrokerSettings) -> RetainedLimits:
    of_owner = (settings.owner_retained_messages, settings.owner_retained_bytes, settings.owner_retained_memory_bytes)
    return RetainedLimits(
        broker=RetainedSize(settings.retained_messages, settings.retained_bytes, settings.retained_memory_bytes),
        owner=RetainedSize(*of_owner),
        client=RetainedSize(settings.client_retained_messages, settings.client_retained_bytes, NO_LIMIT),
    )


def _call_later(delay_s: float, call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(delay_s, call)
