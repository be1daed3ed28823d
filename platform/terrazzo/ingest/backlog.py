"""What of each company was taken and is not stored yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from terrazzo.ingest.arrival import Arrival


class Backlog:
    """Counts batches, not messages. ``share_bytes``: of one owner, before it is read more slowly."""

    __slots__ = ("_of", "_share_bytes")

    def __init__(self, *, share_bytes: int) -> None:
        self._share_bytes = share_bytes
        self._of: dict[str, list[int]] = {}  # by owner: bytes and messages; of some that once had something they are 0

    def add(self, arrival: Arrival) -> bool:
        """Counts an arrival; whether its owner has its share and should send no more until it is decoded."""
        batch = arrival.batch
        owner = batch.client.owner
        mine = self._of.get(owner)
        if mine is None:
            mine = self._of[owner] = [0, 0]
        mine[0] += arrival.size
        mine[1] += len(batch.messages)
        return mine[0] > self._share_bytes

    def remove_all(self, arrivals: Iterable[Arrival]) -> None:
        """They are stored, or given back."""
        for arrival in arrivals:
            batch = arrival.batch
            mine = self._of[batch.client.owner]
            mine[0] -= arrival.size
            mine[1] -= len(batch.messages)

    def by_owner(self) -> Mapping[str, tuple[int, int]]:
        """Bytes of payloads and messages."""
        return {owner: (size, count) for owner, (size, count) in self._of.items() if count}
