"""What the sessions of one owner have waiting together, and may have."""

from __future__ import annotations

from collections.abc import Iterator

from ..limited_log import limited_logger
from ..settings import NO_LIMIT, BrokerSettings, OwnerLimits

log = limited_logger("terrazzo_broker.queues")


class QueueShare:
    """Messages that wait in all sessions of one owner, and their bytes; ``disk_bytes`` of them are on disk alone."""

    __slots__ = ("bytes", "disk_bytes", "is_closed", "messages", "most_bytes", "most_messages", "owner")

    def __init__(self, owner: str, *, most_messages: int = NO_LIMIT, most_bytes: int = NO_LIMIT) -> None:
        self.owner = owner
        self.most_messages = most_messages
        self.most_bytes = most_bytes
        self.messages = self.bytes = self.disk_bytes = 0
        self.is_closed = False  # the owner has enough in memory: no message of it waits anew

    def tell_full(self) -> None:
        """Says that a message found no room."""
        log.warning("no more messages may wait in sessions of owner %r: it has %d", self.owner, self.messages)

    def add(self, size: int) -> None:
        """Counts a message that waits from now on."""
        self.messages += 1
        self.bytes += size

    def take(self, size: int, disk_bytes: int = 0) -> None:
        """Counts off a message that waits no longer; ``disk_bytes``: those of its size that are on disk alone."""
        self.messages -= 1
        self.bytes -= size
        self.disk_bytes -= disk_bytes

    @property
    def memory_bytes(self) -> int:
        """The bytes that are in memory."""
        return self.bytes - self.disk_bytes

    @property
    def is_over(self) -> bool:
        """Whether more wait than may: from before the limit."""
        return self.messages > self.most_messages or self.bytes > self.most_bytes


class QueueShares:
    """The shares of all owners."""

    __slots__ = ("_own", "_shares")

    def __init__(self) -> None:
        self._shares: dict[str, QueueShare] = {}
        self._own: dict[str, OwnerLimits] = {}

    def __iter__(self) -> Iterator[QueueShare]:
        return iter(self._shares.values())

    def of(self, owner: str, settings: BrokerSettings) -> QueueShare:
        """An owner's share."""
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = QueueShare(owner)
            _limit(share, self._own.get(owner) or settings.owner_limits)
        return share

    def limit(self, owner: str, limits: OwnerLimits) -> None:
        """Gives an owner's share limits of its own; what waits already stays."""
        self._own[owner] = limits
        share = self._shares.get(owner)
        if share is not None:
            _limit(share, limits)

    def over(self) -> list[str]:
        """The owners that have more waiting than they may."""
        return [owner for owner, share in self._shares.items() if share.is_over]


def _limit(share: QueueShare, limits: OwnerLimits) -> None:
    share.most_messages, share.most_bytes = limits.queued_messages, limits.queued_bytes
