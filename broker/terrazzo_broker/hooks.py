"""The hooks: what an embedding program decides for the broker, and what it is told.

The broker knows nothing of terminals: it asks a ``Hooks`` object who may connect, what they may publish and
subscribe to, hands over publishes that must be made durable, and reports what happens to connections.
All hooks are called on the broker's event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

import msgspec
from mqtt5 import ConnAckReasonCode


class ConnectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A CONNECT (or the AUTH that starts a re-authentication) as the embedding program sees it."""

    client_id: str  # never empty: the broker has assigned one where the client sent none
    username: str | None = None
    password: bytes | None = None
    protocol: int = 5  # 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0
    address: str = ""  # the peer's host
    listener: str = "tcp"
    clean_start: bool = True
    keep_alive_s: int = 0
    session_expiry_s: int = 0
    auth_method: str | None = None  # MQTT 5 enhanced authentication [MQTT-4.12]
    auth_data: bytes | None = None
    certificate_name: str | None = None  # subject of a verified client certificate
    certificate: bytes | None = None  # that certificate, DER
    reauthentication: bool = False


class Accept(msgspec.Struct, frozen=True):
    """Lets the client in. ``identity`` is handed back at each later hook as ``Client.identity``."""

    identity: Any = None
    keep_alive_s: int | None = None  # Server Keep Alive; in 3.1.1 enforced without being announced
    session_expiry_s: int | None = None  # overrides the client's Session Expiry Interval
    auth_data: bytes | None = None  # the server's last data of an enhanced authentication
    owner: str = ""  # who answers for the client, among several that share the broker; messages stay with their owner


class Refuse(msgspec.Struct, frozen=True):
    """Refuses the client. In 3.1.1 the broker translates the reason: 0x86 to return code 4, other refusals to 5
    (0x88, 0x89, 0x9F to 3, 0x85 to 2)."""

    reason: ConnAckReasonCode
    message: str = ""


class Challenge(msgspec.Struct, frozen=True):
    """One more step of AUTH: ``data`` goes to the client, and ``proceed`` takes its answer."""

    data: bytes
    proceed: Callable[[bytes], Awaitable[Accept | Refuse | Challenge]]


Verdict = Accept | Refuse | Challenge
"""What ``Hooks.authenticate`` decides."""


class Subscriber(Protocol):
    """A session, as its client needs it."""

    @property
    def subscriptions(self) -> Mapping[str, object]:
        """What it is subscribed to, by filter."""
        ...


class Client(msgspec.Struct, eq=False):
    """A connected client: one object for each connection, with its counters. Times in UTC microseconds."""

    client_id: str
    username: str | None
    protocol: int
    address: str
    port: int
    listener: str
    connected_us: int  # UTC microseconds
    keep_alive_s: int
    identity: Any = None
    owner: str = ""  # of the verdict
    last_packet_us: int = 0
    messages_in: int = 0
    messages_out: int = 0
    messages_dropped: int = 0  # QoS 0, because it was too slow
    subscriber: Subscriber | None = None  # its session

    @property
    def filters(self) -> AbstractSet[str]:
        """The topic filters that its session is subscribed to now, as sent."""
        return frozenset() if self.subscriber is None else self.subscriber.subscriptions.keys()


class PublishGrant(msgspec.Struct, frozen=True):
    """Permission to publish on a topic; the broker caches it per connection and topic name.

    ``topic`` is what everyone else sees (it may differ from what the client sent); ``durable`` asks that the message
    goes through ``Hooks.take`` and is acknowledged only when that batch is settled; ``tag`` travels with it.
    ``owner`` is whose the messages are, None for the client's own: nobody else's client hears them.
    """

    topic: str
    durable: bool = False
    tag: Any = None
    owner: str | None = None


class Inbound(msgspec.Struct, frozen=True, gc=False):
    """One publish that must be made durable; what it was granted with must not hold on to it, nothing collects that."""

    tag: Any  # PublishGrant.tag
    payload: bytes
    correlation_data: bytes | None = None  # MQTT 5 only
    traceparent: str | None = None  # of W3C Trace Context, as the user property says it; MQTT 5 only


class Batch(Protocol):
    """The durable publishes that arrived together on one connection (or the one of a will), in order."""

    client: Client
    messages: Sequence[Inbound]
    arrived_us: int  # UTC microseconds

    def settle(self, refusals: Mapping[int, int] | None = None) -> None:
        """Acknowledges all messages: by index, a PUBACK/PUBREC reason code (0x80 and above), success for the rest.

        Call once, on the broker's loop. A batch whose connection has gone settles without effect.
        """

    def hold(self) -> None:
        """Stops reading from the connection until ``release``: what it sent takes long."""

    def release(self) -> None:
        """Reads from the connection again."""


class Hooks(Protocol):
    """The embedding program's side of the broker."""

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """Decides on a CONNECT or a re-authentication; an exception counts as 0x88 Server unavailable."""

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant | None:
        """Decides on publishes to a topic; None refuses: 0x87 (MQTT 5, QoS 1 and 2), else dropped and counted."""

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        """Decides on a subscription; False refuses: 0x87 in MQTT 5, 0x80 in 3.1.1; 3.1 has no code for it.

        A shared subscription is asked for with its whole filter (``$share/...``).
        """

    def take(self, batch: Batch) -> None:
        """Takes a batch, to be acknowledged later by ``batch.settle``. Use ``Broker.pause_intake`` when behind."""

    def on_connected(self, client: Client) -> None:
        """The CONNACK has been sent."""

    def on_disconnected(self, client: Client, reason: str) -> None:
        """The connection has ended; ``reason`` is a short phrase (``keep-alive timeout``, ``taken over``, ...)."""

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """These filters were granted, or restored with a session right after ``on_connected``."""


MayReceive = Callable[[str, str], bool]
"""Whether a client (id) may be sent messages on a topic that it has subscribed to. The answer is cached with the route
and asked again when any subscription changes."""


class FormerOwners(msgspec.Struct, frozen=True):
    """Whose retained messages (by topic) and sessions (by client id) are that were stored before owners were kept."""

    of_topic: Callable[[str], str]
    of_client: Callable[[str], str]


class Delivery(Protocol):
    """The callback for the outcome of a message sent with ``Broker.send``; called once, on the loop."""

    def __call__(self, outcome: Outcome) -> None:
        """Takes the outcome."""


class Outcome(NamedTuple):
    """What became of a message: ``acknowledged`` by PUBACK with a reason code, or else lost with its session."""

    acknowledged: bool
    reason: int = 0
