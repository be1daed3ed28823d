"""What of each company was taken and is not stored yet, and how much of its was stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from terrazzo.ingest.arrival import Arrival


class Intake(NamedTuple):
    """Reports, and bytes of their payloads: stored since the start, and taken but not stored yet."""

    reports: int
    bytes: int
    waiting: int
    waiting_bytes: int


class Share:
    """What one owner has: messages and bytes of payloads, that were taken and that were stored; when the last was.

    Both only rise, so that what waits and what was stored cost a batch no more than what waits alone.
    """

    __slots__ = ("owner", "stored", "stored_bytes", "stored_s", "taken", "taken_bytes")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.taken = self.taken_bytes = self.stored = self.stored_bytes = 0
        self.stored_s = float("-inf")

    @property
    def messages(self) -> int:
        """Messages that wait."""
        return self.taken - self.stored

    @property
    def size(self) -> int:
        """Bytes of payloads that wait."""
        return self.taken_bytes - self.stored_bytes


class Backlog(dict[str, Share]):
    """The owners' shares; of some that once had something it is 0. ``take`` of the pipeline adds to them."""

    def __missing__(self, owner: str) -> Share:
        share = self[owner] = Share(owner)
        return share

    def on_stored(self, arrivals: Iterable[Arrival], now_s: float) -> None:
        """They wait no more."""
        for arrival in arrivals:
            mine = arrival.share
            mine.stored_s = now_s
            mine.stored_bytes += arrival.size
            mine.stored += len(arrival.batch.messages)

    def give_back(self, arrival: Arrival, now_s: float) -> None:
        """It waits no more, and is not stored: as if it had not been taken."""
        mine = arrival.share
        mine.stored_s = now_s
        mine.taken_bytes -= arrival.size
        mine.taken -= len(arrival.batch.messages)

    def intake(self, owner: str | None) -> Intake:
        """What was stored of an owner, of all for None, and what waits."""
        shares = self.values() if owner is None else [self[owner]] if owner in self else []
        found = [(each.stored, each.stored_bytes, each.messages, each.size) for each in shares]
        return Intake(*map(sum, zip(*found, strict=True))) if found else Intake(0, 0, 0, 0)

    def stored_bytes(self) -> Mapping[str, int]:
        """Bytes of payloads that were stored since the start, by owner."""
        return {owner: share.stored_bytes for owner, share in self.items()}

    def by_owner(self) -> Mapping[str, tuple[int, int]]:
        """Bytes of payloads and messages."""
        return {owner: (share.size, share.messages) for owner, share in self.items() if share.messages}
