"""The port to bridges: what one needs from the local broker, and what it shows.

A *bridge* carries messages between this platform's broker and a remote one. Everything is called on the platform's
event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

MARK = "terrazzo-bridge"
"""The MQTT 5 user property in which a message collects the ids of the brokers that it has left over a bridge."""

_OVERHEAD_BYTES = 64


class MessageProperties(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The MQTT 5 properties that travel with a message."""

    payload_format_indicator: int = 0
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


class BridgeMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message on its way into or out of the local broker, under its local topic. ``expires_us``: 0 is never."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    expires_us: int = 0
    properties: MessageProperties | None = None

    @property
    def size(self) -> int:
        """About how many bytes it takes on disk."""
        given = self.properties
        extra = 0 if given is None else sum(len(name) + len(value) for name, value in given.user_properties)
        return len(self.topic) + len(self.payload) + extra + _OVERHEAD_BYTES

    def has_left(self, broker_id: str) -> bool:
        """Whether it has left this broker over a bridge before."""
        return self.properties is not None and (MARK, broker_id) in self.properties.user_properties

    def marked(self, broker_id: str) -> BridgeMessage:
        """The same, so that ``has_left`` this broker."""
        given = self.properties or MessageProperties()
        if self.has_left(broker_id):
            return self
        more = msgspec.structs.replace(given, user_properties=(*given.user_properties, (MARK, broker_id)))
        return msgspec.structs.replace(self, properties=more)


class BridgeRefused(Exception):
    """The local broker will never take this message; ``str()`` says why."""


class BridgeQueue(Protocol):
    """Where the local broker puts what is to leave."""

    def offer(self, message: BridgeMessage) -> bool:
        """Takes a message; False: there is no room for it."""

    @property
    def is_durable(self) -> bool:
        """Whether all of QoS 1 and 2 that was taken so far is on disk."""

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls ``then`` once, when all that was taken so far is on disk."""


class LocalBroker(Protocol):
    """The side of a bridge that is here. ``id`` names this broker among all; it stays over restarts."""

    id: str

    def subscribe(self, name: str, filters: Mapping[str, int], outbox: BridgeQueue) -> None:
        """Puts what the filters match, at most at their QoS, into the outbox of the bridge ``name``.

        Publishers of QoS 1 and 2 are answered when it is on disk there. What the bridge itself publishes is left out.
        """

    def publish(self, name: str, message: BridgeMessage, on_taken: Callable[[], None]) -> None:
        """Publishes what the bridge ``name`` brought; ``on_taken`` follows once, when the message may be forgotten:
        a terminal's report when it is stored, anything else when the subscribers' sessions have it.

        Raises:
            BridgeRefused: nothing happened, and never will.
        """

    def pause(self, name: str) -> None:
        """Stops reading from all clients: the outbox of the bridge ``name`` is behind."""

    def resume(self, name: str) -> None:
        """Reads again."""


class BridgeStatus(msgspec.Struct, kw_only=True):
    """What an operator wants to know of one bridge; counters since the start of the process."""

    connected_since_us: int | None = None  # UTC microseconds; None while the link is down
    last_error: str = ""  # why the link was last lost or not made, or what the remote broker refused
    queued: int = 0  # messages that wait to be acknowledged by the remote broker
    queued_bytes: int = 0
    connects: int = 0
    sent: int = 0  # acknowledged by the remote broker, or passed to the network at QoS 0
    received: int = 0  # taken by the local broker
    dropped: int = 0  # the spool was full
    expired: int = 0  # Message Expiry Interval passed while waiting
    refused_by_remote: int = 0
    refused_here: int = 0  # unknown terminals, topics that no rule names
    looped: int = 0  # came back
    spool_failures: int = 0  # writes that had to be tried again


class Bridge(Protocol):
    """One bridge, running."""

    name: str

    async def start(self) -> None:
        """Opens what it keeps on disk, subscribes locally, and connects in the background, again and again.

        Raises:
            StoreUnavailable: its folder can't be used.
        """

    def status(self) -> BridgeStatus:
        """How it fares now."""

    async def hang_up(self) -> None:
        """Ends the connection in order; from now on what is to leave waits on disk."""

    async def drain(self, timeout_s: float) -> None:
        """Waits until all that was taken is on disk."""

    async def close(self) -> None:
        """Ends; what was taken is on disk."""
