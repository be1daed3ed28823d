"""Routes messages: finds the receivers of a topic, and hands each its messages in the form that it subscribed to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..codec.wire import encode_length, parse_frame
from ..hooks import MayReceive, PublishGrant
from ..message import ApplicationMessage
from ..topics.owners import hears
from ..topics.tree import SharedGroup, SubscriptionTree, TopicSubscription
from .connection_port import Origin, SessionConnection
from .encoder import Rendered


class MessageReceiver(Protocol):
    """A subscriber: a client's session, or a callback of the embedding program."""

    @property
    def client_id(self) -> str:
        """The client id, or the local subscriber's name."""
        ...

    @property
    def owner(self) -> str:
        """Whose messages it hears."""
        ...

    @property
    def connection(self) -> SessionConnection | None:
        """Where messages are sent; None: they are queued."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it belongs to the embedding program."""
        ...

    @property
    def is_persistent(self) -> bool:
        """Whether its queue is on disk."""
        ...

    def enqueue(self, message: ApplicationMessage, origin: Origin | None) -> bool:
        """Queues a message; False: there is no room."""
        ...


DeliveryOptions = tuple[int, bool, bytes]
"""The granted QoS, Retain As Published, and the encoded subscription identifiers. MQTT, section 3.8.3.1."""

Fan = tuple[bool, bool, tuple[tuple[MessageReceiver, DeliveryOptions], ...]]
"""A fan-out, equal in routes whose publishes can be delivered together: durable, raw, receivers with their options."""

_FANS = 10_000  # fan-outs cached at a time


class Target:
    """One receiver that a topic matches, its overlapping subscriptions merged into one copy at the highest QoS.

    [MQTT-3.3.4-2]; [MQTT-3.3.5-1] of 3.1.1
    """

    __slots__ = ("options", "session")

    def __init__(self, session: MessageReceiver, subscriptions: Sequence[TopicSubscription]) -> None:
        self.session = session
        self.options: DeliveryOptions = (
            max(each.qos for each in subscriptions),
            any(each.retain_as_published for each in subscriptions),
            # [MQTT-3.3.4-3] [MQTT-3.3.4-4] [MQTT-3.3.4-5]
            b"".join(b"\x0b" + encode_length(each.identifier) for each in subscriptions if each.identifier),
        )


class Route:
    """The receivers of one client's publishes on one topic, found once and cached by its connection.

    ``owner``: whose messages they are. ``is_raw``: a QoS 0 publish can be sent as the bytes that came in.
    ``is_unheard``: there are no receivers. ``fan``: the same object in routes whose publishes can be delivered
    together; None for a shared subscription.
    """

    __slots__ = ("durable", "fan", "groups", "is_raw", "is_unheard", "owner", "tag", "targets", "topic", "topic_bytes")

    def __init__(
        self,
        grant: PublishGrant,
        owner: str,
        sent_as: bytes,
        targets: list[Target],
        groups: list[SharedGroup[MessageReceiver]],
    ) -> None:
        self.topic = grant.topic
        self.owner = owner
        self.topic_bytes = grant.topic.encode()
        self.durable = grant.durable
        self.tag: Any = grant.tag
        self.targets = targets
        self.groups = groups
        self.is_unheard = not targets and not groups
        self.is_raw = not groups and sent_as == self.topic_bytes and not any(each.options[2] for each in targets)
        self.fan: Fan | None = None

    @property
    def is_stored(self) -> bool:
        """Whether a receiver's session is on disk."""
        sessions = [target.session for target in self.targets if target.options[0]]
        sessions.extend(member for group in self.groups for member in group.members)
        return any(session.is_persistent for session in sessions)


class Router:
    """Finds the receivers of messages and hands the messages to their sessions.

    A message goes to receivers of its owner alone; those of ``EVERYBODY`` go to all.
    ``may_receive``: asked with a client id and a topic, once a route; None: every subscriber may.
    """

    __slots__ = ("_epoch", "_fans", "may_receive", "tree")

    def __init__(self, tree: SubscriptionTree[MessageReceiver], may_receive: MayReceive | None = None) -> None:
        self.tree = tree
        self.may_receive = may_receive
        self._fans: dict[Fan, Fan] = {}  # of the tree's epoch
        self._epoch = 0

    def route(self, grant: PublishGrant, sent_as: bytes, publisher: str | None, owner: str) -> Route:
        """The route of publishes by ``publisher`` (a client id); ``sent_as``: the topic in its packets, UTF-8.

        ``owner``: whose the publisher is, and with it the messages unless the grant says otherwise.
        """
        owner = owner if grant.owner is None else grant.owner
        plain, groups = self.tree.match(grant.topic)
        may_receive = self.may_receive

        def allowed(session: MessageReceiver) -> bool:
            if not hears(session.owner, owner):
                return False
            return may_receive is None or session.is_local or may_receive(session.client_id, grant.topic)

        plain = [each for each in plain if allowed(each[0])]
        groups = [among for each in groups if (among := each.among(allowed)) is not None]
        route = Route(grant, owner, sent_as, merge(plain, publisher), groups)
        if not groups:
            route.fan = self._fan(route)
        return route

    def _fan(self, route: Route) -> Fan:
        if self._epoch != self.tree.epoch or len(self._fans) >= _FANS:
            self._fans.clear()
            self._epoch = self.tree.epoch
        fan = route.durable, route.is_raw, tuple((target.session, target.options) for target in route.targets)
        return self._fans.setdefault(fan, fan)

    def forward(self, route: Route, raw: bytes, count: int, *, version: int, now_us: int) -> None:
        """Sends ``count`` QoS 0 publishes on as the bytes that came; encodes anew for other protocol versions."""
        messages: list[ApplicationMessage] | None = None
        for target in route.targets:
            connection = target.session.connection
            if connection is not None and connection.version == version and connection.encoder.is_plain:
                connection.send_raw(raw, count)
                continue
            if messages is None:
                messages = split_raw(raw, version)
            self._deliver(target, messages, {}, now_us, None)  # of QoS 0: nothing to store

    def deliver(
        self, route: Route, messages: Sequence[ApplicationMessage], now_us: int, origin: Origin | None
    ) -> list[int] | None:
        """Hands messages to all receivers; the indexes of those that none had room for, None where there are none.

        In the order in which they came, on every topic. [MQTT-4.6.0-5] [MQTT-4.6.0-6] of both
        """
        if len(route.targets) == 1 and not route.groups:  # what most reports of field terminals have
            return self._deliver(route.targets[0], messages, {} if len(messages) > 1 else None, now_us, origin)
        rendered: dict[tuple[DeliveryOptions, int], Rendered] = {}
        results = [self._deliver(target, messages, rendered, now_us, origin) for target in route.targets]
        for group in route.groups:
            results.append(self._deliver_shared(group, messages, now_us, origin))
        refusals = [refused for refused in results if refused]
        if not refusals or len(refusals) < len(results):
            return None
        return sorted(set(refusals[0]).intersection(*refusals[1:])) or None

    def _deliver(
        self,
        target: Target,
        messages: Sequence[ApplicationMessage],
        rendered: dict[tuple[DeliveryOptions, int], Rendered] | None,
        now_us: int,
        origin: Origin | None,
    ) -> list[int] | None:
        session, connection = target.session, target.session.connection
        if connection is None:  # [MQTT-4.5.0-1] of both
            return _indexes(session.enqueue(each, origin) for each in with_options(messages, target.options))
        if rendered is None or not connection.encoder.is_plain:
            return connection.send_each(with_options(messages, target.options), now_us, origin)
        key = target.options, connection.version
        ready = rendered.get(key)
        if ready is None:
            ready = rendered[key] = Rendered(with_options(messages, target.options), connection.version, now_us)
        return connection.send_rendered(ready, origin)

    def _deliver_shared(
        self,
        group: SharedGroup[MessageReceiver],
        messages: Sequence[ApplicationMessage],
        now_us: int,
        origin: Origin | None,
    ) -> list[int] | None:
        refused = []
        for index, message in enumerate(messages):
            session, subscription = group.pick()
            target = Target(session, [subscription])  # its own QoS [MQTT-4.8.2-3]
            if self._deliver(target, [message], {}, now_us, origin):
                refused.append(index)
        return refused or None


def merge(matches: Iterable[tuple[MessageReceiver, TopicSubscription]], publisher: str | None) -> list[Target]:
    """One target a session; a no-local subscription of the publisher itself doesn't count. [MQTT-3.8.3-3]"""
    found: dict[MessageReceiver, list[TopicSubscription]] = {}
    for session, subscription in matches:
        if not (subscription.no_local and session.client_id == publisher):
            found.setdefault(session, []).append(subscription)
    return [Target(session, subscriptions) for session, subscriptions in found.items()]


def with_options(messages: Sequence[ApplicationMessage], options: DeliveryOptions) -> Sequence[ApplicationMessage]:
    """The messages with a receiver's options applied; the same objects where nothing differs."""
    granted, as_published, identifiers = options
    if not identifiers:
        for each in messages:
            if each.qos > granted or each.retain:
                break
        else:
            return messages
    return [with_qos(each, granted, as_published, identifiers) for each in messages]


def with_qos(message: ApplicationMessage, granted: int, keep_retain: bool, identifiers: bytes) -> ApplicationMessage:
    """A message with a receiver's options applied: the lower QoS of the two, the retain flag, the identifiers."""
    return ApplicationMessage(
        topic=message.topic,
        payload=message.payload,
        qos=min(message.qos, granted),  # [MQTT-3.8.4-8]; [MQTT-3.8.4-6] of 3.1.1
        retain=message.retain and keep_retain,  # [MQTT-3.3.1-12] [MQTT-3.3.1-13]; [MQTT-3.3.1-9] of 3.1.1
        properties=identifiers + message.properties,
        expires_us=message.expires_us,
    )


def split_raw(raw: bytes, version: int) -> list[ApplicationMessage]:
    """Decodes consecutive QoS 0 publishes without properties."""
    messages, position = [], 0
    while (frame := parse_frame(raw, position)) is not None:
        start, position = frame
        topic_end = start + 2 + (raw[start] << 8 | raw[start + 1])
        messages.append(ApplicationMessage(raw[start + 2 : topic_end], raw[topic_end + (version == 5) : position]))
    return messages


def _indexes(accepted: Iterable[bool]) -> list[int] | None:
    return [index for index, taken in enumerate(accepted) if not taken] or None
