"""What of each company was taken and is not stored yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from terrazzo.ingest.arrival import Arrival


class _Share:
    """What one owner has: bytes of payloads, and messages."""

    __slots__ = ("messages", "size")

    def __init__(self) -> None:
        self.size = self.messages = 0


class Backlog:
    """Counts batches, not messages. ``share_bytes``: of one owner, before it is read more slowly."""

    __slots__ = ("_of", "_share_bytes")

    def __init__(self, *, share_bytes: int) -> None:
        self._share_bytes = share_bytes
        self._of: dict[str, _Share] = {}  # by owner; of some that once had something it is 0

    def add(self, arrival: Arrival) -> bool:
        """Counts an arrival; whether its owner has its share and should send no more until it is decoded."""
        batch = arrival.batch
        owner = batch.client.owner
        mine = self._of.get(owner)
        if mine is None:
            mine = self._of[owner] = _Share()
        arrival.share = mine
        mine.messages += len(batch.messages)
        mine.size = size = mine.size + arrival.size
        return size > self._share_bytes

    def remove_all(self, arrivals: Iterable[Arrival]) -> None:
        """They are stored, or given back."""
        for arrival in arrivals:
            mine = arrival.share
            mine.size -= arrival.size
            mine.messages -= len(arrival.batch.messages)

    def by_owner(self) -> Mapping[str, tuple[int, int]]:
        """Bytes of payloads and messages."""
        return {owner: (share.size, share.messages) for owner, share in self._of.items() if share.messages}
