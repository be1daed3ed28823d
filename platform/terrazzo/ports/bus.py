"""The port to a broker: ``MessageBus``, what the platform needs from the broker that terminals connect to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal's connection, the present or the last one."""

    online: bool
    since_us: int | None = None  # of the present connection
    address: str = ""
    protocol: str = ""  # "MQTT 3.1" | "MQTT 3.1.1" | "MQTT 5.0"
    messages: int = 0  # received on the present or last connection
    last_seen_us: int | None = None  # the last packet of any kind
    last_telemetry_us: int | None = None  # the last publish on g/#
    disconnect_reason: str = ""


class DeliveryFate(Enum):
    """What became of a message that was sent to a terminal."""

    DELIVERED = "delivered"  # acknowledged by the terminal
    REFUSED = "refused"  # acknowledged with an MQTT 5 reason code of 0x80 or above
    LOST = "lost"  # its session ended first; it may be sent again


class MessageBus(Protocol):
    """Sends messages to terminals, and knows who is connected. Everything is called on the platform's event loop."""

    def send(
        self,
        uid: str,
        payload: bytes,
        *,
        correlation: bytes,
        on_fate: Callable[[DeliveryFate], None],
        traceparent: str = "",
    ) -> bool:
        """Publishes on ``p2p/<uid>`` at QoS 1, with Correlation Data and Response Topic ``g/<uid>/n`` for MQTT 5, and
        with a ``traceparent`` as user property where there is one.

        False when the terminal is not connected or not subscribed: nothing was sent. Otherwise ``on_fate`` is called
        once, on the PUBACK or when the session ends without one.
        """

    def presence(self, uid: str) -> Presence:
        """A terminal's connection; ``online=False`` and nothing else for one that never connected."""

    def seen(self, uid: str) -> tuple[bool, int | None]:
        """Whether a terminal is connected, and when its last packet came, UTC microseconds; None: never."""

    def disconnect(self, uid: str) -> None:
        """Closes a terminal's connection (MQTT 5 reason code 0x98)."""


class TerminalsElsewhere(Protocol):
    """Sends messages to terminals that are connected to other nodes, which have to be asked."""

    def holds(self, uid: str) -> bool:
        """Whether a terminal is connected to another node, and has subscribed to its commands."""

    def send(
        self,
        uid: str,
        payload: bytes,
        *,
        correlation: bytes,
        on_sent: Callable[[bool], None],
        on_fate: Callable[[DeliveryFate], None],
    ) -> None:
        """As ``MessageBus.send`` on the node that holds the terminal.

        ``on_sent`` is told once whether it was written to the terminal's socket; if so, ``on_fate`` follows. Where the
        node doesn't say, ``on_fate`` is told that it is lost, and nothing else.
        """


class ConnectedClient(msgspec.Struct, frozen=True, kw_only=True):
    """One open MQTT connection."""

    client_id: str
    username: str
    protocol: str
    address: str
    port: int
    listener: str
    since_us: int
    last_seen_us: int
    keep_alive_s: int
    messages_in: int
    messages_out: int
    messages_dropped: int  # to it, of QoS 0: it was too slow


class BrokerSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """One subscription of a session, connected or not. ``filter`` includes ``$share/<group>/`` if it is shared."""

    client_id: str
    filter: str
    qos: int
    online: bool
    queued: int  # messages that wait for the client


class RetainedTopic(NamedTuple):
    """A retained message, without its payload. ``owner``: the company's id; empty: everybody's. ``expires_us``: 0 is
    never."""

    topic: str
    size: int
    qos: int
    publisher: str
    owner: str
    expires_us: int


class BrokerView(Protocol):
    """What operators can see of the broker, and do to its clients."""

    def counters(self) -> Mapping[str, int]:
        """Connections and sessions now, messages and bytes since the start, refusals and drops."""

    def clients(self) -> Iterable[ConnectedClient]:
        """All open connections."""

    def subscriptions(self) -> Iterable[BrokerSubscription]:
        """All subscriptions of all sessions."""

    def retained(self, owner: str | None, pattern: str) -> Iterator[RetainedTopic | None]:
        """The retained messages of an owner, of all for None, that a topic filter matches; None for each place that was
        looked at in vain. They may come and go while it is iterated over.

        Raises:
            ValueError: ``pattern`` is no topic filter.
        """

    def kick(self, client_id: str) -> bool:
        """Closes a connection (MQTT 5 reason code 0x98); False if there is none with this client id."""
