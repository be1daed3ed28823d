"""The port to bridges: what a bridge needs from the local broker, and the status it reports.

A *bridge* carries messages between this platform's broker and a remote one. Everything is called on the platform's
event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

MARK = "terrazzo-bridge"
"""The MQTT 5 user property in which a message collects the ids of the brokers that it has left over a bridge."""

_OVERHEAD_BYTES = 64

BRIDGE_REASONS = (
    "the remote broker refused to subscribe us to {filters}",
    "no connection to {host}:{port}: {reason}",
    "a message was not sent: {reason}",
    "{topic} from the remote broker is refused: {reason}",
    "the bridge's company is closed",
    "what came in could not be stored and is not acknowledged; it has to be sent again over a new connection",
    "given up",
    "closed",
    "the remote broker sent a malformed packet: {error}",
    "the remote broker ended the connection: {said}",
    "connection lost: {error}",
    "not a host name: {error}",
    "its topic is not UTF-8",
    "no rule names this topic",
    "no rule for {topic} any more",
    "the remote broker has no room (0x97)",
    "refused with 0x{number}",
    "no answer in time",
)
"""Why a link is down or was lost, or what was refused, as ``BridgeStatus.last_error`` has it; one may be in another.
What the remote broker or the system said stands in them as it was said."""


class MessageProperties(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The MQTT 5 properties that are forwarded with a message."""

    payload_format_indicator: int = 0
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


class BridgeMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message that crosses a bridge, under its local topic. ``expires_us``: UTC microseconds, 0 is never."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    expires_us: int = 0
    properties: MessageProperties | None = None

    @property
    def size(self) -> int:
        """The approximate size on disk in bytes."""
        given = self.properties
        extra = 0 if given is None else sum(len(name) + len(value) for name, value in given.user_properties)
        return len(self.topic) + len(self.payload) + extra + _OVERHEAD_BYTES

    @property
    def texts(self) -> list[str]:
        """All texts of its properties, its response topic too."""
        given = self.properties
        if given is None:
            return []
        single = [text for text in (given.content_type, given.response_topic) if text is not None]
        return single + [text for pair in given.user_properties for text in pair]

    def has_left(self, broker_id: str) -> bool:
        """Whether it has left this broker over a bridge before (it came back in a loop)."""
        return self.properties is not None and (MARK, broker_id) in self.properties.user_properties

    def marked(self, broker_id: str) -> BridgeMessage:
        """A copy marked with this broker's id in a user property, for ``has_left``."""
        given = self.properties or MessageProperties()
        if self.has_left(broker_id):
            return self
        more = msgspec.structs.replace(given, user_properties=(*given.user_properties, (MARK, broker_id)))
        return msgspec.structs.replace(self, properties=more)


class BridgeRefused(Exception):
    """The local broker refuses this message for good; ``str()`` says why."""


class BridgeQueue(Protocol):
    """The queue of messages from the local broker that a bridge is to send."""

    def offer(self, message: BridgeMessage) -> bool:
        """Appends a message; False if there is no room for it."""

    @property
    def is_durable(self) -> bool:
        """Whether all QoS 1 and 2 messages taken so far are on disk."""

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls ``then`` once, when all messages taken so far are on disk."""


class LocalBroker(Protocol):
    """The local broker, as bridges use it. ``id`` names it among all brokers, and stays over restarts."""

    id: str

    def subscribe(self, name: str, filters: Mapping[str, int], queue: BridgeQueue, *, company_id: int) -> None:
        """Puts messages that match a filter into the queue of the bridge ``name``, at most at the filter's QoS.

        ``company_id``: whose messages, 0 for those of all and of nobody. Publishers of QoS 1 and 2 are answered when
        the queue has it on disk. The bridge's own messages are left out.
        """

    def publish(self, name: str, message: BridgeMessage, on_taken: Callable[[], None], *, company_id: int) -> None:
        """Publishes a message that the bridge ``name`` received.

        ``company_id``: whose it is, and who hears it. 0: a report is of its terminal's company, anything else nobody's,
        and goes to bridges alone. ``on_taken`` is called once it may be acknowledged to the remote broker: a terminal's
        report when it is stored, anything else when the subscribers' sessions have it.

        Raises:
            BridgeRefused: it was not published, and never will be.
        """

    def when_withheld(self, name: str, again: Callable[[], None]) -> None:
        """Has ``again`` called when a message of the bridge ``name`` can't be stored and is not going to be taken.

        The remote broker has to send it again, which it does over a new connection.
        """

    def pause(self, name: str) -> None:
        """Stops reading from all clients, because the queue of the bridge ``name`` can't keep up."""

    def resume(self, name: str) -> None:
        """Reads from the clients again, as far as the bridge ``name`` is concerned."""


class BridgeStatus(msgspec.Struct, kw_only=True):
    """The status of one bridge; counters since the start of the process."""

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
    withheld: int = 0  # times that the link was made anew, because a message could not be stored and must be sent again
    looped: int = 0  # messages of this broker that came back
    spool_failures: int = 0  # writes that had to be tried again


class Bridge(Protocol):
    """One bridge to a remote broker."""

    name: str
    company_id: int  # whose messages cross, 0: those of all

    def set_open(self, is_open: bool) -> None:
        """Whether it may be connected: not while its company is closed. It is at first."""

    async def start(self) -> None:
        """Opens the queue on disk, subscribes locally, and connects in the background until ``hang_up``.

        Raises:
            StoreUnavailable: the queue's folder can't be used.
        """

    def status(self) -> BridgeStatus:
        """The present status."""

    def kept(self) -> tuple[int, int]:
        """Bytes of messages that are in memory, on their way in or out, and how many messages it has on its list."""

    async def hang_up(self) -> None:
        """Disconnects in order; from now on messages to be sent stay on disk."""

    async def drain(self, timeout_s: float) -> None:
        """Waits until all messages that were taken are on disk."""

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy in ``path`` of its queue on disk, to be opened in its folder's place.

        Raises:
            FileExistsError: ``path`` exists.
            StoreUnavailable, OSError: it could not be made.
        """

    async def close(self) -> None:
        """Ends the bridge; all messages that were taken are on disk."""
