"""What of each company was taken and is not stored yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from terrazzo.ingest.arrival import Arrival


class Share:
    """What one owner has: bytes of payloads, and messages; and when something of its was stored last."""

    __slots__ = ("messages", "owner", "size", "stored_s")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.size = self.messages = 0
        self.stored_s = float("-inf")


class Backlog(dict[str, Share]):
    """The owners' shares; of some that once had something it is 0. ``take`` of the pipeline adds to them."""

    def __missing__(self, owner: str) -> Share:
        share = self[owner] = Share(owner)
        return share

    def remove_all(self, arrivals: Iterable[Arrival], now_s: float) -> None:
        """They are stored, or given back."""
        for arrival in arrivals:
            mine = arrival.share
            mine.stored_s = now_s
            mine.size -= arrival.size
            mine.messages -= len(arrival.batch.messages)

    def by_owner(self) -> Mapping[str, tuple[int, int]]:
        """Bytes of payloads and messages."""
        return {owner: (share.size, share.messages) for owner, share in self.items() if share.messages}
