"""What a session has sent, and its client hasn't acknowledged: identifiers, and how much of it there may be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ..message import ApplicationMessage
from ..settings import BrokerSettings
from .connection_port import Origin
from .empty import NOTHING
from .encoder import LONG_BYTES
from .queue_share import QueueShare

MayRead = Callable[[int], bool]
"""Whether a payload of so many bytes may be read from the disk now; if not, somebody calls ``Session.pump`` again."""


def always(size: int) -> bool:
    """A ``MayRead``."""
    return True


def counted_bytes(message: ApplicationMessage) -> int:
    """The bytes of a message that count while it is on its way: all if its payload is long, on disk too, else 0."""
    if len(message.payload) <= LONG_BYTES and (message.payload or message.disk_bytes <= LONG_BYTES):
        return 0
    return message.size


class MessageJournal(Protocol):
    """Makes what happens to the messages for one session's client durable.

    ``origin``: the connection whose packet caused the change; ``connection``: the session's own. Where the protocol
    promises durability, their answers wait for the commit.
    """

    def storable(self, message: ApplicationMessage) -> ApplicationMessage:
        """The message in the form in which the session keeps it: with a key, if it is to be stored."""
        ...

    def queued(self, message: ApplicationMessage, origin: Origin | None) -> None:
        """A message, as ``storable`` returned it, was queued."""

    def sent(
        self, message: ApplicationMessage, identifier: int, connection: Origin | None, origin: Origin | None
    ) -> ApplicationMessage:
        """A message is sent with a packet identifier; returns the message in the form in which the session keeps it."""
        ...

    def read(self, message: ApplicationMessage) -> ApplicationMessage:
        """A message that the session keeps, with its payload, which may be on disk alone.

        Raises:
            StorageError: it can't be read.
        """
        ...

    def confirmed(self, message: ApplicationMessage, identifier: int, connection: Origin | None) -> None:
        """PUBREC has come for a QoS 2 message: only its identifier is kept."""

    def done(self, message: ApplicationMessage | None, identifier: int) -> None:
        """The message is acknowledged in full; None: it was ``confirmed`` before."""

    def lost(self, message: ApplicationMessage) -> None:
        """The message won't be delivered: its record is deleted."""


class SentMessages:
    """The part of a session that knows what is on its way to the client.

    ``inflight`` keeps, in the order of sending, what the client hasn't acknowledged; None stands for a QoS 2 message
    that it has received, so that only PUBREL and PUBCOMP are left. ``quota`` is how many more may be on the way,
    ``kept_quota`` how many besides, as soon as what is to be sent again has been read from the disk.
    [MQTT-4.3.2-3] [MQTT-4.3.3-3] [MQTT-4.3.3-5]; [MQTT-4.3.2-1] [MQTT-4.3.3-1] of 3.1.1
    """

    is_shared = False  # whether another broker may have the session next: its messages come past the tree

    __slots__ = (
        "inflight",
        "inflight_bytes",
        "kept_quota",
        "last_id",
        "quota",
        "redeliver",
        "settings",
        "share",
        "window",
    )

    def __init__(self, settings: BrokerSettings, share: QueueShare) -> None:
        self.settings = settings
        self.share = share
        self.inflight: dict[int, ApplicationMessage | None] = NOTHING
        self.inflight_bytes = 0  # of those with long payloads; the number of the others bounds them
        self.redeliver: deque[int] | None = None  # identifiers to be sent again when the quota allows
        self.last_id = 0
        self.window = self.quota = self.kept_quota = 0

    def restore_inflight(self, messages: dict[int, ApplicationMessage | None]) -> None:
        """Sets what the client hasn't acknowledged, as it was stored."""
        self.inflight = messages or NOTHING
        for message in messages.values():
            self._add_inflight(message, 1)

    def let_go(self) -> None:
        """Forgets the messages of a shared session, which whoever has it next reads again."""

    def _has_window(self, message: ApplicationMessage) -> bool:
        """Whether what the client hasn't acknowledged leaves room for it; the first long one always goes."""
        return not self.inflight_bytes or self.inflight_bytes + counted_bytes(message) <= self.settings.queued_bytes

    def _add_inflight(self, message: ApplicationMessage | None, sign: int) -> None:
        """Counts the bytes of a message that is on its way from now on, or no longer."""
        size = 0 if message is None else sign * counted_bytes(message)
        if message is not None and size:
            self.inflight_bytes += size
            self.share.bytes += size
            self.share.disk_bytes += sign * message.disk_bytes

    def assign(self, message: ApplicationMessage) -> int:
        """Notes that a short message is sent now; the packet identifier that it gets. [MQTT-4.3.2-2]"""
        identifier = self._next_id()
        if self.inflight is NOTHING:
            self.inflight = {}
        self.inflight[identifier] = message
        self.last_id = identifier
        self.quota -= 1
        return identifier

    def _next_id(self) -> int:
        identifier = self.last_id % 65_535 + 1
        # [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1]; [MQTT-2.3.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1] of 3.1.1
        while identifier in self.inflight:
            identifier = identifier % 65_535 + 1
        return identifier
