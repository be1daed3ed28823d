"""Whose the frames are that feeds keep: when all of them are too many, whoever keeps the most gives up first.

Pure. The owner of a feed is its company; feeds of all companies belong to the platform's administrators.
"""

from __future__ import annotations

from collections import Counter

from terrazzo.live.feed import Feed

_SLACK = 64  # of the ceiling, one part is freed at a time beyond what is needed, so that it isn't asked for each frame
_STEP = 256  # of the ceiling, one part is taken from a feed before looking again which is the largest

Owner = int | None


class FeedShares:
    """Counts feeds and their bytes by owner, and makes room.

    Args:
        most_bytes: of all feeds together, roughly. Within it an owner may have all that nobody else needs.
    """

    def __init__(self, *, most_bytes: int) -> None:
        self.total_bytes = 0
        self._most_bytes = most_bytes
        self._bytes: Counter[Owner] = Counter()
        self._feeds: dict[Owner, dict[Feed, None]] = {}

    def feeds_of(self, owner: Owner) -> int:
        """How many feeds an owner has."""
        return len(self._feeds.get(owner, ()))

    def by_owner(self) -> dict[Owner, tuple[int, int]]:
        """What each owner's feeds keep, in bytes, and how many feeds those are."""
        return {owner: (self._bytes[owner], len(feeds)) for owner, feeds in self._feeds.items()}

    def take_from(self, owner: Owner, size: int) -> int:
        """Has an owner's largest feeds give up about so many bytes; those freed. Each feed keeps its newest entry."""
        freed, goal = 0, max(0, self.total_bytes - size)
        while owner in self._feeds and self.total_bytes > goal and (step := self._take_from(owner, goal)):
            freed += step
        return freed

    def add(self, feed: Feed) -> None:
        """A feed was opened; it is empty."""
        self._feeds.setdefault(feed.owner, {})[feed] = None

    def remove(self, feed: Feed) -> None:
        """A feed has ended."""
        owner = feed.owner
        self._count(owner, -feed.size)
        del self._feeds[owner][feed]
        if not self._feeds[owner]:
            del self._feeds[owner], self._bytes[owner]

    def grow(self, feed: Feed, size: int) -> None:
        """A feed keeps ``size`` bytes more, or fewer; what is too much is taken from the largest owner's largest feed.

        Each feed keeps its newest entry.
        """
        self._bytes[feed.selector.company_id] += size
        self.total_bytes = total = self.total_bytes + size
        if total > self._most_bytes:
            self._make_room(self._most_bytes - self._most_bytes // _SLACK)

    def _count(self, owner: Owner, size: int) -> None:
        self._bytes[owner] += size
        self.total_bytes += size

    def _make_room(self, goal: int) -> None:
        owners = dict(self._bytes)  # those who can give something
        while self.total_bytes > goal and owners:
            owner = max(owners, key=owners.__getitem__)
            freed = self._take_from(owner, goal)
            owners[owner] -= freed
            if not freed:
                del owners[owner]

    def _take_from(self, owner: Owner, goal: int) -> int:
        """Bytes that an owner's largest feed gave up; 0 where there is nothing more to give."""
        largest = max((feed for feed in self._feeds[owner] if feed.is_long), key=_size, default=None)
        if largest is None:
            return 0
        before, step = largest.size, max(1, self._most_bytes // _STEP)
        while largest.is_long and before - largest.size < step and self.total_bytes > goal:
            self._count(owner, -largest.drop_oldest())
        return before - largest.size


def _size(feed: Feed) -> int:
    return feed.size
