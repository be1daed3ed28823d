"""Routes messages: finds the receivers of a topic, and hands each its messages in the form that it subscribed to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..codec.wire import encode_length, parse_frame
from ..hooks import MayReceive, PublishGrant
from ..message import ApplicationMessage
from ..scheduling.turns import Steps, finish
from ..settings import NO_LIMIT
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
    def is_elsewhere(self) -> bool:
        """Whether it stands for clients of another broker, which gives them what it is handed."""
        ...

    @property
    def is_persistent(self) -> bool:
        """Whether its queue is on disk."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it takes nothing any more."""
        ...

    def enqueue(self, message: ApplicationMessage, origin: Origin | None) -> bool:
        """Queues a message; False: there is no room."""
        ...


DeliveryOptions = tuple[int, bool, bytes]
"""The granted QoS, Retain As Published, and the encoded subscription identifiers. MQTT, section 3.8.3.1."""

Fan = tuple[bool, bool, tuple[tuple[MessageReceiver, DeliveryOptions], ...]]
"""A fan-out, equal in routes whose publishes can be delivered together: durable, raw, receivers with their options."""

_FANS = 1_000  # fan-outs of one owner cached at a time
_MEMBERS = 16  # of a shared subscription that cost as much as one receiver
WIDE = 100  # receivers of a message that is handed to them in steps
RUN_UNITS = 500  # messages times receivers that are delivered without a look at the clock
WIDE_RUN = 3_000  # messages that are handed to many receivers together, each receiver a step
_STEP_MESSAGES = 50  # of them in one step, where each needs a packet identifier
_STEP_RECEIVERS = 16  # in one step, of bytes that are sent as they came
_STEP_BYTES = 1 << 20  # copied in such a step
_FAN_RECEIVERS = 2_000  # of a fan-out that is compared with others: that is one step


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
    together. ``lone``: the one client that it leads to, None where there is more to it; ``lone_qos``: what that was
    granted. ``width``: what a message costs, in receivers; ``is_wide``: they are delivered in steps;
    ``run_messages``: how many are delivered together.
    """

    __slots__ = (
        "durable",
        "fan",
        "groups",
        "is_raw",
        "is_unheard",
        "is_wide",
        "lone",
        "lone_qos",
        "owner",
        "run_messages",
        "tag",
        "targets",
        "topic",
        "topic_bytes",
        "width",
    )

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
        is_lone = self.is_raw and len(targets) == 1 and not self.durable and not targets[0].session.is_local
        self.lone = targets[0].session if is_lone else None
        self.lone_qos = targets[0].options[0] if is_lone else 0
        self.fan: object = self  # equal to no other's
        self.width = len(targets) + sum(1 + len(each.members) // _MEMBERS for each in groups)
        self.is_wide = self.width > WIDE
        self.run_messages = _run_messages(self.width)

    @property
    def is_stored(self) -> bool:
        """Whether a receiver's session is on disk."""
        sessions = [target.session for target in self.targets if target.options[0]]
        sessions.extend(member for group in self.groups for member in group.members)
        return any(session.is_persistent for session in sessions)


def _run_messages(width: int) -> int:
    if width > WIDE:
        return WIDE_RUN
    return RUN_UNITS // width if width else NO_LIMIT


class Router:
    """Finds the receivers of messages and hands the messages to their sessions.

    A message goes to receivers of its owner alone; those of ``EVERYBODY`` go to all.
    ``may_receive``: asked with a client id and a topic, once a route; None: every subscriber may.
    """

    __slots__ = ("_fans", "may_receive", "tree")

    def __init__(self, tree: SubscriptionTree[MessageReceiver], may_receive: MayReceive | None = None) -> None:
        self.tree = tree
        self.may_receive = may_receive
        self._fans: dict[str, tuple[int, dict[Fan, Fan]]] = {}  # by owner, those of an epoch

    def route(
        self, grant: PublishGrant, sent_as: bytes, publisher: str | None, owner: str, *, own_only: bool = False
    ) -> Steps[Route]:
        """The route of publishes by ``publisher`` (a client id); ``sent_as``: the topic in its packets, UTF-8.

        ``owner``: whose the publisher is, and with it the messages unless the grant says otherwise. ``own_only``: to
        this broker's own clients, as the message comes from another one, which has chosen members of shared
        subscriptions among all.
        """
        owner = owner if grant.owner is None else grant.owner
        allowed = self.filter_of(grant.topic, owner, own_only=own_only)
        plain: list[tuple[MessageReceiver, TopicSubscription]] = []
        groups: list[SharedGroup[MessageReceiver]] = []
        for match in self.tree.matching(grant.topic, owner):
            yield
            if isinstance(match, SharedGroup):
                among = None if own_only else match.among(allowed)
                if among is not None:
                    groups.append(among)
            elif match is not None and allowed(match[0]):
                plain.append(match)
        route = Route(grant, owner, sent_as, (yield from merging(plain, publisher)), groups)
        if not groups and route.width <= _FAN_RECEIVERS:
            route.fan = self._fan(route)
        return route

    def filter_of(self, topic: str, owner: str, *, own_only: bool) -> Callable[[MessageReceiver], bool]:
        """Whether a receiver may have an owner's messages on a topic; ``own_only``: as ``route`` has it."""
        may_receive = self.may_receive

        def allowed(session: MessageReceiver) -> bool:
            if session.has_ended or not hears(session.owner, owner) or (own_only and session.is_elsewhere):
                return False
            return may_receive is None or session.is_local or may_receive(session.client_id, topic)

        return allowed

    def _fan(self, route: Route) -> Fan:
        epoch, (known, fans) = self.tree.of(route.owner).epoch, self._fans.get(route.owner, (-1, {}))
        if known != epoch or len(fans) >= _FANS:
            fans = {}
            self._fans[route.owner] = epoch, fans
        fan = route.durable, route.is_raw, tuple((target.session, target.options) for target in route.targets)
        return fans.setdefault(fan, fan)

    def forward(self, targets: Iterable[Target], raw: bytes, count: int, *, version: int, now_us: int) -> None:
        """Sends ``count`` QoS 0 publishes on as the bytes that came; encodes anew for other protocol versions."""
        messages: list[ApplicationMessage] | None = None
        for target in targets:
            connection = target.session.connection
            if connection is not None and connection.version == version and connection.encoder.is_plain:
                connection.send_raw(raw, count)
                continue
            if messages is None:
                messages = split_raw(raw, version)
            self._deliver(target, messages, {}, now_us, None)  # of QoS 0: nothing to store

    def forwarding(self, route: Route, raw: bytes, count: int, *, version: int, now_us: int) -> Steps[None]:
        """``forward`` in steps: first to those who get the bytes that came, then to the others. Receivers whose session
        ends meanwhile are left out."""
        others = []
        step = min(_STEP_RECEIVERS, _STEP_BYTES // len(raw) + 1)
        for first in range(0, len(route.targets), step):
            for target in route.targets[first : first + step]:
                connection = target.session.connection
                if connection is not None and connection.version == version and connection.encoder.is_plain:
                    connection.send_raw(raw, count)
                else:
                    others.append(target)
            yield
        messages = split_raw(raw, version) if others else []
        rendered: dict[tuple[DeliveryOptions, int], Rendered] = {}
        for target in others:
            if not target.session.has_ended:
                self._deliver(target, messages, rendered, now_us, None)
            yield

    def deliver(
        self, route: Route, messages: Sequence[ApplicationMessage], now_us: int, origin: Origin | None
    ) -> list[int] | None:
        """Hands messages to all receivers; the indexes of those that none had room for, None where there are none.

        In the order in which they came, on every topic. [MQTT-4.6.0-5] [MQTT-4.6.0-6] of both
        """
        if len(route.targets) == 1 and not route.groups:  # what most reports of field terminals have
            return self._deliver(route.targets[0], messages, {} if len(messages) > 1 else None, now_us, origin)
        return finish(self.delivering(route, messages, now_us, origin))

    def delivering(
        self, route: Route, messages: Sequence[ApplicationMessage], now_us: int, origin: Origin | None
    ) -> Steps[list[int] | None]:
        """``deliver`` in steps. Receivers whose session ends meanwhile are left out."""
        rendered: dict[tuple[DeliveryOptions, int], Rendered] = {}
        results = []
        for target in route.targets:
            if not target.session.has_ended:
                results.append(self._deliver(target, messages, rendered, now_us, origin))
            yield
        for group in route.groups:
            if group.members:
                results.append((yield from self._deliver_shared(group, messages, now_us, origin)))
            yield
        refusals = [refused for refused in results if refused]
        if not refusals or len(refusals) < len(results):
            return None
        return sorted(set(refusals[0]).intersection(*refusals[1:])) or None

    def delivering_run(
        self, route: Route, messages: Sequence[ApplicationMessage], now_us: int, origin: Origin | None
    ) -> Steps[list[int] | None]:
        """``delivering`` for many receivers and messages: so many at a time that a step stays short."""
        refused: list[int] = []
        for first in range(0, len(messages), _STEP_MESSAGES):
            part = messages[first : first + _STEP_MESSAGES]
            found = yield from self.delivering(route, part, now_us, origin)
            refused.extend(first + index for index in found or ())
        return refused or None

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
    ) -> Steps[list[int] | None]:
        refused = []
        for index, message in enumerate(messages):
            if not group.members:  # the last has left meanwhile
                break
            session, subscription = group.pick()
            if not session.has_ended:
                target = Target(session, [subscription])  # its own QoS [MQTT-4.8.2-3]
                if self._deliver(target, [message], {}, now_us, origin):
                    refused.append(index)
            yield
        return refused or None


def merging(matches: Iterable[tuple[MessageReceiver, TopicSubscription]], publisher: str | None) -> Steps[list[Target]]:
    """One target a session; a no-local subscription of the publisher itself doesn't count. [MQTT-3.8.3-3]"""
    found: dict[MessageReceiver, list[TopicSubscription]] = {}
    for session, subscription in matches:
        if not (subscription.no_local and session.client_id == publisher):
            found.setdefault(session, []).append(subscription)
            yield
    targets = []
    for session, subscriptions in found.items():
        targets.append(Target(session, subscriptions))
        yield
    return targets


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
