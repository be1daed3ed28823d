"""From a topic name to the sessions that get a message, and the message in the form that each gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..codec.wire import encode_length, parse_frame
from ..hooks import MayReceive, PublishGrant
from ..message import ApplicationMessage
from ..topics.tree import SharedGroup, SubscriptionTree, TopicSubscription
from .connection_port import Origin, SessionConnection
from .encoder import Rendered


class MessageReceiver(Protocol):
    """Whoever has subscribed: a client's session, or the embedding program itself."""

    @property
    def client_id(self) -> str:
        """Its name."""
        ...

    @property
    def connection(self) -> SessionConnection | None:
        """Where messages go; None: they are queued."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it is the embedding program's own."""
        ...

    @property
    def is_persistent(self) -> bool:
        """Whether what waits for it is on disk."""
        ...

    def enqueue(self, message: ApplicationMessage, origin: Origin | None) -> bool:
        """Keeps a message for it; False: there is no room."""
        ...


Shape = tuple[int, bool, bytes]
"""Granted QoS, retain as published, encoded subscription identifiers."""
Fan = tuple[bool, bool, tuple[tuple[MessageReceiver, Shape], ...]]
"""What routes have in common whose publishes can be delivered together: durable, raw, and who gets them how."""


_FANS = 10_000  # sets of receivers known at a time


class Target:
    """One receiver that a topic matches, its overlapping subscriptions merged into one copy at the highest QoS.

    [MQTT-3.3.4-2]; [MQTT-3.3.5-1] of 3.1.1
    """

    __slots__ = ("session", "shape")

    def __init__(self, session: MessageReceiver, subscriptions: Sequence[TopicSubscription]) -> None:
        self.session = session
        self.shape: Shape = (
            max(each.qos for each in subscriptions),
            any(each.retain_as_published for each in subscriptions),
            # [MQTT-3.3.4-3] [MQTT-3.3.4-4] [MQTT-3.3.4-5]
            b"".join(b"\x0b" + encode_length(each.identifier) for each in subscriptions if each.identifier),
        )


class Route:
    """Where publishes of one client on one topic go, worked out once.

    ``is_raw``: a QoS 0 publish can leave as the bytes that came in. ``fan``: the same object in routes whose publishes
    can be delivered together; None where they go to different members of a share.
    """

    __slots__ = ("durable", "fan", "groups", "is_raw", "is_unheard", "tag", "targets", "topic", "topic_bytes")

    def __init__(
        self, grant: PublishGrant, sent_as: bytes, targets: list[Target], groups: list[SharedGroup[MessageReceiver]]
    ) -> None:
        self.topic = grant.topic
        self.topic_bytes = grant.topic.encode()
        self.durable = grant.durable
        self.tag: Any = grant.tag
        self.targets = targets
        self.groups = groups
        self.is_unheard = not targets and not groups
        self.is_raw = not groups and sent_as == self.topic_bytes and not any(each.shape[2] for each in targets)
        self.fan: Fan | None = None

    @property
    def is_stored(self) -> bool:
        """Whether a receiver's session is on disk."""
        sessions = [target.session for target in self.targets if target.shape[0]]
        sessions.extend(member for group in self.groups for member in group.members)
        return any(session.is_persistent for session in sessions)


class Router:
    """Finds the receivers of messages and hands the messages to their sessions.

    ``may_receive``: asked with a client id and a topic, once a route; None: whoever has subscribed.
    """

    __slots__ = ("_epoch", "_fans", "may_receive", "tree")

    def __init__(self, tree: SubscriptionTree[MessageReceiver], may_receive: MayReceive | None = None) -> None:
        self.tree = tree
        self.may_receive = may_receive
        self._fans: dict[Fan, Fan] = {}  # of the tree's epoch
        self._epoch = 0

    def route(self, grant: PublishGrant, sent_as: bytes, publisher: str | None) -> Route:
        """The way of publishes by ``publisher`` (a client id) that came under the topic ``sent_as``."""
        plain, groups = self.tree.match(grant.topic)
        may_receive = self.may_receive
        if may_receive is not None:

            def allowed(session: MessageReceiver) -> bool:
                return session.is_local or may_receive(session.client_id, grant.topic)

            plain = [each for each in plain if allowed(each[0])]
            groups = [among for each in groups if (among := each.among(allowed)) is not None]
        route = Route(grant, sent_as, merge(plain, publisher), groups)
        if not groups:
            route.fan = self._fan(route)
        return route

    def _fan(self, route: Route) -> Fan:
        if self._epoch != self.tree.epoch or len(self._fans) >= _FANS:
            self._fans.clear()
            self._epoch = self.tree.epoch
        fan = route.durable, route.is_raw, tuple((target.session, target.shape) for target in route.targets)
        return self._fans.setdefault(fan, fan)

    def forward(self, route: Route, raw: bytes, count: int, *, version: int, now_us: int) -> None:
        """Passes on ``count`` QoS 0 publishes as they came; a receiver of another version gets them rewritten."""
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
        rendered: dict[tuple[Shape, int], Rendered] = {}
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
        rendered: dict[tuple[Shape, int], Rendered] | None,
        now_us: int,
        origin: Origin | None,
    ) -> list[int] | None:
        session, connection = target.session, target.session.connection
        if connection is None:  # [MQTT-4.5.0-1] of both
            return _indexes(session.enqueue(each, origin) for each in shape_all(messages, target.shape))
        if rendered is None or not connection.encoder.is_plain:
            return connection.send_each(shape_all(messages, target.shape), now_us, origin)
        key = target.shape, connection.version
        ready = rendered.get(key)
        if ready is None:
            ready = rendered[key] = Rendered(shape_all(messages, target.shape), connection.version, now_us)
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


def shape_all(messages: Sequence[ApplicationMessage], shape: Shape) -> Sequence[ApplicationMessage]:
    """The messages as a receiver of this shape gets them; the same objects where nothing differs."""
    granted, as_published, identifiers = shape
    if not identifiers:
        for each in messages:
            if each.qos > granted or each.retain:
                break
        else:
            return messages
    return [shaped(each, granted, as_published, identifiers) for each in messages]


def shaped(message: ApplicationMessage, granted: int, keep_retain: bool, identifiers: bytes) -> ApplicationMessage:
    """One message at the lower QoS of the two, with the receiver's subscription identifiers."""
    return ApplicationMessage(
        topic=message.topic,
        payload=message.payload,
        qos=min(message.qos, granted),  # [MQTT-3.8.4-8]; [MQTT-3.8.4-6] of 3.1.1
        retain=message.retain and keep_retain,  # [MQTT-3.3.1-12] [MQTT-3.3.1-13]; [MQTT-3.3.1-9] of 3.1.1
        properties=identifiers + message.properties,
        expires_us=message.expires_us,
    )


def split_raw(raw: bytes, version: int) -> list[ApplicationMessage]:
    """The messages of a run of QoS 0 publishes without properties."""
    messages, position = [], 0
    while (frame := parse_frame(raw, position)) is not None:
        start, position = frame
        topic_end = start + 2 + (raw[start] << 8 | raw[start + 1])
        messages.append(ApplicationMessage(raw[start + 2 : topic_end], raw[topic_end + (version == 5) : position]))
    return messages


def _indexes(accepted: Iterable[bool]) -> list[int] | None:
    return [index for index, taken in enumerate(accepted) if not taken] or None
